/* attention.c - causal multi-head attention, plain or without the (T, T) matrix.
 *
 * Plain: six matrix products and two softmax kernels.  For each sequence and head (B*H of them, hs = C/H channels
 * each):
 *
 *     att (T, T) = softmax(q k^T / sqrt(hs)), zero above the diagonal       forward
 *     out (T, hs) = att v
 *     datt = dout v^T, dv = att^T dout                                      backward
 *     ds = softmax'(datt), dq = ds k, dk = ds^T q
 *
 * q, k and v are read in place from qkv (B, T, 3C), and dq, dk, dv are written in place into its gradient: an operand
 * is a base, a row length and two strides (sequence, head).  Softmax works in place too.  The (T, T) matrices are lower
 * triangles, and the products skip what is above the diagonal; so what a task touches of them counts half, but for what
 * the softmax kernels write.
 *
 * Flash: three kernels, which have a square of att at a time.  See cl/flash.cl.
 */
#include "model.h"

#include <math.h>

struct heads { /* sizes; channels are those of all these heads */
    int t, hs, batch, heads, channels;
    float scale; /* of the scores */
};

/* Of all heads, or of those that a rank of a tensor-parallel group has. */
static struct heads heads_of(const struct build *b, const struct tensor *qkv)
{
    const struct config *c = &b->model->params->config;
    int hs = c->channels / c->heads, channels = columns_of(qkv) / 3;
    return (struct heads){b->seq, hs, b->batch, channels / hs, channels, (float)(1 / sqrt(hs))};
}

/* q (0), k (1) or v (2) of a (B, T, 3C) tensor. */
static struct operand part(const struct heads *h, struct tensor *qkv, int which)
{
    size_t c = (size_t)h->channels;
    return (struct operand){qkv, (size_t)which * c, 3 * h->channels, (size_t)h->t * 3 * c, (size_t)h->hs};
}

/* One head's columns of a (B, T, C) tensor. */
static struct operand head(const struct heads *h, struct tensor *x)
{
    return (struct operand){x, 0, h->channels, (size_t)h->t * (size_t)h->channels, (size_t)h->hs};
}

/* A (B, H, T, T) tensor. */
static struct operand square(const struct heads *h, struct tensor *att)
{
    size_t tt = (size_t)h->t * (size_t)h->t;
    return (struct operand){att, 0, h->t, (size_t)h->heads * tt, tt};
}

/* ---- plain ----------------------------------------------------------------------------------------------------- */

static void plain_backward(struct build *b, const struct op *op)
{
    struct heads h = heads_of(b, op->in[0]);
    struct tensor *qkv = op->in[0], *att = op->saved[0], *dout = gradient(b, op->out);
    struct tensor *dqkv = like(b, op, ".dqkv", qkv), *datt = like(b, op, ".datt", att);
    int rows = h.batch * h.heads * h.t;
    gemm(b, "attn.datt",
         &(struct gemm){GEMM_NT, h.t, h.t, h.hs, h.batch, h.heads, head(&h, dout), part(&h, qkv, 2), square(&h, datt),
                        .causal = CAUSAL_OUT});
    gemm(b, "attn.dv",
         &(struct gemm){GEMM_TN, h.t, h.hs, h.t, h.batch, h.heads, square(&h, att), head(&h, dout), part(&h, dqkv, 2),
                        .causal = CAUSAL_A_TRANSPOSED, .part = PART_FIRST});
    set_traffic(LAUNCH(b, "attn.dsoftmax", "softmax.cl", "softmax_backward", groups(b, (size_t)rows), INOUT(datt),
                       IN(datt), IN(att), INT(rows), INT(h.t), FLOAT(h.scale)),
                2 * (double)rows * h.t);
    gemm(b, "attn.dq",
         &(struct gemm){GEMM_NN, h.t, h.hs, h.t, h.batch, h.heads, square(&h, datt), part(&h, qkv, 1),
                        part(&h, dqkv, 0), .causal = CAUSAL_A, .part = PART_NEXT});
    gemm(b, "attn.dk",
         &(struct gemm){GEMM_TN, h.t, h.hs, h.t, h.batch, h.heads, square(&h, datt), part(&h, qkv, 0),
                        part(&h, dqkv, 1), .causal = CAUSAL_A_TRANSPOSED, .part = PART_NEXT});
    give_gradient(b, op, qkv, dqkv);
}

static void plain_forward(struct build *b, struct tensor *out, struct tensor *qkv)
{
    struct heads h = heads_of(b, qkv);
    int rows = h.batch * h.heads * h.t;
    struct tensor *att = activation(b, "attn.att", SHAPE(h.batch, h.heads, h.t, h.t));
    att->cheap = true;
    gemm(b, "attn.scores",
         &(struct gemm){GEMM_NT, h.t, h.t, h.hs, h.batch, h.heads, part(&h, qkv, 0), part(&h, qkv, 1), square(&h, att),
                        .causal = CAUSAL_OUT});
    set_traffic(LAUNCH(b, "attn.softmax", "softmax.cl", "softmax_forward", groups(b, (size_t)rows), INOUT(att), IN(att),
                       INT(rows), INT(h.t), FLOAT(h.scale)),
                1.5 * (double)rows * h.t);
    gemm(b, out->name,
         &(struct gemm){GEMM_NN, h.t, h.hs, h.t, h.batch, h.heads, square(&h, att), part(&h, qkv, 2), head(&h, out),
                        .causal = CAUSAL_A});
    record(b, out->name, NULL, plain_backward, out, qkv)->saved[0] = att;
}

/* ---- flash ----------------------------------------------------------------------------------------------------- */

struct tiles { /* a work-group's: columns that it owns, and rows of what it streams past them */
    int columns, rows;
    size_t local_bytes;
};

/* The largest that local memory has room for, columns first: `kept` blocks of (hs, columns) floats and `streams` of
 * (rows, hs + 1) are there at a time, a square for each stream, and up to three rows of columns. */
static struct tiles choose_tiles(const struct device *d, int hs, int kept, int streams)
{
    enum { MOST = 64, LEAST_ROWS = 8 };
    int least = (int)(d->vector * d->tile_vectors);
    for (int columns = MOST; columns >= least; columns /= 2)
        for (int rows = MOST; rows >= LEAST_ROWS; rows /= 2) {
            size_t floats = (size_t)(kept * hs * columns + streams * rows * (hs + 1 + columns) + 3 * columns);
            if (floats * ELEMENT_BYTES <= d->local_memory)
                return (struct tiles){columns, rows, floats * ELEMENT_BYTES};
        }
    fail(EXIT_USAGE,
         "heads of %d channels are too wide for the local memory of device %s, %zu bytes: use more --heads, or "
         "--attention plain",
         hs, d->id, d->local_memory);
}

static struct grid flash_grid(const struct build *b, const struct heads *h, const struct tiles *t)
{
    size_t wg = b->device->work_group, blocks = ceil_div((size_t)h->t, (size_t)t->columns);
    return (struct grid){2, {blocks * wg, (size_t)(h->batch * h->heads), 1}, {wg, 1, 1}};
}

#define FLASH_SIZES(h, tiles)                                                                                          \
    INT((h).t), INT((h).heads), INT((h).hs), FLOAT((h).scale), INT((tiles).columns), INT((tiles).rows),                \
        LOCAL((tiles).local_bytes)

/* `products` of a triangle of (T, T) each, and `rows` of C floats read and written for each token. */
static struct task *set_work(struct task *t, const struct heads *h, int products, int rows)
{
    t->flops = (double)products * h->t * h->t * h->channels * h->batch;
    set_traffic(t, (double)rows * h->batch * h->t * h->channels);
    return t;
}

static void flash_backward(struct build *b, const struct op *op)
{
    struct heads h = heads_of(b, op->in[0]);
    struct tensor *qkv = op->in[0], *lse = op->saved[0], *dout = gradient(b, op->out);
    struct tensor *dqkv = like(b, op, ".dqkv", qkv), *delta = like(b, op, ".delta", lse);
    struct tiles dq = choose_tiles(b->device, h.hs, 3, 2), dkv = choose_tiles(b->device, h.hs, 4, 2);
    struct task *t = LAUNCH(b, "attn.flash.dq", "flash.cl", "flash_dq", flash_grid(b, &h, &dq), OUT(dqkv), OUT(delta),
                            IN(dout), IN(op->out), IN(lse), IN(qkv), FLASH_SIZES(h, dq));
    set_work(t, &h, 3, 6)->partial = true;
    t = LAUNCH(b, "attn.flash.dkv", "flash.cl", "flash_dkv", flash_grid(b, &h, &dkv), INOUT(dqkv), IN(dout), IN(lse),
               IN(delta), IN(qkv), FLASH_SIZES(h, dkv));
    set_work(t, &h, 4, 6)->partial = true;
    give_gradient(b, op, qkv, dqkv);
}

static void flash_forward(struct build *b, struct tensor *out, struct tensor *qkv)
{
    struct heads h = heads_of(b, qkv);
    struct tiles tiles = choose_tiles(b->device, h.hs, 2, 1);
    struct tensor *lse = activation(b, "attn.lse", SHAPE(h.batch, h.heads, h.t));
    set_work(LAUNCH(b, "attn.flash", "flash.cl", "flash_forward", flash_grid(b, &h, &tiles), OUT(out), OUT(lse),
                    IN(qkv), FLASH_SIZES(h, tiles)),
             &h, 2, 4);
    record(b, out->name, NULL, flash_backward, out, qkv)->saved[0] = lse;
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

struct tensor *attention(struct build *b, const char *name, struct tensor *qkv)
{
    struct tensor *out = activation(b, name, SHAPE(rows_of(qkv), columns_of(qkv) / 3));
    (b->kernels.attention == ATTENTION_FLASH ? flash_forward : plain_forward)(b, out, qkv);
    return out;
}

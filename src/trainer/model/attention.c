/* attention.c - causal multi-head attention and its gradient, with the whole (T, T) matrix (plain) or without it
 * (flash).
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
 * triangles, and the products skip what is above the diagonal.  So a product is counted to touch half of such a matrix;
 * the softmax kernels read half of it and write it all.
 *
 * Flash: three kernels, each of which has only a square of att at a time.  See cl/flash.cl.
 */
#include "model.h"

#include <math.h>

struct heads { /* the sizes of all heads, or of those that a rank of a tensor-parallel group has */
    int t, hs, batch, heads;
    int channels; /* channels of these heads together */
    float scale;  /* factor of the scores */
};

static struct heads heads_of(const struct builder *b, const struct tensor *qkv)
{
    const struct config *config = &b->model->params->config;
    int hs = config->channels / config->heads, channels = columns_of(qkv) / 3;
    return (struct heads){.t = b->seq,
                          .hs = hs,
                          .batch = b->batch,
                          .heads = channels / hs,
                          .channels = channels,
                          .scale = (float)(1 / sqrt(hs))};
}

/* The third of a (B, T, 3C) tensor that is q, k or v. */
enum third { THIRD_Q, THIRD_K, THIRD_V };
static struct operand qkv_third(const struct heads *heads, struct tensor *qkv, enum third third)
{
    size_t channels = (size_t)heads->channels;
    return (struct operand){.tensor = qkv,
                            .offset = (size_t)third * channels,
                            .ld = 3 * heads->channels,
                            .batch_stride = (size_t)heads->t * 3 * channels,
                            .head_stride = (size_t)heads->hs};
}

/* One head's columns of a (B, T, C) tensor. */
static struct operand one_head(const struct heads *heads, struct tensor *x)
{
    size_t channels = (size_t)heads->channels;
    return (struct operand){.tensor = x,
                            .ld = heads->channels,
                            .batch_stride = (size_t)heads->t * channels,
                            .head_stride = (size_t)heads->hs};
}

/* A (B, H, T, T) tensor. */
static struct operand square(const struct heads *heads, struct tensor *att)
{
    size_t tt = (size_t)heads->t * (size_t)heads->t;
    return (struct operand){
        .tensor = att, .ld = heads->t, .batch_stride = (size_t)heads->heads * tt, .head_stride = tt};
}

/* A product for each sequence and head; operands are still to be set. */
static struct gemm product_of_heads(const struct heads *heads, enum gemm_form form, int m, int n, int k)
{
    return (struct gemm){.form = form, .m = m, .n = n, .k = k, .batch = heads->batch, .heads = heads->heads};
}

/* ---- plain ------------------------------------------------------------------------------------------------------- */

/* The next three functions add dv, dq and dk, the parts of dqkv = [dq dk dv], each (T, hs). */

/* dv = att^T dout. */
static void add_dv(struct builder *b, const struct heads *heads, struct tensor *dqkv, struct tensor *att,
                   struct tensor *dout)
{
    struct gemm dv = product_of_heads(heads, GEMM_TN, heads->t, heads->hs, heads->t);
    dv.a = square(heads, att);
    dv.b = one_head(heads, dout);
    dv.c = qkv_third(heads, dqkv, THIRD_V);
    dv.causal = CAUSAL_A_TRANSPOSED;
    dv.part = PART_FIRST;
    gemm(b, "attn.dv", &dv);
}

/* dq = ds k. */
static void add_dq(struct builder *b, const struct heads *heads, struct tensor *dqkv, struct tensor *ds,
                   struct tensor *qkv)
{
    struct gemm dq = product_of_heads(heads, GEMM_NN, heads->t, heads->hs, heads->t);
    dq.a = square(heads, ds);
    dq.b = qkv_third(heads, qkv, THIRD_K);
    dq.c = qkv_third(heads, dqkv, THIRD_Q);
    dq.causal = CAUSAL_A;
    dq.part = PART_NEXT;
    gemm(b, "attn.dq", &dq);
}

/* dk = ds^T q. */
static void add_dk(struct builder *b, const struct heads *heads, struct tensor *dqkv, struct tensor *ds,
                   struct tensor *qkv)
{
    struct gemm dk = product_of_heads(heads, GEMM_TN, heads->t, heads->hs, heads->t);
    dk.a = square(heads, ds);
    dk.b = qkv_third(heads, qkv, THIRD_Q);
    dk.c = qkv_third(heads, dqkv, THIRD_K);
    dk.causal = CAUSAL_A_TRANSPOSED;
    dk.part = PART_NEXT;
    gemm(b, "attn.dk", &dk);
}

static void plain_backward(struct builder *b, const struct op *op)
{
    struct heads heads = heads_of(b, op->in[0]);
    struct tensor *qkv = op->in[0], *att = op->saved[0];
    struct tensor *dout = gradient(b, op->out);
    struct tensor *dqkv = new_gradient(b, op, ".dqkv", qkv);
    struct tensor *datt = new_gradient(b, op, ".datt", att); /* softmax_backward makes ds of it, in place */
    int rows = heads.batch * heads.heads * heads.t;
    struct gemm datt_product = product_of_heads(&heads, GEMM_NT, heads.t, heads.t, heads.hs);
    datt_product.a = one_head(&heads, dout);
    datt_product.b = qkv_third(&heads, qkv, THIRD_V);
    datt_product.c = square(&heads, datt);
    datt_product.causal = CAUSAL_OUT;
    gemm(b, "attn.datt", &datt_product);
    add_dv(b, &heads, dqkv, att, dout);
    struct task *softmax =
        LAUNCH(b, "attn.dsoftmax", "softmax.cl", "softmax_backward", work_groups(b, rows),
               INOUT(datt),
               IN(datt), IN(att),
               INT(heads.t), FLOAT(heads.scale));
    set_traffic(softmax, 2 * (double)rows * heads.t);
    add_dq(b, &heads, dqkv, datt, qkv);
    add_dk(b, &heads, dqkv, datt, qkv);
    accumulate_gradient(b, op, qkv, dqkv);
}

static void plain_forward(struct builder *b, struct tensor *out, struct tensor *qkv)
{
    struct heads heads = heads_of(b, qkv);
    int rows = heads.batch * heads.heads * heads.t;
    struct tensor *att = activation(b, "attn.att", SHAPE(heads.batch, heads.heads, heads.t, heads.t));
    att->extra.cheap = true;
    struct gemm scores = product_of_heads(&heads, GEMM_NT, heads.t, heads.t, heads.hs);
    scores.a = qkv_third(&heads, qkv, THIRD_Q);
    scores.b = qkv_third(&heads, qkv, THIRD_K);
    scores.c = square(&heads, att);
    scores.causal = CAUSAL_OUT;
    gemm(b, "attn.scores", &scores);
    struct task *softmax = LAUNCH(b, "attn.softmax", "softmax.cl", "softmax_forward", work_groups(b, rows),
                                  INOUT(att),
                                  IN(att),
                                  INT(heads.t), FLOAT(heads.scale));
    set_traffic(softmax, 1.5 * (double)rows * heads.t);
    struct gemm mix = product_of_heads(&heads, GEMM_NN, heads.t, heads.hs, heads.t);
    mix.a = square(&heads, att);
    mix.b = qkv_third(&heads, qkv, THIRD_V);
    mix.c = one_head(&heads, out);
    mix.causal = CAUSAL_A;
    gemm(b, out->name, &mix);
    struct op *op = record_op(b, out->name, NULL, plain_backward, out, qkv);
    op->saved[0] = att;
}

/* ---- flash ------------------------------------------------------------------------------------------------------- */

enum flash_kernel { FLASH_FORWARD, FLASH_DQ, FLASH_DKV };

/* What a work-group of each kernel holds in local memory, and how much work a task is (cl/flash.cl). */
static const struct flash_cost {
    int n_owned;   /* blocks (hs, columns): those that it owns, and their results */
    int n_streams; /* blocks (rows, hs + 1), each with a square (rows, columns) */
    int products;  /* matrix products, each of a triangle of (T, T) */
    int traffic;   /* rows of C floats that are read and written for each token */
} flash_costs[] = {
    [FLASH_FORWARD] = {.n_owned = 2, .n_streams = 1, .products = 2, .traffic = 4},
    [FLASH_DQ] = {.n_owned = 3, .n_streams = 2, .products = 3, .traffic = 6},
    [FLASH_DKV] = {.n_owned = 4, .n_streams = 2, .products = 4, .traffic = 6},
};

struct tiles {   /* how a work-group cuts the (T, T) square */
    int columns; /* the columns that it owns */
    int rows;    /* how many rows it reads at a time */
    size_t local_bytes;
};

/* The largest tiles for which local memory has room; many columns matter more than many rows. */
static struct tiles choose_tiles(const struct device *device, int hs, enum flash_kernel kernel)
{
    enum { MOST = 64, LEAST_ROWS = 8, VECTORS = 3 }; /* VECTORS: arrays (columns) beside the blocks, at most */
    const struct flash_cost *cost = &flash_costs[kernel];
    int least = (int)(device->shape.vector * device->shape.tile_vectors);
    for (int columns = MOST; columns >= least; columns /= 2)
        for (int rows = MOST; rows >= LEAST_ROWS; rows /= 2) {
            int owned = cost->n_owned * hs * columns;
            int streams = cost->n_streams * rows * (hs + 1 + columns);
            size_t floats = (size_t)(owned + streams + VECTORS * columns);
            if (floats * ELEMENT_BYTES <= device->shape.local_memory)
                return (struct tiles){columns, rows, floats * ELEMENT_BYTES};
        }
    fail(EXIT_USAGE,
         "heads of %d channels are too wide for the local memory of device %s, %zu bytes: use more --heads, or "
         "--attention plain",
         hs, device->id, device->shape.local_memory);
}

static struct grid flash_grid(const struct builder *b, const struct heads *heads, const struct tiles *tiles)
{
    size_t wg = b->device->shape.work_group, blocks = ceil_div((size_t)heads->t, (size_t)tiles->columns);
    return (struct grid){2, {blocks * wg, (size_t)(heads->batch * heads->heads), 1}, {wg, 1, 1}};
}

#define FLASH_SIZES(sizes, tiles)                                                                                      \
    INT((sizes).t), INT((sizes).heads), INT((sizes).hs), FLOAT((sizes).scale), INT((tiles).columns),                   \
        INT((tiles).rows), LOCAL((tiles).local_bytes)

/* Says how much work the task is. */
static void set_work(struct task *task, const struct heads *heads, enum flash_kernel kernel)
{
    const struct flash_cost *cost = &flash_costs[kernel];
    task->flops = (double)cost->products * heads->t * heads->t * heads->channels * heads->batch;
    set_traffic(task, (double)cost->traffic * heads->batch * heads->t * heads->channels);
}

static void flash_backward(struct builder *b, const struct op *op)
{
    struct heads heads = heads_of(b, op->in[0]);
    struct tensor *qkv = op->in[0], *lse = op->saved[0];
    struct tensor *dout = gradient(b, op->out);
    struct tensor *dqkv = new_gradient(b, op, ".dqkv", qkv);
    struct tensor *delta = new_gradient(b, op, ".delta", lse);
    struct tiles dq = choose_tiles(b->device, heads.hs, FLASH_DQ);
    struct tiles dkv = choose_tiles(b->device, heads.hs, FLASH_DKV);
    struct task *for_dq =
        LAUNCH(b, "attn.flash.dq", "flash.cl", "flash_dq", flash_grid(b, &heads, &dq),
                                 OUT(dqkv), OUT(delta),
                                 IN(dout), IN(op->out), IN(lse), IN(qkv),
                                 FLASH_SIZES(heads, dq));
    struct task *for_dkv = LAUNCH(b, "attn.flash.dkv", "flash.cl", "flash_dkv", flash_grid(b, &heads, &dkv),
                                  INOUT(dqkv),
                                  IN(dout), IN(lse), IN(delta), IN(qkv),
                                  FLASH_SIZES(heads, dkv));
    set_work(for_dq, &heads, FLASH_DQ);
    set_work(for_dkv, &heads, FLASH_DKV);
    for_dq->extra.partial = true;
    for_dkv->extra.partial = true;
    accumulate_gradient(b, op, qkv, dqkv);
}

static void flash_forward(struct builder *b, struct tensor *out, struct tensor *qkv)
{
    struct heads heads = heads_of(b, qkv);
    struct tiles tiles = choose_tiles(b->device, heads.hs, FLASH_FORWARD);
    struct tensor *lse = activation(b, "attn.lse", SHAPE(heads.batch, heads.heads, heads.t));
    struct task *task = LAUNCH(b, "attn.flash", "flash.cl", "flash_forward", flash_grid(b, &heads, &tiles),
                               OUT(out), OUT(lse),
                               IN(qkv),
                               FLASH_SIZES(heads, tiles));
    set_work(task, &heads, FLASH_FORWARD);
    struct op *op = record_op(b, out->name, NULL, flash_backward, out, qkv);
    op->saved[0] = lse;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

struct tensor *attention(struct builder *b, const char *name, struct tensor *qkv)
{
    struct tensor *out = activation(b, name, SHAPE(rows_of(qkv), columns_of(qkv) / 3));
    if (b->kernels.attention == ATTENTION_FLASH)
        flash_forward(b, out, qkv);
    else
        plain_forward(b, out, qkv);
    return out;
}

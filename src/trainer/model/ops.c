/* ops.c - embedding, LayerNorm, GELU and residual: each operation with its gradient.
 *
 * The mathematics is in the headers of the .cl files.  N = B*T tokens, C channels, V vocabulary.
 */
#include "model.h"

/* ---- GELU -------------------------------------------------------------------------------------------------------- */

static void gelu_inputs(struct builder *b, const struct op *op)
{
    struct tensor *x = op->in[0], *dx = new_gradient(b, op, ".dx", x);
    size_t elements = count_elements(x);
    struct task *task =
        LAUNCH(b, JOINED(op->name, ".dx"), "gelu.cl", "gelu_backward", blocks(b, elements),
               OUT(dx),
               IN(gradient(b, op->out)), IN(x),
               ELEMENTS(elements));
    set_elementwise(task);
    accumulate_gradient(b, op, x, dx);
}

struct tensor *gelu(struct builder *b, const char *name, struct tensor *x)
{
    size_t elements = count_elements(x);
    struct tensor *out = activation(b, name, x->shape);
    out->extra.cheap = true;
    struct task *task =
        LAUNCH(b, name, "gelu.cl", "gelu_forward", blocks(b, elements),
               OUT(out),
               IN(x),
               ELEMENTS(elements));
    set_elementwise(task);
    record_op(b, name, NULL, gelu_inputs, out, x);
    return out;
}

/* ---- residual: out = x + y --------------------------------------------------------------------------------------- */

/* d(x + y) passes to both unchanged: the two gradients are the same tensor, and no task is needed. */
static void residual_inputs(struct builder *b, const struct op *op)
{
    struct tensor *dout = gradient(b, op->out);
    accumulate_gradient(b, op, op->in[0], dout);
    accumulate_gradient(b, op, op->in[1], dout);
}

struct tensor *residual(struct builder *b, const char *name, struct tensor *x, struct tensor *y)
{
    size_t elements = count_elements(x);
    struct tensor *out = activation(b, name, x->shape);
    struct task *task =
        LAUNCH(b, name, "elementwise.cl", "add", blocks(b, elements),
               OUT(out),
               IN(x), IN(y),
               ELEMENTS(elements));
    set_elementwise(task);
    struct op *op = record_op(b, name, NULL, residual_inputs, out, x);
    op->in[1] = y;
    return out;
}

/* ---- embedding: x = wte[token] + wpe[position] ------------------------------------------------------------------- */

static void embed_weights(struct builder *b, const struct op *op)
{
    const struct config *config = &b->model->params->config;
    struct replica *replica = b->replica;
    struct tensor *dx = gradient(b, op->out);
    struct tensor *by_token = op->saved[0], *start = op->saved[1];
    struct tensor *dwte = replica->lookup_grad ? replica->lookup_grad : replica->unlayered[WTE].grad;
    struct tensor *dwpe = replica->unlayered[WPE].grad;
    int tokens = b->batch * b->seq;
    int words = rows_of(dwte);
    bool accumulate_wte = begin_contribution(b, dwte);
    bool accumulate_wpe = begin_contribution(b, dwpe);
    int rows = accumulate_wte ? 2 * MIN(tokens, words) : words; /* of dwte: rows read and written, or only written */
    struct task *task =
        LAUNCH(b, "embed.dwte", "embed.cl", "embed_backward_tokens", work_groups(b, words),
               ACCUMULATE(dwte, accumulate_wte),
               IN(dx), IN(by_token), IN(start),
               INT(replica->unlayered[WTE].first), INT(config->channels), INT(accumulate_wte));
    set_traffic(task, (double)config->channels * (tokens + rows));
    LAUNCH(b, "embed.dwpe", "embed.cl", "embed_backward_positions", work_groups(b, config->seq_len),
           ACCUMULATE(dwpe, accumulate_wpe),
           IN(dx),
           INT(b->batch), INT(b->seq), INT(config->channels), INT(accumulate_wpe));
}

struct tensor *embed(struct builder *b, const struct batch *batch)
{
    const struct config *config = &b->model->params->config;
    int tokens = b->batch * b->seq;
    struct weight wte = b->replica->unlayered[WTE];
    struct tensor *x = activation(b, "embed", SHAPE(tokens, config->channels));
    bool adds_position = wte.cut.split == SPLIT_NONE || b->tp_rank == 0;
    struct task *task =
        LAUNCH(b, "embed", "embed.cl", "embed_forward", work_groups(b, tokens),
               OUT(x),
               IN(wte.value), IN(b->replica->unlayered[WPE].value), IN(batch->tokens),
               INT(wte.first), INT(rank_vocab(b)), INT(b->seq), INT(config->channels), INT(adds_position));
    set_traffic(task, (double)config->channels * (2 * tokens + b->seq));
    if (wte.cut.split == SPLIT_ROWS)
        all_reduce(b, "embed", x);
    struct op *op = record_op(b, "embed", embed_weights, NULL, x, NULL);
    op->saved[0] = batch->by_token;
    op->saved[1] = batch->start;
    return x;
}

/* ---- LayerNorm: out = w * (x - mean) / deviation + bias, per token ----------------------------------------------- */

static void layernorm_weights(struct builder *b, const struct op *op)
{
    struct tensor *x = op->in[0], *dout = gradient(b, op->out);
    struct tensor *mean = op->saved[0], *rstd = op->saved[1];
    int tokens = rows_of(x), channels = columns_of(x);
    bool accumulate_w = begin_contribution(b, op->w.grad);
    bool accumulate_bias = begin_contribution(b, op->bias.grad);
    CHECK(accumulate_w == accumulate_bias, "%s: weight and bias are not used together", op->name);
    LAUNCH(b, JOINED(op->name, ".dw"), "layernorm.cl", "layernorm_backward_params", column_blocks(b, channels),
           ACCUMULATE(op->w.grad, accumulate_w), ACCUMULATE(op->bias.grad, accumulate_w),
           IN(dout), IN(x), IN(mean), IN(rstd),
           INT(tokens), INT(channels), INT(accumulate_w));
}

/* The residual stream's gradient, which has arrived at x already, is carried through: dx = carry + LN'(dout). */
static void layernorm_inputs(struct builder *b, const struct op *op)
{
    struct tensor *x = op->in[0], *dout = gradient(b, op->out);
    struct tensor *mean = op->saved[0], *rstd = op->saved[1];
    bool has_carry = gradient(b, x) != NULL;
    struct arg carry = NO_TENSOR;
    struct tensor *dx = new_gradient(b, op, ".dx", x);
    int tokens = rows_of(x), channels = columns_of(x);
    if (has_carry)
        carry = IN(gradient(b, x));
    LAUNCH(b, JOINED(op->name, ".dx"), "layernorm.cl", "layernorm_backward", work_groups(b, tokens),
           OUT(dx),
           carry, IN(dout), IN(x), IN(mean), IN(rstd), IN(op->w.value),
           INT(channels), INT(has_carry));
    set_gradient(b, x, dx);
}

struct tensor *layernorm(struct builder *b, const char *name, struct tensor *x, struct weight w, struct weight bias)
{
    int tokens = rows_of(x), channels = columns_of(x);
    struct tensor *out = activation(b, name, x->shape);
    struct tensor *mean = activation(b, "ln.mean", SHAPE(tokens));
    struct tensor *rstd = activation(b, "ln.rstd", SHAPE(tokens));
    LAUNCH(b, name, "layernorm.cl", "layernorm_forward", work_groups(b, tokens),
           OUT(out), OUT(mean), OUT(rstd),
           IN(x), IN(w.value), IN(bias.value),
           INT(channels));
    struct op *op = record_op(b, name, layernorm_weights, layernorm_inputs, out, x);
    op->w = w;
    op->bias = bias;
    op->saved[0] = mean;
    op->saved[1] = rstd;
    return out;
}

/* layernorm.c - LayerNorm, out = w * (x - mean) / deviation + bias per token, and its gradients.  The mathematics is in
 * cl/layernorm.cl. */
#include "model.h"

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

/* ops.c - GELU and residual: each operation with its gradient.  The mathematics is in cl/gelu.cl and
 * cl/elementwise.cl. */
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

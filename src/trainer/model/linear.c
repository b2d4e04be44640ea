/* linear.c - y = x w^T + bias and its gradients.
 *
 *     forward   y  (N, out) = bias + x (N, in) . w (out, in)^T        NT
 *     backward  dx (N, in)  = dy (N, out) . w (out, in)               NN
 *               dw (out, in) += dy (N, out)^T . x (N, in)             TN
 *               dbias (out)   += column sums of dy
 *
 * A rank of a tensor-parallel group may have some rows of w, and so some of the outputs.  Then its dx is one term of a
 * sum over the ranks.  Or it has some columns, and is given the inputs for these.  Then its y is one term of a sum, and
 * the first rank adds the bias.
 */
#include "model.h"

/* result (m, n) = first . second, of whole matrices.  In form TN first is (k, m), in form NT second is (n, k). */
static struct gemm product(enum gemm_form form, int m, int n, int k, struct tensor *first, struct tensor *second,
                           struct tensor *result)
{
    return (struct gemm){.form = form,
                         .m = m,
                         .n = n,
                         .k = k,
                         .batch = 1,
                         .heads = 1,
                         .a = matrix(first, form == GEMM_TN ? m : k),
                         .b = matrix(second, form == GEMM_NT ? k : n),
                         .c = matrix(result, n)};
}

static void linear_weights(struct builder *b, const struct op *op)
{
    struct tensor *x = op->in[0], *dy = gradient(b, op->out);
    int n = rows_of(x);
    int in = columns_of(x), out = columns_of(dy);
    bool accumulate_w = begin_contribution(b, op->w.grad);
    struct gemm dw = product(GEMM_TN, out, in, n, dy, x, op->w.grad);
    dw.start = accumulate_w ? START_OLD : START_ZERO;
    gemm(b, JOINED(op->name, ".dw"), &dw);
    if (op->bias.value) {
        bool accumulate_bias = begin_contribution(b, op->bias.grad);
        LAUNCH(b, JOINED(op->name, ".db"), "elementwise.cl", "column_sum", column_blocks(b, out),
               ACCUMULATE(op->bias.grad, accumulate_bias),
               IN(dy),
               INT(n), INT(out), INT(accumulate_bias));
    }
}

static void linear_inputs(struct builder *b, const struct op *op)
{
    struct tensor *x = op->in[0], *dy = gradient(b, op->out);
    struct tensor *dx = new_gradient(b, op, ".dx", x);
    int n = rows_of(x);
    int in = columns_of(x), out = columns_of(dy);
    const char *name = JOINED(op->name, ".dx");
    struct gemm inputs = product(GEMM_NN, n, in, out, dy, op->w.value, dx);
    gemm(b, name, &inputs);
    if (op->w.cut.split == SPLIT_ROWS)
        all_reduce(b, name, dx);
    accumulate_gradient(b, op, x, dx);
}

struct tensor *linear(struct builder *b, const char *name, struct tensor *x, struct weight w, struct weight bias)
{
    int n = rows_of(x);
    int in = columns_of(x), out = (int)w.value->shape.size[0];
    bool biased = bias.value && (w.cut.split != SPLIT_COLUMNS || b->tp_rank == 0);
    struct tensor *y = activation(b, name, SHAPE(n, out));
    struct gemm forward = product(GEMM_NT, n, out, in, x, w.value, y);
    if (biased) {
        forward.start = START_BIAS;
        forward.bias = bias.value;
    }
    gemm(b, name, &forward);
    if (w.cut.split == SPLIT_COLUMNS)
        all_reduce(b, name, y);
    struct op *op = record_op(b, name, linear_weights, linear_inputs, y, x);
    op->w = w;
    op->bias = bias;
    return y;
}

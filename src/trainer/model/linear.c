/* linear.c - y = x w^T + bias and its gradients.
 *
 *     forward   y  (N, out) = bias + x (N, in) . w (out, in)^T        NT
 *     backward  dx (N, in)  = dy (N, out) . w (out, in)               NN
 *               dw (out, in) += dy (N, out)^T . x (N, in)             TN
 *               dbias (out)   += column sums of dy
 *
 * A rank of a tensor-parallel group may have rows of w, so some of the outputs: then its dx is a part of a sum over
 * the ranks.  Or it has columns, and gets those inputs: then its y is.  The first rank adds the bias.
 */
#include "model.h"

static void linear_weights(struct build *b, const struct op *op)
{
    struct tensor *x = op->in[0], *dy = gradient(b, op->out);
    int n = rows_of(x), in = columns_of(x), out = columns_of(dy);
    gemm(b, JOINED(op->name, ".dw"),
         &(struct gemm){GEMM_TN, out, in, n, 1, 1, matrix(dy, out), matrix(x, in), matrix(op->w.grad, in),
                        .start = accumulates(b, op->w.grad) ? START_OLD : START_ZERO});
    if (op->bias.value) {
        bool more = accumulates(b, op->bias.grad);
        LAUNCH(b, JOINED(op->name, ".db"), "elementwise.cl", "column_sum", column_blocks(b, (size_t)out),
               ACCUMULATE(op->bias.grad, more), IN(dy), INT(n), INT(out), INT(more));
    }
}

static void linear_inputs(struct build *b, const struct op *op)
{
    struct tensor *x = op->in[0], *dy = gradient(b, op->out), *dx = like(b, op, ".dx", x);
    int n = rows_of(x), in = columns_of(x), out = columns_of(dy);
    const char *name = JOINED(op->name, ".dx");
    gemm(b, name,
         &(struct gemm){GEMM_NN, n, in, out, 1, 1, matrix(dy, out), matrix(op->w.value, in), matrix(dx, in),
                        .start = START_ZERO});
    if (op->w.cut.split == SPLIT_ROWS)
        all_reduce(b, name, dx);
    give_gradient(b, op, x, dx);
}

struct tensor *linear(struct build *b, const char *name, struct tensor *x, struct weight w, struct weight bias)
{
    int n = rows_of(x), in = columns_of(x), out = (int)w.value->shape[0];
    bool biased = bias.value && (w.cut.split != SPLIT_COLUMNS || b->tp_rank == 0);
    struct tensor *y = activation(b, name, SHAPE(n, out));
    gemm(b, name,
         &(struct gemm){GEMM_NT, n, out, in, 1, 1, matrix(x, in), matrix(w.value, in), matrix(y, out),
                        .start = biased ? START_BIAS : START_ZERO, .bias = biased ? bias.value : NULL});
    if (w.cut.split == SPLIT_COLUMNS)
        all_reduce(b, name, y);
    struct op *op = record(b, name, linear_weights, linear_inputs, y, x);
    op->w = w;
    op->bias = bias;
    return y;
}

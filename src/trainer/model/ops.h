/* ops.h - the operations of which a model is made.  Each adds its forward's tasks, and notes how to add its backward's.
 * Implemented in ops.c, linear.c and attention.c, and matrix products in gemm.c.
 */
#ifndef OPS_H
#define OPS_H

#include "build.h"

/* ---- ops.c, linear.c, attention.c: the operations, each with its backward -------------------------------------- */

/* A micro-batch on the device: views of one uploaded tensor. */
struct batch {
    struct tensor *all, *tokens, *targets, *order, *start;
};
struct tensor *embed(struct build *b, const struct batch *batch); /* (N, C) */
struct tensor *layernorm(struct build *b, const char *name, struct tensor *x, struct weight w, struct weight bias);
struct tensor *gelu(struct build *b, const char *name, struct tensor *x);
struct tensor *add(struct build *b, const char *name, struct tensor *x, struct tensor *y);
/* x (N, in) * w(out, in)^T + bias(out): (N, out).  bias.value may be NULL. */
struct tensor *linear(struct build *b, const char *name, struct tensor *x, struct weight w, struct weight bias);
/* qkv (N, 3C): causal attention of H heads: (N, C).  With tensor parallelism H and C are those of the rank's heads. */
struct tensor *attention(struct build *b, const char *name, struct tensor *qkv);
/* The cross-entropy of each token: losses (N).  logits: a column for each word (or for each word of the rank's), and
 * padding.  total (1) accumulates the sum of losses over micro-batches; NULL: an evaluation.  The gradient is that of
 * the mean: it is scaled by 1/tokens_per_step. */
struct tensor *cross_entropy(struct build *b, struct tensor *logits, const struct batch *batch, struct tensor *total,
                             double tokens_per_step);

/* ---- gemm.c: matrix products, two engines and one function -------------------------------------------------- */

/* C(M,N) = start + op(A) op(B), row-major, batch*heads products. */
enum gemm_form { GEMM_NT, GEMM_NN, GEMM_TN }; /* A(M,K) B(N,K) | A(M,K) B(K,N) | A(K,M) B(K,N) */
/* How much of its tensor C is: all; the first part that is written; a later part, so that what was written is kept. */
enum gemm_part { PART_WHOLE, PART_FIRST, PART_NEXT };
/* Matrix z = i*heads + h of an operand starts at element base + i*outer + h*inner; its rows are ld elements apart. */
struct operand {
    struct tensor *tensor;
    size_t base;
    int ld;
    size_t outer, inner;
};
struct gemm {
    enum gemm_form form;
    int m, n, k, batch, heads;
    struct operand a, b, c;
    enum gemm_start start;
    struct tensor *bias; /* (N) with START_BIAS */
    enum gemm_causal causal;
    enum gemm_part part;
};
extern const char *const gemm_form_name[3];
void gemm(struct build *b, const char *name, const struct gemm *g);
struct operand matrix(struct tensor *t, int ld); /* a whole tensor as one matrix */

#endif

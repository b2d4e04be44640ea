/* ops.h - the operations of which a model is made.  Each adds its forward's tasks, and records how to add its
 * backward's (build.h).
 *
 * Sizes as in model.h: N = B*T tokens of a micro-batch, C channels, H heads, V words.  All values are floats, and rows
 * lie one after another.  Each operation returns its result: a new tensor on the rank's device, named `name`.
 */
#ifndef OPS_H
#define OPS_H

#include "build.h"
#include "cl/shared.h" /* brings: gemm_start, gemm_causal */

/* ---- ops.c, embedding.c, layernorm.c: the operations, each with its backward ------------------------------------- */

/* A micro-batch, on a device or on the host: views of one tensor of int32, which is uploaded at once. */
struct batch {
    struct tensor *all;
    struct tensor *tokens, *targets; /* (N) each: a position's token, and the one after it */
    struct tensor *by_token;         /* (N) the positions, sorted by token: see sort_positions() in data.h */
    struct tensor *start;            /* (V + 1) where a token's positions begin in `by_token` */
};

/* (N, C): each token's embedding plus that of its position. */
struct tensor *embed(struct builder *b, const struct batch *batch);

/* x (N, C), w (C), bias (C): (N, C). */
struct tensor *layernorm(struct builder *b, const char *name, struct tensor *x, struct weight w, struct weight bias);

struct tensor *gelu(struct builder *b, const char *name, struct tensor *x);                       /* has x's shape */
struct tensor *residual(struct builder *b, const char *name, struct tensor *x, struct tensor *y); /* x + y, alike */

/* ---- loss.c ------------------------------------------------------------------------------------------------------ */

/* The cross-entropy of each token: losses (N).  logits: a column for each word (or for each word of the rank's), and
 * padding.  total (1) accumulates the sum of losses over micro-batches; NULL: an evaluation.  The gradient is that of
 * the mean: it is scaled by 1/tokens_per_step. */
struct tensor *cross_entropy(struct builder *b, struct tensor *logits, const struct batch *batch, struct tensor *total,
                             double tokens_per_step);

/* ---- linear.c ---------------------------------------------------------------------------------------------------- */

/* x (N, in) * w(out, in)^T + bias(out): (N, out).  bias.value may be NULL. */
struct tensor *linear(struct builder *b, const char *name, struct tensor *x, struct weight w, struct weight bias);

/* ---- attention.c ------------------------------------------------------------------------------------------------- */

/* qkv (N, 3C): causal attention of H heads: (N, C).  With tensor parallelism H and C are those of the rank's heads. */
struct tensor *attention(struct builder *b, const char *name, struct tensor *qkv);

/* ---- gemm.c: matrix products, two engines and one function ------------------------------------------------------- */

/* C(M,N) = start + op(A) op(B), row-major.  A task computes batch*heads such products, or, where both are 1, one.  Here
 * N is not the number of tokens. */
enum gemm_form { GEMM_NT, GEMM_NN, GEMM_TN }; /* A(M,K) B(N,K) | A(M,K) B(K,N) | A(K,M) B(K,N) */
extern const char *const gemm_form_name[3];   /* "NT", "NN", "TN" */

/* How much of its tensor C is: all; the first part that is written; a later part, so that what was written is kept. */
enum gemm_part { PART_WHOLE, PART_FIRST, PART_NEXT };

/* Where the matrices of an operand lie in its tensor: matrix (i, h), for i below batch and h below heads, starts at
 * element offset + i*batch_stride + h*head_stride. */
struct operand {
    struct tensor *tensor;
    size_t offset;
    int ld; /* elements from a row's start to the next one's */
    size_t batch_stride, head_stride;
};

struct gemm {
    enum gemm_form form;
    int m, n, k; /* M, N, K */
    int batch, heads;
    struct operand a, b, c;
    enum gemm_start start;   /* cl/shared.h: with what C begins */
    struct tensor *bias;     /* (N) with START_BIAS */
    enum gemm_causal causal; /* cl/shared.h: which matrix is a lower triangle */
    enum gemm_part part;
};
/* Adds the task, with the device's engine. */
void gemm(struct builder *b, const char *name, const struct gemm *product);
struct operand matrix(struct tensor *x, int ld); /* a whole tensor as one matrix */

#endif

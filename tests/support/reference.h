/* reference.h - every kernel of cl/ once more, in plain C: scalar, slow, and meant to be obviously right.
 *
 * The arguments have the order of the kernels'.  There are two kinds of functions:
 *   - sums whose order is part of the kernel's promise (chains) and AdamW are written in float, in that order: the
 *     kernel must match bit for bit.  Marked EXACT.
 *   - all others compute in double and round once at the end: the kernel must match within a tolerance.
 *
 * It is compiled with -ffp-contract=off.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#define EXACT /* a note to the reader */
#define REF_NORM_BLOCK 4096

EXACT void ref_embed_forward(float *x, const float *wte, const float *wpe, const int *tokens, int N, int T, int C);
EXACT void ref_embed_backward_tokens(float *dwte, const float *dx, const int *by_token, const int *start, int V, int C,
                                     int accumulate);
EXACT void ref_embed_backward_positions(float *dwpe, const float *dx, int B, int T, int Tmax, int C, int accumulate);

/* The host's half of embed_backward_tokens: positions sorted by token, stable.  order (N), start (V+1). */
void ref_sort_tokens(int *by_token, int *start, const int *tokens, int N, int V);

void ref_layernorm_forward(float *out, float *mean, float *rstd, const float *x, const float *w, const float *b, int N,
                           int C);
void ref_layernorm_backward(float *dx, const float *carry, const float *dout, const float *x, const float *mean,
                            const float *rstd, const float *w, int N, int C, int has_carry);
EXACT void ref_layernorm_backward_params(float *dw, float *db, const float *dout, const float *x, const float *mean,
                                         const float *rstd, int N, int C, int accumulate);

void ref_gelu_forward(float *out, const float *x, int n);
void ref_gelu_backward(float *dx, const float *dout, const float *x, int n);

void ref_softmax_forward(float *att, const float *scores, int rows, int T, float scale);
void ref_softmax_backward(float *dscores, const float *datt, const float *att, int rows, int T, float scale);

/* Causal attention of H heads of hs channels: out (B,T,C), dqkv (B,T,3C) from dout (B,T,C), qkv (B,T,3C); C = H*hs. */
void ref_attention(float *out, float *dqkv, const float *dout, const float *qkv, int B, int T, int H, int hs);

void ref_loss_forward(float *losses, float *lse, const float *logits, const int *targets, int N, int V, int W);
void ref_loss_backward(float *dlogits, const float *logits, const float *lse, const int *targets, int N, int V, int W,
                       float scale);
EXACT void ref_loss_sum(float *total, const float *losses, int N, int accumulate);

void ref_norm_blocks(float *partial, const float *grad, int n);
EXACT void ref_norm_finish(float *state, const float *partial, int n_blocks, const float *control);

/* Fills the 16 control slots of AdamW step t = 1, 2, ... as cl/adamw.cl describes them. */
void ref_control(float *control, double lr, double beta1, double beta2, double eps, double weight_decay, double clip,
                 int t);
EXACT void ref_adamw(float *p, float *m, float *v, const float *g, const float *control, const float *verdict, int n,
                     int n_decay);

EXACT void ref_add(float *out, const float *a, const float *b, int n);
EXACT void ref_add_to(float *acc, const float *x, int n);
EXACT void ref_fill(float *x, float value, int n);
EXACT void ref_add_bias(float *y, const float *bias, int N, int C);
EXACT void ref_column_sum(float *db, const float *dout, int N, int C, int accumulate);

#endif

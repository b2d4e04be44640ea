/*
 * adamw.cl - one step of the AdamW optimizer.
 *
 *     g = scale * gradient                    scale: gradient clipping, see norm.cl
 *     m = beta1 m + (1 - beta1) g             running mean of the gradient
 *     v = beta2 v + (1 - beta2) g^2           running mean of its square
 *     p = p (1 - lr * weight_decay)           "decoupled" decay: it does not pass through m and v
 *     p = p - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 *
 * m and v start at 0; the corrections 1 - beta^t undo the bias towards 0 of the first steps.
 *
 * p, m, v and g are flat arrays of n elements: a shard of a unit, for which update_shard() of
 * src/trainer/model/optimizer.c launches the kernel.  A work-group updates BLOCK elements.  The first n_decay (the
 * matrices) decay, the others (biases, layernorm) do not.
 *
 * The host writes `control` (enum control_word in shared.h) for every step.  It computes in double precision what
 * follows from other words, because 1 - 0.999f in float is already wrong in the fifth digit:
 *
 *     CONTROL_ONE_MINUS_BETA1     1 - beta1          CONTROL_STEP_SIZE               lr / (1 - beta1^t)
 *     CONTROL_ONE_MINUS_BETA2     1 - beta2          CONTROL_INV_SQRT_CORRECTION2    1 / sqrt(1 - beta2^t)
 *     CONTROL_DECAY               1 - lr * weight_decay
 *
 * CONTROL_CLIP is 0 for none.
 *
 * norm_finish writes `verdict` (enum verdict_word).  `side`, unless it is NULL, says where the update runs this time
 * (side_bit in shared.h).
 *
 * The optimizer may also run on the host (an offloaded optimizer), and must give the same bits there: only + - * / and
 * sqrt, each correctly rounded, in the order written here, and no fma.
 */

KERNEL void adamw(global float *p,             /* (n) parameters */
                  global float *m,             /* (n) */
                  global float *v,             /* (n) */
                  const global float *g,       /* (n) gradient */
                  const global float *control, /* (CONTROL_SIZE) */
                  const global float *verdict, /* (VERDICT_SIZE) */
                  int n, int n_decay,
                  const global int *side) /* (1), or NULL */
{
    if (verdict[VERDICT_HALTED] != 0 || (side && (*side & SIDE_CPU)))
        return;
    float scale = verdict[VERDICT_SCALE];
    float beta1 = control[CONTROL_BETA1], one_minus_beta1 = control[CONTROL_ONE_MINUS_BETA1];
    float beta2 = control[CONTROL_BETA2], one_minus_beta2 = control[CONTROL_ONE_MINUS_BETA2];
    float decay = control[CONTROL_DECAY], eps = control[CONTROL_EPS];
    float step_size = control[CONTROL_STEP_SIZE], inv_sqrt_correction2 = control[CONTROL_INV_SQRT_CORRECTION2];

    int end = block_end(n);
    for (int i = block_begin() + FIRST; i < end; i += STRIDE) {
        int left = end - i;
        vec gi = load(g + i, left, 0) * scale;
        vec mi = load(m + i, left, 0) * beta1 + gi * one_minus_beta1;
        vec vi = load(v + i, left, 0) * beta2 + gi * gi * one_minus_beta2;
        vec pi = load(p + i, left, 0) * (i + NUMBERS < n_decay ? (vec)decay : (vec)1.0f);
        vec denominator = sqrt(vi) * inv_sqrt_correction2 + eps;
        store(mi, m + i, left);
        store(vi, v + i, left);
        store(pi - step_size * mi / denominator, p + i, left);
    }
}

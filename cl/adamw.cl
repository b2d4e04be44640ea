/*
 * adamw.cl: one step of the AdamW optimizer.
 *
 *     g = scale * gradient                    scale: gradient clipping, see norm.cl
 *     m = beta1 m + (1 - beta1) g             running mean of the gradient
 *     v = beta2 v + (1 - beta2) g^2           running mean of its square
 *     p = p (1 - lr * weight_decay)           "decoupled" decay: it does not pass through m and v
 *     p = p - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 *
 * m and v start at 0; the corrections 1 - beta^t undo the bias towards 0 of the first steps.
 *
 * Flat arrays of n elements, one work-group per BLOCK.  The first n_decay elements decay (the matrices), the others do
 * not (biases, layernorm).
 *
 * control (16 floats, names in common.cl) is written by the host for every step.  8 to 12 are derived from the others,
 * in double precision, because 1 - 0.999f in float is already wrong in the fifth digit:
 *
 *      0 lr             4 weight_decay               8 1 - beta1                 12 1 / sqrt(correction2)
 *      1 beta1          5 correction1 = 1 - beta1^t  9 1 - beta2                 13 0
 *      2 beta2          6 correction2 = 1 - beta2^t 10 1 - lr * weight_decay     14 0
 *      3 eps            7 clip (0: none)            11 lr / correction1          15 0
 *
 * state (4 floats) comes from norm_finish: 0 norm, 1 scale, 2 halted, 3 spare.
 *
 * choice, unless it is NULL, says where the update runs this time (choice_bit in shared.h).
 *
 * An embedding (V,C) that is also the head may be updated in two parts (src/model/tied.c), where the positions of the
 * batch are sorted by word as in embed.cl: word w has some if start[w] < start[w+1].
 *
 *     adamw        with `start`: of elements first .. first+n-1 not those of rows of the batch's words.  The look-up's
 *                  gradient is 0 there; it is added all the same, since -0 + 0 = 0
 *     adamw_rows   rows of the batch's words, one work-group each.  Gradients come packed, row k that of the word at
 *                  position k, and so do the new parameters go.  m and v are changed in place
 *
 * The optimizer may also run on the host (an offloaded optimizer), and must give the same bits there: only + - * / and
 * sqrt, each correctly rounded, in the order written here, and no fma.
 */
#pragma OPENCL FP_CONTRACT OFF

/* Elements begin .. end-1, of which those before n_decay decay.  `more` is added to gradients: -0 changes none. */
static void update(__global float *p, __global float *m, __global float *v, const __global float *g,
                   const __global float *control, const __global float *state, int begin, int end, int n_decay,
                   float more)
{
    float scale = state[STATE_SCALE];
    float beta1 = control[CONTROL_BETA1], one_minus_beta1 = control[CONTROL_ONE_MINUS_BETA1];
    float beta2 = control[CONTROL_BETA2], one_minus_beta2 = control[CONTROL_ONE_MINUS_BETA2];
    float decay = control[CONTROL_DECAY], eps = control[CONTROL_EPS];
    float step_size = control[CONTROL_STEP_SIZE], inv_sqrt_correction2 = control[CONTROL_INV_SQRT_CORRECTION2];

    for (int i = begin + FIRST; i < end; i += STRIDE) {
        int left = end - i;
        vec gi = (load(g + i, left, 0) + more) * scale;
        vec mi = load(m + i, left, 0) * beta1 + gi * one_minus_beta1;
        vec vi = load(v + i, left, 0) * beta2 + gi * gi * one_minus_beta2;
        vec pi = load(p + i, left, 0) * (i + LANES < n_decay ? (vec)decay : (vec)1.0f);
        vec denominator = sqrt(vi) * inv_sqrt_correction2 + eps;
        store(mi, m + i, left);
        store(vi, v + i, left);
        store(pi - step_size * mi / denominator, p + i, left);
    }
}

KERNEL void adamw(__global float *p,             /* (n) parameters */
                  __global float *m,             /* (n) */
                  __global float *v,             /* (n) */
                  const __global float *g,       /* (n) gradient */
                  const __global float *control, /* (16) */
                  const __global float *state,   /* (4) */
                  int n, int n_decay, int first, const __global int *start, int C, const __global int *choice)
{
    if (state[STATE_HALTED] != 0 || (choice && (*choice & CHOICE_CPU)))
        return;
    int begin = get_group_id(0) * BLOCK, end = min(begin + BLOCK, n);
    if (!start) {
        update(p, m, v, g, control, state, begin, end, n_decay, -0.0f);
        return;
    }
    for (int word = (first + begin) / C; word * C - first < end; word++) {
        int row = word * C - first;
        if (start[word] == start[word + 1])
            update(p, m, v, g, control, state, max(begin, row), min(end, row + C), n_decay, 0.0f);
    }
}

KERNEL void adamw_rows(__global float *packed,  /* (N,C) new parameters */
                       const __global float *p, /* (V,C) */
                       __global float *m, __global float *v, const __global float *g, /* (V,C), (V,C), (N,C) */
                       const __global float *control, const __global float *state,
                       const __global int *order, const __global int *start, int C)
{
    int word = get_group_id(0), begin = start[word], end = start[word + 1];
    size_t row = (size_t)word * C;
    if (begin == end)
        return;
    __global float *new = packed + (size_t)order[begin] * C;
    copy_row(new, p + row, C);
    if (state[STATE_HALTED] == 0)
        update(new, m + row, v + row, g + (size_t)order[begin] * C, control, state, 0, C, C, -0.0f);
    for (int k = begin + 1; k < end; k++)
        copy_row(packed + (size_t)order[k] * C, new, C);
}

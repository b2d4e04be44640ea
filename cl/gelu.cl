/*
 * gelu.cl - the activation function of GPT-2, a smooth gate: x passes when it is positive.
 *
 *     gelu(x) = 0.5 x (1 + tanh(u)),     u = sqrt(2/pi) (x + 0.044715 x^3)
 *
 * Since (1 + tanh(u)) / 2 = 1 / (1 + e^-2u), this is x * sigmoid(z) with z = 2u: one exp, no tanh, and no cancellation
 * of 1 + tanh(u) for negative u.
 *
 *     gelu'(x) = s + x s (1 - s) z'       s = sigmoid(z),  z' = 2 sqrt(2/pi) (1 + 3 * 0.044715 x^2)
 *
 * To be safe from overflow the exponential is taken of -|z|.  With e = e^-|z| (between 0 and 1):
 *
 *     s = 1 / (1 + e)  if z >= 0,  e / (1 + e)  if z < 0          s (1 - s) = e / (1 + e)^2   for either sign
 *
 * In the backward d is 1 / (1 + e), so s is d or e d, and s (1 - s) is e d d.
 *
 * All are flat arrays of n elements; a work-group computes BLOCK of them.  ops.c launches both kernels (gelu()).  NaN
 * stays NaN, +infinity stays infinite, and -infinity gives NaN (-infinity * 0): nothing is hidden.
 */

#define GELU_SLOPE 1.5957691216f /* 2 sqrt(2/pi) */
#define GELU_CUBIC 0.0713548163f /* 2 sqrt(2/pi) * 0.044715 */

KERNEL void gelu_forward(global float *out, const global float *x, int n) /* out, x: (n) */
{
    int end = block_end(n);
    for (int i = block_begin() + FIRST; i < end; i += STRIDE) {
        vec v = load(x + i, end - i, 0);
        vec z = v * fma(v * v, (vec)GELU_CUBIC, (vec)GELU_SLOPE);
        vec e = exp(-fabs(z));
        vec s = (z >= 0 ? (vec)1.0f : e) / (1.0f + e);
        store(v * s, out + i, end - i);
    }
}

KERNEL void gelu_backward(global float *dx, const global float *dout, const global float *x, int n) /* all (n) */
{
    int end = block_end(n);
    for (int i = block_begin() + FIRST; i < end; i += STRIDE) {
        vec v = load(x + i, end - i, 0);
        vec z = v * fma(v * v, (vec)GELU_CUBIC, (vec)GELU_SLOPE);
        vec dz = fma(v * v, (vec)(3 * GELU_CUBIC), (vec)GELU_SLOPE);
        vec e = exp(-fabs(z));
        vec d = 1.0f / (1.0f + e);
        vec s = z >= 0 ? d : e * d;
        store(load(dout + i, end - i, 0) * fma(v * (e * d * d), dz, s), dx + i, end - i);
    }
}

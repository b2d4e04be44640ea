/* reference.c - every kernel of cl/ once more, in plain C; reference.h says how exact each one is. */
#include "reference.h"
#include "cl/shared.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sizes are ints, as in the kernels; none is negative. */
#pragma GCC diagnostic ignored "-Wsign-conversion"

/* ---- embed.cl ---- */

void ref_embed_forward(float *x, const float *wte, const float *wpe, const int *tokens, int N, int T, int C)
{
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            x[(size_t)n * C + c] = wte[(size_t)tokens[n] * C + c] + wpe[(size_t)(n % T) * C + c];
}

void ref_sort_tokens(int *by_token, int *start, const int *tokens, int N, int V)
{
    int filled = 0;
    for (int v = 0; v < V; v++) {
        start[v] = filled;
        for (int n = 0; n < N; n++)
            if (tokens[n] == v)
                by_token[filled++] = n;
    }
    start[V] = filled;
}

void ref_embed_backward_tokens(float *dwte, const float *dx, const int *by_token, const int *start, int V, int C,
                               int accumulate)
{
    for (int v = 0; v < V; v++)
        for (int c = 0; c < C; c++) {
            float sum = accumulate ? dwte[(size_t)v * C + c] : 0.0f;
            for (int k = start[v]; k < start[v + 1]; k++)
                sum += dx[(size_t)by_token[k] * C + c];
            dwte[(size_t)v * C + c] = sum;
        }
}

void ref_embed_backward_positions(float *dwpe, const float *dx, int B, int T, int Tmax, int C, int accumulate)
{
    for (int t = 0; t < Tmax; t++)
        for (int c = 0; c < C; c++) {
            float sum = accumulate ? dwpe[(size_t)t * C + c] : 0.0f;
            for (int b = 0; b < B && t < T; b++)
                sum += dx[((size_t)b * T + t) * C + c];
            dwpe[(size_t)t * C + c] = sum;
        }
}

/* ---- layernorm.cl ---- */

void ref_layernorm_forward(float *out, float *mean, float *rstd, const float *x, const float *w, const float *b, int N,
                           int C)
{
    for (int n = 0; n < N; n++, x += C, out += C) {
        double sum = 0, squares = 0;
        for (int c = 0; c < C; c++)
            sum += x[c];
        double m = sum / C;
        for (int c = 0; c < C; c++)
            squares += (x[c] - m) * (x[c] - m);
        double r = 1 / sqrt(squares / C + 1e-5);
        for (int c = 0; c < C; c++)
            out[c] = (float)((x[c] - m) * r * w[c] + b[c]);
        mean[n] = (float)m;
        rstd[n] = (float)r;
    }
}

void ref_layernorm_backward(float *dx, const float *carry, const float *dout, const float *x, const float *mean,
                            const float *rstd, const float *w, int N, int C, int has_carry)
{
    for (int n = 0; n < N; n++) {
        size_t row = (size_t)n * C;
        double m = mean[n];
        double r = rstd[n];
        double mean_g = 0;
        double mean_g_norm = 0;
        for (int c = 0; c < C; c++) {
            double g = (double)dout[row + c] * w[c];
            mean_g += g / C;
            mean_g_norm += g * (x[row + c] - m) * r / C;
        }
        for (int c = 0; c < C; c++) {
            double g = (double)dout[row + c] * w[c];
            double norm = (x[row + c] - m) * r;
            double d = (g - mean_g - norm * mean_g_norm) * r;
            dx[row + c] = (float)(has_carry ? carry[row + c] + d : d);
        }
    }
}

void ref_layernorm_backward_params(float *dw, float *db, const float *dout, const float *x, const float *mean,
                                   const float *rstd, int N, int C, int accumulate)
{
    for (int c = 0; c < C; c++) {
        float sum_w = accumulate ? dw[c] : 0.0f;
        float sum_b = accumulate ? db[c] : 0.0f;
        for (int n = 0; n < N; n++) {
            float norm = (x[(size_t)n * C + c] - mean[n]) * rstd[n];
            sum_w = fmaf(dout[(size_t)n * C + c], norm, sum_w);
            sum_b += dout[(size_t)n * C + c];
        }
        dw[c] = sum_w;
        db[c] = sum_b;
    }
}

/* ---- gelu.cl ---- */

static const double gelu_k = 0.79788456080286535588; /* sqrt(2/pi) */

void ref_gelu_forward(float *out, const float *x, int n)
{
    for (int i = 0; i < n; i++) {
        double v = x[i];
        double u = gelu_k * (v + 0.044715 * v * v * v);
        out[i] = (float)(0.5 * v * (1 + tanh(u)));
    }
}

void ref_gelu_backward(float *dx, const float *dout, const float *x, int n)
{
    for (int i = 0; i < n; i++) {
        double v = x[i];
        double u = gelu_k * (v + 0.044715 * v * v * v);
        double du = gelu_k * (1 + 3 * 0.044715 * v * v);
        double sech2 = 1 / (cosh(u) * cosh(u));
        dx[i] = (float)(dout[i] * (0.5 * (1 + tanh(u)) + 0.5 * v * sech2 * du));
    }
}

/* ---- softmax.cl ---- */

void ref_softmax_forward(float *att, const float *scores, int rows, int T, float scale)
{
    for (int r = 0; r < rows; r++, att += T, scores += T) {
        int t = r % T;
        double max = -INFINITY, sum = 0;
        for (int j = 0; j <= t; j++)
            max = scores[j] > max ? scores[j] : max;
        for (int j = 0; j <= t; j++)
            sum += exp((scores[j] - max) * scale);
        for (int j = 0; j < T; j++)
            att[j] = j <= t ? (float)(exp((scores[j] - max) * scale) / sum) : 0.0f;
    }
}

void ref_softmax_backward(float *dscores, const float *datt, const float *att, int rows, int T, float scale)
{
    for (int r = 0; r < rows; r++, dscores += T, datt += T, att += T) {
        int t = r % T;
        double dot = 0;
        for (int j = 0; j <= t; j++)
            dot += (double)att[j] * datt[j];
        for (int j = 0; j < T; j++)
            dscores[j] = j <= t ? (float)(scale * att[j] * (datt[j] - dot)) : 0.0f;
    }
}

/* ---- flash.cl, and the plain way ---- */

static double dot(const float *x, const float *y, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)x[i] * y[i];
    return sum;
}

/* One query's weights over n keys, which are `stride` floats apart: p becomes e^(score - the largest score), and their
 * sum is returned. */
static double compute_weights(double *p, const float *query, const float *keys, int stride, int n, int hs)
{
    double scale = 1 / sqrt(hs);
    double most = -INFINITY, sum = 0;
    for (int k = 0; k < n; k++) {
        p[k] = scale * dot(query, keys + k * stride, hs);
        most = fmax(most, p[k]);
    }
    for (int k = 0; k < n; k++) {
        p[k] = exp(p[k] - most);
        sum += p[k];
    }
    return sum;
}

void ref_attention(float *out, float *dqkv, const float *dout, const float *qkv, int B, int T, int H, int hs)
{
    int C = H * hs;
    double scale = 1 / sqrt(hs);
    double *p = calloc((size_t)T, sizeof *p);
    double *dv = calloc((size_t)(B * T * C), sizeof *dv);
    double *dq = calloc((size_t)(B * T * C), sizeof *dq), *dk = calloc((size_t)(B * T * C), sizeof *dk);
    for (int n = 0; n < B * T; n++)
        for (int h = 0; h < H; h++) {
            int own = n * C + h * hs, first = n / T * T; /* the sequence's first token */
            const float *q = qkv + n * 3 * C + h * hs, *dy = dout + own;
            const float *keys = qkv + first * 3 * C + C + h * hs;
            double sum = compute_weights(p, q, keys, 3 * C, n - first + 1, hs), delta = 0;
            for (int c = 0; c < hs; c++) {
                double mix = 0;
                for (int k = first; k <= n; k++)
                    mix += p[k - first] / sum * qkv[k * 3 * C + 2 * C + h * hs + c];
                out[own + c] = (float)mix;
                delta += mix * dy[c];
            }
            for (int k = first; k <= n; k++) {
                int other = k * C + h * hs;
                const float *key = qkv + k * 3 * C + C + h * hs;
                double ds = scale * p[k - first] / sum * (dot(dy, key + C, hs) - delta);
                for (int c = 0; c < hs; c++) {
                    dv[other + c] += p[k - first] / sum * dy[c];
                    dq[own + c] += ds * key[c];
                    dk[other + c] += ds * q[c];
                }
            }
        }
    for (int i = 0; i < B * T * C; i++) {
        float *to = dqkv + i / C * 3 * C + i % C;
        to[0] = (float)dq[i];
        to[C] = (float)dk[i];
        to[2 * C] = (float)dv[i];
    }
    free(p);
    free(dq);
    free(dk);
    free(dv);
}

/* ---- loss.cl ---- */

void ref_loss_forward(float *losses, float *lse, const float *logits, const int *targets, int N, int V, int W)
{
    for (int n = 0; n < N; n++, logits += W) {
        double max = -INFINITY, sum = 0;
        for (int v = 0; v < V; v++)
            max = logits[v] > max ? logits[v] : max;
        for (int v = 0; v < V; v++)
            sum += exp(logits[v] - max);
        lse[n] = (float)(max + log(sum));
        losses[n] = (float)(max + log(sum) - logits[targets[n]]);
    }
}

void ref_loss_backward(float *dlogits, const float *logits, const float *lse, const int *targets, int N, int V, int W,
                       float scale)
{
    for (int n = 0; n < N; n++)
        for (int v = 0; v < W; v++) {
            double p = v < V ? exp((double)logits[(size_t)n * W + v] - lse[n]) : 0;
            dlogits[(size_t)n * W + v] = (float)((p - (v == targets[n])) * scale);
        }
}

void ref_loss_sum(float *total, const float *losses, int N, int accumulate)
{
    float sum = accumulate ? total[0] : 0.0f;
    for (int n = 0; n < N; n++)
        sum += losses[n];
    total[0] = sum;
}

/* ---- norm.cl ---- */

void ref_norm_blocks(float *partial, const float *grad, int n)
{
    for (int begin = 0; begin < n; begin += REF_NORM_BLOCK) {
        double sum = 0;
        for (int i = begin; i < n && i < begin + REF_NORM_BLOCK; i++)
            sum += (double)grad[i] * grad[i];
        partial[begin / REF_NORM_BLOCK] = (float)sum;
    }
}

void ref_norm_finish(float *state, const float *partial, int n_blocks, const float *control)
{
    float sum = 0, lost = 0;
    for (int i = 0; i < n_blocks; i++) {
        float term = partial[i] - lost, next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    float norm = sqrtf(sum), clip = control[CONTROL_CLIP];
    state[0] = norm;
    state[1] = clip > 0 && norm > clip ? clip / norm : 1.0f;
    if (!isfinite(norm))
        state[2] = 1.0f;
}

/* ---- adamw.cl ---- */

void ref_control(float *control, double lr, double beta1, double beta2, double eps, double weight_decay, double clip,
                 int t)
{
    double correction1 = 1 - pow(beta1, t);
    double correction2 = 1 - pow(beta2, t);
    memset(control, 0, CONTROL_SIZE * sizeof *control);
    control[CONTROL_BETA1] = (float)beta1;
    control[CONTROL_BETA2] = (float)beta2;
    control[CONTROL_EPS] = (float)eps;
    control[CONTROL_CLIP] = (float)clip;
    control[CONTROL_ONE_MINUS_BETA1] = (float)(1 - beta1);
    control[CONTROL_ONE_MINUS_BETA2] = (float)(1 - beta2);
    control[CONTROL_DECAY] = (float)(1 - lr * weight_decay);
    control[CONTROL_STEP_SIZE] = (float)(lr / correction1);
    control[CONTROL_INV_SQRT_CORRECTION2] = (float)(1 / sqrt(correction2));
}

void ref_adamw(float *p, float *m, float *v, const float *g, const float *control, const float *verdict, int n,
               int n_decay)
{
    float scale = verdict[VERDICT_SCALE];
    float beta1 = control[CONTROL_BETA1];
    float beta2 = control[CONTROL_BETA2];
    float eps = control[CONTROL_EPS];
    float one_minus_beta1 = control[CONTROL_ONE_MINUS_BETA1];
    float one_minus_beta2 = control[CONTROL_ONE_MINUS_BETA2];
    float decay = control[CONTROL_DECAY];
    float step_size = control[CONTROL_STEP_SIZE];
    float inv_sqrt_correction2 = control[CONTROL_INV_SQRT_CORRECTION2];

    if (verdict[VERDICT_HALTED] != 0)
        return;
    for (int i = 0; i < n; i++) {
        float gi = g[i] * scale;
        float pi = p[i] * (i < n_decay ? decay : 1.0f);
        m[i] = m[i] * beta1 + gi * one_minus_beta1;
        v[i] = v[i] * beta2 + gi * gi * one_minus_beta2;
        p[i] = pi - step_size * m[i] / (sqrtf(v[i]) * inv_sqrt_correction2 + eps);
    }
}

/* ---- elementwise.cl ---- */

void ref_add(float *out, const float *a, const float *b, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

void ref_add_to(float *acc, const float *x, int n)
{
    for (int i = 0; i < n; i++)
        acc[i] += x[i];
}

void ref_fill(float *x, float value, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = value;
}

void ref_add_bias(float *y, const float *bias, int N, int C)
{
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            y[(size_t)n * C + c] += bias[c];
}

void ref_column_sum(float *db, const float *dout, int N, int C, int accumulate)
{
    for (int c = 0; c < C; c++) {
        float sum = accumulate ? db[c] : 0.0f;
        for (int n = 0; n < N; n++)
            sum += dout[(size_t)n * C + c];
        db[c] = sum;
    }
}

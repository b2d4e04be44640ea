/*
 * layernorm.cl - every token's vector is shifted to mean 0 and scaled to variance 1, then stretched by a learned w, b.
 *
 *     mean = 1/C sum_c x[c]        rstd = 1 / sqrt(1/C sum_c (x[c] - mean)^2 + eps)
 *     norm[c] = (x[c] - mean) rstd
 *     out[c]  = norm[c] w[c] + b[c]
 *
 * The variance takes a second pass over the row: the shorter E[x^2] - mean^2 subtracts two large numbers and loses the
 * digits we want.  The row is in cache by then.
 *
 * Backward.  With g[c] = dout[c] w[c], the gradient that reaches norm,
 *
 *     dx[c] = rstd (g[c] - 1/C sum_k g[k] - norm[c] 1/C sum_k g[k] norm[k])
 *
 * because norm does not change when x is shifted (first sum) or scaled (second sum): those two directions are removed.
 * mean and rstd are kept from the forward pass; norm is recomputed, which is cheaper than storing it.
 *
 *     dw[c] = sum_n dout[n][c] norm[n][c]          db[c] = sum_n dout[n][c]
 *
 * These two sum over the tokens, down the columns, and each column is a chain (common.cl, "sums in order").
 *
 * Rows are tokens.  layernorm() of src/trainer/model/layernorm.c, and its gradients there, launch these kernels.
 */

#define LAYERNORM_EPS 1e-5f

/* One work-group per row, N of them.  mean and rstd are kept for backward. */
KERNEL void layernorm_forward(global float *out,     /* (N,C) */
                              global float *mean,    /* (N) */
                              global float *rstd,    /* (N) */
                              const global float *x, /* (N,C) */
                              const global float *w, /* (C) */
                              const global float *b, /* (C) */
                              int C)
{
    local float scratch[WG];
    int n = get_group_id(0);
    x += (size_t)n * C;
    out += (size_t)n * C;

    vec sum = 0;
    for (int i = FIRST; i < C; i += STRIDE)
        sum += load(x + i, C - i, 0);
    float m = group_sum(sum, scratch) / C;

    vec squares = 0;
    for (int i = FIRST; i < C; i += STRIDE) {
        vec d = load(x + i, C - i, m) - m; /* floats past the end are the mean: they add 0 */
        squares = fma(d, d, squares);
    }
    float r = 1.0f / sqrt(group_sum(squares, scratch) / C + LAYERNORM_EPS);

    for (int i = FIRST; i < C; i += STRIDE) {
        vec norm = (load(x + i, C - i, 0) - m) * r;
        store(fma(norm, load(w + i, C - i, 0), load(b + i, C - i, 0)), out + i, C - i);
    }
    if (get_local_id(0) == 0) {
        mean[n] = m;
        rstd[n] = r;
    }
}

/* One work-group per row, N of them.  carry is the gradient that flows past the layernorm along the residual path; it
 * is read only when has_carry is set, and dx may be the same buffer as carry or dout. */
KERNEL void layernorm_backward(global float *dx,          /* (N,C) */
                               const global float *carry, /* (N,C) */
                               const global float *dout,  /* (N,C) */
                               const global float *x,     /* (N,C) */
                               const global float *mean,  /* (N) */
                               const global float *rstd,  /* (N) */
                               const global float *w,     /* (C) */
                               int C, int has_carry)
{
    local float scratch[WG];
    int n = get_group_id(0);
    size_t row = (size_t)n * C;
    float m = mean[n], r = rstd[n];

    vec sum_g = 0, sum_g_norm = 0;
    for (int i = FIRST; i < C; i += STRIDE) {
        vec norm = (load(x + row + i, C - i, m) - m) * r;
        vec g = load(dout + row + i, C - i, 0) * load(w + i, C - i, 0);
        sum_g += g;
        sum_g_norm = fma(g, norm, sum_g_norm);
    }
    float mean_g = group_sum(sum_g, scratch) / C;
    float mean_g_norm = group_sum(sum_g_norm, scratch) / C;

    for (int i = FIRST; i < C; i += STRIDE) {
        vec norm = (load(x + row + i, C - i, m) - m) * r;
        vec g = load(dout + row + i, C - i, 0) * load(w + i, C - i, 0);
        vec d = (g - mean_g - norm * mean_g_norm) * r;
        if (has_carry)
            d += load(carry + row + i, C - i, 0);
        store(d, dx + row + i, C - i);
    }
}

/* One work-group per COLUMN_BLOCK columns.  accumulate: the sums begin at the old gradient. */
KERNEL void layernorm_backward_params(global float *dw,         /* (C) */
                                      global float *db,         /* (C) */
                                      const global float *dout, /* (N,C) */
                                      const global float *x,    /* (N,C) */
                                      const global float *mean, /* (N) */
                                      const global float *rstd, /* (N) */
                                      int N, int C, int accumulate)
{
    enum { K = COLUMN_VECTORS }; /* unrolled, so that the sums stay in registers */
    local float tile_d[TILE_SIZE], tile_x[TILE_SIZE], tile_mean[TILE_ROWS], tile_rstd[TILE_ROWS];
    int first = get_group_id(0) * COLUMN_BLOCK, left = C - first;
    vec sum_w[K], sum_b[K];

    dw += first;
    db += first;
#pragma unroll
    for (int k = 0; k < K; k++) {
        int c = FIRST + k * STRIDE;
        sum_w[k] = accumulate && ADDS ? load(dw + c, left - c, 0) : (vec)0;
        sum_b[k] = accumulate && ADDS ? load(db + c, left - c, 0) : (vec)0;
    }
    for (int n = 0; n < N; n += TILE_ROWS) {
        const global float *d_rows = dout + (size_t)n * C + first, *x_rows = x + (size_t)n * C + first;
        int rows = min((int)TILE_ROWS, N - n);
        load_tile(tile_d, d_rows, rows, left, C);
        load_tile(tile_x, x_rows, rows, left, C);
        load_stretch(tile_mean, mean + n, TILE_ROWS, rows);
        load_stretch(tile_rstd, rstd + n, TILE_ROWS, rows);
        wait_for_all();
        IN_ORDER for (int row = 0; row < rows && ADDS; row++) {
            float m = from_stretch(tile_mean, mean + n, row), r = from_stretch(tile_rstd, rstd + n, row);
#pragma unroll
            for (int k = 0; k < K; k++) {
                int c = FIRST + k * STRIDE;
                vec d = from_tile(tile_d, d_rows, row, c, left, C);
                vec norm = (from_tile(tile_x, x_rows, row, c, left, C) - m) * r;
                sum_w[k] = fma(d, norm, sum_w[k]);
                sum_b[k] += d;
            }
        }
        wait_for_all();
    }
#pragma unroll
    for (int k = 0; k < K && ADDS; k++) {
        int c = FIRST + k * STRIDE;
        store(sum_w[k], dw + c, left - c);
        store(sum_b[k], db + c, left - c);
    }
}

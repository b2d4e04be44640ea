/*
 * elementwise.cl - small kernels: sums, copies, and the gradient of a bias.
 *
 *     kernel       what it computes                 for, and the file of src/trainer that launches it
 *     add          out[i] = a[i] + b[i]             a residual connection, model/ops.c (in backward both get dout);
 *                                                   two gradients of one tensor, model/build.c
 *     add_to       acc[i] += x[i]                   pieces of other ranks, mesh/collective.c
 *     fill         x[i] = value                     gradients that begin at 0, model/build.c
 *     add_bias     y[n] += bias                     each row of y (N,C) after CLBlast's product, model/gemm.c; the
 *                                                   product of gemm.cl begins with the bias
 *     column_sum   db[c] = (old +)
 *                          sum_n dout[n][c]         the gradient of a bias, model/linear.c
 *     pick_row     out[c] = x[index[0]][c]          the last token's hidden state in a sample, train/sampler.c
 *
 * A work-group has BLOCK elements of a flat array.  add_bias has a work-group for each row, pick_row a single one, and
 * column_sum one for COLUMN_BLOCK columns, each of which is a chain (common.cl, "sums in order").
 */

/* The work-group's block of out = a + b, all (n).  out may be a or b. */
static void add_block(global float *out, const global float *a, const global float *b, int n)
{
    int end = block_end(n);
    for (int i = block_begin() + FIRST; i < end; i += STRIDE)
        store(load(a + i, end - i, 0) + load(b + i, end - i, 0), out + i, end - i);
}

KERNEL void add(global float *out, const global float *a, const global float *b, int n) /* all (n) */
{
    add_block(out, a, b, n);
}

KERNEL void add_to(global float *acc, const global float *x, int n) /* both (n) */
{
    add_block(acc, acc, x, n);
}

KERNEL void fill(global float *x, float value, int n) /* x: (n) */
{
    int end = block_end(n);
    for (int i = block_begin() + FIRST; i < end; i += STRIDE)
        store((vec)value, x + i, end - i);
}

KERNEL void add_bias(global float *y,          /* (N,C) */
                     const global float *bias, /* (C) */
                     int C)
{
    y += get_group_id(0) * (size_t)C;
    for (int i = FIRST; i < C; i += STRIDE)
        store(load(y + i, C - i, 0) + load(bias + i, C - i, 0), y + i, C - i);
}

KERNEL void column_sum(global float *db,         /* (C) */
                       const global float *dout, /* (N,C) */
                       int N, int C, int accumulate)
{
    enum { K = COLUMN_VECTORS }; /* unrolled, so that the sums stay in registers */
    local float tile[TILE_SIZE];
    int first = get_group_id(0) * COLUMN_BLOCK, left = C - first;
    vec sum[K];

    db += first;
#pragma unroll
    for (int k = 0; k < K; k++) {
        int c = FIRST + k * STRIDE;
        sum[k] = accumulate && ADDS ? load(db + c, left - c, 0) : (vec)0;
    }
    for (int n = 0; n < N; n += TILE_ROWS) {
        const global float *d = dout + (size_t)n * C + first;
        int rows = min((int)TILE_ROWS, N - n);
        load_tile(tile, d, rows, left, C);
        wait_for_all();
        IN_ORDER for (int row = 0; row < rows && ADDS; row++)
#pragma unroll
            for (int k = 0; k < K; k++)
                sum[k] += from_tile(tile, d, row, FIRST + k * STRIDE, left, C);
        wait_for_all();
    }
#pragma unroll
    for (int k = 0; k < K && ADDS; k++) {
        int c = FIRST + k * STRIDE;
        store(sum[k], db + c, left - c);
    }
}

KERNEL void pick_row(global float *out,       /* (C) */
                     const global float *x,   /* (N,C) */
                     const global int *index, /* (1) */
                     int C)
{
    x += index[0] * (size_t)C;
    for (int i = FIRST; i < C; i += STRIDE)
        store(load(x + i, C - i, 0), out + i, C - i);
}

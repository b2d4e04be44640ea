/*
 * gemm.cl: C = start + A.B in single precision, for CPUs.  Every matrix product of training goes through this kernel.
 *
 *     form   product           A is stored as   a_row  a_step     B is stored as   b_step  b_col
 *     NT     y  = x . w^T      (M, K)           lda    1          (N, K)           1       ldb
 *     NN     dx = dy . w       (M, K)           lda    1          (K, N)           ldb     1
 *     TN     dw += dy^T . x    (K, M)           1      lda        (K, N)           ldb     1
 *
 * A form is a choice of strides: element (m,k) of A is a[m*a_row + k*a_step], element (k,n) of B is
 * b[k*b_step + n*b_col], element (m,n) of C is c[m*c_row + n].  Any M, N, K >= 1 and any strides are right, and nothing
 * outside the three matrices is touched.
 *
 * The chain rule.  Every element of C is ONE chain of fma() with k increasing, and it begins with `start`: zero, the
 * old C, or bias[n].  There is no second accumulator, and K is not split over work-items.  Hence the bits do not depend
 * on the tile, nor on the number of cores, nor on how K is cut: two calls with half of K each, the second starting from
 * the old C, give the bits of one call.  Accumulating micro-batches relies on this.
 *
 * The picture.  One work-item (a work-group of one) computes `band` rows by `span` columns of C:
 *
 *                          span                    1. copy B[k0 .. k0+depth) x span to local memory, cut into panels
 *                   +-------+-------+                 of WIDTH columns: they stay in the L2 cache, and the inner loop
 *          depth    | panel | panel |  B              reads them from front to back;
 *                   +-------+-------+              2. for each ROWS rows of A and each panel: load a tile of C into
 *          depth                                      registers, add the `depth` products, store it;
 *        +-------+  +-------+-------+              3. go on with the next k0.  In between, the tile is stored and
 *   ROWS |   A   |  | tile  | tile  |  C              loaded again; that is exact, so the chain is not broken.
 *        +-------+  +-------+-------+
 *        |       |  |       |       |  band        The inner loop does ROWS*COLS vector fma()s for COLS vector loads
 *        +-------+  +-------+-------+              and ROWS broadcasts: arithmetic is the limit, not memory.  An fma()
 *                                                  waits about 4 cycles for the one before it in its chain; a core
 *                                                  that starts two per cycle needs 8 chains or more to hide that.
 *
 * Build options.  VEC (see common.cl); COLS: vectors per tile row; ROWS: rows per tile.  WIDTH = VEC*COLS must be a
 * multiple of 4.  ROWS*COLS + COLS + 1 vector registers are needed: there are 32 with AVX-512 and NEON, 16 with AVX2
 * and SSE.  (14 x 2 would use all 32, but 8 divides the usual sizes, so few tiles at the edges are half empty, and with
 * more the compiler begins to spill registers to memory.)
 *
 *     VEC     16 (AVX-512)    8 (AVX2)    4 (SSE, NEON)    1 (GPUs, oclgrind: right, not fast)
 *     ROWS    8               6           6                4
 *     COLS    2               2           2                4
 *
 * Launch.  global size {ceil(N / span), ceil(M / band), batches * heads}, local size {1, 1, 1}.
 * depth = min(K, 512).  span = 4*WIDTH, or N rounded up to WIDTH if that is less.  band: so that each core gets about
 * eight work-items (a core that is disturbed then costs little), but not under 64 rows, because B is copied again for
 * each band.  Halve depth until `packed` fits a quarter of CL_DEVICE_LOCAL_MEM_SIZE (the L2 cache on PoCL).  None of
 * this changes a bit of the result.
 *
 * Causal attention.  A (T,T) matrix of scores is zero above the diagonal, so about half of the work can be left out.
 * `causal` says which of the three square matrices is the triangle:
 *
 *     CAUSAL_OUT             scores = q.k^T, datt = do.v^T   tiles wholly above the diagonal of C are left unwritten
 *     CAUSAL_A               att.v, dscores.k                k stops at the last row of the tile
 *     CAUSAL_A_TRANSPOSED    att^T.do, dscores^T.q           k begins at the first row of the tile
 *
 * A tile on the diagonal is multiplied in full.  So row i of att and dscores must hold zeros from column i+1 up to, not
 * including, (i/ROWS + 1)*ROWS; what is to the right of that is never read.  CAUSAL_OUT leaves products there, not
 * zeros.  Where the work is cut depends on m only: the bits do not depend on batch, band or span.
 */
#pragma OPENCL FP_CONTRACT OFF

#ifndef ROWS
#define ROWS 4
#endif
#ifndef COLS
#define COLS 4
#endif
#define WIDTH (VEC * COLS)

enum { START_ZERO, START_OLD, START_BIAS };
enum { CAUSAL_NONE, CAUSAL_OUT, CAUSAL_A, CAUSAL_A_TRANSPOSED };

/* A loop that must vanish when compiled: an array that is indexed by a variable cannot live in registers. */
#define foreach(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)

/* Element (i,j) of a matrix in global memory is at[i*row + j*col]. */
struct view {
    global const float *at;
    size_t row, col;
};

/* panel (depth,WIDTH) = b (depth,cols).  Right of the edge of B it gets numbers that end up in no stored element. */
static void pack(local float *panel, struct view b, int depth, int cols)
{
    if (b.col == 1) {
        for (int k = 0; k < depth; k++)
            foreach (j, COLS)
                PUT(load(b.at + k * b.row + j * VEC, cols - j * VEC, 0), panel + k * WIDTH + j * VEC);
        return;
    }
    for (int j = 0; j < WIDTH; j += 4) { /* B is stored transposed: four of its rows become four columns */
        global const float *b0 = b.at + min(j + 0, cols - 1) * b.col, *b1 = b.at + min(j + 1, cols - 1) * b.col;
        global const float *b2 = b.at + min(j + 2, cols - 1) * b.col, *b3 = b.at + min(j + 3, cols - 1) * b.col;
        for (int k = 0; k < depth; k++) {
            size_t i = k * b.row;
            vstore4((float4)(b0[i], b1[i], b2[i], b3[i]), 0, panel + k * WIDTH + j);
        }
    }
}

/* c (rows,cols) = start + sum over k_first <= k < k_last of a (rows,k) . panel (k,cols).  start.at is null for zeros.
 * At the lower edge the last row is computed several times and stored once: no branch in the inner loop. */
static void tile(global float *c, size_t c_row, int rows, int cols, struct view start, struct view a,
                 local const float *panel, int k_first, int k_last)
{
    global const float *row[ROWS];
    vec acc[ROWS][COLS];
    foreach (i, ROWS) {
        row[i] = a.at + min(i, rows - 1) * a.row;
        foreach (j, COLS)
            acc[i][j] =
                start.at ? load(start.at + min(i, rows - 1) * start.row + j * VEC, cols - j * VEC, 0) : (vec)0.0f;
    }

    for (int k = k_first; k < k_last; k++) {
        vec b[COLS];
        foreach (j, COLS)
            b[j] = GET(panel + k * WIDTH + j * VEC);
        foreach (i, ROWS) {
            const vec x = (vec)(row[i][k * a.col]);
            foreach (j, COLS)
                acc[i][j] = fma(x, b[j], acc[i][j]);
        }
    }

    foreach (i, ROWS)
        if (i < rows)
            foreach (j, COLS)
                store(acc[i][j], c + i * c_row + j * VEC, cols - j * VEC);
}

/* Where matrix z begins.  With heads, z = i*heads + h and the matrix is at base + i*outer + h*inner: that is how one
 * head's q is read in place from a (B,T,3C) tensor.  (Written z % heads, the remainder would become an instruction that
 * oclgrind does not know.) */
static size_t matrix_begin(int heads, int base, int outer, int inner)
{
    size_t z = get_global_id(2), i = z / heads, h = z - i * heads;
    return base + i * outer + h * inner;
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
gemm(int M, int N, int K, int start, int causal, /* sizes; where the chains begin; the triangle */
     int band, int span, int depth,              /* work of one work-item: multiples of ROWS, of WIDTH, and any */
     int heads,                                  /* 1 if there are none */
     global const float *a, int a_base, int a_outer, int a_inner, int a_row, int a_step, /* (M,K) */
     global const float *b, int b_base, int b_outer, int b_inner, int b_step, int b_col, /* (K,N) */
     global float *c, int c_base, int c_outer, int c_inner, int c_row,                   /* (M,N) */
     global const float *bias,                                                           /* (N), or null */
     local float *packed)                                                                /* (span*depth) */
{
    const int m_first = get_global_id(1) * band, m_last = min(m_first + band, M);
    const int n_first = get_global_id(0) * span, n_last = min(n_first + span, causal == CAUSAL_OUT ? m_last : N);
    const int k_first = causal == CAUSAL_A_TRANSPOSED ? m_first : 0, k_last = causal == CAUSAL_A ? m_last : K;
    a += matrix_begin(heads, a_base, a_outer, a_inner);
    b += matrix_begin(heads, b_base, b_outer, b_inner);
    c += matrix_begin(heads, c_base, c_outer, c_inner);

    for (int k0 = k_first; k0 < k_last; k0 += depth) {
        const int k1 = min(k0 + depth, k_last);

        for (int n = n_first; n < n_last; n += WIDTH) {
            struct view columns = {b + k0 * (size_t)b_step + n * (size_t)b_col, b_step, b_col};
            pack(packed + (n - n_first) * depth, columns, k1 - k0, min(WIDTH, N - n));
        }
        for (int m = m_first; m < m_last; m += ROWS) {
            struct view rows = {a + m * (size_t)a_row + k0 * (size_t)a_step, a_row, a_step};
            int k_low = causal == CAUSAL_A_TRANSPOSED ? max(m, k0) : k0;
            int k_high = causal == CAUSAL_A ? min(m + ROWS, k1) : k1;
            int n_stop = causal == CAUSAL_OUT ? min(m + ROWS, n_last) : n_last;

            for (int n = n_first; n < n_stop; n += WIDTH) {
                global float *to = c + m * (size_t)c_row + n;
                struct view from = {0, 0, 1};
                if (k0 > k_first || start == START_OLD)
                    from = (struct view){to, c_row, 1};
                else if (start == START_BIAS)
                    from = (struct view){bias + n, 0, 1};
                tile(to, c_row, min(ROWS, M - m), min(WIDTH, N - n), from, rows, packed + (n - n_first) * depth,
                     k_low - k0, k_high - k0);
            }
        }
    }
}

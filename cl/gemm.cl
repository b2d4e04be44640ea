/*
 * gemm.cl: C = start + A.B in single precision, for CPUs.
 *
 * Where --gemm says `own`, which is the default on CPUs, every matrix product of training goes through this kernel, but
 * for those of --attention flash (flash.cl).  Else CLBlast has them.
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
 *                            span                  1. pack B[k0 .. k0+depth) x span into local memory, as panels of
 *                     +-------+-------+               WIDTH columns: they stay in the L2 cache;
 *              depth  | panel | panel |  B         2. in form TN, for each block of A: pack it too, as strips of ROWS
 *                     +-------+-------+               rows.  In the others a row lies in one piece and is read in place;
 *            depth                                 3. for each strip and each panel: load a tile of C into registers,
 *          +-------+  +-------+-------+               add the `depth` products, store it.  The strip stays in the L1
 *          | strip |  | tile  | tile  |               or L2 cache while one panel after the other passes it, front to
 *   block  +-------+  +-------+-------+               back, and tiles are visited along rows of C: the processor sees
 *          | strip |  | tile  | tile  |  C            what comes next, and fetches it while it computes;
 *          +-------+  +-------+-------+            4. go on with the next k0.  In between, a tile is stored and loaded
 *              A      |       |       |               again; that is exact, so the chain is not broken.
 *
 * A band is several blocks high, and every k0 is a multiple of depth.
 *
 * Build options.  VEC (see common.cl); COLS: vectors per tile row, an even number; ROWS: rows per tile, at least 4.
 * WIDTH = VEC*COLS must be a multiple of 4.  ROWS*COLS + COLS + 1 vector registers are needed: there are 32 with
 * AVX-512 and NEON, 16 with AVX2 and SSE.  Where no more than half of a tile's columns are wanted, at the right edge or
 * on the diagonal of a triangle, half a tile is computed.
 *
 *     VEC     16 (AVX-512)    8 (AVX2)    4 (SSE, NEON)    1 (GPUs, oclgrind: right, not fast)
 *     ROWS    6               6           6                4
 *     COLS    4               2           2                4
 *
 * Launch.  global size {ceil(N / span), ceil(M / band), batches * heads}, local size {1, 1, 1}; span is a multiple of
 * WIDTH, band and block are multiples of ROWS.  src/trainer/model/gemm.c chooses them.  None of this changes a bit of the
 * result.
 */

#define WIDTH (VEC * COLS)
#define LINE 16 /* floats in a cache line, on most processors */
/* Intel's compiler would compute many work-items at once, whose tiles no processor has registers for. */
#ifndef __has_attribute
#define __has_attribute(x) 0
#endif
#if __has_attribute(intel_vec_len_hint)
#define ONE_BY_ONE __attribute__((intel_vec_len_hint(1)))
#else
#define ONE_BY_ONE
#endif
/* Asks for a cache line, perhaps to be written, and goes on.  OpenCL's prefetch() does nothing in PoCL; compilers for
 * CPUs have their own, which NVIDIA's refuses. */
#if VEC > 1 && ON_CPU
#define FETCH(at) __builtin_prefetch(at)
#define FETCH_TO_WRITE(at) __builtin_prefetch(at, 1)
#else
#define FETCH(at) ((void)0)
#define FETCH_TO_WRITE(at) ((void)0)
#endif

/* Element (i,j) of a matrix in global memory is at[i*row + j*col]. */
struct view {
    global const float *at;
    size_t row, col;
};

/* panel (depth,width) = x (depth,cols), four columns at a time; where 4 does not divide width, the last fours overlap.
 * Right of the edge lies what ends up in no stored element. */
static INLINE void pack_panel(local float *panel, struct view x, int depth, int cols, const int width)
{
    if (x.col == 1 && cols >= width) {
        for (int k = 0; k < depth; k++)
            foreach (j, (width + 3) / 4) {
                const int at = min(4 * j, width - 4);
                vstore4(vload4(0, x.at + k * x.row + at), 0, panel + k * width + at);
            }
        return;
    }
    for (int j = 0; j < cols; j += 4) {
        const int at = min(j, width - 4);
        local float *to = panel + at;
        global const float *x0 = x.at + min(at + 0, cols - 1) * x.col, *x1 = x.at + min(at + 1, cols - 1) * x.col;
        global const float *x2 = x.at + min(at + 2, cols - 1) * x.col, *x3 = x.at + min(at + 3, cols - 1) * x.col;
        int k = 0;
        for (; x.row == 1 && k + 4 <= depth; k += 4) { /* a square of 4 x 4 is transposed in registers */
            const float4 c0 = vload4(0, x0 + k), c1 = vload4(0, x1 + k), c2 = vload4(0, x2 + k), c3 = vload4(0, x3 + k);
            vstore4((float4)(c0.x, c1.x, c2.x, c3.x), 0, to + (k + 0) * width);
            vstore4((float4)(c0.y, c1.y, c2.y, c3.y), 0, to + (k + 1) * width);
            vstore4((float4)(c0.z, c1.z, c2.z, c3.z), 0, to + (k + 2) * width);
            vstore4((float4)(c0.w, c1.w, c2.w, c3.w), 0, to + (k + 3) * width);
        }
        for (; k < depth; k++)
            vstore4((float4)(x0[k * x.row], x1[k * x.row], x2[k * x.row], x3[k * x.row]), 0, to + k * width);
    }
}

/* Where the packed floats lie, and how often they are read again:
 *
 *     lies in        what                                16-wide     8-wide      is read again for
 *     registers      a tile of C                         6 x 64      6 x 16      each k
 *     L1 cache       a strip, and of the panel passing   9 KB        9 + 24 KB   each panel of the span
 *     L2 cache       all panels of a span of 384         576 KB      576 KB      each strip of the band
 *                    a block of 48 rows, and the next    144 KB      144 KB      (once: it is read as strips)
 *     L3 or memory   A, B and C                                                  A: each span, B: each band, C: each k0
 *
 * That is for depth 384.  With 512 KB of L2 cache depth and span are about 256 and 200.  Nothing is computed while
 * floats are packed: hence wide spans and high bands.  Unpacked, A in form TN would give ROWS floats of each cache line
 * of 16, and every line from another page.  For a narrow C packing A does not pay even there: block is 0.
 *
 * x (steps,cols) becomes panels, which have room for `depth` rows each: the panels of B, and, transposed, the strips of
 * A.  Cache lines that run across the panels are used up while they are in the L1 cache: LINE of them at a time. */
static INLINE void pack(local float *panels, int depth, struct view x, int steps, int cols, const int width)
{
    const int square = x.col == 1 ? LINE : steps;
    for (int k = 0; k < steps; k += square)
        for (int n = 0; n < cols; n += width) {
            struct view part = {x.at + k * x.row + n * x.col, x.row, x.col};
            pack_panel(panels + n * depth + k * width, part, min(square, steps - k), min(width, cols - n), width);
        }
}

/* Asks for the n-th of `parts` parts of a block of A in form TN: `rows` floats lie in one piece, `steps` times.  The
 * lines arrive while tiles are computed. */
static INLINE void fetch_part(struct view block, int rows, int steps, int n, int parts)
{
    for (int k = steps * n / parts; k < steps * (n + 1) / parts; k++)
        for (int i = 0; i < rows; i += LINE)
            FETCH(block.at + k * block.col + i);
}

/* acc (ROWS,columns) += a (ROWS,depth) . panel (depth,WIDTH), columns in vectors; row[i] begins row i of A, in local or
 * global memory: hence a macro.
 *
 * For each k there are ROWS*COLS vector fma()s, COLS vector loads and ROWS broadcasts.  An fma() waits about 4 cycles for
 * the one before it in its chain; a core that starts two per cycle needs 8 chains or more to hide that, and it can load
 * no more than two vectors in that cycle, so the loads must be well below the fma()s: 10 for 24 in a tile of 6 x 4
 * vectors, 8 for 12 in one of 6 x 2. */
#define ADD_PRODUCTS(acc, columns, row, step, panel, depth)                                                            \
    _Pragma("unroll 4") for (size_t k = 0, at = 0; k < depth; k++, at += step, panel += WIDTH)                         \
    {                                                                                                                  \
        vec b[COLS];                                                                                                   \
        foreach (j, columns)                                                                                           \
            b[j] = GET(panel + j * VEC);                                                                               \
        foreach (i, ROWS) {                                                                                            \
            const vec x = (vec)(row[i][at]);                                                                           \
            foreach (j, columns)                                                                                       \
                acc[i][j] = fma(x, b[j], acc[i][j]);                                                                   \
        }                                                                                                              \
    }

/* c (rows,cols) = start + a (rows,depth) . panel (depth,cols), computed as `columns` vectors.  start.at is null for
 * zeros; strip holds a packed, or is null.  At the lower edge the last row is computed several times and stored once: no
 * branch in the inner loop. */
static INLINE void tile(global float *c, size_t c_row, int rows, int cols, struct view start, struct view a,
                        local const float *strip, local const float *panel, size_t depth, const int columns)
{
    vec acc[ROWS][COLS];
    foreach (i, ROWS)
        foreach (j, columns)
            acc[i][j] =
                start.at ? load(start.at + min(i, rows - 1) * start.row + j * VEC, cols - j * VEC, 0) : (vec)0.0f;
    local const float *packed[ROWS];
    global const float *row[ROWS];
    foreach (i, ROWS) {
        packed[i] = strip + i;
        row[i] = a.at + min(i, rows - 1) * a.row;
    }
    foreach (i, ROWS) /* what is stored at last; where C was loaded, what the next tile loads */
        foreach (j, columns)
            FETCH_TO_WRITE(c + min(i, rows - 1) * c_row + j * VEC + (start.row ? WIDTH : 0));
    if (strip)
        ADD_PRODUCTS(acc, columns, packed, ROWS, panel, depth)
    else if (a.col == 1)
        ADD_PRODUCTS(acc, columns, row, 1, panel, depth)
    else
        ADD_PRODUCTS(acc, columns, row, a.col, panel, depth)

    foreach (i, ROWS)
        if (i < rows)
            foreach (j, columns)
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

/* Causal attention.  A (T,T) matrix of scores is zero above the diagonal, so about half of the work can be left out.
 * `causal` says which of the three square matrices is the triangle:
 *
 *     CAUSAL_OUT             scores = q.k^T, datt = do.v^T   tiles wholly above the diagonal of C are left unwritten
 *     CAUSAL_A               att.v, dscores.k                k stops at the last row of the tile
 *     CAUSAL_A_TRANSPOSED    att^T.do, dscores^T.q           k begins at the first row of the tile
 *
 * A tile on the diagonal is multiplied in full.  So row i of att and dscores must hold zeros from column i+1 up to, not
 * including, (i/ROWS + 1)*ROWS; what is to the right of that is never read.  CAUSAL_OUT leaves products there, not
 * zeros.  Where the work is cut depends on m only: the bits do not depend on batch, band or span. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) ONE_BY_ONE void
gemm(int M, int N, int K, int start, int causal, /* sizes; where the chains begin; the triangle */
     int band, int span, int depth,              /* work of one work-item: multiples of ROWS, of WIDTH, and any */
     int block,                                  /* rows of A packed at a time: a multiple of ROWS, or 0 for none */
     int heads,                                  /* 1 if there are none */
     global const float *a, int a_base, int a_outer, int a_inner, int a_row, int a_step, /* (M,K) */
     global const float *b, int b_base, int b_outer, int b_inner, int b_step, int b_col, /* (K,N) */
     global float *c, int c_base, int c_outer, int c_inner, int c_row,                   /* (M,N) */
     global const float *bias,                                                           /* (N), or null */
     local float *packed)                                                                /* ((span + block) * depth) */
{
    const int m_first = get_global_id(1) * band, m_last = min(m_first + band, M);
    const int n_first = get_global_id(0) * span, n_last = min(n_first + span, causal == CAUSAL_OUT ? min(m_last, N) : N);
    const int k_first = causal == CAUSAL_A_TRANSPOSED ? m_first : 0, k_last = causal == CAUSAL_A ? m_last : K;
    local float *panels = packed, *strips = packed + span * depth;
    a += matrix_begin(heads, a_base, a_outer, a_inner);
    b += matrix_begin(heads, b_base, b_outer, b_inner);
    c += matrix_begin(heads, c_base, c_outer, c_inner);

    for (int k0 = k_first; k0 < k_last; k0 += depth) {
        const int k1 = min(k0 + depth, k_last);
        struct view columns = {b + k0 * (size_t)b_step + n_first * (size_t)b_col, b_step, b_col};
        pack(panels, depth, columns, k1 - k0, n_last - n_first, WIDTH);

        for (int m = m_first; m < m_last; m += ROWS) {
            const int packed_rows = block ? (m - m_first) % block : 0; /* of this block, before this strip */
            if (block && packed_rows == 0) {
                struct view rows = {a + m * (size_t)a_row + k0 * (size_t)a_step, a_step, a_row};
                pack(strips, depth, rows, k1 - k0, min(block, m_last - m), ROWS);
            }
            const int ahead = min(block, m_last - (m - packed_rows) - block); /* rows of the next block */
            struct view next = {a + (m - packed_rows + block) * (size_t)a_row + k0 * (size_t)a_step, a_row, a_step};
            const int k_low = causal == CAUSAL_A_TRANSPOSED ? max(m, k0) : k0;
            const int k_high = causal == CAUSAL_A ? min(m + ROWS, k1) : k1;
            const int n_stop = causal == CAUSAL_OUT ? min(m + ROWS, n_last) : n_last;
            struct view rows = {a + m * (size_t)a_row + k_low * (size_t)a_step, a_row, a_step};
            local const float *strip = block ? strips + packed_rows * depth : 0;

            for (int n = n_first; n < n_stop; n += WIDTH) {
                global float *to = c + m * (size_t)c_row + n;
                struct view from = {0, 0, 1};
                if (k0 > k_first || start == START_OLD)
                    from = (struct view){to, c_row, 1};
                else if (start == START_BIAS)
                    from = (struct view){bias + n, 0, 1};
                if (ahead > 0)
                    fetch_part(next, ahead, k1 - k0, (packed_rows / ROWS * span + n - n_first) / WIDTH,
                               block / ROWS * span / WIDTH);
                local const float *panel = panels + (n - n_first) * depth + (k_low - k0) * WIDTH;
                const int height = min(ROWS, M - m), steps = max(k_high - k_low, 0);
                if (n_stop - n > WIDTH / 2) /* the number of vectors must be a constant */
                    tile(to, c_row, height, min(WIDTH, N - n), from, rows, strip, panel, steps, COLS);
                else
                    tile(to, c_row, height, min(WIDTH / 2, N - n), from, rows, strip, panel, steps, COLS / 2);
            }
        }
    }
}

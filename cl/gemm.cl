/*
 * gemm.cl - C = start + A.B in single precision, for CPUs.
 *
 * Where --gemm says `own`, which is the default on CPUs, every matrix product of training is this kernel, except those
 * of --attention flash (flash.cl).  With --gemm clblast they are the library's.
 *
 *     form   product           A is stored as   A.row  A.col      B is stored as   B.row  B.col
 *     NT     y  = x . w^T      (M, K)           lda    1          (N, K)           1      ldb
 *     NN     dx = dy . w       (M, K)           lda    1          (K, N)           ldb    1
 *     TN     dw += dy^T . x    (K, M)           1      lda        (K, N)           ldb    1
 *
 * A form is a choice of strides: element (m,k) of A is a[m*A.row + k*A.col], element (k,n) of B is
 * b[k*B.row + n*B.col], element (m,n) of C is c[m*C.row + n].  Any M, N, K >= 1 and any strides are right, and nothing
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
 *                     +-------+-------+               rows.  In the others a row is in one piece, and is read in place;
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
 * WIDTH, band and block are multiples of ROWS.  src/trainer/model/gemm.c chooses them.  None of this changes a bit of
 * the result.
 */

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
/* Asks for a cache line, to read or to write it, and does not wait.  OpenCL's prefetch() does nothing in PoCL, while
 * compilers for CPUs have a function of their own, which NVIDIA's refuses. */
#if VEC > 1 && ON_CPU
#define FETCH(at) __builtin_prefetch(at)
#define FETCH_TO_WRITE(at) __builtin_prefetch(at, 1)
#else
#define FETCH(at) ((void)0)
#define FETCH_TO_WRITE(at) ((void)0)
#endif

/* Element (i,j) of a matrix in global memory is at[i*row + j*col]. */
struct matrix {
    const global float *at;
    size_t row, col;
};

/* panel (depth,width) = x (depth,cols), four columns at a time; where 4 does not divide width, the last fours overlap.
 * Right of the edge lies what ends up in no stored element. */
static INLINE void pack_panel(local float *panel, struct matrix x, int depth, int cols, const int width)
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
        const global float *x0 = x.at + min(at + 0, cols - 1) * x.col, *x1 = x.at + min(at + 1, cols - 1) * x.col;
        const global float *x2 = x.at + min(at + 2, cols - 1) * x.col, *x3 = x.at + min(at + 3, cols - 1) * x.col;
        int k = 0;
        if (x.row == 1)
            for (; k + 4 <= depth; k += 4)
                TRANSPOSE_SQUARE(x0 + k, x1 + k, x2 + k, x3 + k, to + k * width, width);
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
 * floats are packed, so spans are wide and bands are high.  Unpacked, A in form TN would give ROWS floats of each cache
 * line of 16, and every line from another page.  Yet packing A does not pay for a narrow C: block is 0 then.
 *
 * x (steps,cols) becomes panels, which have room for `depth` rows each: the panels of B, and, transposed, the strips of
 * A.  Cache lines that run across the panels are used up while they are in the L1 cache: LINE of them at a time. */
static INLINE void pack(local float *panels, int depth, struct matrix x, int steps, int cols, const int width)
{
    const int square = x.col == 1 ? LINE : steps;
    for (int k = 0; k < steps; k += square)
        for (int n = 0; n < cols; n += width) {
            struct matrix part = {x.at + k * x.row + n * x.col, x.row, x.col};
            pack_panel(panels + n * depth + k * width, part, min(square, steps - k), min(width, cols - n), width);
        }
}

/* The block of A in form TN that will be packed next: `rows` floats lie in one piece, `steps` times.  With each tile
 * that is computed one of its parts is asked for; `part` is the first of those for this strip. */
struct next_block {
    struct matrix a;
    int rows, steps, part, parts; /* rows: 0 or less where there is no such block */
};

static INLINE void fetch_part(struct next_block next, int part)
{
    for (int k = next.steps * part / next.parts; k < next.steps * (part + 1) / next.parts; k++)
        for (int i = 0; i < next.rows; i += LINE)
            FETCH(next.a.at + k * next.a.col + i);
}

/* acc (ROWS,columns) += a (ROWS,depth) . panel (depth,WIDTH), where `columns` counts vectors, and row i of A begins at
 * row[i].  This is a macro, since A may lie in local or in global memory, and OpenCL C 1.2 has no pointer that may lead
 * into either.  No argument may use the name of a variable of the macro.
 *
 * For each k there are ROWS*COLS vector fma()s, COLS vector loads and ROWS broadcasts.  An fma() waits about 4 cycles
 * for the one before it in its chain; a core that starts two per cycle needs 8 chains or more to hide that, and it can
 * load no more than two vectors in that cycle, so the loads must be well below the fma()s: 10 for 24 in a tile of 6 x 4
 * vectors, 8 for 12 in one of 6 x 2. */
#define ADD_PRODUCTS(acc, columns, row, step, panel, depth)                                                            \
    do {                                                                                                               \
        const local float *from = (panel);                                                                             \
        size_t at = 0;                                                                                                 \
        _Pragma("unroll 4") for (size_t k = 0; k < (depth); k++)                                                       \
        {                                                                                                              \
            vec b[COLS];                                                                                               \
            foreach (j, columns)                                                                                       \
                b[j] = GET(from + j * VEC);                                                                            \
            foreach (i, ROWS) {                                                                                        \
                const vec x = (vec)((row)[i][at]);                                                                     \
                foreach (j, columns)                                                                                   \
                    (acc)[i][j] = fma(x, b[j], (acc)[i][j]);                                                           \
            }                                                                                                          \
            at += (step);                                                                                              \
            from += WIDTH;                                                                                             \
        }                                                                                                              \
    } while (0)

/* c (rows,cols) = start + a (rows,depth) . panel (depth,cols), computed as `columns` vectors.  start.at is null for
 * zeros; strip holds a packed, or is null.
 *
 * A tile is ROWS by `columns` vectors in registers, and each of its floats is one chain.  It is always computed whole:
 * at the lower edge of C, where fewer rows are left, its last row is computed several times, and only stored once.  So
 * the inner loop has no branch. */
static INLINE void tile(global float *c, size_t c_row, int rows, int cols, struct matrix start, struct matrix a,
                        const local float *strip, const local float *panel, size_t depth, const int columns)
{
    vec acc[ROWS][COLS];
    foreach (i, ROWS)
        foreach (j, columns)
            acc[i][j] =
                start.at ? load(start.at + min(i, rows - 1) * start.row + j * VEC, cols - j * VEC, 0) : (vec)0.0f;
    const local float *packed[ROWS];
    const global float *row[ROWS];
    foreach (i, ROWS) {
        packed[i] = strip + i;
        row[i] = a.at + min(i, rows - 1) * a.row;
    }
    foreach (i, ROWS) /* what is stored at last; where C was loaded, what the next tile loads */
        foreach (j, columns)
            FETCH_TO_WRITE(c + min(i, rows - 1) * c_row + j * VEC + (start.row ? WIDTH : 0));
    if (strip)
        ADD_PRODUCTS(acc, columns, packed, ROWS, panel, depth);
    else if (a.col == 1)
        ADD_PRODUCTS(acc, columns, row, 1, panel, depth);
    else
        ADD_PRODUCTS(acc, columns, row, a.col, panel, depth);

    foreach (i, ROWS)
        if (i < rows)
            foreach (j, columns)
                store(acc[i][j], c + i * c_row + j * VEC, cols - j * VEC);
}

/* A strip of A, and the rows of C beside it, from the first column of the work-item on. */
struct strip {
    struct matrix a;             /* (rows,steps) */
    const local float *packed; /* the same, or null */
    global float *c;
    size_t c_row;
    enum gemm_start start;    /* where the chains begin */
    const global float *bias; /* (cols), for START_BIAS */
    int rows, steps;
    int cols, cols_left; /* to be computed; and how many C has */
};

/* Each panel passes the strip: c += a . panels (steps,cols), a tile at a time.  A panel has room for `depth` rows. */
static INLINE void compute_strip(struct strip s, const local float *panels, int depth, struct next_block next)
{
    for (int n = 0; n < s.cols; n += WIDTH) {
        if (next.rows > 0)
            fetch_part(next, next.part + n / WIDTH);
        struct matrix start = {0, 0, 1};
        if (s.start == START_OLD)
            start = (struct matrix){s.c + n, s.c_row, 1};
        else if (s.start == START_BIAS)
            start = (struct matrix){s.bias + n, 0, 1};
        const int left = s.cols_left - n;
        if (s.cols - n > WIDTH / 2) /* the number of vectors must be a constant */
            tile(s.c + n, s.c_row, s.rows, min(WIDTH, left), start, s.a, s.packed, panels + n * depth, s.steps, COLS);
        else
            tile(s.c + n, s.c_row, s.rows, min(WIDTH / 2, left), start, s.a, s.packed, panels + n * depth, s.steps,
                 COLS / 2);
    }
}

/* Where matrix z begins.  With heads, z = i*heads + h: that is how one head's q is read in place from a (B,T,3C)
 * tensor.  (Written z % heads, the remainder would become an instruction that oclgrind does not know.) */
static size_t matrix_begin(int heads, struct gemm_strides X)
{
    size_t z = get_global_id(2), i = z / heads, h = z - i * heads;
    return X.offset + i * X.batch_stride + h * X.head_stride;
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
gemm(global float *c, struct gemm_strides C,       /* (M,N) */
     const global float *a, struct gemm_strides A, /* (M,K) */
     const global float *b, struct gemm_strides B, /* (K,N) */
     const global float *bias,                     /* (N), or null */
     struct gemm_sizes sizes, struct gemm_blocking blocking,
     local float *packed) /* ((span + block) * depth) */
{
    const int M = sizes.M, N = sizes.N, K = sizes.K, causal = sizes.causal;
    const int band = blocking.band, span = blocking.span, depth = blocking.depth, block = blocking.block;
    const int m_first = get_global_id(1) * band, m_last = min(m_first + band, M);
    const int n_first = get_global_id(0) * span;
    const int n_last = min(n_first + span, causal == CAUSAL_OUT ? min(m_last, N) : N);
    const int k_first = causal == CAUSAL_A_TRANSPOSED ? m_first : 0, k_last = causal == CAUSAL_A ? m_last : K;
    local float *panels = packed, *strips = packed + span * depth;
    a += matrix_begin(sizes.heads, A);
    b += matrix_begin(sizes.heads, B);
    c += matrix_begin(sizes.heads, C);

    for (int k0 = k_first; k0 < k_last; k0 += depth) {
        /* 1. Pack B. */
        const int k1 = min(k0 + depth, k_last);
        struct matrix columns = {b + k0 * (size_t)B.row + n_first * (size_t)B.col, B.row, B.col};
        pack(panels, depth, columns, k1 - k0, n_last - n_first, WIDTH);

        for (int m = m_first; m < m_last; m += ROWS) {
            /* 2. Pack a block of A, before its first strip; the block after it is fetched while tiles are computed. */
            const int packed_rows = block ? (m - m_first) % block : 0; /* of this block, before this strip */
            if (block && packed_rows == 0) {
                struct matrix rows = {a + m * (size_t)A.row + k0 * (size_t)A.col, A.col, A.row};
                pack(strips, depth, rows, k1 - k0, min(block, m_last - m), ROWS);
            }
            const int m_next = m - packed_rows + block;
            struct next_block next = {.a = {a + m_next * (size_t)A.row + k0 * (size_t)A.col, A.row, A.col},
                                      .rows = min(block, m_last - m_next),
                                      .steps = k1 - k0,
                                      .part = packed_rows / ROWS * (span / WIDTH),
                                      .parts = block / ROWS * (span / WIDTH)};

            /* 3. The tiles of this strip, without what the triangle leaves out. */
            const int k_low = causal == CAUSAL_A_TRANSPOSED ? max(m, k0) : k0;
            const int k_high = causal == CAUSAL_A ? min(m + ROWS, k1) : k1;
            const int n_stop = causal == CAUSAL_OUT ? min(m + ROWS, n_last) : n_last;
            struct strip strip = {.a = {a + m * (size_t)A.row + k_low * (size_t)A.col, A.row, A.col},
                                  .packed = block ? strips + packed_rows * depth : 0,
                                  .c = c + m * (size_t)C.row + n_first,
                                  .c_row = C.row,
                                  .start = k0 > k_first ? START_OLD : sizes.start,
                                  .bias = bias + n_first,
                                  .rows = min(ROWS, M - m),
                                  .steps = max(k_high - k_low, 0),
                                  .cols = n_stop - n_first,
                                  .cols_left = N - n_first};
            compute_strip(strip, panels + (k_low - k0) * WIDTH, depth, next);
        }
        /* 4. Go on with the next k0. */
    }
}

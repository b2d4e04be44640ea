/*
 * common.cl - what every kernel file shares.  The loader puts shared.h and this text in front of each other .cl file.
 *
 * One source serves CPUs and GPUs.  Two numbers, given when the program is built, say which:
 *
 *     VEC  floats per vector: 16 (AVX-512), 8 (AVX), 4 (SSE, NEON) on CPUs, 1 on GPUs
 *     WG   work-items per work-group: 1 on CPUs; a power of two, 64 to 256, on GPUs
 *
 * A work-group owns one row (or one block of a flat array).  Its work-items stride over it, VEC floats at a time:
 *
 *     for (int i = FIRST; i < C; i += STRIDE)
 *         store(f(load(x + i, C - i, 0)), out + i, C - i);
 *
 * In a flat array of n elements, i goes from block_begin() + FIRST to block_end(n).
 *
 * CPU, VEC = 4, WG = 1:  |0 0 0 0|0 0 0 0|0 0 .        one work-item, the last vector is only partly used
 * GPU, VEC = 1, WG = 4:  |0|1|2|3|0|1|2|3|0|1|         neighbours read neighbouring floats ("coalesced")
 *
 * Why explicit vectors?  A compiler may not reorder float additions, so a plain `sum += x[i]` runs one float at a time
 * unless we allow -cl-fast-math, which gives up reproducible bits.  A vector accumulator is VEC sums side by side that
 * *we* chose to reorder: fast, and the same on every run.
 *
 * Launch rule, the same for every kernel: local size WG, global size (number of work-groups) * WG.
 * Sizes are int: a tensor holds fewer than 2^31 elements; an offset row * C is computed in size_t.
 * Only 4-byte alignment is assumed anywhere.  Result bits depend on VEC and WG, never on the number of cores.
 */

/* A compiler may not fuse a*b+c either, in any kernel file: where one rounding is wanted, the kernels say fma().  This
 * holds to the end of the text that is compiled, and so for the file behind this one too. */
#pragma OPENCL FP_CONTRACT OFF

#ifndef VEC
#define VEC 1
#endif
#ifndef WG
#define WG 1
#endif
/* The most floats that a work-group takes at a time.  It is also the number of sums that norm.cl keeps of a block, and
 * load_tile() brings a tile in whole rounds, whatever VEC and WG are. */
#define MOST_STRIDE 256
#if WG * VEC > MOST_STRIDE || (WG & (WG - 1)) != 0
#error "WG must be a power of two, and WG * VEC at most MOST_STRIDE"
#endif

/* The register tile of matrix products, in rows, in vectors, and in columns: see gemm.cl.  flash.cl has the same. */
#ifndef ROWS
#define ROWS 4
#endif
#ifndef COLS
#define COLS 4
#endif
#define WIDTH (VEC * COLS)

#define KERNEL kernel __attribute__((reqd_work_group_size(WG, 1, 1)))

#define INLINE inline __attribute__((always_inline)) /* so that a constant argument is one for the compiler */

/* A loop that must vanish when compiled: an array that is indexed by a variable cannot live in registers. */
#define foreach(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)

/* All of the work-group wait here, and see what the others have written to local memory.  A CPU's only work-item has
 * nobody to wait for.
 *
 * PoCL runs the work-items one after another, from barrier to barrier.  Where a barrier is followed by nothing but a
 * branch, on a condition known before, PoCL 3.1 to 7.1 decide the branch once, for the whole work-group:
 *
 *     if (i < n) a();    wait;    if (i < n) b();        the second `if` holds for all i, or for none
 *
 * So on PoCL, which gives itself away by a macro, something else follows first, which no compiler may remove. */
static void wait_for_all(void)
{
#if WG > 1
    barrier(CLK_LOCAL_MEM_FENCE);
#ifdef POCL_DEVICE_ADDRESS_BITS
    volatile int something;
    something = 0;
#endif
#endif
}

/* Columns per work-group in kernels that sum down the columns.  Host: groups = ceil(C / COLUMN_BLOCK). */
#define COLUMN_BLOCK (WG > 1 ? GPU_COLUMNS : CPU_COLUMNS)

/* This work-item's first element of a row, and the distance to its next one. */
#define FIRST ((int)get_local_id(0) * VEC)
#define STRIDE (WG * VEC)

/* The block of a work-group, among flat arrays of n elements: from block_begin() up to, not including, block_end(n).
 * Host: groups = ceil(n / BLOCK). */
static int block_begin(void)
{
    return get_group_id(0) * BLOCK;
}

static int block_end(int n)
{
    return min(block_begin() + BLOCK, n);
}

/* ---- vec: VEC floats --------------------------------------------------------------------------------------------- */

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#if VEC == 1
typedef float vec;
typedef int ivec;
#define GET(p) (*(p))
#define PUT(v, p) (*(p) = (v))
#else
typedef PASTE(float, VEC) vec;
typedef PASTE(int, VEC) ivec;
#define GET(p) PASTE(vload, VEC)(0, p)
#define PUT(v, p) PASTE(vstore, VEC)(v, 0, p)
#endif

/* The number of each float in a vector: i + NUMBERS are the indices of the elements in the vector at i. */
#if VEC == 16
#define NUMBERS ((ivec)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#elif VEC == 8
#define NUMBERS ((ivec)(0, 1, 2, 3, 4, 5, 6, 7))
#elif VEC == 4
#define NUMBERS ((ivec)(0, 1, 2, 3))
#elif VEC == 1
#define NUMBERS 0
#else
#error "VEC must be 16, 8, 4 or 1"
#endif

/* The vector at p, of which only `left` floats exist.  Those past the end get `fill`, and their memory is not
 * touched.  Choose a fill that does no harm: 0 for a sum, -INFINITY for a maximum. */
static vec load(const global float *p, int left, float fill)
{
    if (left >= VEC)
        return GET(p);
    float floats[VEC];
    for (int k = 0; k < VEC; k++)
        floats[k] = k < left ? p[k] : fill;
    return GET(floats);
}

/* Writes v to p, but no more than `left` floats. */
static void store(vec v, global float *p, int left)
{
    if (left >= VEC) {
        PUT(v, p);
        return;
    }
    float floats[VEC];
    PUT(v, floats);
    for (int k = 0; k < left; k++)
        p[k] = floats[k];
}

/* Transposes a square of 4 x 4 floats in registers.  Its rows begin at from0 to from3; those of the result are `to_row`
 * floats apart.  It is a macro, since either may lie in global or in local memory. */
#define TRANSPOSE_SQUARE(from0, from1, from2, from3, to, to_row)                                                       \
    do {                                                                                                               \
        const float4 r0 = vload4(0, from0), r1 = vload4(0, from1), r2 = vload4(0, from2), r3 = vload4(0, from3);       \
        vstore4((float4)(r0.x, r1.x, r2.x, r3.x), 0, (to));                                                            \
        vstore4((float4)(r0.y, r1.y, r2.y, r3.y), 0, (to) + (to_row));                                                 \
        vstore4((float4)(r0.z, r1.z, r2.z, r3.z), 0, (to) + 2 * (to_row));                                             \
        vstore4((float4)(r0.w, r1.w, r2.w, r3.w), 0, (to) + 3 * (to_row));                                             \
    } while (0)

/* This stands before a loop that makes one chain of additions, where the order is a promise.  Intel's CPU compiler
 * vectorises such a loop and then adds in another order, unasked; chains of fma() it leaves alone. */
#if WG > 1 /* the next rows are loaded while one is added, which a GPU does only for those of one round */
#define IN_ORDER _Pragma("clang loop vectorize(disable) unroll_count(8)")
#else
#define IN_ORDER _Pragma("clang loop vectorize(disable)")
#endif

/* ---- reductions: over the floats of a vector, then over the work-group ------------------------------------------- */

/* Unlike fmax() one instruction; passes over a NaN in b. */
static vec larger(vec a, vec b)
{
    return b > a ? b : a;
}

/* What a reduction makes of two numbers: their sum, or the larger one. */
enum reduced_to { TO_SUM, TO_LARGEST };

static INLINE float reduce_two(float a, float b, const enum reduced_to to)
{
    if (to == TO_LARGEST)
        return b > a ? b : a;
    return a + b;
}

/* The floats of a vector become one number: the upper half is reduced with the lower until one is left.
 *
 *     a b c d e f g h  ->  a+e b+f c+g d+h  ->  a+e+c+g b+f+d+h  ->  ... */
static INLINE float reduce_vec(vec v, const enum reduced_to to)
{
    float floats[VEC];
    PUT(v, floats);
#pragma unroll
    for (int part = VEC / 2; part > 0; part /= 2)
#pragma unroll
        for (int k = 0; k < part; k++)
            floats[k] = reduce_two(floats[k], floats[k + part], to);
    return floats[0];
}

/* The numbers of the whole work-group become one, which each of its work-items gets: the same tree, in local memory.
 * On a CPU (WG == 1) there is nobody to wait for, and no barrier. */
static INLINE float reduce_group(float mine, local float *scratch, const enum reduced_to to)
{
#if WG > 1
    int lid = get_local_id(0);
    scratch[lid] = mine;
    wait_for_all();
    for (int part = WG / 2; part > 0; part /= 2) {
        if (lid < part)
            scratch[lid] = reduce_two(scratch[lid], scratch[lid + part], to);
        wait_for_all();
    }
    mine = scratch[0];
    wait_for_all(); /* scratch may be used again at once */
#endif
    return mine;
}

/* The sum of a vector, and the sum and the largest of the vectors of a whole work-group.  scratch: WG floats. */
static float vec_sum(vec v)
{
    return reduce_vec(v, TO_SUM);
}

static float group_sum(vec v, local float *scratch)
{
    return reduce_group(reduce_vec(v, TO_SUM), scratch, TO_SUM);
}

static float group_max(vec v, local float *scratch)
{
    return reduce_group(reduce_vec(v, TO_LARGEST), scratch, TO_LARGEST);
}

/* ---- sums in order ----------------------------------------------------------------------------------------------- */

/* Where the order of additions is a promise, a sum is one chain from the old value on, so that micro-batches one after
 * another give the bits of one large batch, on any number of cores.  (Partial sums over pieces of the rows would not.)
 * Kernels that sum down the columns give a work-group COLUMN_BLOCK columns, of which it walks over all rows.
 *
 * A chain is the work of one work-item.  On a CPU it reads memory itself.  On a GPU it would wait for memory at every
 * step; so all work-items load a tile into local memory, and then the chains go on from there, in the same order and so
 * to the same bits:
 *
 *                32 columns                    a chain per column
 *     row 0    0   1   2 ..  31                 |   |   |  ..  |
 *     row 1   32  33  34 ..  63     barrier     +   +   +  ..  +     barrier, next tile
 *     row 2   64  65  66 ..  95    -------->    +   +   +  ..  +    ------------------->
 *      ..                                       +   +   +  ..  +
 *     row 63           ..  2047                 v   v   v  ..  v
 *     work-item i loads i, i + WG, ...          work-items 0 .. 31
 *
 * Rows are read and written 32 neighbours at a time: whole lines of memory, and each of the 32 banks of local memory
 * once.  Three in four of a work-group's 128 work-items have nothing to add.  They are there to load: they bring the 64
 * rows in one wait for memory.  An NVIDIA H200 takes 31 ns for each row of a chain, of which the addition is 3. */
enum {
    TILE_ROWS = 64,
    TILE = TILE_ROWS * GPU_COLUMNS, /* floats */
    TILE_SIZE = WG > 1 ? TILE : 1,  /* of the local array */
    TILE_LOADS = TILE / (WG * VEC), /* vectors that a work-item brings: a whole number, as STRIDE divides MOST_STRIDE */
    COLUMN_VECTORS = COLUMN_BLOCK > STRIDE ? COLUMN_BLOCK / STRIDE : 1, /* of a work-item that adds */
};
#define ADDS (FIRST < COLUMN_BLOCK) /* this work-item has columns to add */

/* Loads the first `rows` rows of a matrix with rows of C elements, of which `left` are there from x on.  The rest of
 * the tile is 0.  A work-item first asks for all that it brings and only then writes it down: so it waits for memory
 * once, not once for each vector. */
static void load_tile(local float *tile, const global float *x, int rows, int left, int C)
{
#if WG > 1
    enum { ACROSS = GPU_COLUMNS / VEC };
    vec part[TILE_LOADS];
#pragma unroll
    for (int k = 0; k < TILE_LOADS; k++) {
        int i = get_local_id(0) + k * WG;
        int row = i / ACROSS, c = i % ACROSS * VEC;
        part[k] = load(x + (size_t)row * C + c, row < rows ? left - c : 0, 0);
    }
#pragma unroll
    for (int k = 0; k < TILE_LOADS; k++)
        PUT(part[k], tile + FIRST + k * STRIDE);
#endif
}

/* Loads `size` elements of a flat array, a *stretch*, of which `left` are there.  The rest of the tile is 0. */
static void load_stretch(local float *tile, const global float *x, int size, int left)
{
#if WG > 1
#pragma unroll 4
    for (int i = FIRST; i < size; i += STRIDE)
        PUT(load(x + i, left - i, 0), tile + i);
#endif
}

/* The vector at column c of a row: of the tile, or of x itself. */
static vec from_tile(const local float *tile, const global float *x, int row, int c, int left, int C)
{
#if WG > 1
    return GET(tile + row * GPU_COLUMNS + c);
#else
    return load(x + (size_t)row * C + c, left - c, 0);
#endif
}

/* Element i of a stretch: of the tile, or of x itself. */
static float from_stretch(const local float *tile, const global float *x, int i)
{
#if WG > 1
    return tile[i];
#else
    return x[i];
#endif
}

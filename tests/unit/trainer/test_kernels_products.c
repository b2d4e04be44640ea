/* test_kernels_products.c - matrix products by gemm.cl and by CLBlast, compared with one chain of fma per element.
 *
 * It tests src/trainer/model/gemm.c and gemm.cl.  It checks that our own products have the bits of the chain, in the
 * order of k, and that the products of CLBlast, which may sum in any order, are near.  It catches an edge of a tile
 * that is left out or written twice, a stride that is taken for another, and an element that is read or written outside
 * a matrix, where NaN lies.
 *
 * To see it fail: in gemm.cl, begin the chain of products at k = 1.
 *
 * Operands are normal numbers that depend only on a seed.  Sizes are odd, or lie around the borders of a tile.
 */
#include "tests/support/support_kernels.h"
#include "trainer/model/model.h"
#include "trainer/run/run.h"

#include <clblast_c.h>
#include <math.h>

ALWAYS(machines_open) { open_shapes(); }

/* ---- gemm.cl and CLBlast, through src/trainer/model/gemm.c ------------------------------------------------------- */

struct sizes {
    int m, n, k, batch, heads;
};
static const struct sizes products[] = {
    {.m = 1, .n = 1, .k = 1, .batch = 1, .heads = 1},     {.m = 5, .n = 7, .k = 3, .batch = 1, .heads = 1},
    {.m = 17, .n = 33, .k = 65, .batch = 1, .heads = 1},  {.m = 70, .n = 41, .k = 530, .batch = 1, .heads = 1},
    {.m = 131, .n = 66, .k = 31, .batch = 1, .heads = 1}, {.m = 9, .n = 13, .k = 6, .batch = 2, .heads = 3},
    {.m = 3, .n = 150, .k = 10, .batch = 1, .heads = 4},  {.m = 51, .n = 389, .k = 259, .batch = 1, .heads = 1},
};

/* An operand of rows x ld matrices, two-level strides as for heads: inner ones side by side, a margin around all;
 * square ones one after another. */
struct operand_memory {
    struct operand operand;
    size_t n;
    int rows, columns;
};

static struct operand_memory operand_memory(const struct sizes *sizes, int rows, int columns)
{
    int ld = sizes->heads * columns + (sizes->batch > 1 ? 5 : 0);
    struct operand operand = {
        .offset = 3, .ld = ld, .batch_stride = (size_t)rows * (size_t)ld + 7, .head_stride = (size_t)columns};
    if (sizes->batch * sizes->heads > 1 && rows == columns) {
        operand.ld = columns;
        operand.head_stride = (size_t)(rows * columns);
        operand.batch_stride = (size_t)sizes->heads * operand.head_stride;
    }
    if (sizes->batch * sizes->heads == 1)
        operand.offset = 0; /* the plain case: CLBlast's single product wants aligned starts on some devices */
    return (struct operand_memory){.operand = operand,
                                   .n = operand.offset + operand.batch_stride * (size_t)sizes->batch + 11,
                                   .rows = rows,
                                   .columns = columns};
}

static size_t element(const struct operand_memory *memory, const struct sizes *sizes, int z, int row, int column)
{
    size_t i = (size_t)(z / sizes->heads), h = (size_t)(z % sizes->heads);
    return memory->operand.offset + i * memory->operand.batch_stride + h * memory->operand.head_stride +
           (size_t)row * (size_t)memory->operand.ld + (size_t)column;
}

/* Random in the matrices, `beside` everywhere else. */
static float *fill_operand(const struct operand_memory *memory, const struct sizes *sizes, float beside, uint64_t seed)
{
    float *values = allocate(memory->n, sizeof *values), *numbers = random_floats(memory->n, seed);
    for (size_t i = 0; i < memory->n; i++)
        values[i] = beside;
    for (int z = 0; z < sizes->batch * sizes->heads; z++)
        for (int r = 0; r < memory->rows; r++)
            for (int c = 0; c < memory->columns; c++)
                values[element(memory, sizes, z, r, c)] = numbers[element(memory, sizes, z, r, c)];
    free(numbers);
    return values;
}

struct product {
    struct sizes sizes;
    struct gemm gemm;
    struct operand_memory a, b, c;
    float *va, *vb, *vc, *bias;
};

static struct product new_product(const struct sizes *sizes, enum gemm_form form, enum gemm_start start,
                                  enum gemm_causal causal)
{
    struct product product = {.sizes = *sizes};
    product.a = form == GEMM_TN ? operand_memory(sizes, sizes->k, sizes->m) : operand_memory(sizes, sizes->m, sizes->k);
    product.b = form == GEMM_NT ? operand_memory(sizes, sizes->n, sizes->k) : operand_memory(sizes, sizes->k, sizes->n);
    product.c = operand_memory(sizes, sizes->m, sizes->n);
    product.va = fill_operand(&product.a, sizes, NAN, 1);
    product.vb = fill_operand(&product.b, sizes, NAN, 2);
    product.vc = fill_operand(&product.c, sizes, 77, 3);
    product.bias = random_floats((size_t)sizes->n, 4);
    product.gemm = (struct gemm){.form = form,
                                 .m = sizes->m,
                                 .n = sizes->n,
                                 .k = sizes->k,
                                 .batch = sizes->batch,
                                 .heads = sizes->heads,
                                 .a = product.a.operand,
                                 .b = product.b.operand,
                                 .c = product.c.operand,
                                 .start = start,
                                 .causal = causal};
    return product;
}

static float at_a(const struct product *product, int z, int m, int k)
{
    return product->va[product->gemm.form == GEMM_TN ? element(&product->a, &product->sizes, z, k, m)
                                                     : element(&product->a, &product->sizes, z, m, k)];
}

static float at_b(const struct product *product, int z, int n, int k)
{
    return product->vb[product->gemm.form == GEMM_NT ? element(&product->b, &product->sizes, z, n, k)
                                                     : element(&product->b, &product->sizes, z, k, n)];
}

/* One chain of fma per element, in the order of k: the promise of gemm.cl. */
static float chain(const struct product *product, int z, int m, int n)
{
    float sum = 0;
    if (product->gemm.start == START_OLD)
        sum = product->vc[element(&product->c, &product->sizes, z, m, n)];
    else if (product->gemm.start == START_BIAS)
        sum = product->bias[n];
    int first = product->gemm.causal == CAUSAL_A_TRANSPOSED ? m : 0,
        last = product->gemm.causal == CAUSAL_A ? m + 1 : product->sizes.k;
    for (int k = first; k < last; k++)
        sum = fmaf(at_a(product, z, m, k), at_b(product, z, n, k), sum);
    return sum;
}

/* The whole tensor of C: the matrices replaced, all else as it was.  Above a causal C's diagonal anything may lie. */
static void compare_product(const struct product *product, const float *ours, double tolerance)
{
    float *expected = copy_floats(product->vc, product->c.n);
    for (int z = 0; z < product->sizes.batch * product->sizes.heads; z++)
        for (int m = 0; m < product->sizes.m; m++)
            for (int n = 0; n < product->sizes.n; n++) {
                size_t i = element(&product->c, &product->sizes, z, m, n);
                expected[i] = product->gemm.causal == CAUSAL_OUT && n > m ? ours[i] : chain(product, z, m, n);
            }
    char *what =
        lasting("gemm %s %d x %d x %d, %d x %d, start %d, causal %d, VEC %u WG %u", gemm_form_name[product->gemm.form],
                product->sizes.m, product->sizes.n, product->sizes.k, product->sizes.batch, product->sizes.heads,
                product->gemm.start, product->gemm.causal, device->shape.vector, device->shape.work_group);
    if (tolerance > 0)
        expect_close(what, ours, expected, product->c.n, tolerance);
    else
        expect_same_bits(what, ours, expected, product->c.n);
    free(expected);
}

static struct tensor *product_tensor(struct pool *pool, const char *name, size_t n)
{
    struct tensor *tensor = new_work_tensor(pool, device, name, SHAPE((int64_t)n));
    tensor->persistent = true;
    return tensor;
}

/* tolerance 0: to the bit */
static void check_product(struct product *product, enum gemm_engine engine, double tolerance)
{
    struct pool *pool = new_pool(machine);
    struct list *list = new_list(pool, "product");
    struct builder b = {.list = list, .device = device, .kernels = {.gemm = engine}};
    product->gemm.a.tensor = product_tensor(pool, "a", product->a.n);
    product->gemm.b.tensor = product_tensor(pool, "b", product->b.n);
    product->gemm.c.tensor = product_tensor(pool, "c", product->c.n);
    product->gemm.bias = product_tensor(pool, "bias", (size_t)product->sizes.n);
    gemm(&b, "product", &product->gemm);
    must(finish_lists(pool, &list, 1));
    write_tensor(product->gemm.a.tensor, product->va);
    write_tensor(product->gemm.b.tensor, product->vb);
    write_tensor(product->gemm.c.tensor, product->vc);
    write_tensor(product->gemm.bias, product->bias);
    execute(list, 1);
    drain(list);
    float *ours = allocate(product->c.n, sizeof *ours);
    read_tensor(product->gemm.c.tensor, ours);
    compare_product(product, ours, tolerance);
    assert_int_equal(damaged_guards(device), 0);
    free_list(list);
    free_pool(pool);
    free(ours);
    free(product->va);
    free(product->vb);
    free(product->vc);
    free(product->bias);
}

static void check_forms(const struct sizes *sizes, enum gemm_engine engine, double tolerance)
{
    for (enum gemm_form form = GEMM_NT; form <= GEMM_TN; form++)
        for (enum gemm_start start = START_ZERO; start <= START_BIAS; start++) {
            if (start == START_BIAS && engine == GEMM_CLBLAST && sizes->batch * sizes->heads > 1)
                continue; /* its bias is added to a plain matrix; the model has no other */
            struct product product = new_product(sizes, form, start, CAUSAL_NONE);
            check_product(&product, engine, tolerance);
        }
}

/* A GPU has our products in the shapes that are forced, and not in its own. */
TEST(own_gemm_is_one_chain_per_element)
{
    need_own_products();
    for (size_t shape = 0; take_shape(shape); shape++) {
        if (!has_own_products(device))
            continue;
        for (size_t i = 0; i < COUNT(products); i++)
            check_forms(&products[i], GEMM_OWN, 0);
    }
}

/* Below, at and above `tile`, and into a second and third one. */
#define BORDERS(tile)                                                                                                  \
    {                                                                                                                  \
        1, (tile)-1, (tile), (tile) + 1, 2 * (tile) + 1                                                                \
    }

/* All m and n around the borders of a tile, and k around every depth that B may be cut to. */
TEST(own_products_keep_the_chains_bits_at_tile_borders)
{
    need_own_products();
    static const int depths[] = {1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513};
    for (size_t shape = 0; take_shape(shape); shape++) {
        if (!has_own_products(device))
            continue;
        int rows = (int)device->shape.tile_rows, width = (int)(device->shape.tile_vectors * device->shape.vector);
        int ms[] = BORDERS(rows), ns[] = {1, width / 2, width / 2 + 1, width - 1, width, width + 1, 2 * width + 1};
        for (size_t k = 0; k < COUNT(ms); k++) {
            for (size_t i = 0; i < COUNT(ns); i++)
                check_forms(&(struct sizes){.m = ms[k], .n = ns[i], .k = 3, .batch = 1, .heads = 1}, GEMM_OWN, 0);
        }
        for (size_t k = 0; k < COUNT(depths); k++)
            check_forms(&(struct sizes){.m = rows + 1, .n = width + 1, .k = depths[k], .batch = 1, .heads = 1},
                        GEMM_OWN, 0);
    }
}

/* CLBlast may sum in any order: errors grow with K like those of a chain. */
TEST(clblast_agrees)
{
    take_shape(0);
    for (size_t i = 0; i < COUNT(products); i++)
        check_forms(&products[i], GEMM_CLBLAST, 1e-5 * sqrt(products[i].k));
}

/* As on devices where its kernel for large products is the better one from small sizes on.  The sizes are whole tiles
 * of it: then it copies no operand that lies as it wants it, and batches of such go wrong in CLBlast 1.5.3. */
TEST(clblast_agrees_in_large_products)
{
    static const struct sizes whole[] = {
        {.m = 128, .n = 128, .k = 64, .batch = 2, .heads = 3},
        {.m = 128, .n = 64, .k = 128, .batch = 3, .heads = 2},
        {.m = 128, .n = 128, .k = 128, .batch = 1, .heads = 2},
    };
    const char *name = "XGEMM_MIN_INDIRECT_SIZE";
    take_shape(0);
    assert_int_equal(
        CLBlastOverrideParameters(device->cl, "GemmRoutine", CLBlastPrecisionSingle, 1, &name, (size_t[]){1}),
        CLBlastSuccess);
    for (size_t i = 0; i < COUNT(whole); i++)
        check_forms(&whole[i], GEMM_CLBLAST, 1e-5 * sqrt(whole[i].k));
    for (size_t i = 0; i < COUNT(products); i++)
        check_forms(&products[i], GEMM_CLBLAST, 1e-5 * sqrt(products[i].k));
}

/* A triangle's upper part: zeros up to the end of the row's tile, NaN beyond, which must not be read. */
static void make_triangle(struct product *product)
{
    int T = product->sizes.m, rows = (int)device->shape.tile_rows;
    for (int z = 0; z < product->sizes.batch * product->sizes.heads; z++)
        for (int r = 0; r < T; r++)
            for (int c = r + 1; c < T; c++)
                product->va[element(&product->a, &product->sizes, z, r, c)] = c < (r / rows + 1) * rows ? 0 : NAN;
}

static void check_causal(int T, int hs, enum gemm_causal causal)
{
    bool out = causal == CAUSAL_OUT;
    struct sizes sizes = {.m = T, .n = out ? T : hs, .k = out ? hs : T, .batch = 2, .heads = 2};
    enum gemm_form form = causal == CAUSAL_A ? GEMM_NN : GEMM_TN;
    if (out)
        form = GEMM_NT;
    struct product product = new_product(&sizes, form, START_ZERO, causal);
    if (!out)
        make_triangle(&product);
    check_product(&product, GEMM_OWN, 0);
}

TEST(causal_products_leave_out_what_comes_later)
{
    need_own_products();
    for (size_t shape = 0; take_shape(shape); shape++) {
        if (!has_own_products(device))
            continue;
        int rows = (int)device->shape.tile_rows, width = (int)(device->shape.tile_vectors * device->shape.vector);
        int by_rows[] = BORDERS(rows), by_width[] = BORDERS(width), longer[] = {70, 150};
        for (enum gemm_causal causal = CAUSAL_OUT; causal <= CAUSAL_A_TRANSPOSED; causal++) {
            for (size_t k = 0; k < COUNT(by_rows); k++)
                check_causal(by_rows[k], 8, causal);
            for (size_t k = 0; k < COUNT(by_width); k++)
                check_causal(by_width[k], 19, causal);
            for (size_t k = 0; k < COUNT(longer); k++)
                check_causal(longer[k], 8, causal);
        }
    }
}

ALWAYS(machines_close) { close_shapes(); }

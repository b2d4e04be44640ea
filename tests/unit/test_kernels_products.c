/* test_kernels_products.c - matrix products, by gemm.cl and by CLBlast, against one chain of fma per element.
 *
 * It tests src/trainer/model/gemm.c and gemm.cl.  Our own products must have the bits of the chain, in the order of k;
 * CLBlast, which may sum in any order, must be near.  An edge of a tile that is left out or written twice, a stride
 * that is taken for another, an element read beside a matrix (NaN lies there), and one that is written there are found.
 *
 * Operands are normal numbers that depend on a seed only.  Sizes are odd, or lie around the borders of a tile.
 */
#include "tests/support/support_kernels.h"

#include <clblast_c.h>
#include <math.h>

ALWAYS(machines_open) { open_shapes(); }

/* ---- gemm.cl and CLBlast, through src/trainer/model/gemm.c ------------------------------------------------------- */

struct sizes {
    int m, n, k, batch, heads;
};
static const struct sizes products[] = {{1, 1, 1, 1, 1},     {5, 7, 3, 1, 1},     {17, 33, 65, 1, 1},
                                        {70, 41, 530, 1, 1}, {131, 66, 31, 1, 1}, {9, 13, 6, 2, 3},
                                        {3, 150, 10, 1, 4},  {51, 389, 259, 1, 1}};

/* An operand of rows x ld matrices, two-level strides as for heads: inner ones side by side, a margin around all;
 * square ones one after another. */
struct operand_memory {
    struct operand o;
    size_t n;
    int rows, columns;
};

static struct operand_memory lay_out(const struct sizes *s, int rows, int columns)
{
    int ld = s->heads * columns + (s->batch > 1 ? 5 : 0);
    struct operand o = {
        .offset = 3, .ld = ld, .batch_stride = (size_t)rows * (size_t)ld + 7, .head_stride = (size_t)columns};
    if (s->batch * s->heads > 1 && rows == columns) {
        o.ld = columns;
        o.head_stride = (size_t)(rows * columns);
        o.batch_stride = (size_t)s->heads * o.head_stride;
    }
    if (s->batch * s->heads == 1)
        o.offset = 0; /* the plain case: CLBlast's single product wants aligned starts on some devices */
    return (struct operand_memory){o, o.offset + o.batch_stride * (size_t)s->batch + 11, rows, columns};
}

static size_t element(const struct operand_memory *x, const struct sizes *s, int z, int row, int column)
{
    size_t i = (size_t)(z / s->heads), h = (size_t)(z % s->heads);
    return x->o.offset + i * x->o.batch_stride + h * x->o.head_stride + (size_t)row * (size_t)x->o.ld + (size_t)column;
}

/* Random in the matrices, `beside` everywhere else. */
static float *fill_operand(const struct operand_memory *x, const struct sizes *s, float beside, uint64_t seed)
{
    float *values = allocate(x->n, sizeof *values), *numbers = random_floats(x->n, seed);
    for (size_t i = 0; i < x->n; i++)
        values[i] = beside;
    for (int z = 0; z < s->batch * s->heads; z++)
        for (int r = 0; r < x->rows; r++)
            for (int c = 0; c < x->columns; c++)
                values[element(x, s, z, r, c)] = numbers[element(x, s, z, r, c)];
    free(numbers);
    return values;
}

struct product {
    struct sizes s;
    struct gemm g;
    struct operand_memory a, b, c;
    float *va, *vb, *vc, *bias;
};

static struct product new_product(const struct sizes *s, enum gemm_form form, enum gemm_start start,
                                  enum gemm_causal causal)
{
    struct product p = {.s = *s};
    p.a = form == GEMM_TN ? lay_out(s, s->k, s->m) : lay_out(s, s->m, s->k);
    p.b = form == GEMM_NT ? lay_out(s, s->n, s->k) : lay_out(s, s->k, s->n);
    p.c = lay_out(s, s->m, s->n);
    p.va = fill_operand(&p.a, s, NAN, 1);
    p.vb = fill_operand(&p.b, s, NAN, 2);
    p.vc = fill_operand(&p.c, s, 77, 3);
    p.bias = random_floats((size_t)s->n, 4);
    p.g = (struct gemm){form,  s->m,  s->n,  s->k,           s->batch,        s->heads,
                        p.a.o, p.b.o, p.c.o, .start = start, .causal = causal};
    return p;
}

static float at_a(const struct product *p, int z, int m, int k)
{
    return p->va[p->g.form == GEMM_TN ? element(&p->a, &p->s, z, k, m) : element(&p->a, &p->s, z, m, k)];
}

static float at_b(const struct product *p, int z, int n, int k)
{
    return p->vb[p->g.form == GEMM_NT ? element(&p->b, &p->s, z, n, k) : element(&p->b, &p->s, z, k, n)];
}

/* One chain of fma per element, in the order of k: the promise of gemm.cl. */
static float chain(const struct product *p, int z, int m, int n)
{
    float sum = 0;
    if (p->g.start == START_OLD)
        sum = p->vc[element(&p->c, &p->s, z, m, n)];
    else if (p->g.start == START_BIAS)
        sum = p->bias[n];
    int first = p->g.causal == CAUSAL_A_TRANSPOSED ? m : 0, last = p->g.causal == CAUSAL_A ? m + 1 : p->s.k;
    for (int k = first; k < last; k++)
        sum = fmaf(at_a(p, z, m, k), at_b(p, z, n, k), sum);
    return sum;
}

/* The whole tensor of C: the matrices replaced, all else as it was.  Above a causal C's diagonal anything may lie. */
static void compare_product(const struct product *p, const float *ours, double tolerance)
{
    float *expected = copy_floats(p->vc, p->c.n);
    for (int z = 0; z < p->s.batch * p->s.heads; z++)
        for (int m = 0; m < p->s.m; m++)
            for (int n = 0; n < p->s.n; n++) {
                size_t i = element(&p->c, &p->s, z, m, n);
                expected[i] = p->g.causal == CAUSAL_OUT && n > m ? ours[i] : chain(p, z, m, n);
            }
    char *what = lasting("gemm %s %d x %d x %d, %d x %d, start %d, causal %d, VEC %u WG %u", gemm_form_name[p->g.form],
                         p->s.m, p->s.n, p->s.k, p->s.batch, p->s.heads, p->g.start, p->g.causal, device->shape.vector,
                         device->shape.work_group);
    if (tolerance > 0)
        expect_close(what, ours, expected, p->c.n, tolerance);
    else
        expect_same_bits(what, ours, expected, p->c.n);
    free(expected);
}

static struct tensor *product_tensor(struct pool *pool, const char *name, size_t n)
{
    struct tensor *t = new_work_tensor(pool, device, name, SHAPE((int64_t)n));
    t->persistent = true;
    return t;
}

/* tolerance 0: to the bit */
static void check_product(struct machine *m, struct product *p, enum gemm_engine engine, double tolerance)
{
    struct pool *pool = new_pool(m);
    struct step *s = new_step(pool, "product");
    struct build b = {.step = s, .device = device, .kernels = {.gemm = engine}};
    p->g.a.tensor = product_tensor(pool, "a", p->a.n);
    p->g.b.tensor = product_tensor(pool, "b", p->b.n);
    p->g.c.tensor = product_tensor(pool, "c", p->c.n);
    p->g.bias = product_tensor(pool, "bias", (size_t)p->s.n);
    gemm(&b, "product", &p->g);
    must(finish_steps(pool, &s, 1));
    write_tensor(p->g.a.tensor, p->va);
    write_tensor(p->g.b.tensor, p->vb);
    write_tensor(p->g.c.tensor, p->vc);
    write_tensor(p->g.bias, p->bias);
    execute(s, 1);
    drain(s);
    float *ours = allocate(p->c.n, sizeof *ours);
    read_tensor(p->g.c.tensor, ours);
    compare_product(p, ours, tolerance);
    assert_int_equal(damaged_guards(device), 0);
    free_step(s);
    free_pool(pool);
    free(ours);
    free(p->va);
    free(p->vb);
    free(p->vc);
    free(p->bias);
}

static void check_forms(struct machine *m, const struct sizes *s, enum gemm_engine engine, double tolerance)
{
    for (enum gemm_form form = GEMM_NT; form <= GEMM_TN; form++)
        for (enum gemm_start start = START_ZERO; start <= START_BIAS; start++) {
            if (start == START_BIAS && engine == GEMM_CLBLAST && s->batch * s->heads > 1)
                continue; /* its bias is added to a plain matrix; the model has no other */
            struct product p = new_product(s, form, start, CAUSAL_NONE);
            check_product(m, &p, engine, tolerance);
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
            check_forms(machines[shape], &products[i], GEMM_OWN, 0);
    }
}

/* Below, at and above `tile`, and into a second and third one. */
#define BORDERS(tile)                                                                                                  \
    {                                                                                                                  \
        1, (tile)-1, (tile), (tile) + 1, 2 * (tile) + 1                                                                \
    }

/* All m and n around the borders of a tile, and k around every depth that B may be cut to. */
TEST(own_gemm_at_tile_borders)
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
                check_forms(machines[shape], &(struct sizes){ms[k], ns[i], 3, 1, 1}, GEMM_OWN, 0);
        }
        for (size_t k = 0; k < COUNT(depths); k++)
            check_forms(machines[shape], &(struct sizes){rows + 1, width + 1, depths[k], 1, 1}, GEMM_OWN, 0);
    }
}

/* CLBlast may sum in any order: errors grow with K like those of a chain. */
TEST(clblast_agrees)
{
    device = &machines[0]->device[0];
    for (size_t i = 0; i < COUNT(products); i++)
        check_forms(machines[0], &products[i], GEMM_CLBLAST, 1e-5 * sqrt(products[i].k));
}

/* As on devices where its kernel for large products is the better one from small sizes on.  The sizes are whole tiles
 * of it: then it copies no operand that lies as it wants it, and batches of such go wrong in CLBlast 1.5.3. */
TEST(clblast_agrees_in_large_products)
{
    static const struct sizes whole[] = {{128, 128, 64, 2, 3}, {128, 64, 128, 3, 2}, {128, 128, 128, 1, 2}};
    const char *name = "XGEMM_MIN_INDIRECT_SIZE";
    device = &machines[0]->device[0];
    assert_int_equal(
        CLBlastOverrideParameters(device->cl, "GemmRoutine", CLBlastPrecisionSingle, 1, &name, (size_t[]){1}),
        CLBlastSuccess);
    for (size_t i = 0; i < COUNT(whole); i++)
        check_forms(machines[0], &whole[i], GEMM_CLBLAST, 1e-5 * sqrt(whole[i].k));
    for (size_t i = 0; i < COUNT(products); i++)
        check_forms(machines[0], &products[i], GEMM_CLBLAST, 1e-5 * sqrt(products[i].k));
}

/* A triangle's upper part: zeros up to the end of the row's tile, NaN beyond, which must not be read. */
static void make_triangle(struct product *p)
{
    int T = p->s.m, rows = (int)device->shape.tile_rows;
    for (int z = 0; z < p->s.batch * p->s.heads; z++)
        for (int r = 0; r < T; r++)
            for (int c = r + 1; c < T; c++)
                p->va[element(&p->a, &p->s, z, r, c)] = c < (r / rows + 1) * rows ? 0 : NAN;
}

static void check_causal(struct machine *m, int T, int hs, enum gemm_causal causal)
{
    bool out = causal == CAUSAL_OUT;
    struct sizes s = {T, out ? T : hs, out ? hs : T, 2, 2};
    enum gemm_form form = causal == CAUSAL_A ? GEMM_NN : GEMM_TN;
    if (out)
        form = GEMM_NT;
    struct product p = new_product(&s, form, START_ZERO, causal);
    if (!out)
        make_triangle(&p);
    check_product(m, &p, GEMM_OWN, 0);
}

TEST(causal_products)
{
    need_own_products();
    for (size_t shape = 0; take_shape(shape); shape++) {
        if (!has_own_products(device))
            continue;
        int rows = (int)device->shape.tile_rows, width = (int)(device->shape.tile_vectors * device->shape.vector);
        int by_rows[] = BORDERS(rows), by_width[] = BORDERS(width), longer[] = {70, 150};
        for (enum gemm_causal causal = CAUSAL_OUT; causal <= CAUSAL_A_TRANSPOSED; causal++) {
            for (size_t k = 0; k < COUNT(by_rows); k++)
                check_causal(machines[shape], by_rows[k], 8, causal);
            for (size_t k = 0; k < COUNT(by_width); k++)
                check_causal(machines[shape], by_width[k], 19, causal);
            for (size_t k = 0; k < COUNT(longer); k++)
                check_causal(machines[shape], longer[k], 8, causal);
        }
    }
}

ALWAYS(machines_close) { close_shapes(); }

/* test_kernels.c - every kernel of cl/ against plain C (reference.h), over odd sizes and all shapes of the kernels.
 *
 * A shape is a vector width (VEC) and a work-group size (WG): what another CPU or a GPU would choose.  Each array that
 * a kernel is given has guard words after it.  Where the order of additions is the kernel's promise the bits must
 * agree, elsewhere the values within a few units of rounding.  (loss_part, loss_join: test_grid.c.)
 *
 * It runs on whatever driver is the first (drivers.sh brings others).  llvmpipe is excused from two things: its
 * fma(-0, 1, 0) is -0, and its loops are too short for our products.
 */
#include "tests/support/reference.h"
#include "tests/support/support.h"
#include "trainer/base/embedded.h"

#include <clblast_c.h>
#include <math.h>

static const struct machine_shape {
    int vector, work_group;
} shapes[] = {{0, 0}, {8, 1}, {4, 1}, {1, 1}, {4, 64}, {1, 64}};
static struct machine *machines[COUNT(shapes)];
static struct device *device; /* the one under test */

ALWAYS(machines_open)
{
    for (size_t i = 0; i < COUNT(shapes); i++)
        machines[i] = open_shaped("0:0", shapes[i].vector, shapes[i].work_group);
}

/* `device` goes through all shapes. */
#define for_each_shape                                                                                                 \
    for (size_t shape_ = 0; shape_ < COUNT(shapes) && (device = &machines[shape_]->device[0]); shape_++)

/* ---- running one kernel ----------------------------------------------------------------------------------------- */

enum { GUARD_WORDS = 64, MOST_BUFFERS = 8 };
static const uint32_t guard_word = 0x5AFEC0DE;

struct value { /* an argument: an array of the host with its elements, or a number */
    enum { ARRAY, WHOLE, REAL } kind;
    void *host;
    size_t n;
    int i;
    float f;
};
#define A(x, elements) ((struct value){.kind = ARRAY, .host = (void *)(uintptr_t)(x), .n = (size_t)(elements)})
#define I(x) ((struct value){.kind = WHOLE, .i = (x)})
#define F(x) ((struct value){.kind = REAL, .f = (x)})

struct buffers { /* arrays on the device; the same array twice is one buffer: kernels that work in place */
    const struct value *of[MOST_BUFFERS];
    cl_mem mem[MOST_BUFFERS];
    int n;
};

static cl_command_queue queue(void) { return device->lane[LANE_COMPUTE]->queue; }

static cl_mem buffer_of(struct buffers *b, const struct value *v)
{
    for (int i = 0; i < b->n; i++)
        if (b->of[i]->host == v->host)
            return b->mem[i];
    uint32_t *words = allocate(v->n + GUARD_WORDS, sizeof *words);
    memcpy(words, v->host, v->n * sizeof *words);
    for (int i = 0; i < GUARD_WORDS; i++)
        words[v->n + (size_t)i] = guard_word;
    cl_mem mem;
    CL_MAKE(mem = clCreateBuffer(device->context->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                 (v->n + GUARD_WORDS) * sizeof *words, words, &err));
    free(words);
    b->of[b->n] = v;
    b->mem[b->n] = mem;
    b->n++;
    return mem;
}

static void fetch(struct buffers *b, const char *kernel)
{
    for (int i = 0; i < b->n; i++) {
        size_t n = b->of[i]->n;
        uint32_t *words = allocate(n + GUARD_WORDS, sizeof *words);
        CL(clEnqueueReadBuffer(queue(), b->mem[i], CL_TRUE, 0, (n + GUARD_WORDS) * sizeof *words, words, 0, NULL,
                               NULL));
        for (size_t k = n; k < n + GUARD_WORDS; k++)
            if (words[k] != guard_word)
                test_failed("%s wrote %zu words behind an array of %zu\n", kernel, k - n + 1, n);
        memcpy(b->of[i]->host, words, n * sizeof *words);
        free(words);
        CL(clReleaseMemObject(b->mem[i]));
    }
}

/* Run `kernel` with n work-groups; the arrays then hold what it left. */
static void run(const char *file, const char *kernel, size_t n_groups, const struct value *args, size_t n)
{
    struct buffers b = {.n = 0};
    cl_kernel k = make_kernel(device, file, kernel);
    for (cl_uint i = 0; i < n; i++) {
        cl_mem mem = args[i].kind == ARRAY ? buffer_of(&b, &args[i]) : NULL;
        const void *at = &args[i].f;
        if (args[i].kind == ARRAY)
            at = &mem;
        else if (args[i].kind == WHOLE)
            at = &args[i].i;
        CL(clSetKernelArg(k, i, args[i].kind == ARRAY ? sizeof mem : 4, at));
    }
    size_t local = device->shape.work_group, global = n_groups * local;
    CL(clEnqueueNDRangeKernel(queue(), k, 1, NULL, &global, &local, 0, NULL, NULL));
    fetch(&b, kernel);
    CL(clReleaseKernel(k));
}
#define RUN(file, kernel, groups, ...)                                                                                 \
    run(file, kernel, (size_t)(groups), (struct value[]){__VA_ARGS__}, COUNT(((struct value[]){__VA_ARGS__})))

/* Work-groups that cover n elements, or n columns. */
static size_t blocks_of(int n) { return ceil_div((size_t)n, BLOCK); }
static size_t columns_of_groups(int n)
{
    return ceil_div((size_t)n, device->shape.work_group > 1 ? GPU_COLUMNS : CPU_COLUMNS);
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

/* x and its twin for the reference are freed together. */
struct twins {
    float *ours, *expected;
    size_t n;
};

static struct twins twins(int n, uint64_t seed)
{
    float *x = random_floats((size_t)n, seed);
    return (struct twins){x, copy_floats(x, (size_t)n), (size_t)n};
}

static void same_bits(const char *what, struct twins *t)
{
    for (size_t i = 0; i < t->n && device->quirks.short_loops; i++)
        t->ours[i] += 0.0f; /* llvmpipe: -0 becomes 0 */
    expect_same_bits(what, t->ours, t->expected, t->n);
    free(t->ours);
    free(t->expected);
}

static void close_by(const char *what, struct twins *t, double tolerance)
{
    expect_close(what, t->ours, t->expected, t->n, tolerance);
    free(t->ours);
    free(t->expected);
}

static int *random_tokens(int n, int below, uint64_t seed)
{
    int *x = allocate((size_t)n, sizeof *x);
    for (int i = 0; i < n; i++)
        x[i] = (int)(random_words(seed, STREAM_TEST, 1, (uint64_t)i).word[0] % (unsigned)below);
    return x;
}

static const int widths[] = {1, 3, 16, 31, 64, 77, 300}; /* row lengths: below, at and above every vector and block */
static const int flat[] = {1, 15, 17, 100, 4096, 4097, 9001};
#define for_each(x, list) for (size_t k_ = 0, x; k_ < COUNT(list) && ((x = (size_t)(list)[k_]), true); k_++)

/* ---- elementwise.cl, bench.cl ----------------------------------------------------------------------------------- */

static void check_flat(int n)
{
    struct twins out = twins(n, 1);
    struct twins sum = twins(n, 2);
    struct twins x = twins(n, 3);
    struct twins copied = twins(n, 4);
    float *a = random_floats((size_t)n, 5), *b = random_floats((size_t)n, 6);
    RUN("elementwise.cl", "add", blocks_of(n), A(out.ours, n), A(a, n), A(b, n), I(n));
    ref_add(out.expected, a, b, n);
    RUN("elementwise.cl", "accumulate", blocks_of(n), A(sum.ours, n), A(a, n), I(n));
    ref_accumulate(sum.expected, a, n);
    RUN("elementwise.cl", "fill", blocks_of(n), A(x.ours, n), F(-2.5f), I(n));
    ref_fill(x.expected, -2.5f, n);
    RUN("bench.cl", "copy", blocks_of(n), A(copied.ours, n), A(a, n), I(n));
    memcpy(copied.expected, a, (size_t)n * sizeof *a);
    same_bits("add", &out);
    same_bits("accumulate", &sum);
    same_bits("fill", &x);
    same_bits("copy", &copied);
    free(a);
    free(b);
}

TEST(flat_arrays)
{
    for_each_shape
    {
        for_each(n, flat) { check_flat((int)n); }
    }
}

static void check_rows(int N, int C)
{
    int index = N - 1;
    struct twins y = twins(N * C, 1), row = twins(C, 2);
    float *bias = random_floats((size_t)C, 3), *x = random_floats((size_t)(N * C), 4);
    RUN("elementwise.cl", "add_bias", N, A(y.ours, N * C), A(bias, C), I(N), I(C));
    ref_add_bias(y.expected, bias, N, C);
    RUN("elementwise.cl", "pick_row", 1, A(row.ours, C), A(x, N * C), A(&index, 1), I(C));
    memcpy(row.expected, x + index * C, (size_t)C * sizeof *x);
    same_bits("add_bias", &y);
    same_bits("pick_row", &row);
    free(bias);
    free(x);
}

TEST(rows)
{
    for_each_shape
    {
        for_each(C, widths) { check_rows(C == 77 ? 1 : 13, (int)C); }
    }
}

/* The result must not be optimised away, and be a number: chains of fma stay below 1/(1-x) * y. */
TEST(fma_peak_kernel)
{
    for_each_shape
    {
        float out[256] = {0};
        RUN("bench.cl", "fma_peak", 1, A(out, 256), I(100), F(0.5f), F(0.25f));
        for (unsigned i = 0; i < device->shape.work_group; i++)
            assert_true(out[i] > 0 && out[i] <= 12 * 16 * 0.5f);
    }
}

/* ---- embed.cl --------------------------------------------------------------------------------------------------- */

static void check_embedding(int B, int T, int C, int V)
{
    int N = B * T;
    int Tmax = T + 3;
    int *tokens = random_tokens(N, V, 7);
    int *order = allocate((size_t)N, sizeof *order), *start = allocate((size_t)V + 1, sizeof *start);
    struct twins x = twins(N * C, 1);
    float *wte = random_floats((size_t)(V * C), 2), *wpe = random_floats((size_t)(Tmax * C), 3);
    float *dx = random_floats((size_t)(N * C), 4);
    RUN("embed.cl", "embed_forward", N, A(x.ours, N * C), A(wte, V * C), A(wpe, Tmax * C), A(tokens, N), I(0), I(V),
        I(T), I(C), I(1));
    ref_embed_forward(x.expected, wte, wpe, tokens, N, T, C);
    same_bits("embed_forward", &x);
    ref_sort_tokens(order, start, tokens, N, V);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        struct twins dwte = twins(V * C, 5), dwpe = twins(Tmax * C, 6);
        RUN("embed.cl", "embed_backward_tokens", V, A(dwte.ours, V * C), A(dx, N * C), A(order, N), A(start, V + 1),
            I(0), I(C), I(accumulate));
        ref_embed_backward_tokens(dwte.expected, dx, order, start, V, C, accumulate);
        RUN("embed.cl", "embed_backward_positions", Tmax, A(dwpe.ours, Tmax * C), A(dx, N * C), I(B), I(T), I(Tmax),
            I(C), I(accumulate));
        ref_embed_backward_positions(dwpe.expected, dx, B, T, Tmax, C, accumulate);
        same_bits("embed_backward_tokens", &dwte);
        same_bits("embed_backward_positions", &dwpe);
    }
    free(tokens);
    free(order);
    free(start);
    free(wte);
    free(wpe);
    free(dx);
}

TEST(embedding)
{
    for_each_shape
    {
        for_each(C, widths) { check_embedding(3, 7, (int)C, C == 16 ? 50 : 5); }
    }
}

/* ---- layernorm.cl ----------------------------------------------------------------------------------------------- */

/* One column has no variance: rstd is 316, so errors are measured against large numbers; C = 1 is left to forward. */
static void check_layernorm_backward(int N, int C, const float *x, const float *mean, const float *rstd)
{
    float *dout = random_floats((size_t)(N * C), 5), *carry = random_floats((size_t)(N * C), 6);
    float *w = random_floats((size_t)C, 7);
    for (int has_carry = 0; has_carry < 2; has_carry++) {
        struct twins dx = twins(N * C, 10);
        RUN("layernorm.cl", "layernorm_backward", N, A(dx.ours, N * C), A(carry, N * C), A(dout, N * C), A(x, N * C),
            A(mean, N), A(rstd, N), A(w, C), I(N), I(C), I(has_carry));
        ref_layernorm_backward(dx.expected, carry, dout, x, mean, rstd, w, N, C, has_carry);
        close_by("layernorm_backward", &dx, C == 1 ? 1e-4 : 5e-6);
    }
    free(dout);
    free(carry);
    free(w);
}

static void check_layernorm(int N, int C)
{
    struct twins out = twins(N * C, 1);
    struct twins mean = twins(N, 1);
    struct twins rstd = twins(N, 1);
    float *x = random_floats((size_t)(N * C), 2);
    float *w = random_floats((size_t)C, 3);
    float *b = random_floats((size_t)C, 4);
    for (int i = 0; i < N * C; i++)
        x[i] = 3 * x[i] + 10; /* a mean far from 0 shows a variance taken as E[x^2] - mean^2 */
    RUN("layernorm.cl", "layernorm_forward", N, A(out.ours, N * C), A(mean.ours, N), A(rstd.ours, N), A(x, N * C),
        A(w, C), A(b, C), I(N), I(C));
    ref_layernorm_forward(out.expected, mean.expected, rstd.expected, x, w, b, N, C);
    check_layernorm_backward(N, C, x, mean.expected, rstd.expected);
    close_by("layernorm_forward", &out, 5e-6);
    close_by("layernorm mean", &mean, 1e-6);
    close_by("layernorm rstd", &rstd, 2e-6);
    free(x);
    free(w);
    free(b);
}

TEST(layernorm)
{
    for_each_shape
    {
        for_each(C, widths) { check_layernorm(9, (int)C); }
    }
}

/* ---- gelu.cl ---------------------------------------------------------------------------------------------------- */

static void check_gelu(int n)
{
    struct twins out = twins(n, 1), dx = twins(n, 2);
    float *x = random_floats((size_t)n, 3), *dout = random_floats((size_t)n, 4);
    for (int i = 0; i < n; i++)
        x[i] *= i % 5 == 4 ? 30 : 2; /* both tails too */
    RUN("gelu.cl", "gelu_forward", blocks_of(n), A(out.ours, n), A(x, n), I(n));
    ref_gelu_forward(out.expected, x, n);
    RUN("gelu.cl", "gelu_backward", blocks_of(n), A(dx.ours, n), A(dout, n), A(x, n), I(n));
    ref_gelu_backward(dx.expected, dout, x, n);
    close_by("gelu_forward", &out, 1e-6);
    close_by("gelu_backward", &dx, 2e-6);
    free(x);
    free(dout);
}

TEST(gelu)
{
    for_each_shape
    {
        for_each(n, flat) { check_gelu((int)n); }
    }
}

TEST(gelu_hides_nothing)
{
    for_each_shape
    {
        float x[3] = {NAN, INFINITY, -INFINITY}, out[3] = {0};
        RUN("gelu.cl", "gelu_forward", 1, A(out, 3), A(x, 3), I(3));
        assert_true(isnan(out[0]));
        assert_true(isinf(out[1]));
        assert_true(isnan(out[2]));
    }
}

/* ---- softmax.cl ------------------------------------------------------------------------------------------------- */

/* What lies above the diagonal is NaN: it must neither be read nor kept. */
static void poison_above(float *x, int rows, int T)
{
    for (int r = 0; r < rows; r++)
        for (int j = r % T + 1; j < T; j++)
            x[r * T + j] = NAN;
}

static void check_softmax(int heads, int T, float size)
{
    int rows = heads * T, n = rows * T;
    float scale = 0.35f, *att = allocate((size_t)n, sizeof *att);
    struct twins scores = twins(n, 1);
    struct twins apart = twins(n, 3);
    struct twins datt = twins(n, 2);
    for (int i = 0; i < n; i++)
        scores.ours[i] = scores.expected[i] *= size;
    poison_above(scores.ours, rows, T);
    poison_above(datt.ours, rows, T);
    memcpy(scores.expected, scores.ours, (size_t)n * sizeof *att);
    memcpy(datt.expected, datt.ours, (size_t)n * sizeof *att);
    RUN("softmax.cl", "softmax_forward", rows, A(apart.ours, n), A(scores.expected, n), I(rows), I(T), F(scale));
    RUN("softmax.cl", "softmax_forward", rows, A(scores.ours, n), A(scores.ours, n), I(rows), I(T), F(scale));
    ref_softmax_forward(att, scores.expected, rows, T, scale);
    memcpy(scores.expected, att, (size_t)n * sizeof *att);
    memcpy(apart.expected, scores.ours, (size_t)n * sizeof *att);
    RUN("softmax.cl", "softmax_backward", rows, A(datt.ours, n), A(datt.ours, n), A(att, n), I(rows), I(T), F(scale));
    float *dscores = allocate((size_t)n, sizeof *dscores);
    ref_softmax_backward(dscores, datt.expected, att, rows, T, scale);
    memcpy(datt.expected, dscores, (size_t)n * sizeof *dscores);
    same_bits("softmax_forward in place and apart", &apart);
    /* e^x has the relative error of its argument, and that may be large */
    close_by("softmax_forward", &scores, 2e-6 + 1e-7 * size);
    close_by("softmax_backward", &datt, 3e-6);
    free(att);
    free(dscores);
}

TEST(softmax)
{
    static const int lengths[] = {1, 2, 7, 16, 17, 33, 70};
    for_each_shape
    {
        for_each(T, lengths)
        {
            check_softmax(3, (int)T, 1);
            check_softmax(1, (int)T, 300); /* overflows unless the maximum is taken off */
        }
    }
}

/* ---- loss.cl ---------------------------------------------------------------------------------------------------- */

/* Rows of W logits for V words: those after the words must be passed over, and their gradient is 0. */
static void check_loss(int N, int V, int W, float size)
{
    int *targets = random_tokens(N, V, 3);
    targets[0] = V - 1;
    struct twins losses = twins(N, 1);
    struct twins lse = twins(N, 1);
    struct twins dlogits = twins(N * W, 1);
    float *logits = random_floats((size_t)(N * W), 2);
    for (int i = 0; i < N * W; i++)
        logits[i] *= i % W < V ? size : NAN;
    RUN("loss.cl", "loss_forward", N, A(losses.ours, N), A(lse.ours, N), A(logits, N * W), A(targets, N), I(N), I(V),
        I(W));
    ref_loss_forward(losses.expected, lse.expected, logits, targets, N, V, W);
    RUN("loss.cl", "loss_backward", N, A(dlogits.ours, N * W), A(logits, N * W), A(lse.expected, N), A(targets, N),
        I(0), I(V), I(W), F(0.125f));
    ref_loss_backward(dlogits.expected, logits, lse.expected, targets, N, V, W, 0.125f);
    /* lse and a logit of some hundreds are subtracted: what is left carries the rounding of the large ones */
    close_by("loss", &losses, 2e-6 + 2e-7 * size);
    close_by("lse", &lse, 2e-6);
    close_by("dlogits", &dlogits, 1e-6 + 1e-7 * size);
    free(targets);
    free(logits);
}

TEST(loss)
{
    for_each_shape
    {
        for_each(V, widths)
        {
            check_loss(5, (int)V, (int)V, 1);
            check_loss(3, (int)V, (int)V + 19, 200);
        }
    }
}

/* ---- norm.cl ---------------------------------------------------------------------------------------------------- */

static void check_norm(int n, float clip, float *first_shape)
{
    int n_blocks = (int)blocks_of(n);
    struct twins partial = twins(n_blocks, 1), result = twins(4, 2);
    float *grad = random_floats((size_t)n, 3), control[16] = {[7] = clip}, loss = 0;
    RUN("norm.cl", "norm_blocks", n_blocks, A(partial.ours, n_blocks), A(grad, n), I(n));
    ref_norm_blocks(partial.expected, grad, n);
    expect_close("norm_blocks", partial.ours, partial.expected, partial.n, 2e-6);
    if (first_shape[0] == 0)
        memcpy(first_shape, partial.ours, sizeof(float) * (size_t)n_blocks);
    if (device->shape.vector == 1 ||
        device->shape.work_group == 1) /* all real devices: the tree is the same on CPU and GPU */
        expect_same_bits("norm_blocks in every shape", partial.ours, first_shape, partial.n);
    RUN("norm.cl", "norm_finish", 1, A(result.ours, 4), A(partial.expected, n_blocks), I(n_blocks), A(control, 16),
        A(&loss, 1), I(1));
    ref_norm_finish(result.expected, partial.expected, n_blocks, control);
    close_by("norm_finish", &result, 1e-6);
    free(partial.ours);
    free(partial.expected);
    free(grad);
}

TEST(norm)
{
    for_each(n, flat)
    {
        float first_shape[3] = {0};
        for_each_shape
        {
            check_norm((int)n, 0, first_shape);
            check_norm((int)n, 0.5f, first_shape);
            check_norm((int)n, 1e6f, first_shape);
            check_norm((int)n, 0.75f * sqrtf((float)n), first_shape); /* the norm is about sqrt(n) */
        }
    }
}

/* A bad block sum, or a bad loss, which leaves the norm at 2. */
static void check_halting(float bad, int at, bool by_loss)
{
    float result[4] = {0}, partial[3] = {1, 1, 2}, control[16] = {[7] = 1}, loss[2] = {3, 4};
    float *word = by_loss ? &loss[at % 2] : &partial[at], good = *word;
    *word = bad;
    RUN("norm.cl", "norm_finish", 1, A(result, 4), A(partial, 3), I(3), A(control, 16), A(loss, 2), I(2));
    if (by_loss)
        assert_true(result[0] == 2);
    else
        assert_true(!isfinite(result[0]));
    assert_true(result[2] == 1);
    *word = good; /* a good step after a bad one does not clear it */
    RUN("norm.cl", "norm_finish", 1, A(result, 4), A(partial, 3), I(3), A(control, 16), A(loss, 2), I(2));
    assert_true(result[0] == 2);
    assert_true(result[2] == 1);
}

/* Inf at the end stays Inf, before it the compensated sum makes it NaN. */
TEST(norm_halts_on_what_is_not_finite)
{
    for_each_shape
    {
        for (int i = 0; i < 12; i++)
            check_halting(i % 2 ? NAN : INFINITY, i / 2 % 3, i / 6);
    }
}

/* ---- sums in order (common.cl) ---------------------------------------------------------------------------------- */

static void check_sums(int N, int C, bool accumulate)
{
    int n = N * C;
    struct twins sum = twins(C, 1);
    struct twins dw = twins(C, 2);
    struct twins db = twins(C, 3);
    struct twins total = twins(1, 4);
    struct twins norm = twins(4, 5);
    float *d = random_floats((size_t)n, 6);
    float *x = random_floats((size_t)n, 7);
    float *mean = random_floats((size_t)N, 8);
    float *rstd = random_floats((size_t)N, 9), *squares = random_floats((size_t)n, 10), control[16] = {[7] = 0.5f};
    for (int i = 0; i < n; i++)
        squares[i] *= squares[i];
    RUN("elementwise.cl", "column_sum", columns_of_groups(C), A(sum.ours, C), A(d, n), I(N), I(C), I(accumulate));
    RUN("layernorm.cl", "layernorm_backward_params", columns_of_groups(C), A(dw.ours, C), A(db.ours, C), A(d, n),
        A(x, n), A(mean, N), A(rstd, N), I(N), I(C), I(accumulate));
    RUN("loss.cl", "loss_sum", 1, A(total.ours, 1), A(d, n), I(n), I(accumulate));
    RUN("norm.cl", "norm_finish", 1, A(norm.ours, 4), A(squares, n), I(n), A(control, 16), A(mean, N), I(N));
    ref_column_sum(sum.expected, d, N, C, accumulate);
    ref_layernorm_backward_params(dw.expected, db.expected, d, x, mean, rstd, N, C, accumulate);
    ref_loss_sum(total.expected, d, n, accumulate);
    ref_norm_finish(norm.expected, squares, n, control);
    same_bits("column_sum", &sum);
    same_bits("layernorm dw", &dw);
    same_bits("layernorm db", &db);
    same_bits("loss_sum", &total);
    close_by("norm_finish", &norm, device->quirks.correct_divide ? 0 : 1e-7); /* a square root, and clip / norm */
    free(d);
    free(x);
    free(mean);
    free(rstd);
    free(squares);
}

/* Some tiles of rows and columns, the last ones cut anywhere. */
TEST(sums_in_order)
{
    for_each_shape
    {
        for (uint64_t i = 0; i < 30; i++) {
            struct random4 r = random_words(i, STREAM_TEST, 2, 0);
            check_sums(1 + (int)(r.word[0] % 200), 1 + (int)(r.word[1] % 140), r.word[2] % 2);
        }
    }
}

/* ---- long loops ------------------------------------------------------------------------------------------------- */

/* As many tokens as a micro-batch may have on a driver with short loops (src/trainer/model/build.c), all the same. */
TEST(longest_loops)
{
    enum { TOKENS = SHORT_LOOPS / 4 };
    device = &machines[0]->device[0];
    check_rows(TOKENS, 1);
    check_layernorm(TOKENS, 1);
    check_embedding(1, TOKENS, 1, 1);
    check_sums(TOKENS, 1, true);
}

/* ---- adamw.cl --------------------------------------------------------------------------------------------------- */

static void check_adamw(int n, int n_decay, float halted, int choice)
{
    float *g = random_floats((size_t)n, 4), control[16], state[4] = {1, 0.37f, halted, 0};
    struct twins p = twins(n, 1);
    struct twins m = twins(n, 2);
    struct twins v = twins(n, 3);
    for (int i = 0; i < n; i++)
        v.ours[i] = v.expected[i] = fabsf(v.ours[i]);
    for (int step = 1; step <= 3; step++) {
        ref_control(control, 1e-3, 0.9, 0.999, 0.01, 0.1, 1, step);
        RUN("adamw.cl", "adamw", blocks_of(n), A(p.ours, n), A(m.ours, n), A(v.ours, n), A(g, n), A(control, 16),
            A(state, 4), I(n), I(n_decay), A(&choice, 1));
        if (choice == CHOICE_DEVICE)
            ref_adamw(p.expected, m.expected, v.expected, g, control, state, n, n_decay);
    }
    if (device->quirks.correct_divide) {
        same_bits("adamw p", &p);
        same_bits("adamw m", &m);
        same_bits("adamw v", &v);
    } else {
        close_by("adamw p", &p, 1e-6);
        close_by("adamw m", &m, 1e-6);
        close_by("adamw v", &v, 1e-6);
    }
    free(g);
}

TEST(adamw)
{
    for_each_shape
    {
        for_each(n, flat)
        {
            check_adamw((int)n, (int)n * 2 / 3, 0, CHOICE_DEVICE);
            check_adamw((int)n, 0, 1, CHOICE_DEVICE);             /* halted: nothing moves */
            check_adamw((int)n, 0, 0, CHOICE_CPU | CHOICE_MOVED); /* nor does it when the update is the host's */
        }
    }
}

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
    for_each_shape
    {
        if (!has_own_products(device))
            continue;
        for (size_t i = 0; i < COUNT(products); i++)
            check_forms(machines[shape_], &products[i], GEMM_OWN, 0);
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
    for_each_shape
    {
        if (!has_own_products(device))
            continue;
        int rows = (int)device->shape.tile_rows, width = (int)(device->shape.tile_vectors * device->shape.vector);
        int ms[] = BORDERS(rows), ns[] = {1, width / 2, width / 2 + 1, width - 1, width, width + 1, 2 * width + 1};
        for_each(m, ms)
        {
            for (size_t i = 0; i < COUNT(ns); i++)
                check_forms(machines[shape_], &(struct sizes){(int)m, ns[i], 3, 1, 1}, GEMM_OWN, 0);
        }
        for_each(k, depths)
            check_forms(machines[shape_], &(struct sizes){rows + 1, width + 1, (int)k, 1, 1}, GEMM_OWN, 0);
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
    for_each_shape
    {
        if (!has_own_products(device))
            continue;
        int rows = (int)device->shape.tile_rows, width = (int)(device->shape.tile_vectors * device->shape.vector);
        int by_rows[] = BORDERS(rows), by_width[] = BORDERS(width), longer[] = {70, 150};
        for (enum gemm_causal causal = CAUSAL_OUT; causal <= CAUSAL_A_TRANSPOSED; causal++) {
            for_each(T, by_rows) check_causal(machines[shape_], (int)T, 8, causal);
            for_each(T, by_width) check_causal(machines[shape_], (int)T, 19, causal);
            for_each(T, longer) check_causal(machines[shape_], (int)T, 8, causal);
        }
    }
}

/* ---- waiting (common.cl) ---------------------------------------------------------------------------------------- */

static const char wait_often[] = /* PoCL 3.1, 6.0 and 7.1 leave out[i] = in[i] if barrier() is all that waits */
    "KERNEL void wait_often(global float *out, const global float *in, int n, int width, int rounds)\n"
    "{\n"
    "    local float room[WG], ones[64];\n"
    "    const int i = get_local_id(0);\n"
    "    for (int round = 0; round < rounds; round++) {\n"
    "        if (i < n)\n"
    "            room[i] = in[i];\n"
    "        wait_for_all();\n"
    "        if (i < n)\n"
    "            room[i] = in[n + i];\n"
    "        for (int k = i; k < width; k += WG)\n"
    "            ones[k] = 1;\n"
    "        wait_for_all();\n"
    "        for (int k = i / width; k < rounds; k += WG)\n"
    "            ones[i] = 1;\n"
    "        wait_for_all();\n"
    "        if (i < n)\n"
    "            out[i] = room[i] * ones[i];\n"
    "        wait_for_all();\n"
    "    }\n"
    "}\n";

TEST(the_same_condition_before_and_after_waiting)
{
    for (const struct embedded_file *f = embedded_kernels; f->name; f++)
        write_text(f->name, "%s", f->text);
    write_text("wait.cl", "%s", wait_often);
    setenv("YARD_KERNELS", temp_path("."), 1);
    for_each_shape
    {
        enum { N = 3 };
        float in[2 * N] = {1, 2, 3, 10, 20, 30}, out[N] = {0};
        if (device->shape.work_group < N)
            continue;
        RUN("wait.cl", "wait_often", 1, A(out, N), A(in, 2 * N), I(N), I(64), I(1));
        expect_same_bits("behind a wait", out, in + N, N);
    }
    unsetenv("YARD_KERNELS");
}

/* ---- attention, through src/trainer/model/attention.c ------------------------------------------------------------ */

struct attended {
    float *out, *dqkv;
    size_t n; /* elements of out */
};

static struct attended attend(struct machine *m, enum attention kind, int B, int T, int H, int hs)
{
    size_t n = (size_t)(B * T * H * hs);
    struct params params = {.config = {.heads = H, .channels = H * hs}, .n_units = 1};
    struct model model = {.params = &params};
    struct tape tape = {.rank = 0};
    struct pool *pool = new_pool(m);
    struct step *s = new_step(pool, "attention");
    struct build b = {.step = s, .model = &model, .device = device, .kernels = {.attention = kind}};
    struct attended x = {allocate(n, sizeof(float)), allocate(3 * n, sizeof(float)), n};
    b.batch = B;
    b.seq = T;
    b.tape = &tape;
    b.backward_wanted = true;
    struct tensor *qkv = new_work_tensor(pool, device, "qkv", SHAPE(B * T, 3 * H * hs));
    struct tensor *dout = new_work_tensor(pool, device, "dout", SHAPE(B * T, H * hs));
    struct tensor *out = attention(&b, "mix", qkv);
    set_gradient(&b, out, dout);
    tape.ops[0].inputs(&b, &tape.ops[0]);
    struct tensor *dqkv = gradient(&b, qkv);
    qkv->persistent = dout->persistent = out->persistent = dqkv->persistent = true;
    must(finish_steps(pool, &s, 1));
    float *values[] = {random_floats(3 * n, 7), random_floats(n, 8)};
    write_tensor(qkv, values[0]);
    write_tensor(dout, values[1]);
    execute(s, 1);
    drain(s);
    read_tensor(out, x.out);
    read_tensor(dqkv, x.dqkv);
    assert_int_equal(damaged_guards(device), 0);
    free_step(s);
    free_pool(pool);
    free(values[0]);
    free(values[1]);
    free(tape.ops);
    free(b.grad);
    return x;
}

/* Both ways are close to 64-bit floats.  The size of the work-group changes no bit of flash, whatever room local memory
 * has for its tiles. */
static void check_attention(int B, int T, int H, int hs)
{
    size_t n = (size_t)(B * T * H * hs);
    struct attended one = {0}, x = {allocate(n, sizeof(float)), allocate(3 * n, sizeof(float)), n};
    float *qkv = random_floats(3 * n, 7), *dout = random_floats(n, 8);
    ref_attention(x.out, x.dqkv, dout, qkv, B, T, H, hs);
    for_each_shape for (enum attention kind = ATTENTION_PLAIN; kind <= ATTENTION_FLASH; kind++)
    {
        if (device->quirks.short_loops ? kind == ATTENTION_PLAIN || shape_ > 0 /* which llvmpipe computes wrong */
                                       : kind == ATTENTION_PLAIN && device->shape.vector == 1)
            continue;
        struct attended y = attend(machines[shape_], kind, B, T, H, hs);
        char *what = lasting("%s attention, B %d, T %d, %d heads of %d, VEC %u WG %u", kind ? "flash" : "plain", B, T,
                             H, hs, device->shape.vector, device->shape.work_group);
        expect_close(what, y.out, x.out, n, 3e-6);
        expect_close(what, y.dqkv, x.dqkv, 3 * n, 1e-5);
        if (kind == ATTENTION_FLASH && device->shape.vector == 1 && !one.n)
            one = y;
        else {
            if (kind == ATTENTION_FLASH && device->shape.vector == 1) {
                expect_same_bits(what, y.out, one.out, n);
                expect_same_bits(what, y.dqkv, one.dqkv, 3 * n);
            }
            free(y.out);
            free(y.dqkv);
        }
    }
    free(x.out);
    free(x.dqkv);
    free(one.out);
    free(one.dqkv);
    free(qkv);
    free(dout);
}

TEST(attention_plain_and_flash)
{
    static const size_t rooms[] = {SIZE_MAX, 49152, 24576};
    size_t had[COUNT(shapes)];
    for (size_t i = 0; i < COUNT(shapes); i++)
        had[i] = machines[i]->device[0].shape.local_memory;
    for (size_t r = 0; r < COUNT(rooms); r++) {
        for (size_t i = 0; i < COUNT(shapes); i++)
            if (machines[i]->device[0].shape.vector == 1)
                machines[i]->device[0].shape.local_memory = MIN(had[i], rooms[r]);
        check_attention(2, 1, 1, 3);
        check_attention(1, 9, 2, 4);
        check_attention(1, 70, 2, 17);
        check_attention(2, 131, 1, 32);
    }
    for (size_t i = 0; i < COUNT(shapes); i++)
        machines[i]->device[0].shape.local_memory = had[i];
}

ALWAYS(machines_close)
{
    for (size_t i = 0; i < COUNT(shapes); i++)
        close_machine(machines[i]);
}

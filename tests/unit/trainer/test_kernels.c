/* test_kernels.c - the kernels of a layer, forward and backward, compared with plain C (reference.h).
 *
 * This test runs each kernel over odd sizes and in all shapes of the kernels (support_kernels.h).  It checks that the
 * bits agree where the kernel promises an order of additions, and elsewhere that values agree within a few units of
 * rounding.  It catches a last element that is left out, a write behind an array, and a NaN that is hidden, or that is
 * read where nothing may be read.
 *
 * Inputs are normal numbers that depend only on a seed.  Sizes are below, at and above every vector and block.
 *
 * The test runs on the first driver of the machine; drivers.sh brings others.  It makes two exceptions for llvmpipe,
 * whose fma(-0, 1, 0) is -0, and whose loops are too short for our products.
 *
 * test_kernels_sums.c tests sums, the norm and AdamW, test_kernels_products.c products, test_kernels_attention.c
 * attention, and test_grid.c loss_part and loss_join.
 *
 * To see it fail: in gelu.cl, cut GELU_CUBIC to 0.0713f.
 */
#include "cl/shared.h" /* brings: FMA_CHAINS */
#include "tests/support/support_kernels.h"

#include <math.h>

ALWAYS(machines_open) { open_shapes(); }

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static int *random_tokens(int n, int below, uint64_t seed)
{
    int *x = allocate((size_t)n, sizeof *x);
    for (int i = 0; i < n; i++)
        x[i] = (int)(random_words(seed, STREAM_TEST, 1, (uint64_t)i).word[0] % (unsigned)below);
    return x;
}

static const int widths[] = {1, 3, 16, 31, 64, 77, 300}; /* row lengths: below, at and above every vector and block */

/* ---- elementwise.cl, bench.cl ------------------------------------------------------------------------------------ */

static void check_flat(int n)
{
    struct twins out = twins(n, 1);
    struct twins sum = twins(n, 2);
    struct twins x = twins(n, 3);
    struct twins copied = twins(n, 4);
    float *a = random_floats((size_t)n, 5), *b = random_floats((size_t)n, 6);
    RUN("elementwise.cl", "add", blocks_of(n), ARRAY(out.ours, n), ARRAY(a, n), ARRAY(b, n), WHOLE(n));
    ref_add(out.expected, a, b, n);
    RUN("elementwise.cl", "add_to", blocks_of(n), ARRAY(sum.ours, n), ARRAY(a, n), WHOLE(n));
    ref_add_to(sum.expected, a, n);
    RUN("elementwise.cl", "fill", blocks_of(n), ARRAY(x.ours, n), REAL(-2.5f), WHOLE(n));
    ref_fill(x.expected, -2.5f, n);
    RUN("bench.cl", "copy", blocks_of(n), ARRAY(copied.ours, n), ARRAY(a, n), WHOLE(n));
    memcpy(copied.expected, a, (size_t)n * sizeof *a);
    expect_same_twins("add", &out);
    expect_same_twins("add_to", &sum);
    expect_same_twins("fill", &x);
    expect_same_twins("copy", &copied);
    free_twins(&out);
    free_twins(&sum);
    free_twins(&x);
    free_twins(&copied);
    free(a);
    free(b);
}

TEST(elementwise_kernels_give_what_plain_c_gives) { check_in_shapes(check_flat, lengths, LENGTHS); }

static void check_rows(int N, int C)
{
    int index = N - 1;
    struct twins y = twins(N * C, 1), row = twins(C, 2);
    float *bias = random_floats((size_t)C, 3), *x = random_floats((size_t)(N * C), 4);
    RUN("elementwise.cl", "add_bias", N, ARRAY(y.ours, N * C), ARRAY(bias, C), WHOLE(C));
    ref_add_bias(y.expected, bias, N, C);
    RUN("elementwise.cl", "pick_row", 1, ARRAY(row.ours, C), ARRAY(x, N * C), ARRAY(&index, 1), WHOLE(C));
    memcpy(row.expected, x + index * C, (size_t)C * sizeof *x);
    expect_same_twins("add_bias", &y);
    expect_same_twins("pick_row", &row);
    free_twins(&y);
    free_twins(&row);
    free(bias);
    free(x);
}

static void check_rows_of(int width) { check_rows(width == 77 ? 1 : 13, width); }

TEST(row_kernels_give_what_plain_c_gives) { check_in_shapes(check_rows_of, widths, COUNT(widths)); }

/* The result must not be optimised away, and be a number.  In fma() x is 0.5, and y is 0.25: each chain comes to
 * y / (1 - x), which is 0.5, in the at most 16 floats of a vector. */
TEST(the_fma_probe_is_not_optimised_away)
{
    for (size_t shape = 0; take_shape(shape); shape++) {
        float out[256] = {0};
        RUN("bench.cl", "fma_peak", 1, ARRAY(out, 256), WHOLE(100), REAL(0.5f), REAL(0.25f));
        for (unsigned i = 0; i < device->shape.work_group; i++) {
            assert_above(out[i], 0);
            assert_at_most(out[i], FMA_CHAINS * 16 * 0.5f);
        }
    }
}

/* ---- embed.cl ---------------------------------------------------------------------------------------------------- */

static void check_embedding(int B, int T, int C, int V)
{
    int N = B * T;
    int Tmax = T + 3;
    int *tokens = random_tokens(N, V, 7);
    int *by_token = allocate((size_t)N, sizeof *by_token), *start = allocate((size_t)V + 1, sizeof *start);
    struct twins x = twins(N * C, 1);
    float *wte = random_floats((size_t)(V * C), 2), *wpe = random_floats((size_t)(Tmax * C), 3);
    float *dx = random_floats((size_t)(N * C), 4);
    RUN("embed.cl", "embed_forward", N, ARRAY(x.ours, N * C), ARRAY(wte, V * C), ARRAY(wpe, Tmax * C), ARRAY(tokens, N),
        WHOLE(0), WHOLE(V), WHOLE(T), WHOLE(C), WHOLE(1));
    ref_embed_forward(x.expected, wte, wpe, tokens, N, T, C);
    expect_same_twins("embed_forward", &x);
    free_twins(&x);
    ref_sort_tokens(by_token, start, tokens, N, V);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        struct twins dwte = twins(V * C, 5), dwpe = twins(Tmax * C, 6);
        RUN("embed.cl", "embed_backward_tokens", V, ARRAY(dwte.ours, V * C), ARRAY(dx, N * C), ARRAY(by_token, N),
            ARRAY(start, V + 1), WHOLE(0), WHOLE(C), WHOLE(accumulate));
        ref_embed_backward_tokens(dwte.expected, dx, by_token, start, V, C, accumulate);
        RUN("embed.cl", "embed_backward_positions", Tmax, ARRAY(dwpe.ours, Tmax * C), ARRAY(dx, N * C), WHOLE(B),
            WHOLE(T), WHOLE(C), WHOLE(accumulate));
        ref_embed_backward_positions(dwpe.expected, dx, B, T, Tmax, C, accumulate);
        expect_same_twins("embed_backward_tokens", &dwte);
        expect_same_twins("embed_backward_positions", &dwpe);
        free_twins(&dwte);
        free_twins(&dwpe);
    }
    free(tokens);
    free(by_token);
    free(start);
    free(wte);
    free(wpe);
    free(dx);
}

static void check_embedding_of(int width) { check_embedding(3, 7, width, width == 16 ? 50 : 5); }

TEST(embedding_gives_what_plain_c_gives) { check_in_shapes(check_embedding_of, widths, COUNT(widths)); }

/* ---- layernorm.cl ------------------------------------------------------------------------------------------------ */

/* One column has no variance: rstd is 316, so errors are measured against large numbers; C = 1 is left to forward. */
static void check_layernorm_backward(int N, int C, const float *x, const float *mean, const float *rstd)
{
    float *dout = random_floats((size_t)(N * C), 5), *carry = random_floats((size_t)(N * C), 6);
    float *w = random_floats((size_t)C, 7);
    for (int has_carry = 0; has_carry < 2; has_carry++) {
        struct twins dx = twins(N * C, 10);
        RUN("layernorm.cl", "layernorm_backward", N, ARRAY(dx.ours, N * C), ARRAY(carry, N * C), ARRAY(dout, N * C),
            ARRAY(x, N * C), ARRAY(mean, N), ARRAY(rstd, N), ARRAY(w, C), WHOLE(C), WHOLE(has_carry));
        ref_layernorm_backward(dx.expected, carry, dout, x, mean, rstd, w, N, C, has_carry);
        expect_close_twins("layernorm_backward", &dx, C == 1 ? 1e-4 : 5e-6);
        free_twins(&dx);
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
    RUN("layernorm.cl", "layernorm_forward", N, ARRAY(out.ours, N * C), ARRAY(mean.ours, N), ARRAY(rstd.ours, N),
        ARRAY(x, N * C), ARRAY(w, C), ARRAY(b, C), WHOLE(C));
    ref_layernorm_forward(out.expected, mean.expected, rstd.expected, x, w, b, N, C);
    check_layernorm_backward(N, C, x, mean.expected, rstd.expected);
    expect_close_twins("layernorm_forward", &out, 5e-6);
    expect_close_twins("layernorm mean", &mean, 1e-6);
    expect_close_twins("layernorm rstd", &rstd, 2e-6);
    free_twins(&out);
    free_twins(&mean);
    free_twins(&rstd);
    free(x);
    free(w);
    free(b);
}

static void check_layernorm_of(int width) { check_layernorm(9, width); }

TEST(layernorm_gives_what_plain_c_gives) { check_in_shapes(check_layernorm_of, widths, COUNT(widths)); }

/* ---- gelu.cl ----------------------------------------------------------------------------------------------------- */

static void check_gelu(int n)
{
    struct twins out = twins(n, 1), dx = twins(n, 2);
    float *x = random_floats((size_t)n, 3), *dout = random_floats((size_t)n, 4);
    for (int i = 0; i < n; i++)
        x[i] *= i % 5 == 4 ? 30 : 2; /* every fifth lies far out, where GELU is about 0 or x */
    RUN("gelu.cl", "gelu_forward", blocks_of(n), ARRAY(out.ours, n), ARRAY(x, n), WHOLE(n));
    ref_gelu_forward(out.expected, x, n);
    RUN("gelu.cl", "gelu_backward", blocks_of(n), ARRAY(dx.ours, n), ARRAY(dout, n), ARRAY(x, n), WHOLE(n));
    ref_gelu_backward(dx.expected, dout, x, n);
    expect_close_twins("gelu_forward", &out, 1e-6);
    expect_close_twins("gelu_backward", &dx, 2e-6);
    free_twins(&out);
    free_twins(&dx);
    free(x);
    free(dout);
}

TEST(gelu_gives_what_plain_c_gives) { check_in_shapes(check_gelu, lengths, LENGTHS); }

TEST(gelu_hands_on_what_is_not_finite)
{
    for (size_t shape = 0; take_shape(shape); shape++) {
        float x[3] = {NAN, INFINITY, -INFINITY}, out[3] = {0};
        RUN("gelu.cl", "gelu_forward", 1, ARRAY(out, 3), ARRAY(x, 3), WHOLE(3));
        assert_true(isnan(out[0]));
        assert_true(isinf(out[1]));
        assert_true(isnan(out[2]));
    }
}

/* ---- softmax.cl -------------------------------------------------------------------------------------------------- */

/* Values above the diagonal become NaN: a kernel must neither read nor keep them. */
static void poison_above(float *x, int rows, int T)
{
    for (int r = 0; r < rows; r++)
        for (int j = r % T + 1; j < T; j++)
            x[r * T + j] = NAN;
}

static void check_softmax(int heads, int T, float size)
{
    int rows = heads * T, n = rows * T;
    float scale = 0.35f;
    float *att = allocate((size_t)n, sizeof *att);
    struct twins scores = twins(n, 1);
    struct twins apart = twins(n, 3);
    struct twins datt = twins(n, 2);
    for (int i = 0; i < n; i++)
        scores.ours[i] *= size;
    poison_above(scores.ours, rows, T);
    poison_above(datt.ours, rows, T);
    memcpy(scores.expected, scores.ours, (size_t)n * sizeof *att);
    memcpy(datt.expected, datt.ours, (size_t)n * sizeof *att);
    RUN("softmax.cl", "softmax_forward", rows, ARRAY(apart.ours, n), ARRAY(scores.expected, n), WHOLE(T), REAL(scale));
    RUN("softmax.cl", "softmax_forward", rows, ARRAY(scores.ours, n), ARRAY(scores.ours, n), WHOLE(T), REAL(scale));
    ref_softmax_forward(att, scores.expected, rows, T, scale);
    memcpy(scores.expected, att, (size_t)n * sizeof *att);
    memcpy(apart.expected, scores.ours, (size_t)n * sizeof *att);
    RUN("softmax.cl", "softmax_backward", rows, ARRAY(datt.ours, n), ARRAY(datt.ours, n), ARRAY(att, n), WHOLE(T),
        REAL(scale));
    float *dscores = allocate((size_t)n, sizeof *dscores);
    ref_softmax_backward(dscores, datt.expected, att, rows, T, scale);
    memcpy(datt.expected, dscores, (size_t)n * sizeof *dscores);
    expect_same_twins("softmax_forward in place and apart", &apart);
    /* e^x has the relative error of its argument, and that may be large */
    expect_close_twins("softmax_forward", &scores, 2e-6 + 1e-7 * size);
    expect_close_twins("softmax_backward", &datt, 3e-6);
    free_twins(&apart);
    free_twins(&scores);
    free_twins(&datt);
    free(att);
    free(dscores);
}

static void check_softmax_of(int side)
{
    check_softmax(3, side, 1);
    check_softmax(1, side, 300); /* overflows unless the maximum is taken off */
}

TEST(softmax_gives_what_plain_c_gives)
{
    static const int sides[] = {1, 2, 7, 16, 17, 33, 70};
    check_in_shapes(check_softmax_of, sides, COUNT(sides));
}

/* ---- loss.cl ----------------------------------------------------------------------------------------------------- */

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
    RUN("loss.cl", "loss_forward", N, ARRAY(losses.ours, N), ARRAY(lse.ours, N), ARRAY(logits, N * W),
        ARRAY(targets, N), WHOLE(V), WHOLE(W));
    ref_loss_forward(losses.expected, lse.expected, logits, targets, N, V, W);
    RUN("loss.cl", "loss_backward", N, ARRAY(dlogits.ours, N * W), ARRAY(logits, N * W), ARRAY(lse.expected, N),
        ARRAY(targets, N), WHOLE(0), WHOLE(V), WHOLE(W), REAL(0.125f));
    ref_loss_backward(dlogits.expected, logits, lse.expected, targets, N, V, W, 0.125f);
    /* lse and a logit of some hundreds are subtracted: what is left carries the rounding of the large ones */
    expect_close_twins("loss", &losses, 2e-6 + 2e-7 * size);
    expect_close_twins("lse", &lse, 2e-6);
    expect_close_twins("dlogits", &dlogits, 1e-6 + 1e-7 * size);
    free_twins(&losses);
    free_twins(&lse);
    free_twins(&dlogits);
    free(targets);
    free(logits);
}

static void check_losses_of(int words)
{
    check_loss(5, words, words, 1);
    check_loss(3, words, words + 19, 200);
}

TEST(the_loss_is_what_plain_c_gives) { check_in_shapes(check_losses_of, widths, COUNT(widths)); }

/* ---- long loops -------------------------------------------------------------------------------------------------- */

/* On a driver with short loops a micro-batch may have as many tokens (src/trainer/model/build.c). */
TEST(the_longest_loops_give_what_plain_c_gives)
{
    enum { TOKENS = SHORT_LOOPS / 4 };
    take_shape(0);
    check_rows(TOKENS, 1);
    check_layernorm(TOKENS, 1);
    check_embedding(1, TOKENS, 1, 1);
}

ALWAYS(machines_close) { close_shapes(); }

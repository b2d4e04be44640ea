/* test_kernels_sums.c - kernels that sum over tokens or parameters, and AdamW, compared with plain C (reference.h).
 *
 * This test runs each kernel over odd sizes and in all shapes of the kernels (support_kernels.h).  It checks that sums
 * whose order is promised have the reference's bits, so that no sum depends on the shape or the device.  It catches a
 * norm that hides what is not finite, an update that moves although training has halted, and a wait for all work-items
 * that waits only for some.
 *
 * Inputs are normal numbers that depend only on a seed.
 *
 * To see it fail: in norm.cl, end the sum over parts a round early: part > 1.
 */
#include "tests/support/support_kernels.h"
#include "trainer/base/embedded.h"
#include "trainer/model/model.h"

#include <math.h>

ALWAYS(machines_open) { open_shapes(); }

/* ---- norm.cl ----------------------------------------------------------------------------------------------------- */

static void check_norm(int n, float clip, float *first_shape)
{
    int n_blocks = (int)blocks_of(n);
    struct twins partial = twins(n_blocks, 1), result = twins(VERDICT_SIZE, 2);
    float *grad = random_floats((size_t)n, 3);
    float control[CONTROL_SIZE] = {[CONTROL_CLIP] = clip};
    float loss = 0;
    RUN("norm.cl", "norm_blocks", n_blocks, ARRAY(partial.ours, n_blocks), ARRAY(grad, n), WHOLE(n));
    ref_norm_blocks(partial.expected, grad, n);
    expect_close("norm_blocks", partial.ours, partial.expected, partial.n, 2e-6);
    if (first_shape[0] == 0)
        memcpy(first_shape, partial.ours, sizeof(float) * (size_t)n_blocks);
    /* All real devices have one of the two: the tree is the same on CPU and GPU. */
    if (device->shape.vector == 1 || device->shape.work_group == 1)
        expect_same_bits("norm_blocks in every shape", partial.ours, first_shape, partial.n);
    RUN("norm.cl", "norm_finish", 1, ARRAY(result.ours, VERDICT_SIZE), ARRAY(partial.expected, n_blocks),
        WHOLE(n_blocks), ARRAY(control, CONTROL_SIZE), ARRAY(&loss, 1), WHOLE(1));
    ref_norm_finish(result.expected, partial.expected, n_blocks, control);
    expect_close_twins("norm_finish", &result, 1e-6);
    free_twins(&result);
    free_twins(&partial);
    free(grad);
}

TEST(the_norm_is_near_plain_c_and_alike_in_all_shapes)
{
    for (size_t k = 0; k < LENGTHS; k++) {
        float first_shape[3] = {0};
        for (size_t shape = 0; take_shape(shape); shape++) {
            check_norm(lengths[k], 0, first_shape);
            check_norm(lengths[k], 0.5f, first_shape);
            check_norm(lengths[k], 1e6f, first_shape);
            check_norm(lengths[k], 0.75f * sqrtf((float)lengths[k]), first_shape); /* the norm is about sqrt(n) */
        }
    }
}

enum { BLOCKS = 3, LOSSES = 2 };

struct norm_inputs {
    float partial[BLOCKS]; /* by block: its sum of squares */
    float loss[LOSSES];    /* by data-parallel rank */
};
static const struct norm_inputs good_inputs = {.partial = {1, 1, 2},
                                               .loss = {3, 4}}; /* the norm: sqrt(1 + 1 + 2) = 2 */

static void run_norm_finish(float *verdict, struct norm_inputs inputs)
{
    float control[CONTROL_SIZE] = {[CONTROL_CLIP] = 1};
    RUN("norm.cl", "norm_finish", 1, ARRAY(verdict, VERDICT_SIZE), ARRAY(inputs.partial, BLOCKS), WHOLE(BLOCKS),
        ARRAY(control, CONTROL_SIZE), ARRAY(inputs.loss, LOSSES), WHOLE(LOSSES));
}

/* A good step after one with a bad block sum or loss: training stays halted. */
static void expect_halt_lasts(float *verdict)
{
    run_norm_finish(verdict, good_inputs);
    assert_close(verdict[VERDICT_NORM], 2, 0);
    assert_close(verdict[VERDICT_HALTED], 1, 0);
}

static void expect_halt_by_block(float bad, int block)
{
    float verdict[VERDICT_SIZE] = {0};
    struct norm_inputs inputs = good_inputs;
    inputs.partial[block] = bad;
    run_norm_finish(verdict, inputs);
    assert_true(!isfinite(verdict[VERDICT_NORM]));
    assert_close(verdict[VERDICT_HALTED], 1, 0);
    expect_halt_lasts(verdict);
}

static void expect_halt_by_loss(float bad, int rank)
{
    float verdict[VERDICT_SIZE] = {0};
    struct norm_inputs inputs = good_inputs;
    inputs.loss[rank] = bad;
    run_norm_finish(verdict, inputs);
    assert_close(verdict[VERDICT_NORM], 2, 0);
    assert_close(verdict[VERDICT_HALTED], 1, 0);
    expect_halt_lasts(verdict);
}

/* An infinite sum of the last block makes the norm infinite; of an earlier block, the compensated sum makes it NaN. */
TEST(norm_halts_on_what_is_not_finite)
{
    static const float bad[] = {INFINITY, NAN};
    for (size_t shape = 0; take_shape(shape); shape++)
        for (size_t i = 0; i < COUNT(bad); i++) {
            for (int block = 0; block < BLOCKS; block++)
                expect_halt_by_block(bad[i], block);
            for (int rank = 0; rank < LOSSES; rank++)
                expect_halt_by_loss(bad[i], rank);
        }
}

/* ---- sums in order (common.cl) ----------------------------------------------------------------------------------- */

static void check_column_sum(int N, int C, bool accumulate)
{
    int n = N * C;
    struct twins sum = twins(C, 1);
    float *d = random_floats((size_t)n, 6);
    RUN("elementwise.cl", "column_sum", columns_of_groups(C), ARRAY(sum.ours, C), ARRAY(d, n), WHOLE(N), WHOLE(C),
        WHOLE(accumulate));
    ref_column_sum(sum.expected, d, N, C, accumulate);
    expect_same_twins("column_sum", &sum);
    free_twins(&sum);
    free(d);
}

static void check_layernorm_params(int N, int C, bool accumulate)
{
    int n = N * C;
    struct twins dw = twins(C, 2), db = twins(C, 3);
    float *d = random_floats((size_t)n, 6);
    float *x = random_floats((size_t)n, 7);
    float *mean = random_floats((size_t)N, 8);
    float *rstd = random_floats((size_t)N, 9);
    RUN("layernorm.cl", "layernorm_backward_params", columns_of_groups(C), ARRAY(dw.ours, C), ARRAY(db.ours, C),
        ARRAY(d, n), ARRAY(x, n), ARRAY(mean, N), ARRAY(rstd, N), WHOLE(N), WHOLE(C), WHOLE(accumulate));
    ref_layernorm_backward_params(dw.expected, db.expected, d, x, mean, rstd, N, C, accumulate);
    expect_same_twins("layernorm dw", &dw);
    expect_same_twins("layernorm db", &db);
    free_twins(&dw);
    free_twins(&db);
    free(d);
    free(x);
    free(mean);
    free(rstd);
}

static void check_loss_sum(int n, bool accumulate)
{
    struct twins total = twins(1, 4);
    float *losses = random_floats((size_t)n, 6);
    RUN("loss.cl", "loss_sum", 1, ARRAY(total.ours, 1), ARRAY(losses, n), WHOLE(n), WHOLE(accumulate));
    ref_loss_sum(total.expected, losses, n, accumulate);
    expect_same_twins("loss_sum", &total);
    free_twins(&total);
    free(losses);
}

/* n sums of blocks, and the losses of so many ranks. */
static void check_norm_finish(int n, int ranks)
{
    struct twins norm = twins(VERDICT_SIZE, 5);
    float *losses = random_floats((size_t)ranks, 8);
    float *squares = random_floats((size_t)n, 10);
    float control[CONTROL_SIZE] = {[CONTROL_CLIP] = 0.5f};
    for (int i = 0; i < n; i++)
        squares[i] *= squares[i];
    RUN("norm.cl", "norm_finish", 1, ARRAY(norm.ours, VERDICT_SIZE), ARRAY(squares, n), WHOLE(n),
        ARRAY(control, CONTROL_SIZE), ARRAY(losses, ranks), WHOLE(ranks));
    ref_norm_finish(norm.expected, squares, n, control);
    expect_close_twins("norm_finish", &norm,
                       device->extra.quirks.correct_divide ? 0 : 1e-7); /* a square root, and clip / norm */
    free_twins(&norm);
    free(losses);
    free(squares);
}

/* All kernels whose sums have an order: of N rows of C numbers, or of all N * C. */
static void check_sums(int N, int C, bool accumulate)
{
    check_column_sum(N, C, accumulate);
    check_layernorm_params(N, C, accumulate);
    check_loss_sum(N * C, accumulate);
    check_norm_finish(N * C, N);
}

/* Some tiles of rows and columns, the last ones cut anywhere. */
TEST(column_sums_keep_their_order)
{
    for (size_t shape = 0; take_shape(shape); shape++) {
        for (uint64_t i = 0; i < 30; i++) {
            struct random4 random4 = random_words(i, STREAM_TEST, 2, 0);
            check_sums(1 + (int)(random4.word[0] % 200), 1 + (int)(random4.word[1] % 140), random4.word[2] % 2);
        }
    }
}

/* ---- long loops -------------------------------------------------------------------------------------------------- */

/* On a driver with short loops a micro-batch may have as many tokens (src/trainer/model/build.c). */
TEST(the_longest_sums_are_right)
{
    enum { TOKENS = SHORT_LOOPS / 4 };
    take_shape(0);
    check_sums(TOKENS, 1, true);
}

/* ---- adamw.cl ---------------------------------------------------------------------------------------------------- */

static void check_adamw(int n, int n_decay, float halted, int side)
{
    float *g = random_floats((size_t)n, 4);
    float control[CONTROL_SIZE];
    float verdict[VERDICT_SIZE] = {[VERDICT_NORM] = 1, [VERDICT_SCALE] = 0.37f, [VERDICT_HALTED] = halted};
    struct twins p = twins(n, 1);
    struct twins m = twins(n, 2);
    struct twins v = twins(n, 3);
    for (int i = 0; i < n; i++) {
        v.ours[i] = fabsf(v.ours[i]);
        v.expected[i] = v.ours[i];
    }
    for (int step = 1; step <= 3; step++) {
        double lr = 1e-3, decay = 0.1, beta1 = 0.9, beta2 = 0.999, eps = 0.01, clip = 1;
        ref_control(control, lr, beta1, beta2, eps, decay, clip, step);
        RUN("adamw.cl", "adamw", blocks_of(n), ARRAY(p.ours, n), ARRAY(m.ours, n), ARRAY(v.ours, n), ARRAY(g, n),
            ARRAY(control, CONTROL_SIZE), ARRAY(verdict, VERDICT_SIZE), WHOLE(n), WHOLE(n_decay), ARRAY(&side, 1));
        if (side == SIDE_DEVICE)
            ref_adamw(p.expected, m.expected, v.expected, g, control, verdict, n, n_decay);
    }
    if (device->extra.quirks.correct_divide) {
        expect_same_twins("adamw p", &p);
        expect_same_twins("adamw m", &m);
        expect_same_twins("adamw v", &v);
    } else {
        expect_close_twins("adamw p", &p, 1e-6);
        expect_close_twins("adamw m", &m, 1e-6);
        expect_close_twins("adamw v", &v, 1e-6);
    }
    free_twins(&p);
    free_twins(&m);
    free_twins(&v);
    free(g);
}

static void check_adamw_of(int n)
{
    check_adamw(n, n * 2 / 3, 0, SIDE_DEVICE);
    check_adamw(n, 0, 1, SIDE_DEVICE);           /* halted: nothing moves */
    check_adamw(n, 0, 0, SIDE_CPU | SIDE_MOVED); /* nor does it when the update is the host's */
}

TEST(adamw_has_the_bits_of_plain_c) { check_in_shapes(check_adamw_of, lengths, LENGTHS); }

/* ---- waiting (common.cl) ----------------------------------------------------------------------------------------- */

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

TEST(a_condition_is_the_same_before_and_after_waiting)
{
    for (const struct embedded_file *file = embedded_kernels; file->name; file++)
        write_text(file->name, "%s", file->text);
    write_text("wait.cl", "%s", wait_often);
    setenv("YARD_KERNELS", temp_path("."), 1);
    for (size_t shape = 0; take_shape(shape); shape++) {
        enum { N = 3 };
        float in[2 * N] = {1, 2, 3, 10, 20, 30}, out[N] = {0};
        if (device->shape.work_group < N)
            continue;
        RUN("wait.cl", "wait_often", 1, ARRAY(out, N), ARRAY(in, 2 * N), WHOLE(N), WHOLE(64), WHOLE(1));
        expect_same_bits("behind a wait", out, in + N, N);
    }
    unsetenv("YARD_KERNELS");
}

ALWAYS(machines_close) { close_shapes(); }

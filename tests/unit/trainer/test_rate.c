/* test_rate.c - the learning rate of each step, compared with its formula.
 *
 * It tests src/trainer/settings/rate.c.  It checks that the warm-up rises in a line to the highest rate and never
 * reaches 0, and that the rate then follows the schedule's formula down to the last rate, in the last step.  It catches
 * a schedule that is a step early or late, one that never comes to its end, and a warm-up that leaves no step for the
 * rest.
 *
 * To see it fail: in learning_rate(), let the full rate begin a step earlier (first = warmup).
 *
 * The formulas are in rate.h.  The cosine's is nanoGPT's, whose steps count from 0.
 */
#include "tests/support/child.h"
#include "trainer/base/error.h"
#include "trainer/settings/rate.h"

#include <math.h>

/* The tolerance is for the rounding of a formula that is written in another order. */
static void expect_rate(const struct rate *rate, int64_t step, double expected)
{
    double found = learning_rate(rate, step);
    if (!(fabs(found - expected) <= 1e-12))
        test_failed("step %lld: the rate is %.17g, not %.17g\n", (long long)step, found, expected);
}

TEST(a_constant_rate_stays_after_its_warm_up)
{
    struct rate rate = {.schedule = RATE_CONSTANT, .lr = 1e-3, .lr_min = 1e-4, .steps = 10, .warmup = 0};
    for (int64_t step = 1; step <= 10; step++)
        assert_close(learning_rate(&rate, step), 1e-3, 0); /* to the bit */
    rate.warmup = 4;                                       /* steps 1 to 4 have 1/5 to 4/5 of the rate */
    expect_rate(&rate, 1, 1e-3 / 5);
    expect_rate(&rate, 4, 4e-3 / 5);
    assert_close(learning_rate(&rate, 5), 1e-3, 0);
}

/* nanoGPT's recipe: 2000 iterations, 100 of them warm-up, 1e-3 to 1e-4.  There `it` counts from 0. */
TEST(the_cosine_is_that_of_nanogpts_recipe)
{
    struct rate rate = {.schedule = RATE_COSINE, .lr = 1e-3, .lr_min = 1e-4, .steps = 2000, .warmup = 100};
    for (int64_t it = 0; it < 100; it++)
        expect_rate(&rate, it + 1, 1e-3 * (double)(it + 1) / 101);
    assert_close(learning_rate(&rate, 101), 1e-3, 0);
    for (int64_t it = 100; it < 2000; it++)
        expect_rate(&rate, it + 1, 1e-4 + 0.5 * (1 + cos(M_PI * (double)(it - 100) / 1899)) * 9e-4);
    expect_rate(&rate, 2000, 1e-4);
    for (int64_t step = 102; step <= 2000; step++)
        assert_below(learning_rate(&rate, step), learning_rate(&rate, step - 1));
    rate.warmup = 0;
    assert_close(learning_rate(&rate, 1), 1e-3, 0);
}

TEST(a_linear_rate_falls_evenly)
{
    struct rate rate = {.schedule = RATE_LINEAR, .lr = 1, .lr_min = 0, .steps = 11, .warmup = 0};
    for (int64_t step = 1; step <= 11; step++)
        expect_rate(&rate, step, 1 - (double)(step - 1) / 10);
}

/* Warm-up, stable, decay: the last fifth of the steps, 81 to 100, goes down by the root of what has passed of it. */
TEST(the_last_fifth_of_wsd_decays_by_the_root)
{
    struct rate rate = {.schedule = RATE_WSD, .lr = 1, .lr_min = 0.1, .steps = 100, .warmup = 10};
    expect_rate(&rate, 10, 10.0 / 11);
    for (int step = 11; step <= 80; step++)
        assert_close(learning_rate(&rate, step), 1, 0);
    expect_rate(&rate, 85, 0.1 + 0.9 * (1 - sqrt(5.0 / 20)));
    expect_rate(&rate, 100, 0.1);
}

TEST(short_runs_have_a_finite_rate)
{
    for (int schedule = RATE_COSINE; schedule <= RATE_WSD; schedule++)
        for (int steps = 1; steps <= 4; steps++)
            for (int warmup = 0; warmup < steps; warmup++)
                for (int step = 1; step <= steps; step++) {
                    struct rate rate = {.schedule = (enum rate_schedule)schedule,
                                        .lr = 1,
                                        .lr_min = 0.25,
                                        .steps = steps,
                                        .warmup = warmup};
                    double found = learning_rate(&rate, step);
                    assert_at_least(found, 0.2); /* a step of four in the warm-up has 1/4 of the rate at least */
                    assert_at_most(found, 1);
                }
}

static void check_it(void *rate) { check_rate(rate); }

TEST(impossible_rates_are_refused)
{
    struct rate rate = {.schedule = RATE_COSINE, .lr = 1e-3, .lr_min = 1e-4, .steps = 100, .warmup = 100};
    expect_refusal(check_it, &rate, EXIT_USAGE,
                   "--warmup 100 leaves no step at the full learning rate, since --steps is 100");
    rate.warmup = 99;
    check_rate(&rate);
    rate.lr_min = 2e-3;
    expect_refusal(check_it, &rate, EXIT_USAGE, "0.002 is above the learning rate 0.001");
    rate.schedule = RATE_CONSTANT; /* this schedule does not use lr_min */
    check_rate(&rate);
}

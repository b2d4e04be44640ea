/* test_pass.c - the techniques on real lists.
 *
 * This test checks that the list proves to compute the same with whichever techniques are on, and that training then
 * gives the bits of --serial without techniques.  It asks all folders for their passes, so a new one is tested too.
 *
 * To see it fail: in recompute.c, make again all that backward tasks read: leave out may_remake().
 */
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "techniques/recompute/recompute.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_training.h"
#include "tools/pace/pace.h"

#include <math.h>
#include <string.h>

enum { STEPS = 3 };

/* Passes do not decline, but on a single device there may be nothing to do, and with ZeRO-3 nothing to send. */
static struct state train_with(const char *words, int64_t delays)
{
    struct settings *settings = parse_words(words);
    settings->serial = delays < 0;
    settings->demands.draw_seed = delays;
    asked_pace.delay_seed = delays;
    struct trainer *trainer = open_training(settings, LIST_TRAIN);
    for (const struct pass_report *report = reports_of(trainer).items;
         report < reports_of(trainer).items + reports_of(trainer).n; report++) {
        bool sends_nothing = trainer->mesh.zero == 3 && strcmp(report->pass->name, "broadcast") == 0;
        if (report->declined && trainer->machine->n_devices > 1 && !sends_nothing)
            test_failed("%s: %s declines: %s\n", words, report->pass->name, report->reason);
    }
    run_steps(trainer, 1, STEPS);
    check_training(trainer, STEPS);
    struct state all = read_whole_state(trainer);
    free_trainer(trainer);
    return all;
}

/* ---- all combinations -------------------------------------------------------------------------------------------- */

static size_t count_ways(const struct pass *pass)
{
    size_t n = 0;
    while (n < COUNT(pass->turned_on) && pass->turned_on[n])
        n++;
    return n;
}

/* Whether steps of this length through n combinations would leave out some way of a pass: n and the numbers of ways
 * have the factors 2 and 3. */
static bool misses_ways(size_t stride, size_t n)
{
    return stride > 1 && (n % stride == 0 || stride % 2 == 0 || stride % 3 == 0);
}

/* Some words, and of each pass nothing or one of its ways; the serial list without passes gives the bits.  So many
 * combinations, spread over all, or all with COMBINATIONS=all in the environment. */
static void expect_same_bits_whatever_is_on(const char *words, size_t wanted)
{
    struct state expected = train_with(words, -1);
    size_t n_passes, n = 1, stride;
    const struct pass *const *pass = all_passes(&n_passes);
    for (size_t i = 0; i < n_passes; i++)
        n *= count_ways(pass[i]) + 1;
    stride = getenv("COMBINATIONS") ? 1 : MAX(n / wanted, 1);
    while (misses_ways(stride, n))
        stride++;
    for (size_t nth = 1; nth < n; nth += stride) {
        const char *text = words;
        size_t rest = nth;
        for (size_t i = 0; i < n_passes; i++) {
            size_t ways = count_ways(pass[i]) + 1, way = rest % ways;
            if (way > 0)
                text = lasting("%s %s", text, pass[i]->turned_on[way - 1]);
            rest /= ways;
        }
        struct state state = train_with(text, (int64_t)nth);
        assert_int_equal(state.n, expected.n);
        expect_same_bits(text, state.values, expected.values, expected.n);
        free(state.values);
    }
    free(expected.values);
}

#define TINY "--model tiny --seq-len 16 "

TEST(combined_passes_keep_the_bits)
{
    need_own_products();
    expect_same_bits_whatever_is_on(TINY "-d 0:0 --gemm own", 12);
}

TEST(combined_passes_keep_the_bits_on_two_devices)
{
    need_own_products();
    char *words = lasting(TINY "-d %s --micro-batch 1 --gemm own", two_devices());
    expect_same_bits_whatever_is_on(words, 24);
}

LONG_TEST(combined_passes_keep_the_bits_with_clblast)
{
    expect_same_bits_whatever_is_on(TINY "-d 0:0 --micro-batch 2 --gemm clblast", 6);
}

TEST(recompute_passes_the_audit) { free(train_with(TINY "-d 0:0 --recompute full --serial --audit", -1).values); }

/* ---- yard plan --------------------------------------------------------------------------------------------------- */

TEST(plan_reports_passes)
{
    json_t *plan = yard_json("plan --model tiny --hardware data/hardware/server.txt --simulate --json --recompute full "
                             "--after recompute");
    json_t *passes_on = json_object_get(plan, "passes");
    assert_int_equal(json_array_size(passes_on), 1);
    json_t *first = json_array_get(passes_on, 0);
    assert_string_equal(text_at(first, "pass"), "recompute");
    assert_true(json_is_false(json_object_get(first, "declined")));
    assert_contains(text_at(first, "reason"), "full: ");
    expect_yard(EXIT_USAGE, "--after takes the name of a pass, not \"swop\"",
                "plan --model tiny --hardware data/hardware/server.txt --after swop");
    expect_yard(EXIT_USAGE, "off|full|selective|auto", "train --recompute some");
}

static json_t *plan_overlap(const char *options)
{
    json_t *plan = yard_json("plan --model nano --hardware data/hardware/workstation.txt --clip 0 --json "
                             "--overlap plan --swap auto %s",
                             options);
    return json_at(plan, "passes.0");
}

/* Overlap chooses before swap has made room, in a budget in which no choice fits: as if it had the room. */
TEST(overlap_counts_on_swap)
{
    json_t *all = plan_overlap(""), *tight = plan_overlap("--device-mem 30M");
    const char *same[] = {"declined", "choice", "period_ms", "local_ms"};
    for (size_t i = 0; i < COUNT(same); i++)
        assert_true(json_equal(json_object_get(all, same[i]), json_object_get(tight, same[i])));
    assert_non_null(strchr(text_at(tight, "choice"), 'C'));
}

/* The best plan does not fit, even with what recompute will make again.  Overlap knows how much that is, and takes a
 * plan that fits then, instead of hoping that recompute makes room. */
LONG_TEST(overlap_counts_on_recompute)
{
    const char *words = "plan --model tiny --layers 4 --seq-len 64 --batch 4 --hardware data/hardware/server.txt "
                        "--overlap plan --recompute full --device-mem";
    expect_yard(EXIT_OK, "pass recompute: full", "%s 1500K", words);
    expect_yard(EXIT_USAGE, "all tensors need at least 1.40 MiB", "%s 800K", words);
}

/* test_swap_budgets.c - laws that hold when swapping gets more memory, or may move more.
 *
 * It tests src/techniques/swap on random lists, models and meshes.  It checks that a budget which a refusal names is
 * enough; that a step is not longer with more memory, or with more classes that may move; and that any number of layers
 * trains in the memory of one where the host updates all layers.  It catches a budget that is named but not enough, and
 * a search that misses in more memory what it finds in less.
 *
 * To see it fail: in shortage.c, name a byte too few: device->budget - 1 in refuse_and_name_budgets().
 *
 *     YARD_CASES=N build/tests/test_swap_budgets      N random cases of each law
 */
#include "tests/support/support_paper.h"
#include "tests/support/support_swap.h"
#include "trainer/file/file.h"

#include <math.h>

/* ---- more room, and more that may move --------------------------------------------------------------------------- */

static double period_within(size_t bytes, const char *text, const char *what)
{
    return number_at(plan_file(list_within(bytes, text), lasting("--swap auto --swap-what %s", what)), "period_ms");
}

/* The outcome of --swap auto, once where activations may leave, and once where further classes may, too. */
struct more_classes {
    char *text; /* the list */
    int seed;
    const char *further; /* names of classes, activations among them */
    int tries, longer;   /* how many budgets were tried; how many of them made a longer step than fewer bytes did */
};

/* The period within so many bytes, which is never longer once further classes are named. */
static double period_of_both(const struct more_classes *classes, size_t bytes)
{
    double period = period_within(bytes, classes->text, "activations");
    if (period_within(bytes, classes->text, classes->further) > period * (1 + 1e-9))
        test_failed("seed %d, %zu bytes: longer than %g ms with %s\n", classes->seed, bytes, period, classes->further);
    return period;
}

/* Tries a budget, and returns its period, which is at most 5 % above `before`, that of fewer bytes. */
static double try_larger_budget(struct more_classes *classes, size_t bytes, const char *what, double before)
{
    bool activations_alone = what != classes->further;
    double now = activations_alone ? period_of_both(classes, bytes) : period_within(bytes, classes->text, what);
    if (now > before * 1.05)
        test_failed("seed %d, %s: %g ms in %zu bytes, %g in fewer\n", classes->seed, what, now, bytes, before);
    classes->tries++;
    if (now > before * (1 + 1e-9))
        classes->longer++;
    return now;
}

/* Three budgets: what the refusal names, so much that all fits, and one between, by a share of the way. */
static void try_budgets(struct more_classes *classes, const char *what, double share)
{
    char *options = lasting("--swap auto --swap-what %s", what);
    json_t *bare = plan_file(list_within(100000000, classes->text), options);
    size_t least = refused_budget("", list_within(1, classes->text), options);
    size_t peak = (size_t)number_at(bare, "peak_bytes.gpu.before");
    double period = period_within(least, classes->text, what);
    period = try_larger_budget(classes, least + (size_t)(share * (double)(peak - least)), what, period);
    period = try_larger_budget(classes, peak, what, period);
    expect_number("period of all that fits", period, number_at(bare, "bare_ms"));
}

/* A budget that a refusal names is enough, what may move once more classes are named never makes a longer step, and
 * more bytes hardly ever do: a search that takes another way may miss what it would find. */
LAW(budgets_that_refusals_name_are_enough)
{
    static const char *const other[] = {"optimizer", "optimizer,parameters", "gradients", "parameters"};
    const struct cases some = cases_of(1, number_from("YARD_CASES", 5));
    int layers = getenv("YARD_CASES") ? 0 : 3;
    int longer = 0, tries = 0;
    for (int i = some.begin; i < some.end; i++) {
        struct more_classes classes = {
            .text = random_list("training", i + 1, layers),
            .seed = i + 1,
            .further = lasting("activations,%s", other[i % 4]),
        };
        try_budgets(&classes, "activations", draw_kth(i, 0));
        try_budgets(&classes, classes.further, draw_kth(i, 1));
        tries += classes.tries;
        longer += classes.longer;
        free(classes.text);
    }
    if (longer * 100 > tries * 5)
        test_failed("%d of %d steps are longer than with fewer bytes\n", longer, tries);
}

/* More memory makes no step longer where overlap chooses first, and swap then makes room: a plan of updates that fits
 * would else stand in the way of a better one that swap makes fit. */
TEST(more_memory_with_overlap_is_no_slower)
{
    static const char *const modes[] = {"--overlap plan --swap-what " ALL_CLASSES,
                                        "--overlap all-cpu --swap-what parameters,gradients,activations"};
    static const size_t mib[] = {200, 256, 384};
    char *text = read_text("data/gallery/megatrain-options.txt");
    for (size_t m = 0; m < COUNT(modes); m++) {
        double before = INFINITY;
        for (size_t i = 0; i < COUNT(mib); i++) {
            const char *list = write_text("plan.txt", "%s", list_within(mib[i] * MIB, strstr(text, "device gpu")));
            json_t *plan =
                yard_json("plan --list %s --clip 0 --swap auto %s --simulate --verify --json", list, modes[m]);
            double now = number_at(plan, "simulation.step_ms");
            if (now > before * (1 + 1e-9))
                test_failed("%s: %g ms in %zu MiB, %g in fewer\n", modes[m], now, mib[i], before);
            before = now;
        }
    }
    free(text);
}

/* ---- state that the host updates --------------------------------------------------------------------------------- */

/* A list of so many layers of one size.  The size, the links and all times depend on the seed. */
static char *make_layers(int seed, int layers)
{
    int weight = 4096 * (1 + (int)(draw_kth(seed, 0) * 99)), activation = 4096 * (1 + (int)(draw_kth(seed, 1) * 20));
    char *text =
        lasting("device gpu memory=1G\nlink gpu up %ge9\nlink gpu down %ge9\ntensor input gpu 4096 work keep\n",
                1 + 4 * draw_kth(seed, 2), 1 + 4 * draw_kth(seed, 3));
    for (int i = 0; i < layers; i++)
        text = lasting("%stensor w%d gpu %d parameters\ntensor g%d gpu %d gradients\ntensor m%d gpu %d optimizer\n"
                       "tensor a%d gpu %d activations\n",
                       text, i, weight, i, weight, i, 2 * weight, i, activation);
    for (int i = 0; i < layers; i++)
        text = lasting("%stask forward gpu.compute 0.2ms layer=%d role=forward reads=w%d,%s writes=a%d\n", text, i, i,
                       i ? lasting("a%d", i - 1) : "input", i);
    for (int i = layers - 1; i >= 0; i--)
        text = lasting("%stask backward gpu.compute 0.4ms layer=%d role=backward reads=w%d,a%d writes=g%d\n"
                       "task update gpu.compute 0.1ms layer=%d role=update cpu=%gms reads=g%d,w%d,m%d writes=w%d,m%d\n",
                       text, i, i, i, i, i, 0.1 + 0.5 * draw_kth(seed, 4), i, i, i, i, i);
    return text;
}

/* How many copies of such tensors a plan brings back in a step. */
static int count_returns(const json_t *plan, char first_letter)
{
    const json_t *move;
    size_t i;
    int n = 0;
    json_array_foreach(json_at(plan, "passes.1.moves"), i, move)
    {
        if (text_at(move, "tensor")[0] == first_letter && !json_is_null(json_object_get(move, "in_start_ms")))
            n++;
    }
    return n;
}

/* Where the host updates all layers, as many as one likes train in the memory that one layer takes; and the host has
 * their parameters once, however many of them are on the device too.  They come up for their readers and no more. */
LAW(any_depth_in_the_same_memory)
{
    const struct cases some = cases_of(1, number_from("YARD_CASES", 2));
    for (int i = some.begin; i < some.end; i++) {
        int layers = 4 + (int)(4 * draw_kth(i, 5));
        const char *options = lasting(STREAMED " --clip %d", i % 2);
        char *shallow = make_layers(i, 3), *deep = make_layers(i, layers);
        size_t least = refused_budget("", list_within(1, deep), options);
        if (least != refused_budget("", list_within(1, shallow), options))
            test_failed("seed %d: %d layers take %zu bytes, and not as 3 do\n", i, layers, least);
        for (int k = 0; k < 2; k++) {
            size_t budget = least + (size_t)((double)least * k * draw_kth(i, 6 + k));
            json_t *plan = yard_json("plan --list %s %s --simulate --verify --json",
                                     write_text("plan.txt", "%s", list_within(budget, deep)), options);
            assert_at_most(number_at(plan, "memory.0.peak.train.together"), (double)budget);
            size_t weight = 4096 * (1 + (size_t)(draw_kth(i, 0) * 99));
            expect_number("the host's parameters", number_at(plan, "memory.1.peak.train.parameters"),
                          (double)(weight * (size_t)layers));
            if (count_returns(plan, 'w') > 2 * layers)
                test_failed("seed %d: %d copies up for %d readers\n", i, count_returns(plan, 'w'), 2 * layers);
        }
    }
}

/* ---- budgets that refusals name ---------------------------------------------------------------------------------- */

/* Accepted budgets hold to the end, as do those that a refusal names, on all devices, for random lists and meshes. */
LAW(named_budgets_work)
{
    static const char *const how[] = {"--recompute auto", AUTO, "--swap layer", "--swap microbatch"};
    static const char *const meshes[] = {"dp=2 --zero 3", "pp=2 --micro-batch 1", "dp=2,pp=2 --zero 3 --micro-batch 1",
                                         "dp=3 --zero 3 --batch 6"};
    const struct cases some = cases_of(4, number_from("YARD_CASES", 12));
    size_t refused = 0;
    for (int i = some.begin; i < some.end; i++) {
        bool is_model = i % 3 != 0; /* otherwise it is a random list */
        char *text = random_list("training", i + 1, 3), *options = lasting("%s", how[(size_t)(draw_kth(i, 0) * 4)]);
        size_t budget = (size_t)(draw_kth(i, 1) * (is_model ? 6e5 : 2e5));
        char *model = lasting("plan --model tiny --layers %d --hardware data/hardware/server.txt --mesh %s %s",
                              2 + i % 2, meshes[(size_t)(draw_kth(i, 2) * 4)], options);
        struct ran ran = {.code = EXIT_USAGE};
        for (int attempt = 0; attempt < 2 && ran.code != EXIT_OK; attempt++) {
            ran = is_model
                      ? run_yard("%s --device-mem %zu", model, budget)
                      : run_yard("plan --list %s %s", write_text("plan.txt", "%s", list_within(budget, text)), options);
            budget = ran.code == EXIT_OK ? budget : budget_in(ran.err);
            if (ran.code != EXIT_OK)
                refused++;
            if (attempt && ran.code != EXIT_OK)
                test_failed("seed %d, %s, a budget that was named: %s\n", i + 1, model, ran.err);
        }
        free(text);
    }
    assert_above(refused, 0);
}

/* The budgets that the passes before --snapshot name have room for its buffers on device and host. */
LAW(named_budgets_have_room_for_snapshots)
{
    static const char *const how[] = {AUTO,
                                      AUTO " --swap-what " ALL_CLASSES,
                                      "--recompute auto",
                                      "--swap layer",
                                      "--overlap all-cpu",
                                      "--overlap plan " AUTO};
    struct cases cases = cases_of(1, COUNT(how));
    for (int i = cases.begin; i < cases.end; i++) {
        char *text = random_list("training", i + 1, 3);
        char *options = lasting("%s --clip 0 --snapshot x --snapshot-in device", how[i]);
        size_t budget = refused_budget("", list_within(1, text), options);
        expect_yard(EXIT_OK, "", "plan --list %s %s", write_text("plan.txt", "%s", list_within(budget, text)), options);
        char *small = list_within(100000000, lasting("\ndevice host memory=1\n%s", strchr(text, '\n') + 1));
        budget = refused_budget("device host", small, options);
        expect_yard(EXIT_OK, "", "plan --list %s %s --host-mem %zu", write_text("plan.txt", "%s", small), options,
                    budget);
        free(text);
        char *model = lasting("plan --model tiny --hardware data/hardware/server.txt %s", options);
        budget = budget_in(expect_yard(EXIT_USAGE, "", "%s --device-mem 200K", model).err);
        expect_yard(EXIT_OK, "", "%s --device-mem %zu", model, budget);
    }
}

/* The lists for evaluation and samples use the same memory: what a training is told is enough for them too. */
TEST(named_budgets_have_room_for_all_lists)
{
    static const char *const how[] = {"--swap microbatch --micro-batch 1", "--swap layer --swap-what parameters",
                                      "--swap layer", "--overlap all-cpu --sample-tokens 40"};
    for (size_t i = 0; i < COUNT(how); i++) {
        char *run = lasting("train --model tiny --steps 1 --val-batches 1 %s", how[i]);
        size_t budget = budget_in(expect_yard(EXIT_USAGE, "for the host", "%s --host-mem 4K", run).err);
        expect_yard(EXIT_OK, "", "%s --host-mem %zu", run, budget);
    }
}

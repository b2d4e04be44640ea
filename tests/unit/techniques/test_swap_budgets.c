/* test_swap_budgets.c - laws that hold when swapping gets more memory, or may move more.
 *
 * It tests src/techniques/swap on random lists, models and meshes.  It checks that a budget which a refusal names is
 * enough; that a step is not longer with more memory, or with more classes that may move; and that any number of layers
 * trains in the memory of three where the host updates all layers.  It catches a budget that is named but not enough,
 * and a search that misses in more memory what it finds in less.
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
    bool activations_alone = strcmp(what, "activations") == 0;
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
            json_t *plan = verified_plan("--list %s --clip 0 --swap auto %s", list, modes[m]);
            double now = number_at(plan, "simulation.step_ms");
            if (now > before * (1 + 1e-9))
                test_failed("%s: %g ms in %zu MiB, %g in fewer\n", modes[m], now, mib[i], before);
            before = now;
        }
    }
    free(text);
}

/* ---- state that the host updates --------------------------------------------------------------------------------- */

static size_t weight_bytes(int seed) { return 4096 * (1 + (size_t)(draw_kth(seed, 0) * 99)); }

static size_t activation_bytes(int seed) { return 4096 * (1 + (size_t)(draw_kth(seed, 1) * 20)); }

/* A list of so many layers of one size.  The size, the links and all times depend on the seed. */
static char *make_layers(int seed, int layers)
{
    const size_t weight = weight_bytes(seed);
    const double update_on_cpu = 0.1 + 0.5 * draw_kth(seed, 4); /* ms */
    char *text = NULL;
    append_text(&text, "device gpu memory=1G\nlink gpu up %ge9\nlink gpu down %ge9\n", 1 + 4 * draw_kth(seed, 2),
                1 + 4 * draw_kth(seed, 3));
    append_text(&text, "tensor input gpu 4096 work keep\n");
    for (int i = 0; i < layers; i++) {
        append_text(&text, "tensor w%d gpu %zu parameters\ntensor g%d gpu %zu gradients\n", i, weight, i, weight);
        append_text(&text, "tensor m%d gpu %zu optimizer\n", i, 2 * weight);
        append_text(&text, "tensor a%d gpu %zu activations\n", i, activation_bytes(seed));
    }
    for (int i = 0; i < layers; i++) {
        const char *input = i > 0 ? lasting("a%d", i - 1) : "input";
        append_text(&text, "task forward gpu.compute 0.2ms layer=%d role=forward reads=w%d,%s writes=a%d\n", i, i,
                    input, i);
    }
    for (int i = layers - 1; i >= 0; i--) {
        append_text(&text, "task backward gpu.compute 0.4ms layer=%d role=backward reads=w%d,a%d writes=g%d\n", i, i, i,
                    i);
        append_text(&text, "task update gpu.compute 0.1ms layer=%d role=update cpu=%gms", i, update_on_cpu);
        append_text(&text, " reads=g%d,w%d,m%d writes=w%d,m%d\n", i, i, i, i, i);
    }
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

/* Plans `layers` layers of a seed within a budget: the device holds to it, and the host has their parameters once,
 * however many of them are on the device too.  They come up for their readers, forward and backward, and no more. */
static void expect_streamed(int seed, int layers, const char *text, size_t budget, const char *options)
{
    const char *path = write_text("plan.txt", "%s", list_within(budget, text));
    json_t *plan = verified_plan("--list %s %s", path, options);
    assert_at_most(number_at(plan, "memory.0.peak.train.together"), (double)budget);
    expect_number("the host's parameters", number_at(plan, "memory.1.peak.train.parameters"),
                  (double)(weight_bytes(seed) * (size_t)layers));
    int up = count_returns(plan, 'w');
    if (up > 2 * layers)
        test_failed("seed %d: %d copies up for %d readers\n", seed, up, 2 * layers);
}

/* Where the host updates all layers, as many as one likes train in the memory that three layers take. */
LAW(any_depth_in_the_same_memory)
{
    const struct cases some = cases_of(1, number_from("YARD_CASES", 2));
    for (int i = some.begin; i < some.end; i++) {
        int layers = 4 + (int)(4 * draw_kth(i, 5));
        const char *options = lasting(STREAMED " --clip %d", i % 2);
        char *shallow = make_layers(i, 3);
        char *deep = make_layers(i, layers);
        size_t least = refused_budget("", list_within(1, deep), options);
        if (least != refused_budget("", list_within(1, shallow), options))
            test_failed("seed %d: %d layers take %zu bytes, and not as 3 do\n", i, layers, least);
        size_t more = least + (size_t)((double)least * draw_kth(i, 7));
        expect_streamed(i, layers, deep, least, options);
        expect_streamed(i, layers, deep, more, options);
        free(shallow);
        free(deep);
    }
}

/* ---- budgets that refusals name ---------------------------------------------------------------------------------- */

/* What is planned within a budget: a list, or else a model. */
struct planned {
    char *list; /* a step file's text; NULL: `words` name a model */
    const char *words;
};

static struct planned draw_list(int i, const char *technique)
{
    return (struct planned){.list = random_list("training", i + 1, 3), .words = technique};
}

static struct planned draw_model(int i, const char *technique)
{
    static const char *const meshes[] = {"dp=2 --zero 3", "pp=2 --micro-batch 1", "dp=2,pp=2 --zero 3 --micro-batch 1",
                                         "dp=3 --zero 3 --batch 6"};
    const char *mesh = meshes[(size_t)(draw_kth(i, 2) * COUNT(meshes))];
    return (struct planned){.words =
                                lasting("--model tiny --layers %d --hardware data/hardware/server.txt --mesh %s %s",
                                        2 + i % 2, mesh, technique)};
}

static struct ran plan_within(const struct planned *planned, size_t budget)
{
    if (!planned->list)
        return run_yard("plan %s --device-mem %zu", planned->words, budget);
    const char *path = write_text("plan.txt", "%s", list_within(budget, planned->list));
    return run_yard("plan --list %s %s", path, planned->words);
}

/* Is this budget refused?  Then the one that the refusal names must be enough. */
static bool is_refused(const struct planned *planned, size_t budget)
{
    struct ran ran = plan_within(planned, budget);
    if (ran.code == EXIT_OK)
        return false;
    size_t named = budget_in(ran.err);
    ran = plan_within(planned, named);
    if (ran.code != EXIT_OK)
        test_failed("%s: %zu bytes are refused, and then the %zu that this names: %s\n", planned->words, budget, named,
                    ran.err);
    return true;
}

/* Accepted budgets hold to the end, as do those that a refusal names, on all devices, for random lists and meshes. */
LAW(named_budgets_work)
{
    static const char *const techniques[] = {"--recompute auto", AUTO, "--swap layer", "--swap microbatch"};
    const struct cases some = cases_of(4, number_from("YARD_CASES", 12));
    size_t refused = 0;
    for (int i = some.begin; i < some.end; i++) {
        const char *technique = techniques[(size_t)(draw_kth(i, 0) * COUNT(techniques))];
        bool is_list = i % 3 == 0;
        struct planned planned = is_list ? draw_list(i, technique) : draw_model(i, technique);
        double most = is_list ? 2e5 : 6e5;
        if (is_refused(&planned, (size_t)(draw_kth(i, 1) * most)))
            refused++;
        free(planned.list);
    }
    assert_above(refused, 0);
}

/* The budgets that a plan of this list names, of the device and of the host, are enough. */
static void expect_budgets_of_list(const char *text, const char *options)
{
    size_t on_device = refused_budget("", list_within(1, text), options);
    const char *within = write_text("plan.txt", "%s", list_within(on_device, text));
    expect_yard(EXIT_OK, "", "plan --list %s %s", within, options);
    const char *after_device = strchr(text, '\n') + 1;
    const char *small = list_within(100000000, lasting("\ndevice host memory=1\n%s", after_device));
    size_t on_host = refused_budget("device host", small, options);
    expect_yard(EXIT_OK, "", "plan --list %s %s --host-mem %zu", write_text("plan.txt", "%s", small), options, on_host);
}

static void expect_budget_of_model(const char *options)
{
    const char *words = lasting("plan --model tiny --hardware data/hardware/server.txt %s", options);
    size_t budget = budget_in(expect_yard(EXIT_USAGE, "", "%s --device-mem 200K", words).err);
    expect_yard(EXIT_OK, "", "%s --device-mem %zu", words, budget);
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
        const char *options = lasting("%s --clip 0 --snapshot x --snapshot-in device", how[i]);
        expect_budgets_of_list(text, options);
        expect_budget_of_model(options);
        free(text);
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

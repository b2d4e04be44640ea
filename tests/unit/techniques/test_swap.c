/* test_swap.c - swapping: which tensors leave the device, and when they are back.
 *
 * It tests src/techniques/swap on lists whose times follow from their numbers, and in trainings.  It checks that a plan
 * fits its budget to the byte and changes no bit of the training.  It catches a tensor that is back too late, one that
 * leaves while it is read, and a report with wrong bytes or times.
 *
 * To see it fail: in swap.c, find no gap that is shorter than six tasks: end - begin > 5 in lies_idle().
 *
 * The two fixed orders were worked out by hand.  test_swap_plans.c compares the planner with all plans, and
 * test_swap_budgets.c tests random lists and budgets.
 *
 *     YARD_CASES=N build/tests/test_swap      N random lists, and N random trainings
 */
#include "planning/lists/lists.h"
#include "planning/predict/plan.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_swap.h"
#include "tests/support/support_training.h"
#include "trainer/file/file.h"

#include <math.h>

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

/* data/steps/swap.txt on a device of so many bytes, with the lines of `more` before its own; a link in `more`
 * replaces those of the file.
 *
 * A step is 6 forwards of 2 ms, 6 backwards of 4 ms and an update of 2 ms: 38 ms where no copy is waited for.  At most
 * it holds 6 x 64 MiB of activations, 16 MiB of parameters and 16 MiB of gradients: 416 MiB.  A forward holds what it
 * reads and writes: 64 + 64 + 16 = 144 MiB. */
static char *six_layers(size_t memory, const char *more)
{
    char *text = read_text("data/steps/swap.txt");
    char *rest = text;
    char *all = lasting("%s", more);
    for (char *line; (line = strsep(&rest, "\n"));)
        if (strncmp(line, "device", 6) == 0)
            all = lasting("%sdevice gpu memory=%zu\n", all, memory);
        else if (strncmp(line, "link", 4) != 0 || !strstr(more, "link="))
            all = lasting("%s%s\n", all, line);
    free(text);
    return all;
}

static json_t *plan_six(size_t memory, const char *more, const char *options)
{
    return plan_file(six_layers(memory, more), options);
}

/* The peak of these six layers is 416 MiB. */
TEST(a_budget_of_the_peak_moves_nothing)
{
    json_t *json = plan_six(416 * MIB, "", AUTO);
    static const char *const fields[] = {"reason", "moves", "bare_ms", "period_ms", "stall_ms", "peak_bytes"};
    assert_true(json_is_true(json_object_get(json, "declined")));
    for (size_t i = 0; i < COUNT(fields); i++)
        assert_non_null(json_object_get(json, fields[i]));
    assert_int_equal(json_array_size(json_object_get(json, "moves")), 0);
}

TEST(a_budget_below_the_peak_moves_one_tensor)
{
    json_t *json = plan_six(416 * MIB - 1, "", AUTO);
    assert_int_equal(json_array_size(json_object_get(json, "moves")), 1);
    expect_number("period", number_at(json, "period_ms"), 38);
}

/* A forward needs 144 MiB, so no plan needs less. */
TEST(a_budget_of_what_one_task_needs_is_enough_and_less_is_refused)
{
    json_t *json = plan_six(144 * MIB, "", AUTO);
    assert_int_equal(number_at(json, "peak_bytes.gpu.after"), 144 * MIB);
    assert_int_equal(refused_budget("task forward (layer 1", six_layers(144 * MIB - 1, ""), AUTO), 144 * MIB);
}

/* Some tensors are made again when they are needed. */
TEST(recompute_alone_needs_less_than_the_peak)
{
    assert_below(refused_budget("", six_layers(144 * MIB, ""), "--recompute auto"), 416 * MIB);
}

/* The norm's part reads the gradient g again after `big`, which needs its bytes.  also_reads: ",k", where it reads what
 * is made behind `big`, too. */
static const char *norm_behind(const char *also_reads)
{
    return lasting("device gpu memory=1G\nlink gpu up 1e9\nlink gpu down 1e9\n"
                   "tensor w gpu 4096 parameters\ntensor g gpu 1M gradients keep\n"
                   "tensor big gpu 1M work\ntensor k gpu 4096 work\ntensor n gpu 4096 work\n"
                   "task backward gpu.compute 1ms role=backward reads=w writes=g\n"
                   "task fill gpu.compute 1ms writes=big\n"
                   "task shrink gpu.compute 1ms reads=big writes=k\n"
                   "task part gpu.compute 1ms role=norm reads=g%s writes=n\n"
                   "task update gpu.compute 1ms role=update reads=n,w writes=w\n",
                   also_reads);
}

/* The part can come before `big`, and then nothing is copied, unless it reads what is made behind `big`; then the
 * gradient is away meanwhile.  A copy of its 1 MiB at 1e9 bytes a second takes 1.048576 ms. */
TEST(a_gap_that_cannot_close_is_swapped)
{
    static const struct {
        const char *also_reads;
        int copies;
    } cases[] = {{"", .copies = 0}, {",k", .copies = 2}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *text = norm_behind(cases[i].also_reads);
        size_t least = refused_budget("", list_within(1, text), AUTO " --swap-what gradients");
        json_t *json = plan_file(list_within(least, text), AUTO " --swap-what gradients");
        assert_below(least, 2 * MIB);
        expect_number("copies", number_at(json, "period_ms") - number_at(json, "bare_ms"), cases[i].copies * 1.048576);
    }
}

/* w is used by `backward` and by `update`, g from `backward` to the norm's part.  Each has a gap before its first use,
 * which begins at no task, and one after its last, which ends at none: these two cannot close. */
TEST(a_gap_that_may_close_has_both_tasks)
{
    struct list *list = read_list_text("%s", norm_behind(""));
    struct gaps gaps = collect_gaps(list, NULL, 1u << MEM_PARAMETERS | 1u << MEM_GRADIENTS);
    size_t before = 0, after = 0, closing = 0;
    for (size_t i = 0; i < gaps.n; i++) {
        const struct gap *gap = &gaps.items[i];
        bool is_first = gap->begin == NONE, is_last = gap->end == (int)list->n;
        if (is_first)
            before++;
        if (is_last)
            after++;
        if (gap->may_close)
            closing++;
        if (gap->may_close && (is_first || is_last))
            test_failed("the gap of %s from task %d to %d may close\n", gap->tensor->name, gap->begin, gap->end);
    }
    assert_int_equal(before, 2);
    assert_int_equal(after, 2);
    assert_int_equal(closing, 1);
    free_gaps(&gaps);
    free_list_and_machine(list);
}

/* On a device of OpenCL a guard lies behind each slab, so copies that hold bytes up to the budget itself do not
 * fit: the search then had to make 14 tensors again, for a step that is 1.8 % longer. */
TEST(copies_leave_room_for_the_guard)
{
    json_t *json =
        json_at(yard_json("plan --model tiny --layers 4 --micro-batch 2 --clip 0 --swap auto --simulate --json "
                          "--hardware data/hardware/server.txt --device-mem 1200K"),
                "passes.0");
    double longer = number_at(json, "period_ms") / number_at(json, "bare_ms");
    if (longer > 1.01)
        test_failed("a step is %.4f times as long as in all memory, expected at most 1.01\n", longer);
}

/* A tensor leaves after its maker and is back before its reader: there is time for all copies. */
TEST(copies_of_a_swap_hide_where_there_is_time)
{
    json_t *json = plan_six(240 * MIB, "", AUTO), *move;
    size_t i;
    expect_number("period", number_at(json, "period_ms"), 38);
    assert_below(number_at(json, "stall_ms"), 1e-9);
    assert_int_equal(json_array_size(json_object_get(json, "moves")), 3);
    json_array_foreach(json_object_get(json, "moves"), i, move)
    {
        int layer = (int)number_at(move, "layer");
        assert_below(layer, 3); /* what is needed last leaves */
        assert_string_equal(text_at(move, "how"), "swap");
        /* After 6 forwards of 2 ms and the backwards, of 4 ms, of the layers above. */
        expect_number("needed", number_at(move, "needed_ms"), 12 + 4 * (5 - layer));
        assert_at_least(number_at(move, "out_start_ms"), 2 * (layer + 1) - 1e-9);
        assert_at_most(number_at(move, "in_end_ms"), number_at(move, "needed_ms") + 1e-9);
        /* It starts to come back at most two backwards, of 4 ms each, before it is needed. */
        assert_at_least(number_at(move, "in_start_ms"), number_at(move, "needed_ms") - 8 - 1e-9);
    }
}

/* A tensor that comes back is needed when the first task that reads it starts.  Returns how many of these tasks are
 * repeated ones. */
static size_t expect_needed(struct list *list)
{
    size_t n, i, repeats = 0;
    asked_swap = (struct swap_options){SWAP_AUTO, 1u << MEM_ACTIVATIONS};
    struct pass_report *report = run_passes(list, NULL, &(struct run_facts){0}, NULL, &n);
    asked_swap.mode = SWAP_OFF;
    struct forecast forecast = forecast_list(list, NULL);
    json_t *move;
    json_array_foreach(json_object_get(report[0].fields, "moves"), i, move)
    {
        for (size_t k = 0; k < list->n; k++) {
            const struct task *task = list->tasks[k];
            size_t reader = k + 1;
            if (strcmp(task->name, "swap.in") != 0 ||
                strcmp(task->accesses[0].tensor->name, text_at(move, "tensor")) != 0)
                continue;
            while (!touches_bytes(list->tasks[reader], task->accesses[0].tensor, ACCESS_READ))
                reader++;
            expect_number("needed", number_at(move, "needed_ms") - number_at(move, "in_end_ms"),
                          1e3 * (forecast.spans[reader].start - forecast.spans[k].end));
            if (list->tasks[reader]->role == ROLE_FORWARD)
                repeats++;
        }
    }
    free_forecast(&forecast);
    free_reports(report, n);
    free_list_and_machine(list);
    return repeats;
}

TEST(needed_is_when_its_first_reader_starts)
{
    char *six = six_layers(240 * MIB, "# link=\n"), *rest = strstr(six, "tensor w");
    char *linked = lasting("%.*slink gpu up 20e9\nlink gpu down 20e9\n%s", (int)(rest - six), six, rest);
    assert_above(expect_needed(read_list_text("%s", linked)), 0);
    for (int i = 0; i < number_from("YARD_CASES", 4); i++) {
        char *text = random_list("chain", i + 1, 5);
        expect_needed(read_list_text("%s", text));
        free(text);
    }
}

/* A step starts with its first task.  Here that is long before the step before has ended. */
TEST(times_count_from_the_first_task)
{
    static const char *const times[] = {"out_start_ms", "out_end_ms", "in_start_ms", "in_end_ms", "needed_ms"};
    json_t *plan = yard_json("plan --layers 5 --heads 4 --channels 128 --seq-len 128 --batch 2 --micro-batch 1 "
                             "--clip 0 --mesh pp=2 --hardware data/hardware/server.txt --swap microbatch --swap-what "
                             "gradients,optimizer,parameters,activations --json");
    json_t *move;
    size_t i;
    json_array_foreach(json_at(plan, "passes.0.moves"), i, move)
    {
        for (size_t k = 0; k < COUNT(times); k++)
            if (!json_is_null(json_object_get(move, times[k])))
                assert_at_least(number_at(move, times[k]), 0);
        if (!json_is_null(json_object_get(move, "in_end_ms")))
            assert_at_most(number_at(move, "in_end_ms"), number_at(move, "needed_ms") + 1e-9);
    }
    assert_above(i, 0);
}

/* On a host without room all is made again, as with --recompute auto. */
TEST(the_hosts_memory_counts)
{
    static const struct {
        const char *more, *options;
    } ways[] = {{"device host memory=1\n", AUTO}, {"", "--recompute auto"}};
    json_t *json = plan_six(240 * MIB, "device host memory=64M\n", AUTO), *move;
    size_t i;
    assert_at_most(number_at(json, "peak_bytes.host.after"), 64 * MIB);
    for (size_t k = 0; k < COUNT(ways); k++) {
        json = plan_six(240 * MIB, ways[k].more, ways[k].options);
        json_array_foreach(json_object_get(json, "moves"), i, move)
        {
            assert_string_equal(text_at(move, "how"), "recompute");
        }
        assert_above(i, 0);
        assert_above(number_at(json, "stall_ms"), 1);
    }
}

/* A copy takes the link's latency and its bytes' time; one more lane is used only where the link has one. */
TEST(copies_take_latency_and_bytes)
{
    char *text = six_layers(300 * MIB, "# link=\n"), *place = strstr(text, "tensor w");
    char *linked = lasting("%.*slink gpu up 1e11 500us queues=1\nlink gpu down 1e11 500us queues=1\n%s\n"
                           "tensor late gpu 4 work\ntensor there host 4 work\n"
                           "task make gpu.compute 0 writes=late\ncopy tell there late\n",
                           (int)(place - text), text, place);
    json_t *json = plan_file(linked, AUTO), *move = json_at(json, "moves.0");
    double copy = 0.5 + 64 * 1.048576 / 100; /* in ms: the latency, and 64 MiB at 100 GB/s */
    expect_number("copy", number_at(move, "out_end_ms") - number_at(move, "out_start_ms"), copy);
    struct ran ran = expect_yard(EXIT_OK, "", "plan --list %s --swap auto --after swap --print-list",
                                 write_text("queues.txt", "%s", linked));
    assert_null(strstr(ran.out, "lane gpu.download1")); /* the only queue is shared */
    expect_yard(EXIT_OK, "", "plan --list %s --simulate --verify", write_text("again.txt", "%s", ran.out));
}

/* ---- the two fixed orders ---------------------------------------------------------------------------------------- */

/* The first position from `from` on of a task of that name, layer and micro-batch (-1: of any); the list's end: it has
 * none. */
static size_t position_of(const struct list *list, const char *name, int layer, int micro, size_t from)
{
    for (; from < list->n; from++) {
        const struct task *task = list->tasks[from];
        bool is_of_layer = strcmp(task->name, name) == 0 && task->layer == layer;
        if (is_of_layer && (micro < 0 || task->micro == micro))
            break;
    }
    return from;
}

static struct list *list_after(const char *list, const char *options)
{
    struct ran ran = expect_yard(EXIT_OK, "", "plan --list %s %s --after swap --print-list", list, options);
    return read_list(ran.stdout_path);
}

TEST(layers_leave_behind_the_next_forward)
{
    struct list *list = list_after("data/steps/swap.txt", "--swap layer");
    for (int k = 0; k < 5; k++) { /* layer k's copies stand right after the next forward, right before its backward */
        assert_int_equal(position_of(list, "swap.out", k, -1, 0), position_of(list, "forward", k + 1, -1, 0) + 1);
        assert_int_equal(position_of(list, "swap.in", k, -1, 0), position_of(list, "backward", k + 1, -1, 0) - 1);
    }
    assert_int_equal(position_of(list, "swap.out", 5, -1, 0), list->n);
    free_list_and_machine(list);
}

TEST(micro_batches_leave_in_time_for_their_backward)
{
    int n_out = 0;
    struct list *list = list_after("data/steps/1f1b.txt", "--swap microbatch");
    /* Stage 0 runs F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5. */
    assert_above(position_of(list, "swap.out", 0, 0, 0), position_of(list, "forward", 0, 1, 0));
    assert_below(position_of(list, "swap.out", 0, 0, 0), position_of(list, "forward", 0, 2, 0));
    assert_below(position_of(list, "swap.in", 0, 1, 0), position_of(list, "backward", 0, 0, 0));
    assert_above(position_of(list, "swap.in", 0, 1, 0), position_of(list, "forward", 0, 3, 0));
    assert_above(position_of(list, "swap.in", 0, 3, 0), position_of(list, "backward", 0, 1, 0));
    assert_below(position_of(list, "swap.in", 0, 3, 0), position_of(list, "backward", 0, 2, 0));
    assert_int_equal(position_of(list, "swap.out", 3, -1, 0), list->n); /* the last stage's backward follows at once */
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->tasks[i]->name, "swap.out") == 0)
            n_out++;
    assert_int_equal(n_out, 6 + 6); /* all that stages 0 and 1 hold, however the list mixes stages */
    free_list_and_machine(list);
    expect_yard(EXIT_OK, "12 swapped, 0 made again, 768 MiB copied",
                "plan --list data/steps/1f1b.txt --swap microbatch --simulate");
    expect_yard(EXIT_OK, "pass swap declines: nothing can leave, since fewer than two other phases run between",
                "plan --model tiny --hardware data/hardware/server.txt --swap microbatch --simulate");
}

/* Bytes and time that the pass reports are those of one run.  With room for all, copies come back early: 288 MiB, in
 * the time that all data together take.  In 160 MiB, which the list's order needs, the step is longer. */
TEST(bytes_and_time_are_of_one_run)
{
    static const struct {
        const char *budget, *gain, *simulated;
    } cases[] = {
        {"1G", "gpu holds at most 288 MiB instead of 416 MiB, a step takes 38.000 ms as before",
         "holds at most 288 MiB, in list order 160 MiB, budget 1.00 GiB"},
        {"160M", "gpu holds at most 160 MiB instead of 416 MiB, a step takes 38.389 ms instead of 38.000 ms",
         "holds at most 160 MiB, budget 160 MiB"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = read_text("data/steps/swap.txt"), *at = strstr(text, "memory=1G");
        assert_non_null(at);
        const char *list = write_text("room.txt", "%.*smemory=%s%s", (int)(at - text), text, cases[i].budget, at + 9);
        struct ran ran = run_yard("plan --list %s --swap layer --simulate", list);
        if (ran.code != EXIT_OK || !strstr(ran.out, cases[i].gain) || !strstr(ran.out, cases[i].simulated))
            test_failed("memory=%s: %s%s\n", cases[i].budget, ran.out, ran.err);
        free(text);
    }
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

#define TINY "--model tiny --seq-len 16 --gemm own "

static struct state train_within(const char *words, bool serial, size_t budget)
{
    struct settings *settings = parse_words(words);
    settings->serial = serial;
    struct trainer *trainer = open_training(settings, LIST_TRAIN | LIST_EVAL);
    run_steps(trainer, 1, 3);
    assert_true(isfinite(evaluate(trainer, 1, NULL, NULL)));
    check_training(trainer, 3);
    struct state all = read_state(trainer, 0);
    for (int d = 0; d < trainer->machine->n_devices; d++) {
        const struct device *device = &trainer->machine->devices[d];
        size_t sum = 0;
        for (size_t i = 0; i < device->n_slabs; i++)
            sum += device->slabs[i].bytes + guard_bytes(device);
        if (budget && sum > budget)
            test_failed("%s: %zu bytes were allocated\n", words, sum);
    }
    free_trainer(trainer);
    return all;
}

struct budgets {  /* bytes of a device */
    size_t all;   /* with which nothing leaves */
    size_t least; /* which a refusal says is enough */
};

static struct budgets ask_budgets(const char *words)
{
    struct budgets budgets = {0};
    struct trainer *trainer = plan_training(parse_words(words), LIST_TRAIN | LIST_EVAL | OPEN_DATA);
    struct pass_reports reports = reports_of(trainer);
    json_t *peaks = json_object_get(reports.items[reports.n - 1].fields, "peak_bytes"), *peak;
    const char *name;
    json_object_foreach(peaks, name, peak)
    {
        if (strcmp(name, "host") != 0)
            budgets.all = MAX(budgets.all, (size_t)number_at(peak, "before"));
    }
    budgets.least = budget_in(expect_yard(EXIT_USAGE, "", "plan %s --device-mem 1", words).err);
    free_trainer(trainer);
    return budgets;
}

static void expect_same_training(const char *mesh, const char *swap, double share, int64_t delays)
{
    char *plain = lasting(TINY "%s", mesh), *asked = lasting("%s %s", plain, swap);
    struct budgets budgets = ask_budgets(asked);
    size_t chosen = budgets.least + (size_t)(share * (double)(budgets.all - budgets.least));
    char *words = lasting("%s --device-mem %zu --delay-seed %lld", asked, chosen, (long long)delays);
    struct state expected = train_within(plain, true, 0), found = train_within(words, false, chosen);
    expect_same_bits(words, found.values, expected.values, expected.n);
    free(found.values);
    free(expected.values);
}

/* Where no file says how long tasks take, a short trial does: the plan knows its stall. */
TEST(a_trial_gives_a_swap_plan_its_times)
{
    need_own_products();
    expect_yard(EXIT_OK, "stall", "train --steps 1 --sample-tokens 0 " TINY AUTO " --device-mem %zu",
                ask_budgets(TINY AUTO).least);
}

#define PIPELINE "-d 0:0x2 --mesh pp=2 --micro-batch 1"

TEST(training_in_less_memory_has_the_same_bits)
{
    static const struct {
        const char *mesh, *swap;
        double share;       /* of the bytes between the least budget and one with which nothing leaves */
        int64_t delay_seed; /* 0: nothing is delayed */
    } trainings[] = {
        {"-d 0:0", AUTO " --swap-what activations", 0, 0},
        {"-d 0:0 --micro-batch 2", AUTO " --swap-what " ALL_CLASSES, 0, 2}, /* no room for state */
        {"-d 0:0 --clip 0", STREAMED, 0, 3},
        {PIPELINE, AUTO " --swap-what activations", 0.5, 1},
        {"-d 0:0x2 --zero 2", AUTO " --swap-what parameters,optimizer", 0.25, 4},
    };
    need_own_products();
    for (size_t i = 0; i < COUNT(trainings); i++)
        expect_same_training(trainings[i].mesh, trainings[i].swap, trainings[i].share, trainings[i].delay_seed);
}

/* YARD_CASES=N: so many meshes, orders, classes and budgets at random. */
LONG_TEST(drawn_trainings_in_less_memory_have_the_same_bits)
{
    static const char *const meshes[] = {"-d 0:0",
                                         PIPELINE,
                                         "-d 0:0 --micro-batch 1",
                                         "-d 0:0x2",
                                         "-d 0:0x2 --zero 2",
                                         PIPELINE " --pipeline gpipe",
                                         "-d 0:0x2 --mesh tp=2",
                                         "-d 0:0x4 --mesh dp=2,pp=2 --micro-batch 1"};
    static const char *const swaps[] = {STREAMED, AUTO " --swap-what activations", AUTO " --swap-what optimizer",
                                        AUTO " --swap-what parameters,optimizer",
                                        AUTO " --swap-what activations,gradients"};
    need_own_products();
    for (int i = 0; i < number_from("YARD_CASES", 3); i++) {
        struct draws draws = {.seed = 77, .row = (uint32_t)i};
        const char *mesh = meshes[draw_below(&draws, COUNT(meshes))];
        const char *swap = swaps[draw_below(&draws, COUNT(swaps))];
        double share = (double)draw_below(&draws, 100) / 100;
        expect_same_training(mesh, swap, share, 1 + i);
    }
}

/* test_swap.c - swapping: which tensors leave the device, and when they are back.
 *
 * It tests src/techniques/swap.  A plan is as good as the best of all plans there are; with more memory it is not
 * slower; what is planned fits its budget to the byte and changes no bit of the training.  A tensor that is back too
 * late, one that leaves while it is read, and a budget that is named but not enough are found.
 *
 * To see it fail: in swap.c, find no gap that is shorter than six tasks: end - begin > 5 in lies_idle().
 *
 * All plans of small lists are tried one by one.  The two fixed orders were worked out by hand.
 *
 *     SWAP_CASES=N SWAP_RUNS=N build/tests/test_swap      laws on N random lists, N random trainings
 */
#include "techniques/swap/swap.h"
#include "tests/support/support_paper.h"
#include "tools/lists/lists.h"

#include <math.h>

static int number_from(const char *variable, int few) { return getenv(variable) ? atoi(getenv(variable)) : few; }

static double draw(int seed, int k) { return random_uniform((uint64_t)seed, STREAM_TEST, 0, (uint64_t)k); }

/* A random step file of tests/data/lists.awk, with so many layers; the caller frees it. */
static char *random_list(const char *kind, int seed, int layers)
{
    char *command = lasting("awk -v kind=%s -v seed=%d -v layers=%d -f tests/data/lists.awk", kind, seed, layers);
    char *text = NULL, line[256];
    FILE *file = popen(command, "r");
    while (file && fgets(line, sizeof line, file))
        append_text(&text, "%s", line);
    assert_true(text);
    assert_int_equal(pclose(file), 0);
    return text;
}

/* ---- all plans --------------------------------------------------------------------------------------------------- */

struct plan { /* what is done about one layer's data, the tensor of that number */
    enum action action;
    int out, in; /* places in the list with what is made again: right after one task, right before another */
};

/* The period of a chain of n layers, of which each is treated as the plan says.  The backward of layer k is task
 * 2n - 1 - k.  INFINITY: it does not fit.  between: the copies of layer i may lie between these two places. */
static double period_of(struct list *list, const struct plan *plan, int n, int i, int between[2])
{
    struct pool *pool = list->pool;
    struct device *gpu = pool->machine->device;
    struct uses *before = find_uses(list->task, list->n, pool);
    int from[16];
    size_t n_tasks, n_uses;
    for (int k = 0; k < n; k++)
        from[k] = plan[k].action == REMAKE ? 2 * n - 1 - k : NONE;
    struct edit *edit = open_edit(list);
    free(remake(edit, pool, before, from, REMAKE_AT_READER));
    struct task **line = tasks_in_order(list, &n_tasks);
    struct uses *uses = find_uses(line, n_tasks, pool);
    for (int k = 0; k < n; k++) {
        struct tensor *tensor = pool->tensors[k];
        const struct use *use = uses_of(uses, tensor, &n_uses);
        int last = k + 1 < n ? 1 : 0; /* the tensor is written by the forward of layer k, and read by that of k + 1 */
        int begin = use[last].position;
        int end = begin; /* made again, it has no later use: its twin has */
        if (n_uses > (size_t)last + 1)
            end = use[last + 1].position;
        if (k == i) {
            between[0] = begin;
            between[1] = end;
        }
        if (plan[k].action != SWAP)
            continue;
        struct tensor *there = tensor_like(pool, pool->machine->host, tensor), *back = tensor_like(pool, gpu, tensor);
        switch_readers(edit, uses, tensor, end, tensor, back);
        insert_before(edit, line[plan[k].in]);
        add_copy(list, gpu->lane[LANE_UPLOAD], "swap.in", back, there);
        insert_behind(edit, line[plan[k].out]);
        add_copy(list, gpu->lane[LANE_DOWNLOAD], "swap.out", there, tensor);
    }
    struct forecast forecast = try_step(list, NULL);
    double period = forecast.excess_bytes > 0 ? INFINITY : forecast.period;
    free_forecast(&forecast);
    undo(edit);
    free(line);
    free_uses(uses);
    free_uses(before);
    return period;
}

/* The shortest period of all that may be done about layers 0 .. i - 1, with all places of all copies. */
static double best_of_all(struct list *list, struct plan *plan, int n, int i)
{
    int between[2];
    double best = INFINITY;
    if (i == 0)
        return period_of(list, plan, n, NONE, NULL);
    i--;
    plan[i].action = REMAKE;
    best = fmin(best, best_of_all(list, plan, n, i));
    plan[i].action = KEEP;
    best = fmin(best, best_of_all(list, plan, n, i));
    period_of(list, plan, n, i, between);
    plan[i].action = SWAP;
    for (plan[i].out = between[0]; plan[i].out < between[1]; plan[i].out++)
        for (plan[i].in = plan[i].out + 1; plan[i].in <= between[1]; plan[i].in++)
            best = fmin(best, best_of_all(list, plan, n, i));
    plan[i].action = KEEP;
    return best;
}

/* What --swap auto makes of a list, of these classes.  The list must fit. */
static double planned_period(struct list *list, unsigned classes)
{
    struct values *values = number_values(list);
    size_t n;
    swap_options = (struct swap_options){SWAP_AUTO, classes};
    struct pass_report *report = run_passes(list, NULL, &(struct run_facts){0}, NULL, &n);
    swap_options.mode = SWAP_OFF;
    double period = number_at(report[0].fields, "period_ms") / 1e3;
    finish_list(list);
    expect_sound("the list", list, values);
    free_reports(report, n);
    free_values(values);
    return period;
}

TEST(as_good_as_all_plans)
{
    enum { N = 4 };
    int cases = number_from("SWAP_CASES", 8);
    int equal = 0;
    int possible = 0;
    for (int i = 0; i < cases; i++) {
        char *text = random_list("chain", i + 1, N);
        struct list *list = list_of("%s", text);
        double best = best_of_all(list, (struct plan[N]){{KEEP, 0, 0}}, N, N);
        double found = isfinite(best) ? planned_period(list, 1u << MEM_ACTIVATIONS) : INFINITY;
        if (isfinite(best) && (found > best * 1.02 || found < best * (1 - 1e-9)))
            test_failed("seed %d: %g s, the best is %g s\n%s", i + 1, found, best, text);
        possible += isfinite(best);
        equal += isfinite(best) && found < best * (1 + 1e-9);
        free_list_and_machine(list);
        free(text);
    }
    assert_true(possible * 2 > cases);
    assert_true(equal * 100 >= possible * 90);
}

/* ---- more room, and more that may move --------------------------------------------------------------------------- */

#define MIB ((size_t)1 << 20)
#define ALL_CLASSES "activations,gradients,optimizer,parameters"

/* The pass's report on a list. */
static json_t *plan_file(const char *text, const char *options)
{
    json_t *plan =
               yard_json("plan --list %s %s --simulate --verify --json", write_text("plan.txt", "%s", text), options),
           *pass = json_at(plan, "passes.0");
    expect_number("period", number_at(pass, "period_ms"), number_at(plan, "simulation.step_ms"));
    return pass;
}

/* The same list, which begins with its device, on one of so many bytes. */
static char *list_within(size_t bytes, const char *text)
{
    return lasting("device gpu memory=%zu\n%s", bytes, strchr(text, '\n') + 1);
}

static double period_within(size_t bytes, const char *text, const char *what)
{
    return number_at(plan_file(list_within(bytes, text), lasting("--swap auto --swap-what %s", what)), "period_ms");
}

static size_t budget_in(const char *refusal)
{
    const char *works = strstr(refusal, " bytes (");
    if (!works || !strstr(works, " work: use a larger "))
        test_failed("no budget that works in: %s\n", refusal);
    while (works[-1] != ' ')
        works--;
    return strtoull(works, NULL, 10);
}

/* What a refusal says is enough; it also says `part`. */
static size_t refused_budget(const char *part, const char *text, const char *options)
{
    struct ran ran = expect_yard(EXIT_USAGE, part, "plan --list %s %s", write_text("plan.txt", "%s", text), options);
    return budget_in(ran.err);
}

/* What --swap auto comes to, once where activations may leave, and once where further classes may, too. */
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
    classes->longer += now > before * (1 + 1e-9);
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
LAW(laws_of_budgets)
{
    static const char *const other[] = {"optimizer", "optimizer,parameters", "gradients", "parameters"};
    const struct cases some = cases_of(1, number_from("SWAP_CASES", 5));
    const int layers = getenv("SWAP_CASES") ? 0 : 3;
    int longer = 0, tries = 0;
    for (int i = some.begin; i < some.end; i++) {
        struct more_classes classes = {
            .text = random_list("training", i + 1, layers),
            .seed = i + 1,
            .further = lasting("activations,%s", other[i % 4]),
        };
        try_budgets(&classes, "activations", draw(i, 0));
        try_budgets(&classes, classes.further, draw(i, 1));
        tries += classes.tries;
        longer += classes.longer;
        free(classes.text);
    }
    if (longer * 100 > tries * 5)
        test_failed("%d of %d steps are longer than with fewer bytes\n", longer, tries);
}

/* More memory makes no step longer where overlap chooses first, and swap then makes room: a plan of updates that fits
 * would else stand in the way of a better one that swap makes fit. */
TEST(more_memory_with_overlap)
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

#define STREAMED "--overlap all-cpu --swap auto --swap-what activations,gradients,parameters"

/* So many layers of one size, which depends on the seed, as does all else. */
static char *layers_of(int seed, int layers)
{
    const int weight = 4096 * (1 + (int)(draw(seed, 0) * 99)), activation = 4096 * (1 + (int)(draw(seed, 1) * 20));
    char *text =
        lasting("device gpu memory=1G\nlink gpu up %ge9\nlink gpu down %ge9\ntensor input gpu 4096 work keep\n",
                1 + 4 * draw(seed, 2), 1 + 4 * draw(seed, 3));
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
                       text, i, i, i, i, i, 0.1 + 0.5 * draw(seed, 4), i, i, i, i, i);
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
        n += text_at(move, "tensor")[0] == first_letter && !json_is_null(json_object_get(move, "in_start_ms"));
    }
    return n;
}

/* Where the host updates all layers, as many as one likes train in the memory that one layer takes; and the host has
 * their parameters once, however many of them are on the device too.  They come up for their readers and no more. */
LAW(any_depth_in_the_same_memory)
{
    const struct cases some = cases_of(1, number_from("SWAP_CASES", 2));
    for (int i = some.begin; i < some.end; i++) {
        const int layers = 4 + (int)(4 * draw(i, 5));
        const char *options = lasting(STREAMED " --clip %d", i % 2);
        char *shallow = layers_of(i, 3), *deep = layers_of(i, layers);
        size_t least = refused_budget("", list_within(1, deep), options);
        if (least != refused_budget("", list_within(1, shallow), options))
            test_failed("seed %d: %d layers take %zu bytes, and not as 3 do\n", i, layers, least);
        for (int k = 0; k < 2; k++) {
            size_t budget = least + (size_t)((double)least * k * draw(i, 6 + k));
            json_t *plan = yard_json("plan --list %s %s --simulate --verify --json",
                                     write_text("plan.txt", "%s", list_within(budget, deep)), options);
            assert_true(number_at(plan, "memory.0.peak.train.together") <= (double)budget);
            size_t weight = 4096 * (1 + (size_t)(draw(i, 0) * 99));
            expect_number("the host's parameters", number_at(plan, "memory.1.peak.train.parameters"),
                          (double)(weight * (size_t)layers));
            if (count_returns(plan, 'w') > 2 * layers)
                test_failed("seed %d: %d copies up for %d readers\n", i, count_returns(plan, 'w'), 2 * layers);
        }
    }
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

/* data/steps/swap.txt on a device of so many bytes, with the lines of `more` before its own; a link there replaces its.
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

#define AUTO "--swap auto"

TEST(budgets_around_the_peak)
{
    json_t *json = plan_six(416 * MIB, "", AUTO);
    static const char *const fields[] = {"reason", "moves", "bare_ms", "period_ms", "stall_ms", "peak_bytes"};
    assert_true(json_is_true(json_object_get(json, "declined")));
    for (size_t i = 0; i < COUNT(fields); i++)
        assert_non_null(json_object_get(json, fields[i]));
    assert_int_equal(json_array_size(json_object_get(json, "moves")), 0);
    json = plan_six(416 * MIB - 1, "", AUTO);
    assert_int_equal(json_array_size(json_object_get(json, "moves")), 1);
    expect_number("period", number_at(json, "period_ms"), 38);
    json = plan_six(144 * MIB, "", AUTO); /* what a forward needs: no plan needs less */
    assert_int_equal(number_at(json, "peak_bytes.gpu.after"), 144 * MIB);
    assert_int_equal(refused_budget("task forward (layer 1", six_layers(144 * MIB - 1, ""), AUTO), 144 * MIB);
    /* With --recompute some is made again when it is needed, so less than the whole peak is enough. */
    assert_true(refused_budget("", six_layers(144 * MIB, ""), "--recompute auto") < 416 * MIB);
}

/* The norm's part reads the gradient again after `big`, which needs its bytes.  It can come before `big`, and then
 * nothing is copied, unless it reads what is made behind `big`; then the gradient is away meanwhile. */
TEST(a_gap_that_cannot_close_is_swapped)
{
    static const char *const made[] = {"", ",k"};
    for (int i = 0; i < 2; i++) {
        const char *text = lasting("device gpu memory=1G\nlink gpu up 1e9\nlink gpu down 1e9\n"
                                   "tensor w gpu 4096 parameters\ntensor g gpu 1M gradients keep\n"
                                   "tensor big gpu 1M work\ntensor k gpu 4096 work\ntensor n gpu 4096 work\n"
                                   "task backward gpu.compute 1ms role=backward reads=w writes=g\n"
                                   "task fill gpu.compute 1ms writes=big\n"
                                   "task shrink gpu.compute 1ms reads=big writes=k\n"
                                   "task part gpu.compute 1ms role=norm reads=g%s writes=n\n"
                                   "task update gpu.compute 1ms role=update reads=n,w writes=w\n",
                                   made[i]);
        const size_t least = refused_budget("", list_within(1, text), AUTO " --swap-what gradients");
        json_t *json = plan_file(list_within(least, text), AUTO " --swap-what gradients");
        assert_true(least < 2 * MIB);
        expect_number("copies", number_at(json, "period_ms") - number_at(json, "bare_ms"), i * 2 * 1.048576);
    }
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

/* Out after its maker, in before its reader, and no copy later than it is needed: there is time for all. */
TEST(transfers_hide)
{
    json_t *json = plan_six(240 * MIB, "", AUTO), *move;
    size_t i;
    expect_number("period", number_at(json, "period_ms"), 38);
    assert_true(number_at(json, "stall_ms") < 1e-9);
    assert_int_equal(json_array_size(json_object_get(json, "moves")), 3);
    json_array_foreach(json_object_get(json, "moves"), i, move)
    {
        int layer = (int)number_at(move, "layer");
        assert_true(layer < 3); /* what is needed last leaves */
        assert_string_equal(text_at(move, "how"), "swap");
        /* After 6 forwards of 2 ms and the backwards, of 4 ms, of the layers above. */
        expect_number("needed", number_at(move, "needed_ms"), 12 + 4 * (5 - layer));
        assert_true(number_at(move, "out_start_ms") >= 2 * (layer + 1) - 1e-9);
        assert_true(number_at(move, "in_end_ms") <= number_at(move, "needed_ms") + 1e-9);
        /* It starts to come back at most two backwards, of 4 ms each, before it is needed. */
        assert_true(number_at(move, "in_start_ms") >= number_at(move, "needed_ms") - 8 - 1e-9);
    }
}

/* ---- all plans of a small pipeline ------------------------------------------------------------------------------- */

/* Three micro-batches.  `front` computes 2 ms forward and 4 ms backward, and the `next` stage 1 and 4; only the front's
 * memory is short.  A copy of an activation takes 0.34 ms, so a round trip is 0.11 of a layer's 6 ms.
 *
 *     front   F0 F1 F2   B0  B1  B2
 *     next       F0 B0 F1 B1 F2 B2
 *
 * An order of the list says where sends and answers stand among the front's tasks.  A choice says, for each activation,
 * that it is kept, made again, or swapped, and then where it leaves and comes back. */
enum { MICRO = 3, ORDERS = 6 * 6 * 6, ACTIONS = 8, CHOICES = ACTIONS * ACTIONS * ACTIONS };
#define LEAST_FREE (88 * MIB)

static void append_front(char **text, int task)
{
    const int micro = task % MICRO;
    if (task < MICRO)
        append_text(text, "task forward front.compute 2ms micro=%d role=forward reads=w writes=a%d,out%d\n", micro,
                    micro, micro);
    else
        append_text(text, "task backward front.compute 4ms micro=%d role=backward reads=w,a%d,back%d%s writes=g\n",
                    micro, micro, micro, micro ? ",g" : "");
}

static void append_answer(char **text, int i)
{
    append_text(text, "task forward next.compute 1ms layer=1 micro=%d role=forward reads=in%d writes=b%d\n", i, i, i);
    append_text(text, "task backward next.compute 4ms layer=1 micro=%d role=backward reads=b%d writes=d%d\n", i, i, i);
    append_text(text, "copy send back%d d%d layer=1 micro=%d role=send\n", i, i, i);
}

/* The list in which micro-batch i is sent right after the front's task out[i], numbered as they run, and its answer
 * stands after task back[i].  The caller frees it. */
static char *two_stages(size_t memory, const int *out, const int *back)
{
    char *text = format_string("device front memory=%zu share\ndevice next memory=1G\n", memory);
    append_text(&text, "link front up 1e11\nlink front down 1e11\nlink next up 1e11\nlink next down 1e11\n");
    append_text(&text, "tensor w front 16M parameters\ntensor g front 16M gradients\n");
    for (int i = 0; i < MICRO; i++) {
        append_text(&text, "tensor a%d front 32M activations\n", i);
        append_text(&text, "tensor out%d front 8M activations\ntensor back%d front 8M activations\n", i, i);
        append_text(&text, "tensor in%d next 8M activations\ntensor b%d next 8M activations\n", i, i);
        append_text(&text, "tensor d%d next 8M activations\n", i);
    }
    for (int task = 0; task < 2 * MICRO; task++) {
        append_front(&text, task);
        for (int i = 0; i < MICRO; i++)
            if (out[i] == task)
                append_text(&text, "copy send in%d out%d micro=%d role=send\n", i, i, i);
        for (int i = 0; i < MICRO; i++)
            if (back[i] == task)
                append_answer(&text, i);
    }
    append_text(&text, "task update front.compute 0 role=update reads=g,w writes=w\n");
    return text;
}

/* Order k of all that data allow: a send after its forward, an answer after the send and before its backward. */
static void order_of_sends(int k, int *out, int *back)
{
    static const int sent[] = {0, 0, 0, 1, 1, 2}, answered[] = {0, 1, 2, 1, 2, 2};
    for (int i = 0; i < MICRO; i++) {
        out[i] = i + sent[k % 6];
        back[i] = i + answered[k % 6];
        k /= 6;
    }
}

/* Activation i leaves right after the front's task i + from, and comes back right before task i + to. */
static void swap_in_choice(struct edit *edit, struct list *list, const struct uses *uses, struct task *const *front,
                           int i, int from, int to)
{
    struct tensor *tensor = front[i]->access[1].tensor;
    struct tensor *there = tensor_like(list->pool, list->pool->machine->host, tensor);
    struct tensor *back = tensor_like(list->pool, tensor->device, tensor);
    switch_readers(edit, uses, tensor, (int)front[i]->index + 1, tensor, back);
    insert_before(edit, front[i + to]);
    add_copy_for(list, "swap.in", back, there, FOR_SWAP);
    insert_behind(edit, front[i + from]);
    add_copy_for(list, "swap.out", there, tensor, FOR_SWAP);
}

/* Carries out one half of a choice: what is made again, or else what is swapped. */
static void apply_choice(struct edit *edit, struct list *list, const struct uses *uses, struct task *const *front,
                         int choice, bool again)
{
    static const int leaves_after[] = {0, 0, 0, 1, 1, 2}, comes_before[] = {1, 2, 3, 2, 3, 3};
    int from[64];
    memset(from, NONE, sizeof from);
    for (int i = MICRO; i-- > 0;) {
        int action = choice % ACTIONS;
        choice /= ACTIONS;
        if (action == 1)
            from[front[i]->access[1].tensor->id] = (int)front[MICRO + i]->index;
        else if (action > 1 && !again)
            swap_in_choice(edit, list, uses, front, i, leaves_after[action - 2], comes_before[action - 2]);
    }
    if (again)
        free(remake(edit, list->pool, uses, from, REMAKE_AT_READER));
}

/* The front's bytes, if fewer than `least` are enough for a step of that period; else `least`.  repeats_last: what is
 * made again is put in last, so it comes after what is fetched before the same task. */
static size_t bytes_if_free(struct list *list, const struct uses *uses, struct task *const *front, int choice,
                            bool repeats_last, double period, size_t least)
{
    struct edit *edit = open_edit(list);
    apply_choice(edit, list, uses, front, choice, !repeats_last);
    apply_choice(edit, list, uses, front, choice, repeats_last);
    list->pool->machine->device[0].budget = least - 1;
    struct forecast forecast = try_list(list, NULL, 0, NULL, NULL);
    if (forecast.excess_bytes == 0 && forecast.period < period * (1 + 1e-9))
        least = forecast.needed_bytes[0];
    free_forecast(&forecast);
    undo(edit);
    return least;
}

/* The same for all choices in one order of the list. */
static size_t least_of_choices(struct list *list, double period, size_t least)
{
    struct uses *uses = find_uses(list->task, list->n, list->pool);
    struct task *front[2 * MICRO + 1]; /* the last one is the update */
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->task[i]->lane == list->pool->machine->device[0].lane[LANE_COMPUTE]) {
            front[n] = list->task[i];
            n++;
        }
    for (int choice = 0; choice < CHOICES; choice++)
        for (int last = 0; last < 2; last++)
            least = bytes_if_free(list, uses, front, choice, last, period, least);
    free_uses(uses);
    return least;
}

/* What is sent and received stays on the device here.  No such plan is free in fewer than 88 MiB, though copies take a
 * ninth of the time: not the link decides, but the bytes that must be there at once.  The planner's plan is as good,
 * although in its list all sends stand as early as data allow. */
TEST(least_budget_of_a_pipeline)
{
    static const int early[MICRO] = {0, 1, 2};
    char *text = two_stages((size_t)1 << 30, early, early);
    struct list *list = list_of("%s", text);
    struct forecast forecast = try_data(list, NULL);
    size_t least = LEAST_FREE + 1;
    for (int order = 0; order < ORDERS; order++) {
        int out[MICRO], back[MICRO];
        order_of_sends(order, out, back);
        char *other = two_stages((size_t)1 << 30, out, back);
        struct list *in_order = list_of("%s", other);
        least = least_of_choices(in_order, forecast.period, least);
        free_list_and_machine(in_order);
        free(other);
    }
    if (least != LEAST_FREE)
        test_failed("the least budget without a stall is %zu bytes, expected %zu\n", least, LEAST_FREE);
    free(text);
    text = two_stages(LEAST_FREE, early, early);
    expect_number("period", number_at(plan_file(text, AUTO), "period_ms"), forecast.period * 1e3);
    free(text);
    text = two_stages(LEAST_FREE - 1, early, early);
    assert_true(number_at(plan_file(text, AUTO), "period_ms") > forecast.period * 1e3 * (1 + 1e-9));
    free(text);
    free_forecast(&forecast);
    free_list_and_machine(list);
}

/* What comes back is needed when the first task that reads it starts, a repeat perhaps; returns how
 * many such there are. */
static size_t expect_needed(struct list *list)
{
    size_t n, i, repeats = 0;
    swap_options = (struct swap_options){SWAP_AUTO, 1u << MEM_ACTIVATIONS};
    struct pass_report *report = run_passes(list, NULL, &(struct run_facts){0}, NULL, &n);
    swap_options.mode = SWAP_OFF;
    struct forecast forecast = try_step(list, NULL);
    json_t *move;
    json_array_foreach(json_object_get(report[0].fields, "moves"), i, move)
    {
        for (size_t k = 0; k < list->n; k++) {
            const struct task *task = list->task[k];
            size_t reader = k + 1;
            if (strcmp(task->name, "swap.in") != 0 ||
                strcmp(task->access[0].tensor->name, text_at(move, "tensor")) != 0)
                continue;
            while (!touches_bytes(list->task[reader], task->access[0].tensor, ACCESS_READ))
                reader++;
            expect_number("needed", number_at(move, "needed_ms") - number_at(move, "in_end_ms"),
                          1e3 * (forecast.span[reader].start - forecast.span[k].end));
            repeats += list->task[reader]->role == ROLE_FORWARD;
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
    assert_true(expect_needed(list_of("%.*slink gpu up 20e9\nlink gpu down 20e9\n%s", (int)(rest - six), six, rest)) >
                0);
    for (int i = 0; i < number_from("SWAP_CASES", 4); i++) {
        char *text = random_list("chain", i + 1, 5);
        expect_needed(list_of("%s", text));
        free(text);
    }
}

/* A step starts with its first task.  Here that is long before the step before has ended. */
TEST(times_count_from_the_first_task)
{
    static const char *const times[] = {"out_start_ms", "out_end_ms", "in_start_ms", "in_end_ms", "needed_ms"};
    json_t *plan = yard_json("plan --layers 5 --heads 4 --channels 128 --seq-len 128 --batch 2 --micro-batch 1 "
                             "--clip 0 --mesh pp=2 --hardware data/hardware/server.txt --swap microbatch --swap-what "
                             "gradients,optimizer,parameters,activations --json"),
           *move;
    size_t i;
    json_array_foreach(json_at(plan, "passes.0.moves"), i, move)
    {
        for (size_t k = 0; k < COUNT(times); k++)
            assert_true(json_is_null(json_object_get(move, times[k])) || number_at(move, times[k]) >= 0);
        if (!json_is_null(json_object_get(move, "in_end_ms")))
            assert_true(number_at(move, "in_end_ms") <= number_at(move, "needed_ms") + 1e-9);
    }
    assert_true(i > 0);
}

/* On a host without room all is made again, as with --recompute auto. */
TEST(the_hosts_memory_counts)
{
    json_t *json = plan_six(240 * MIB, "device host memory=64M\n", AUTO), *move;
    size_t i;
    assert_true(number_at(json, "peak_bytes.host.after") <= 64 * MIB);
    for (int k = 0; k < 2; k++) {
        json = plan_six(240 * MIB, k ? "" : "device host memory=1\n", k ? "--recompute auto" : AUTO);
        json_array_foreach(json_object_get(json, "moves"), i, move)
        {
            assert_string_equal(text_at(move, "how"), "recompute");
        }
        assert_true(i > 0);
        assert_true(number_at(json, "stall_ms") > 1);
    }
}

/* A copy takes the link's latency and its bytes' time; one more lane is used only where the link has one. */
TEST(lanes_and_latency)
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

/* Accepted budgets hold to the end, as do those that a refusal names, on all devices, for random lists and meshes. */
LAW(named_budgets_work)
{
    static const char *const how[] = {"--recompute auto", AUTO, "--swap layer", "--swap microbatch"};
    static const char *const meshes[] = {"dp=2 --zero 3", "pp=2 --micro-batch 1", "dp=2,pp=2 --zero 3 --micro-batch 1",
                                         "dp=3 --zero 3 --batch 6"};
    const struct cases some = cases_of(4, number_from("SWAP_CASES", 12));
    size_t refused = 0;
    for (int i = some.begin; i < some.end; i++) {
        char *text = random_list("training", i + 1, 3), *options = lasting("%s", how[(size_t)(draw(i, 0) * 4)]);
        size_t budget = (size_t)(draw(i, 1) * (i % 3 ? 6e5 : 2e5));
        char *model = lasting("plan --model tiny --layers %d --hardware data/hardware/server.txt --mesh %s %s",
                              2 + i % 2, meshes[(size_t)(draw(i, 2) * 4)], options);
        struct ran ran = {.code = EXIT_USAGE};
        for (int attempt = 0; attempt < 2 && ran.code != EXIT_OK; attempt++) {
            ran = i % 3
                      ? run_yard("%s --device-mem %zu", model, budget)
                      : run_yard("plan --list %s %s", write_text("plan.txt", "%s", list_within(budget, text)), options);
            budget = ran.code == EXIT_OK ? budget : budget_in(ran.err);
            refused += ran.code != EXIT_OK;
            if (attempt && ran.code != EXIT_OK)
                test_failed("seed %d, %s, a budget that was named: %s\n", i + 1, model, ran.err);
        }
        free(text);
    }
    assert_true(refused > 0);
}

/* What --snapshot adds later is in the budgets that the passes before it name: buffers on device and host. */
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

/* ---- the two fixed orders ---------------------------------------------------------------------------------------- */

static size_t position_of(const struct list *list, const char *name, int layer, int micro, size_t from)
{
    while (from < list->n && (strcmp(list->task[from]->name, name) != 0 || list->task[from]->layer != layer ||
                              (micro >= 0 && list->task[from]->micro != micro)))
        from++;
    return from;
}

static struct list *list_after(const char *list, const char *options)
{
    struct ran ran = expect_yard(EXIT_OK, "", "plan --list %s %s --after swap --print-list", list, options);
    return read_list(ran.stdout_path);
}

TEST(by_layer)
{
    struct list *list = list_after("data/steps/swap.txt", "--swap layer");
    for (int k = 0; k < 5; k++) { /* layer k's copies stand right after the next forward, right before its backward */
        assert_int_equal(position_of(list, "swap.out", k, -1, 0), position_of(list, "forward", k + 1, -1, 0) + 1);
        assert_int_equal(position_of(list, "swap.in", k, -1, 0), position_of(list, "backward", k + 1, -1, 0) - 1);
    }
    assert_int_equal(position_of(list, "swap.out", 5, -1, 0), list->n);
    free_list_and_machine(list);
}

TEST(by_micro_batch)
{
    int n_out = 0;
    struct list *list = list_after("data/steps/1f1b.txt", "--swap microbatch");
    /* Stage 0 runs F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5. */
    assert_true(position_of(list, "swap.out", 0, 0, 0) > position_of(list, "forward", 0, 1, 0));
    assert_true(position_of(list, "swap.out", 0, 0, 0) < position_of(list, "forward", 0, 2, 0));
    assert_true(position_of(list, "swap.in", 0, 1, 0) < position_of(list, "backward", 0, 0, 0));
    assert_true(position_of(list, "swap.in", 0, 1, 0) > position_of(list, "forward", 0, 3, 0));
    assert_true(position_of(list, "swap.in", 0, 3, 0) > position_of(list, "backward", 0, 1, 0));
    assert_true(position_of(list, "swap.in", 0, 3, 0) < position_of(list, "backward", 0, 2, 0));
    assert_int_equal(position_of(list, "swap.out", 3, -1, 0), list->n); /* the last stage's backward follows at once */
    for (size_t i = 0; i < list->n; i++)
        n_out += strcmp(list->task[i]->name, "swap.out") == 0;
    assert_int_equal(n_out, 6 + 6); /* all that stages 0 and 1 hold, however the list mixes stages */
    free_list_and_machine(list);
    expect_yard(EXIT_OK, "12 swapped, 0 made again, 768 MiB copied",
                "plan --list data/steps/1f1b.txt --swap microbatch --simulate");
    expect_yard(EXIT_OK, "pass swap declines: nothing can leave, since fewer than two other phases run between",
                "plan --model tiny --hardware data/hardware/server.txt --swap microbatch --simulate");
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

#define TINY "--model tiny --seq-len 16 --gemm own "

static struct state train_within(const char *words, bool serial, size_t budget)
{
    struct settings *settings = settings_of(words);
    settings->serial = serial;
    struct trainer *trainer = open_training(settings, LIST_TRAIN | LIST_EVAL);
    run_steps(trainer, 1, 3);
    assert_true(isfinite(evaluate(trainer, 1, NULL, NULL)));
    check_training(trainer, 3);
    struct state all = read_state(trainer, 0);
    for (int d = 0; d < trainer->machine->n_devices; d++) {
        const struct device *device = &trainer->machine->device[d];
        size_t sum = 0;
        for (size_t i = 0; i < device->n_slabs; i++)
            sum += device->slabs[i].bytes + guard_bytes(device);
        if (budget && sum > budget)
            test_failed("%s: %zu bytes were allocated\n", words, sum);
    }
    free_trainer(trainer);
    return all;
}

/* [0] what a plan that keeps all takes, [1] what a refusal says is enough. */
static void ask_budgets(const char *words, size_t budget[2])
{
    struct trainer *trainer = new_trainer(settings_of(words), LIST_TRAIN | LIST_EVAL | OPEN_DATA | PLAN_ONLY);
    struct pass_reports reports = reports_of(trainer);
    json_t *peaks = json_object_get(reports.report[reports.n - 1].fields, "peak_bytes"), *peak;
    const char *name;
    budget[0] = 0;
    json_object_foreach(peaks, name, peak)
    {
        if (strcmp(name, "host") != 0)
            budget[0] = MAX(budget[0], (size_t)number_at(peak, "before"));
    }
    budget[1] = budget_in(expect_yard(EXIT_USAGE, "", "plan %s --device-mem 1", words).err);
    free_trainer(trainer);
}

static void expect_same_training(const char *mesh, const char *swap, double share, int64_t delays)
{
    char *plain = lasting(TINY "%s", mesh), *asked = lasting("%s %s", plain, swap);
    size_t budget[2];
    ask_budgets(asked, budget);
    size_t chosen = budget[1] + (size_t)(share * (double)(budget[0] - budget[1]));
    char *words = lasting("%s --device-mem %zu --delay-seed %lld", asked, chosen, (long long)delays);
    struct state expected = train_within(plain, true, 0), found = train_within(words, false, chosen);
    expect_same_bits(words, found.values, expected.values, expected.n);
    free(found.values);
    free(expected.values);
}

/* Where no file says how long tasks take, a short trial does: the plan knows its stall. */
TEST(a_trial_comes_first)
{
    need_own_products();
    size_t budget[2];
    ask_budgets(TINY AUTO, budget);
    expect_yard(EXIT_OK, "stall", "train --steps 1 --sample-tokens 0 " TINY AUTO " --device-mem %zu", budget[1]);
}

/* SWAP_RUNS=N: so many meshes, orders, classes and budgets at random. */
TEST(training_in_less_memory)
{
    static const char *const meshes[] = {"-d 0:0",
                                         "-d 0:0x2 --mesh pp=2 --micro-batch 1",
                                         "-d 0:0 --micro-batch 1",
                                         "-d 0:0x2",
                                         "-d 0:0x2 --zero 2",
                                         "-d 0:0x2 --mesh pp=2 --micro-batch 1 --pipeline gpipe",
                                         "-d 0:0x2 --mesh tp=2",
                                         "-d 0:0x4 --mesh dp=2,pp=2 --micro-batch 1"};
    static const char *const what[] = {"activations", "optimizer", "parameters,optimizer", "activations,gradients"};
    need_own_products();
    expect_same_training("-d 0:0 --micro-batch 2", AUTO " --swap-what " ALL_CLASSES, 0, 2); /* no room for state */
    expect_same_training("-d 0:0 --clip 0", STREAMED, 0, 3);
    for (int i = 0; i < number_from("SWAP_RUNS", 3); i++) {
        double mesh = i < 2 ? i : draw(77 + i, 0) * (double)COUNT(meshes);
        double class = i < 2 ? 0 : draw(77 + i, 1) * (double)COUNT(what), share = i < 1 ? 0 : draw(77 + i, 2);
        char *swap = draw(77 + i, 3) < 0.5 ? STREAMED : lasting(AUTO " --swap-what %s", what[(size_t) class]);
        expect_same_training(meshes[(size_t)mesh], swap, share, i);
    }
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

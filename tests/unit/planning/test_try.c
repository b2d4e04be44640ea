/* test_try.c - planning at scale, and trying a list before it is used.
 *
 * This test checks that place() and verify_list() answer on random lists what plain algorithms answer, which look at
 * all pairs; that lists of 30,000 tasks stay small in memory; and that trying a list changes nothing and predicts what
 * then happens.
 *
 * To see it fail: in forecast.c, allow twice the budget.
 */
#include "planning/pass/pass.h"
#include "planning/predict/predict.h"
#include "planning/search/search.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "trainer/train/train.h"

#include <math.h>
#include <sys/resource.h>

/* ---- scores ------------------------------------------------------------------------------------------------------ */

TEST(any_score_is_better_than_an_infinite_one)
{
    const struct score worst = {.excess_bytes = INFINITY, .period = INFINITY, .copied_bytes = INFINITY};
    const struct score impossible = {.excess_bytes = INFINITY, .period = INFINITY, .copied_bytes = 5};
    const struct score too_large = {.excess_bytes = INFINITY, .period = 7, .copied_bytes = INFINITY};
    assert_true(is_better(&impossible, &worst));
    assert_true(is_better(&too_large, &worst));
    assert_false(is_better(&worst, &impossible));
    assert_false(is_better(&worst, &worst));
}

/* ---- random lists ------------------------------------------------------------------------------------------------ */

enum { TENSORS = 60, TASKS = 200 };

/* Tasks on lanes of a device and the host, each of which writes a tensor of the device and reads one or two that are
 * written.  Tensors are used near where they begin, so that many share bytes. */
static struct list *random_step(struct paper *paper, uint64_t seed, const char *name)
{
    static const enum lane_kind kinds[] = {LANE_COMPUTE, LANE_UPLOAD, LANE_DOWNLOAD};
    struct list *list = strcmp(name, "first") == 0 ? paper->list : new_list(paper->pool, name);
    struct tensor *tensor[TENSORS];
    bool written[TENSORS] = {false};
    struct draws draws = {.seed = seed};
    for (int i = 0; i < TENSORS; i++) {
        bool persists = i % 12 == 0;
        bool is_exclusive = i % 12 == 1;
        tensor[i] = new_words(paper, paper->device, "x", 1 + (int64_t)draw_below(&draws, 2000),
                              persists ? PERSISTENT : TRANSIENT);
        tensor[i]->extra.exclusive = is_exclusive ? EXCLUSIVE_ALWAYS : EXCLUSIVE_NOT;
        written[i] = tensor[i]->persistent;
    }
    for (int i = 0; i < TASKS; i++) {
        size_t base = (size_t)i * (TENSORS - 10) / TASKS, to = base + draw_below(&draws, 10);
        size_t lane = draw_below(&draws, 4);
        struct task *task = add_host(list, lane == 3 ? paper->host->lanes[LANE_CPU] : paper->device->lanes[kinds[lane]],
                                     "t", NULL, NULL);
        for (int k = 0; k < 2; k++) {
            size_t from = base + draw_below(&draws, 10);
            if (written[from] && from != to)
                add_access(task, tensor[from], ACCESS_READ);
        }
        add_access(task, tensor[to], ACCESS_WRITE);
        written[to] = true;
    }
    return list;
}

/* ---- place() ----------------------------------------------------------------------------------------------------- */

/* Are there moments at which both tensors hold their bytes? */
static bool meet(const struct tensor *a, const struct tensor *b)
{
    return a->persistent || b->persistent ||
           (a->list == b->list && a->held_from <= b->held_until && b->held_from <= a->held_until);
}

/* The lowest address that is free of all placed tensors that t meets: slab * limit + address. */
static size_t plain_fit(struct tensor *const *placed, const size_t *at, size_t n, const struct tensor *t, size_t limit)
{
    size_t best = 0, unit = t->device->alignment;
    for (bool moved = true; moved;) {
        moved = best % limit + t->bytes > limit;
        best = moved ? round_up(best, limit) : best;
        for (size_t i = 0; i < n; i++)
            if (meet(placed[i], t) && at[i] < best + t->bytes && best < at[i] + placed[i]->bytes) {
                best = round_up(at[i] + placed[i]->bytes, unit);
                moved = true;
            }
    }
    return best;
}

static int earlier_first(const void *first, const void *second)
{
    const struct tensor *one = *(struct tensor *const *)first, *other = *(struct tensor *const *)second;
    if (one->persistent != other->persistent)
        return other->persistent - one->persistent;
    if (!one->persistent && one->held_from != other->held_from)
        return COMPARE(one->held_from, other->held_from);
    return COMPARE(one->id, other->id);
}

static int larger_first(const void *first, const void *second)
{
    const struct tensor *one = *(struct tensor *const *)first, *other = *(struct tensor *const *)second;
    bool by_size = !one->persistent && !other->persistent && one->bytes != other->bytes;
    return by_size ? COMPARE(other->bytes, one->bytes) : earlier_first(first, second);
}

/* Places the list in that order: at[] by id.  Returns the bytes of all slabs. */
static size_t place_plainly(struct tensor **list, size_t n, int (*order)(const void *, const void *), size_t *at_id)
{
    struct device *device = list[0]->device;
    size_t limit = slab_limit(device), high[64] = {0}, sum = 0, *at = allocate(n, sizeof *at);
    qsort(list, n, sizeof(struct tensor *), order);
    for (size_t i = 0; i < n; i++) {
        at[i] = plain_fit(list, at, i, list[i], limit);
        at_id[list[i]->id] = at[i];
        assert_below(at[i] / limit, COUNT(high));
        high[at[i] / limit] = MAX(high[at[i] / limit], at[i] % limit + list[i]->bytes);
    }
    for (size_t i = 0; i < COUNT(high); i++)
        sum += high[i] ? round_up(high[i], device->alignment) + guard_bytes(device) : 0;
    free(at);
    return sum;
}

/* Returns whether the second order was better. */
static bool expect_plain_addresses(const struct pool *pool, struct device *device)
{
    struct tensor **list = allocate(pool->n, sizeof *list);
    size_t n = 0;
    size_t *by_size = allocate(pool->n, sizeof *by_size);
    size_t *by_life = allocate(pool->n, sizeof *by_life);
    for (size_t i = 0; i < pool->n; i++)
        if (pool->tensors[i]->device == device && (pool->tensors[i]->persistent || pool->tensors[i]->list))
            list[n++] = pool->tensors[i];
    bool second = place_plainly(list, n, larger_first, by_size) > place_plainly(list, n, earlier_first, by_life);
    for (size_t i = 0; i < n; i++) {
        size_t found = (size_t)list[i]->slab * slab_limit(device) + list[i]->address,
               expected = (second ? by_life : by_size)[list[i]->id];
        if (found != expected)
            test_failed("tensor %zu of %zu bytes lies at %zu, expected %zu\n", list[i]->id, list[i]->bytes, found,
                        expected);
    }
    free(list);
    free(by_size);
    free(by_life);
    return second;
}

TEST(addresses_are_those_of_the_plain_algorithm)
{
    size_t second = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct paper paper = new_paper(1, &slow_speeds);
        bool has_odd_alignment = seed % 3 == 0;
        bool has_slabs = seed % 2 == 1; /* several: each has at most 24,000 bytes */
        paper.device->alignment = has_odd_alignment ? 96 : 512;
        if (has_slabs)
            paper.device->max_allocation = 24000;
        struct list *first = random_step(&paper, seed, "first");
        struct list *lists[] = {first, random_step(&paper, seed + 1000, "second")};
        for (int again = 0; again < 2; again++) { /* placed twice, and the second time nothing is left of the first */
            must(place(paper.pool, lists, 2, PLACE_TO_CHECK));
            second += expect_plain_addresses(paper.pool, paper.device);
        }
        free_list(lists[1]);
        end_paper(&paper);
    }
    assert_above(second, 0); /* each order is the better one at times */
    assert_below(second, 80);
}

struct life {
    int tasks;       /* of a list */
    int at;          /* the only one of them that touches the tensor */
    int first, last; /* those between which the tensor keeps its bytes to itself */
};

static void expect_life(struct life life)
{
    struct paper paper = new_paper(1, &slow_speeds);
    struct tensor *tensor = new_words(&paper, paper.device, "x", 512, TRANSIENT);
    tensor->extra.exclusive = EXCLUSIVE_SOME;
    for (int i = 0; i < life.tasks; i++) {
        struct task *task = add_host(paper.list, paper.device->lanes[LANE_COMPUTE], "t", NULL, NULL);
        if (i == life.at)
            add_access(task, tensor, ACCESS_WRITE);
    }
    must(place(paper.pool, &paper.list, 1, PLACE_TO_CHECK));
    assert_int_equal(tensor->held_from, life.first);
    assert_int_equal(tensor->held_until, life.last);
    end_paper(&paper);
}

/* 512 tasks before and after; in a list of more than 16 x 512 a sixteenth of it; and within the list. */
TEST(some_tensors_keep_others_away)
{
    expect_life((struct life){.tasks = 2000, .at = 700, .first = 700 - 512, .last = 700 + 512});
    expect_life((struct life){.tasks = 16000, .at = 8000, .first = 8000 - 1000, .last = 8000 + 1000});
    expect_life((struct life){.tasks = 600, .at = 300, .first = 0, .last = 599});
}

/* ---- verify_list() ----------------------------------------------------------------------------------------------- */

/* Tasks that write what persists run in every other iteration. */
static void skip_some(struct list *list)
{
    for (size_t i = 0; i < list->n; i++)
        list->tasks[i]->extra.when.every =
            list->tasks[i]->accesses[list->tasks[i]->n_accesses - 1].tensor->persistent ? 2 : 1;
}

/* before[late * 2n + early]: node `late` of two iterations starts after node `early` has ended, and no other's where
 * that is skipped. */
static bool *all_paths(const struct list *list)
{
    size_t n = list->n, nodes = 2 * n;
    bool *before = allocate(nodes * nodes, 1);
    for (size_t late = 0; late < nodes; late++)
        for (size_t early = late; early-- > 0;) {
            const struct task *task = list->tasks[late % n];
            bool direct = list->tasks[early % n]->lane == task->lane, skipped = is_conditional(list->tasks[early % n]);
            if (before[late * nodes + early] && !skipped)
                continue;
            for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
                direct |= edge->needs_wait && edge->producer == early % n && edge->previous == (early / n < late / n);
            if (!direct)
                continue;
            before[late * nodes + early] = true;
            for (size_t third = 0; third < nodes && !skipped; third++)
                before[late * nodes + third] |= before[early * nodes + third];
        }
    return before;
}

static bool collide(const struct access *first, const struct access *second)
{
    const struct tensor *one = first->tensor, *other = second->tensor;
    return ((first->mode | second->mode) & ACCESS_WRITE) && one->device == other->device && one->slab == other->slab &&
           one->address < other->address + other->bytes && other->address < one->address + one->bytes;
}

static bool conflict(const struct task *a, const struct task *b)
{
    for (int i = 0; i < a->n_accesses; i++)
        for (int k = 0; k < b->n_accesses; k++)
            if (collide(&a->accesses[i], &b->accesses[k]))
                return true;
    return false;
}

static bool is_ordered(const struct list *list)
{
    bool *before = all_paths(list);
    bool ordered = true;
    size_t nodes = 2 * list->n;
    for (size_t late = 0; late < nodes && ordered; late++)
        for (size_t early = 0; early < late && ordered; early++)
            ordered =
                before[late * nodes + early] || !conflict(list->tasks[early % list->n], list->tasks[late % list->n]);
    free(before);
    return ordered;
}

/* A wait for a task that may be skipped orders no other tasks: verify_list() leaves out what would follow from it. */
static void expect_same_verdict(const struct list *list, size_t *wrong_lists)
{
    struct problem *problem = verify_list(list, NULL);
    bool ordered = is_ordered(list), cautious = false;
    for (size_t i = 0; i < list->n; i++)
        cautious |= is_conditional(list->tasks[i]);
    if (problem ? ordered && !cautious : !ordered)
        test_failed("all pairs are %sordered, and verify says: %s\n", ordered ? "" : "not ",
                    problem ? problem->sentence : "nothing");
    if (!ordered)
        (*wrong_lists)++;
    free(problem);
}

/* A list without one of its waits is wrong unless a task may be skipped, and one with a task on another lane may be. */
TEST(verdicts_are_those_of_all_pairs)
{
    size_t dropped = 0;
    size_t wrong = 0;
    size_t moved = 0;
    size_t wrong_moves = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct paper paper = new_paper(1, &slow_speeds);
        struct list *list = random_step(&paper, seed, "first");
        if (seed > 2)
            skip_some(list);
        finish_paper(&paper);
        for (size_t k = 0; k < list->n; k += 10) {
            const struct task *task = list->tasks[k];
            for (struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
                bool wait = edge->needs_wait;
                edge->needs_wait = false;
                expect_same_verdict(list, &wrong);
                edge->needs_wait = wait;
                dropped += wait;
            }
        }
        for (size_t k = 1; k + 1 < list->n; k += 10) {
            struct lane *lane = list->tasks[k]->lane;
            list->tasks[k]->lane = list->tasks[k + 1]->lane;
            expect_same_verdict(list, &wrong_moves);
            list->tasks[k]->lane = lane;
            moved++;
        }
        end_paper(&paper);
    }
    assert_above(wrong, 30);
    assert_at_most(wrong, dropped);
    assert_above(wrong_moves, 0);
    assert_below(wrong_moves, moved);
}

/* ---- scale ------------------------------------------------------------------------------------------------------- */

static size_t peak_megabytes(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (size_t)use.ru_maxrss / 1024;
}

/* Micro-batches of 24 layers on four devices: forward, backward, what is sent to the host, and one tensor that all
 * forwards read; with as many tensors as tasks, of which hundreds follow each other on the same bytes. */
static struct list *large_step(struct paper *paper, size_t n)
{
    struct list *list = paper->list;
    for (size_t d = 0; d < 4; d++) {
        struct device *device = &paper->machine->devices[d];
        struct tensor *tensor = new_words(paper, device, "w", 1024, PERSISTENT);
        struct tensor *a[24], *g[24];
        for (size_t end = (d + 1) * n / 4; list->n < end;) {
            for (int k = 0; k < 24; k++) {
                a[k] = new_words(paper, device, "a", 1000 + 512 * (k % 5), TRANSIENT);
                g[k] = new_words(paper, device, "g", 300 + 100 * (k % 3), TRANSIENT);
                add_paper(paper, device->lanes[LANE_COMPUTE], "f", a[k], tensor, k ? a[k - 1] : NULL);
            }
            for (int k = 24; k-- > 0;) {
                struct tensor *host = new_words(paper, paper->host, "h", (int64_t)count_elements(g[k]), TRANSIENT);
                add_paper(paper, device->lanes[LANE_COMPUTE], "b", g[k], a[k], k < 23 ? g[k + 1] : NULL);
                add_copy(list, device->lanes[LANE_DOWNLOAD], "d", host, g[k]);
                add_paper(paper, paper->host->lanes[LANE_CPU], "h", NULL, host, NULL);
            }
        }
        add_paper(paper, device->lanes[LANE_COMPUTE], "u", tensor, g[0], NULL);
    }
    return list;
}

/* An algorithm that looks at all pairs of tasks, or of tensors on the same bytes, would take minutes or gigabytes. */
TEST(a_list_of_30000_tasks_takes_little_time_and_memory)
{
    struct paper paper = new_paper(4, &plausible_speeds);
    struct list *list = large_step(&paper, 30000);
    size_t before = peak_megabytes();
    struct values *values = hash_values(list);
    must(place(paper.pool, &list, 1, PLACE_TO_CHECK));
    depend(list, ALL_EDGES);
    expect_sound("the list", list, values);
    struct simulation *simulation = must_simulate(list, paper.costs);
    assert_at_least(list->n, 30000);
    assert_true(simulation->settled);
    struct forecast forecast = forecast_list(list, paper.costs);
    assert_close(forecast.period, simulation->period, 0);
    size_t most = peak_megabytes() - before;
    if (most > 300)
        test_failed("planning %zu tasks took %zu MiB\n", list->n, most);
    free_forecast(&forecast);
    free_simulation(simulation);
    free_values(values);
    end_paper(&paper);
}

/* ---- trying ------------------------------------------------------------------------------------------------------ */

/* The forecast is what then happens. */
static void expect_forecast(const struct forecast *forecast, const struct list *list, const struct costs *costs)
{
    struct simulation *simulation = must_simulate(list, costs);
    assert_null(forecast->problem);
    assert_int_equal(forecast->n, list->n);
    assert_close(forecast->period, simulation->period, 0);
    for (int d = 0; d <= list->pool->machine->n_devices; d++) {
        size_t most = 0, at = 0;
        assert_int_equal(forecast->peak_total[d], list->extra.peak_total[d]);
        for (size_t i = 0; i < list->n; i++) {
            size_t held = 0;
            for (size_t k = 0; k < list->pool->n; k++) {
                const struct tensor *tensor = list->pool->tensors[k];
                bool lives = tensor->persistent ||
                             (tensor->list == list && tensor->held_from <= (int)i && (int)i <= tensor->held_until);
                held += tensor->storage == tensor && tensor->device->index == d && lives ? tensor->bytes : 0;
            }
            at = held > most ? i : at;
            most = MAX(most, held);
        }
        assert_int_equal(most, forecast->peak_total[d]);
        assert_int_equal(at, forecast->peak_position[d]);
    }
    free_simulation(simulation);
}

TEST(a_forecast_comes_true)
{
    struct trainer *trainer = plan_tiny(write_hardware("try.txt", &plausible_speeds), 2);
    uint64_t before = fingerprint(trainer->train_list);
    struct forecast forecast = forecast_list(trainer->train_list, costs_of(trainer));
    assert_int_equal(fingerprint(trainer->train_list), before);
    expect_forecast(&forecast, trainer->train_list, costs_of(trainer));
    for (size_t i = 0; i < forecast.n; i++)
        assert_ptr_equal(forecast.tasks[i], trainer->train_list->tasks[i]);
    free_forecast(&forecast);
    free_trainer(trainer);
}

/*     early   a            a is held throughout: 2048 bytes
 *     b       b            2048
 *     c       c <- b       4096: 8192 in all
 *     last    <- a, c
 *
 * With `early` behind c, it is c that holds most, b and c: 6144 bytes.
 */
struct four {
    struct paper paper;
    struct task *early, *b, *c, *last;
};

static struct four new_four(void)
{
    struct four four = {.paper = new_paper(1, &slow_speeds)};
    struct paper *paper = &four.paper;
    struct lane *compute = paper->device->lanes[LANE_COMPUTE];
    struct tensor *a = new_words(paper, paper->device, "a", 512, TRANSIENT);
    struct tensor *b = new_words(paper, paper->device, "b", 512, TRANSIENT);
    struct tensor *c = new_words(paper, paper->device, "c", 1024, TRANSIENT);
    four.early = add_paper(paper, compute, "early", a, NULL, NULL);
    four.b = add_paper(paper, compute, "b", b, NULL, NULL);
    four.c = add_paper(paper, compute, "c", c, b, NULL);
    four.last = add_paper(paper, compute, "last", NULL, a, c);
    return four;
}

static void expect_most(const struct list *list, const struct costs *costs, size_t bytes, size_t at)
{
    uint64_t before = fingerprint(list);
    struct forecast forecast = forecast_list(list, costs);
    assert_int_equal(fingerprint(list), before);
    assert_null(forecast.problem);
    assert_int_equal(forecast.peak_total[0], bytes);
    assert_int_equal(forecast.peak_position[0], at);
    free_forecast(&forecast);
}

/* In the midst of an edit the list counts as it is now. */
TEST(an_edit_is_tried)
{
    struct four four = new_four();
    struct list *list = four.paper.list;
    expect_most(list, four.paper.costs, 8192, 2);
    struct edit *edit = open_edit(list);
    assert_true(sink_task(edit, four.early, four.c));
    expect_most(list, four.paper.costs, 6144, 1);
    struct forecast now = forecast_list(list, four.paper.costs);
    struct task *order[] = {four.b, four.c, four.early, four.last};
    assert_int_equal(now.n, COUNT(order));
    assert_memory_equal(now.tasks, order, sizeof order);
    free_forecast(&now);
    undo_edit(edit);
    expect_most(list, four.paper.costs, 8192, 2);
    end_paper(&four.paper);
}

TEST(a_forecast_tells_what_does_not_fit)
{
    struct four four = new_four();
    four.paper.device->budget = 11000; /* 4096 of which guard the slab */
    struct forecast all = forecast_list(four.paper.list, four.paper.costs);
    assert_above(all.excess_bytes, 0);
    assert_close((double)all.needed_bytes[0], (double)four.paper.device->budget + all.excess_bytes, 0);
    assert_int_equal(all.peak_total[0], 8192);
    free_forecast(&all);
    struct edit *edit = open_edit(four.paper.list);
    assert_true(sink_task(edit, four.early, four.c));
    commit_edit(edit);
    expect_most(four.paper.list, four.paper.costs, 6144, 1);
    end_paper(&four.paper);
}

TEST(without_times_there_is_no_period)
{
    struct four four = new_four();
    struct forecast none = forecast_list(four.paper.list, NULL);
    assert_null(none.problem);
    assert_true(isnan(none.period));
    free_forecast(&none);
    for (size_t i = 0; i < four.paper.list->n; i++)
        four.paper.list->tasks[i]->extra.seconds = 1e9;
    none = forecast_list(four.paper.list, NULL);
    assert_non_null(none.problem);
    assert_contains(none.problem->sentence, "take 4e+09 s in all by the step file; expected 1e-9 to 1e6 s");
    free_forecast(&none);
    end_paper(&four.paper);
}

/* ---- searching --------------------------------------------------------------------------------------------------- */

static const struct decision drawn[] = {{2, 0}, {3, 0}, {4, 0}};

/* A later option copies less, and one takes too long. */
static void apply_options(void *argument, struct edit *edit, const option_byte *choice)
{
    struct paper *paper = argument;
    struct tensor *tensor = new_words(paper, paper->device, "x", 10 - choice[0] - choice[1] - choice[2], TRANSIENT);
    (void)edit;
    for (size_t i = 0; i < COUNT(drawn); i++)
        assert_below(choice[i], drawn[i].options);
    struct tensor *on_host = tensor_like(paper->pool, paper->host, tensor);
    struct task *task = add_paper(paper, paper->device->lanes[LANE_COMPUTE], "t", tensor, NULL, NULL);
    task->extra.seconds = choice[1] == 2 ? 1e9 : 1;
    struct task *copy = add_copy(paper->list, paper->device->lanes[LANE_DOWNLOAD], "copy", on_host, tensor);
    copy->extra.seconds = 1;
}

TEST(of_equal_periods_the_one_with_the_fewest_bytes_is_chosen)
{
    struct paper paper = new_paper(1, &slow_speeds);
    struct question question = {.list = paper.list,
                                .activity = "",
                                .decisions = drawn,
                                .n = COUNT(drawn),
                                .apply = apply_options,
                                .context = &paper,
                                .work = 5000};
    option_byte best[COUNT(drawn)];
    find_best_choice(&question, (option_byte[COUNT(drawn)]){0}, 1, best);
    assert_memory_equal(best, ((option_byte[]){1, 1, 3}), sizeof best);
    end_paper(&paper);
}

/* ---- many devices ------------------------------------------------------------------------------------------------ */

static const char *write_many_devices(int devices)
{
    char *text = hardware_text(&plausible_speeds), *more = lasting("%sdevices = %d\n", text, devices);
    const char *path = write_file("many.txt", more, strlen(more));
    free(text);
    return path;
}

TEST(a_list_for_64_devices_is_sound)
{
    struct trainer *trainer = plan_tiny(write_many_devices(64), 64);
    assert_int_equal(trainer->machine->n_devices, 64);
    expect_sound("the list", trainer->train_list, values_of(trainer, trainer->train_list));
    struct forecast forecast = forecast_list(trainer->train_list, costs_of(trainer));
    assert_above(forecast.period, 0);
    free_forecast(&forecast);
    free_trainer(trainer);
}

TEST(a_plan_with_too_many_devices_is_refused)
{
    expect_yard(EXIT_USAGE, "a plan can use 1024 devices at most, not 1025",
                "plan --model tiny --batch 2050 --hardware %s --mesh dp=1025", write_many_devices(5000));
    expect_yard(EXIT_USAGE, "has devices = 2, not 4: use a smaller --mesh, or -d",
                "plan --model tiny --hardware %s --mesh dp=4", write_many_devices(2));
}

/* test_simulate.c - the simulator: when each task of a list begins and ends.
 *
 * It tests src/planning/predict.  It checks that a list on paper has the times that were worked out by hand, that
 * random lists have those of an oracle which walks the longest path, and that links are shared evenly.  It catches a
 * task that begins before what it waits for, a link that gives more than it has, and an iteration that does not repeat.
 *
 * To see it fail: in earlier_lane() of simulate.c, let the later of two events win: > in place of <.
 *
 * No OpenCL device is opened here.  test_simulate_times.c has more times that were worked out by hand.
 */
#include "planning/predict/predict.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"
#include "trainer/train/train.h"

#include <math.h>

static void expect_times(const struct simulation *simulation, int iteration, const struct span *expected)
{
    size_t n = simulation->list->n;
    for (size_t i = 0; i < n; i++) {
        const struct moment *moment = &simulation->moments[(size_t)iteration * n + i];
        double tolerance = 1e-9 * expected[i].end + 1e-18;
        if (fabs(moment->start - expected[i].start) > tolerance || fabs(moment->end - expected[i].end) > tolerance)
            test_failed("iteration %d, task %zu %s: simulated [%g, %g], by hand [%g, %g]\n", iteration, i,
                        simulation->list->tasks[i]->name, moment->start, moment->end, expected[i].start,
                        expected[i].end);
    }
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

/* Uploads of 2 and computations of 3 s, p and both d persist:
 *
 *     step 1   upload   u0 0-2    u1 2-4              u0 of the next step waits for c0 of this one, which reads d0,
 *              compute  c0 2-5    c1 5-8              and u1 for c1: edges across the step's end
 *     step 2   upload   u0 5-7    u1 8-10
 *              compute  c0 8-11   c1 11-14
 *     step 3   upload   u0 11-13  u1 14-16
 *              compute  c0 14-17  c1 17-20
 */
TEST(two_lanes_take_what_was_worked_out_by_hand)
{
    struct paper paper = new_paper(1, &slow_speeds);
    struct lane *compute = paper.device->lanes[LANE_COMPUTE], *upload = paper.device->lanes[LANE_UPLOAD];
    struct tensor *d0 = new_words(&paper, paper.device, "d0", 1, PERSISTENT),
                  *d1 = new_words(&paper, paper.device, "d1", 1, PERSISTENT);
    struct tensor *sum = new_words(&paper, paper.device, "p", 1, PERSISTENT);
    add_paper(&paper, upload, "u0", d0, NULL, NULL);
    add_paper(&paper, compute, "c0", sum, d0, NULL);
    add_paper(&paper, upload, "u1", d1, NULL, NULL);
    add_paper(&paper, compute, "c1", NULL, d1, sum);
    finish_paper(&paper);
    struct simulation *simulation = simulate_durations(paper.list, (double[]){2, 3, 2, 3});
    expect_times(simulation, 0, (struct span[]){{0, 2}, {2, 5}, {2, 4}, {5, 8}});
    expect_times(simulation, 1, (struct span[]){{5, 7}, {8, 11}, {8, 10}, {11, 14}});
    expect_times(simulation, 2, (struct span[]){{11, 13}, {14, 17}, {14, 16}, {17, 20}});
    expect_number("period", simulation->period, 6);
    expect_number("compute", simulation->busy[compute->index], 6);
    expect_number("upload", simulation->busy[upload->index], 4);
    free_simulation(simulation);
    end_paper(&paper);
}

/* ---- what is told about it --------------------------------------------------------------------------------------- */

/* A step's path goes back from the last end of step 3 to that of step 2, at 25, in the midst of `a`:
 *
 *     compute  a 20-29  b 29-30  (next step: a 30-39)
 *     report                     c 30-35 (reads what b wrote)
 */
TEST(the_critical_path_is_one_step_long)
{
    static const struct {
        const char *task;
        double ms;
    } path[] = {{"c", 5e3}, {"a", 4e3}, {"b", 1e3}};
    struct paper paper = new_paper(1, &slow_speeds);
    struct lane *compute = paper.device->lanes[LANE_COMPUTE];
    struct tensor *tensor = new_words(&paper, paper.device, "x", 1, PERSISTENT);
    add_paper(&paper, compute, "a", NULL, NULL, NULL);
    add_paper(&paper, compute, "b", tensor, NULL, NULL);
    add_paper(&paper, paper.host->lanes[LANE_REPORT], "c", NULL, tensor, NULL);
    finish_paper(&paper);
    struct simulation *simulation = simulate_durations(paper.list, (double[]){9, 1, 5});
    expect_times(simulation, 2, (struct span[]){{20, 29}, {29, 30}, {30, 35}});
    json_t *told = simulation_json(simulation), *found = json_object_get(told, "critical_path");
    expect_number("step", number_at(told, "step_ms"), 1e4);
    assert_int_equal(json_array_size(found), COUNT(path));
    for (size_t i = 0; i < COUNT(path); i++) {
        const json_t *part = json_array_get(found, i);
        assert_string_equal(text_at(part, "task"), path[i].task);
        expect_number(path[i].task, number_at(part, "ms"), path[i].ms);
    }
    json_decref(told);
    free_simulation(simulation);
    end_paper(&paper);
}

/* ---- relations that hold for every list -------------------------------------------------------------------------- */

enum { RANDOM_TASKS = 40, RANDOM_TENSORS = 12 };

/* Tasks on any lanes of the devices and the host that write one tensor and read what was written before. */
static struct paper random_paper(uint64_t seed, const struct speeds *speeds, int n_devices)
{
    struct paper paper = new_paper(n_devices, speeds);
    struct tensor *tensor[RANDOM_TENSORS];
    bool written[RANDOM_TENSORS] = {false};
    struct draws draws = {.seed = seed};
    for (int i = 0; i < RANDOM_TENSORS; i++) {
        bool persists = i % 3 == 0;
        tensor[i] = new_words(&paper, paper.device, "t", 1 + (int64_t)draw_below(&draws, 300),
                              persists ? PERSISTENT : TRANSIENT);
    }
    for (int i = 0; i < RANDOM_TASKS; i++) {
        size_t to = draw_below(&draws, RANDOM_TENSORS), from = draw_below(&draws, RANDOM_TENSORS);
        struct lane *lane = paper.machine->lanes[draw_below(&draws, (size_t)paper.machine->n_lanes)];
        bool reads = from != to && (written[from] || tensor[from]->persistent);
        add_paper(&paper, lane, "task", tensor[to], reads ? tensor[from] : NULL, NULL);
        written[to] = true;
    }
    finish_paper(&paper);
    return paper;
}

static double *random_seconds(size_t n, uint64_t seed)
{
    double *seconds = allocate(n, sizeof *seconds);
    for (size_t i = 0; i < n; i++)
        seconds[i] = floor(16 * random_uniform(seed, STREAM_TEST, 1, i)) / 16; /* exact, and often 0 or equal */
    return seconds;
}

/* The other way to the same times: without shared links a task starts when the last of its predecessors has ended, and
 * these all come before it in the order (iteration, position). */
static void longest_paths(const struct list *list, const double *seconds, int steps, struct span *span)
{
    int n = (int)list->n;
    int n_lanes = list->pool->machine->n_lanes;
    int *last = allocate((size_t)n_lanes, sizeof *last);
    double *iteration_end = allocate((size_t)steps, sizeof *iteration_end);
    double *computed = allocate((size_t)steps, sizeof *computed);
    fill_none(last, (size_t)n_lanes);
    for (int node = 0; node < steps * n; node++) {
        const struct task *task = list->tasks[node % n];
        double start = 0; /* not before the host opens the iteration, which it does after all earlier ones */
        for (int i = 0; i <= node / n; i++) {
            if (i >= ISSUED_AHEAD)
                start = fmax(start, computed[i - ISSUED_AHEAD]);
            if (i >= MOST_IN_FLIGHT)
                start = fmax(start, iteration_end[i - MOST_IN_FLIGHT]);
        }
        if (last[task->lane->index] != NONE)
            start = fmax(start, span[last[task->lane->index]].end);
        for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
            int from = node - node % n + (int)edge->producer - (edge->previous ? n : 0);
            if (edge->needs_wait && from >= 0)
                start = fmax(start, span[from].end);
        }
        span[node] = (struct span){start, start + seconds[node % n]};
        iteration_end[node / n] = fmax(iteration_end[node / n], span[node].end);
        if (task->lane->kind == LANE_COMPUTE)
            computed[node / n] = fmax(computed[node / n], span[node].end);
        last[task->lane->index] = node;
    }
    free(iteration_end);
    free(computed);
    free(last);
}

static void expect_longest_paths(const struct simulation *simulation)
{
    struct span *span = allocate((size_t)simulation->steps * simulation->list->n, sizeof *span);
    longest_paths(simulation->list, simulation->seconds, simulation->steps, span);
    for (int i = 0; i < simulation->steps; i++)
        expect_times(simulation, i, &span[(size_t)i * simulation->list->n]);
    free(span);
}

TEST(times_are_longest_paths)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct paper paper = random_paper(seed, &slow_speeds, 2);
        double *seconds = random_seconds(paper.list->n, seed);
        struct simulation *simulation = simulate_durations(paper.list, seconds);
        expect_longest_paths(simulation);
        free_simulation(simulation);
        free(seconds);
        end_paper(&paper);
    }
}

/* Once the times are said to repeat, they do for as long as one looks. */
TEST(what_follows_the_pattern_repeats_it)
{
    size_t longer = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct paper paper = random_paper(seed, &slow_speeds, 3);
        double *seconds = random_seconds(paper.list->n, seed);
        struct simulation *simulation = simulate_durations(paper.list, seconds);
        size_t n = paper.list->n;
        size_t steps = (size_t)(simulation->steps + 8 * simulation->pattern);
        size_t pattern = (size_t)simulation->pattern;
        struct span *span = allocate(steps * n, sizeof *span);
        longest_paths(paper.list, seconds, (int)steps, span);
        assert_true(simulation->settled);
        if (simulation->steps > 4)
            longer++;
        for (size_t i = (size_t)simulation->first * n; i + pattern * n < steps * n; i++)
            expect_number("end", span[i + pattern * n].end, span[i].end + simulation->period * (double)pattern);
        free(span);
        free(seconds);
        free_simulation(simulation);
        end_paper(&paper);
    }
    assert_above(longer, 0); /* where four steps were not enough */
}

/* The share of its link that a copy gets while it runs: 1/k of the time in which k copies of its link run. */
static double share_of(const struct simulation *simulation, size_t node, const int *link)
{
    size_t n = simulation->list->n;
    const struct moment *moment = &simulation->moments[node];
    double got = 0, next;
    for (double from = moment->start; from < moment->end; from = next) {
        size_t together = 0;
        next = moment->end;
        for (size_t k = 0; k < (size_t)simulation->steps * n; k++) {
            const struct moment *other = &simulation->moments[k];
            if (link[k % n] != link[node % n] || other->end <= from)
                continue;
            next = fmin(next, other->start > from ? other->start : other->end);
            if (other->start <= from)
                together++;
        }
        got += (next - from) / (double)together;
    }
    return got;
}

/* A task on a copy lane becomes a copy of as many bytes.  (The edges are there already.) */
static void make_copy(struct paper *paper, struct task *task)
{
    struct device *device = task->lane->device, *to = task->lane->kind == LANE_UPLOAD ? device : paper->host;
    int64_t words = (int64_t)count_elements(task->accesses[0].tensor);
    task->action = ACT_COPY;
    task->n_accesses = 0;
    add_access(task, new_words(paper, to, "to", words, PERSISTENT), ACCESS_WRITE);
    add_access(task, new_words(paper, to == device ? paper->host : device, "from", words, PERSISTENT), ACCESS_READ);
}

/* Four devices on one link: every copy gets its work done, in the time that its share takes and no other. */
TEST(random_copies_share_evenly)
{
    struct speeds speeds = slow_speeds;
    double work = 0, time = 0;
    speeds.per_link = 4;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct paper paper = random_paper(seed, &speeds, 4);
        int link[RANDOM_TASKS];
        for (int i = 0; i < RANDOM_TASKS; i++) {
            enum lane_kind kind = paper.list->tasks[i]->lane->kind;
            link[i] = 3 + i; /* a number that no other task has: it uses no link */
            if (kind == LANE_UPLOAD)
                link[i] = 1;
            if (kind == LANE_DOWNLOAD)
                link[i] = 2;
            if (link[i] <= 2)
                make_copy(&paper, paper.list->tasks[i]);
        }
        struct simulation *simulation = must_simulate(paper.list, paper.costs);
        size_t nodes = (size_t)(simulation->steps - 1) * RANDOM_TASKS; /* copies of the last step share with the next */
        for (size_t node = 0; node < nodes; node++) {
            expect_number("work done", share_of(simulation, node, link), simulation->seconds[node % RANDOM_TASKS]);
            work += simulation->seconds[node % RANDOM_TASKS];
            time += simulation->moments[node].end - simulation->moments[node].start;
        }
        free_simulation(simulation);
        end_paper(&paper);
    }
    assert_above(time, 1.02 * work); /* links were in fact shared */
}

/* ---- the builder's lists ----------------------------------------------------------------------------------------- */

/* One device shares no link: predicting with costs is predicting with the durations that the costs give. */
TEST(simulate_is_simulate_durations)
{
    struct trainer *trainer = plan_tiny(write_hardware("tiny.txt", &plausible_speeds), 1);
    struct simulation *by_costs = must_simulate(trainer->train_list, costs_of(trainer)),
                      *by_durations = simulate_durations(trainer->train_list, by_costs->seconds);
    assert_int_equal(by_costs->steps, by_durations->steps);
    size_t n_nodes = (size_t)by_costs->steps * trainer->train_list->n;
    for (size_t i = 0; i < n_nodes; i++) {
        /* They differ by roundings: a copy's time is the sum of latency and rest. */
        expect_number("start", by_costs->moments[i].start, by_durations->moments[i].start);
        expect_number("end", by_costs->moments[i].end, by_durations->moments[i].end);
    }
    expect_number("period", by_costs->period, by_durations->period);
    assert_above(by_costs->period, 0);
    for (int i = 0; i < trainer->machine->n_lanes; i++)
        expect_number("busy", by_costs->busy[i], by_durations->busy[i]);
    assert_int_equal(by_costs->by_source[COST_MODELLED], trainer->train_list->n);
    expect_longest_paths(by_costs);
    free_simulation(by_costs);
    free_simulation(by_durations);
    free_trainer(trainer);
}

TEST(shipped_hardware_has_its_devices)
{
    static const struct {
        const char *name;
        int ranks;
        unsigned work_group, units;
    } shipped[] = {
        {.name = "laptop", .ranks = 1, .work_group = 1, .units = 8},
        {.name = "workstation", .ranks = 1, .work_group = 128, .units = 28},
        {.name = "server", .ranks = 8, .work_group = 128, .units = 108},
    };
    for (size_t i = 0; i < COUNT(shipped); i++) {
        char *path = lasting("data/hardware/%s.txt", shipped[i].name);
        struct trainer *trainer = plan_tiny(path, shipped[i].ranks);
        const struct device *device = trainer->machine->devices;
        assert_string_equal(costs_of(trainer)->name, shipped[i].name);
        assert_int_equal(device->shape.work_group, shipped[i].work_group);
        assert_int_equal(device->units, shipped[i].units);
        struct simulation *simulation = must_simulate(trainer->train_list, costs_of(trainer));
        assert_above(simulation->period, 1e-6);
        assert_below(simulation->period, 1);
        assert_int_equal(simulation->by_source[COST_MODELLED], trainer->train_list->n);
        expect_sound(path, trainer->train_list, values_of(trainer, trainer->train_list));
        free_simulation(simulation);
        free_trainer(trainer);
        expect_yard(EXIT_OK, "simulated step", "plan --model gpt2 --attention flash --simulate --hardware %s", path);
    }
}

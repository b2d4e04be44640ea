/* test_causes.c - why lanes were idle: what `yard trace summary` says about the time in which nothing ran.
 *
 * It tests causes.c of src/planning/trace.  It checks that each moment of a lane is counted once: as busy, or as idle
 * because of the last thing that the lane waited for.  It catches time that is counted twice or for the wrong task, and
 * a gap that belongs to the step before.
 *
 * To see it fail: in causes.c, count a lane as idle from before the step: `free_from` in place of MAX(free_from,
 * steps->start).
 *
 * Two traces were worked out by hand: they show that the rules are right.  For random lists and a real run, this file
 * has a second calculation with the same rules, which looks at all records for each gap.
 */
#include "planning/lists/lists.h"
#include "planning/predict/predict.h"
#include "planning/trace/stats.h"
#include "tests/support/support_lists.h"
#include "tests/support/support_paper.h"

#include <math.h>

/* ---- by hand --------------------------------------------------------------------------------------------------------
 *
 * Two devices and the host; microseconds.  Steps end at 100, 200 and 300, so the window is from 100 to 300.
 *
 *                        step 1            step 2                        step 3
 *     host feed     feed 0-4               102-110, queued 101           202-206, queued 201
 *     a compute     fwd  5-50              112-150, queued 102           220-250, queued 215
 *     a download    send 50-60             150-160                       250-262
 *     b compute     bwd  60-80             164-180                       262-280
 *                   norm 80-90             180-190                       280-290
 *     a compute2    upd  90-100            195-200, queued 193           290-300
 */
enum { FEED, FWD, SEND, BWD, NORM, UPD, N_TASKS };
enum { HOST_FEED, A, A_DOWN, B, A_TOO, N_LANES };
static const struct trace tables = {
    .header = {.kind = TRACE_SIMULATED,
               .pace_scale = 1,
               .n_devices = 3,
               .n_lanes = N_LANES,
               .n_tasks = N_TASKS,
               .n_edges = 6,
               .n_lists = 1,
               .n_roles = 4,
               .list = {"train"},
               .role = {"other", "feed", "send", "norm"}},
    .devices = (struct trace_device[]){{.id = "a"}, {.id = "b"}, {.id = "host"}},
    .lanes = (struct trace_lane[]){{.name = "host feed", .kind = LANE_FEED, .device_index = 2},
                                   {.name = "a compute", .kind = LANE_COMPUTE},
                                   {.name = "a download", .kind = LANE_DOWNLOAD},
                                   {.name = "b compute", .kind = LANE_COMPUTE, .device_index = 1},
                                   {.name = "a compute2", .kind = LANE_COMPUTE}},
    .tasks = (struct trace_task[]){{.name = "feed", .lane = HOST_FEED, .role = 1, .first_edge = 0, .n_edges = 1},
                                   {.name = "fwd", .lane = A, .first_edge = 1, .n_edges = 1},
                                   {.name = "send", .lane = A_DOWN, .role = 2, .first_edge = 2, .n_edges = 1},
                                   {.name = "bwd", .lane = B, .first_edge = 3, .n_edges = 1},
                                   {.name = "norm", .lane = B, .role = 3, .first_edge = 4, .n_edges = 1},
                                   {.name = "upd", .lane = A_TOO, .first_edge = 5, .n_edges = 1}},
    .edges = (struct trace_edge[]){{FWD, 1, 1}, {FEED, 0, 0}, {FWD, 0, 0}, {SEND, 0, 0}, {BWD, 0, 0}, {NORM, 0, 0}},
};
static const struct ran_at {
    uint32_t step, task;
    unsigned start, end, queued;
} example[] = {
    {.step = 1, .task = FEED, .start = 0, .end = 4},
    {.step = 1, .task = FWD, .start = 5, .end = 50},
    {.step = 1, .task = SEND, .start = 50, .end = 60},
    {.step = 1, .task = BWD, .start = 60, .end = 80},
    {.step = 1, .task = NORM, .start = 80, .end = 90},
    {.step = 1, .task = UPD, .start = 90, .end = 100},
    {.step = 2, .task = FEED, .start = 102, .end = 110, .queued = 101},
    {.step = 2, .task = FWD, .start = 112, .end = 150, .queued = 102},
    {.step = 2, .task = SEND, .start = 150, .end = 160, .queued = 102},
    {.step = 2, .task = BWD, .start = 164, .end = 180, .queued = 102},
    {.step = 2, .task = NORM, .start = 180, .end = 190, .queued = 102},
    {.step = 2, .task = UPD, .start = 195, .end = 200, .queued = 193},
    {.step = 3, .task = FEED, .start = 202, .end = 206, .queued = 201},
    {.step = 3, .task = FWD, .start = 220, .end = 250, .queued = 215},
    {.step = 3, .task = SEND, .start = 250, .end = 262, .queued = 202},
    {.step = 3, .task = BWD, .start = 262, .end = 280, .queued = 202},
    {.step = 3, .task = NORM, .start = 280, .end = 290, .queued = 202},
    {.step = 3, .task = UPD, .start = 290, .end = 300, .queued = 202},
};
/* The feed writes over what the fwd before has read, and every task waits for the one above it.  A sum of two has the
 * gap before step 2's task of the lane, and then the one before step 3's. */
static const uint64_t by_hand[N_LANES][CAUSES] = {
    [HOST_FEED] = {[CAUSE_BYTES] = 40, [CAUSE_HOST] = 1 + 51, [CAUSE_LAUNCH] = 1 + 1, [CAUSE_NOTHING] = 94},
    [A] = {[CAUSE_BATCH] = 10 + 56, [CAUSE_LAUNCH] = 2 + 5, [CAUSE_HOST] = 9, [CAUSE_NOTHING] = 50},
    [A_DOWN] = {[CAUSE_COMPUTE] = 50 + 90, [CAUSE_NOTHING] = 38},
    [B] = {[CAUSE_PIPELINE] = 60 + 72, [CAUSE_LAUNCH] = 4, [CAUSE_NOTHING] = 10},
    [A_TOO] = {[CAUSE_NORM] = 90 + 90, [CAUSE_HOST] = 3, [CAUSE_LAUNCH] = 2},
};

static struct trace *trace_by_hand(const struct trace *given, const struct ran_at *when, size_t n)
{
    const char *path = temp_path("hand.trace");
    struct trace_writer *writer = open_trace_writer(path, given, n);
    for (size_t i = 0; i < n; i++)
        end_trace_record(writer, begin_trace_record(writer, when[i].step, when[i].task, 1000 * when[i].queued),
                         1000 * when[i].start, 1000 * when[i].end, 0);
    close_trace_writer(writer);
    return read_trace(path);
}

static void expect_causes(const char *what, const struct trace *trace, size_t lane, const uint64_t *found,
                          const uint64_t *expected)
{
    for (int c = 0; c < CAUSES; c++)
        if (found[c] != expected[c])
            test_failed("%s, %s, %s: %llu ns, expected %llu\n", what, trace->lanes[lane].name, cause_name[c],
                        (unsigned long long)found[c], (unsigned long long)expected[c]);
}

/* The lanes of the trace have these causes, in microseconds, in this window.  Frees the trace. */
static void expect_by_hand(const char *what, struct trace *trace, unsigned start, unsigned end,
                           const uint64_t (*causes)[CAUSES])
{
    struct trace_steps steps = steps_of_list(trace, 0);
    uint64_t(*found)[CAUSES] = allocate(trace->header.n_lanes, sizeof *found);
    assert_int_equal(steps.start, 1000 * start);
    assert_int_equal(steps.end, 1000 * end);
    sum_up_causes(trace, &steps, found);
    for (size_t lane = 0; lane < trace->header.n_lanes; lane++) {
        uint64_t expected[CAUSES];
        for (int c = 0; c < CAUSES; c++)
            expected[c] = 1000 * causes[lane][c];
        expect_causes(what, trace, lane, found[lane], expected);
    }
    free(found);
    free_trace(trace);
}

TEST(each_cause_is_what_was_worked_out_by_hand)
{
    expect_by_hand("by hand", trace_by_hand(&tables, example, COUNT(example)), 100, 300, by_hand);
}

/* State on a disk: two devices and the host; microseconds.  Steps 2 and 3 come 100 and 200 later than step 1.  Every
 * task of a step is queued at its start, and waits for the one above it; `beside` and `bwd` wait for `fwd`, and `upd`
 * for `store` and then for `beside`, which end together.  A step is done when `upd` is, whatever the disk does: the
 * window is from 90 to 290.
 *
 *     host disk     read 0-10, write 90-96
 *     a upload      load 10-20
 *     a compute     fwd 25-40
 *     a compute2    beside 40-70
 *     b compute     bwd 40-60
 *     b download    store 60-70
 *     host cpu      upd 70-90
 */
enum { READ, LOAD, TO, BESIDE, BACK, STORE, UPDATE, WRITE, N_DISK_TASKS };
enum { DISK, UP, FIRST, SECOND, OTHER, DOWN, CPU, N_DISK_LANES };
static const struct trace disk_tables = {
    .header = {.kind = TRACE_SIMULATED,
               .pace_scale = 1,
               .n_devices = 3,
               .n_lanes = N_DISK_LANES,
               .n_tasks = N_DISK_TASKS,
               .n_edges = 9,
               .n_lists = 1,
               .n_roles = 1,
               .list = {"train"},
               .role = {"other"}},
    .devices = (struct trace_device[]){{.id = "a"}, {.id = "b"}, {.id = "host"}},
    .lanes = (struct trace_lane[]){{.name = "host disk", .kind = LANE_DISK, .device_index = 2},
                                   {.name = "a upload", .kind = LANE_UPLOAD},
                                   {.name = "a compute", .kind = LANE_COMPUTE},
                                   {.name = "a compute2", .kind = LANE_COMPUTE},
                                   {.name = "b compute", .kind = LANE_COMPUTE, .device_index = 1},
                                   {.name = "b download", .kind = LANE_DOWNLOAD, .device_index = 1},
                                   {.name = "host cpu", .kind = LANE_CPU, .device_index = 2}},
    .tasks = (struct trace_task[]){{.name = "read", .lane = DISK, .first_edge = 0, .n_edges = 1},
                                   {.name = "load", .lane = UP, .first_edge = 1, .n_edges = 1},
                                   {.name = "fwd", .lane = FIRST, .first_edge = 2, .n_edges = 1},
                                   {.name = "beside", .lane = SECOND, .first_edge = 3, .n_edges = 1},
                                   {.name = "bwd", .lane = OTHER, .first_edge = 4, .n_edges = 1},
                                   {.name = "store", .lane = DOWN, .first_edge = 5, .n_edges = 1},
                                   {.name = "upd", .lane = CPU, .first_edge = 6, .n_edges = 2},
                                   {.name = "write", .lane = DISK, .first_edge = 8, .n_edges = 1}},
    .edges = (struct trace_edge[]){{WRITE, 1, 0},
                                   {READ, 0, 0},
                                   {LOAD, 0, 0},
                                   {TO, 0, 0},
                                   {TO, 0, 0},
                                   {BACK, 0, 0},
                                   {STORE, 0, 0},
                                   {BESIDE, 0, 0},
                                   {UPDATE, 0, 0}},
};
static const struct ran_at disk_step[] = {
    {.task = READ, .start = 0, .end = 10},    {.task = LOAD, .start = 10, .end = 20},
    {.task = TO, .start = 25, .end = 40},     {.task = BESIDE, .start = 40, .end = 70},
    {.task = BACK, .start = 40, .end = 60},   {.task = STORE, .start = 60, .end = 70},
    {.task = UPDATE, .start = 70, .end = 90}, {.task = WRITE, .start = 90, .end = 96},
};
/* A sum of two has the gaps in steps 2 and 3 that the same task ends.  After its last task a lane has nothing to do. */
static const uint64_t disk_by_hand[N_DISK_LANES][CAUSES] = {
    [DISK] = {[CAUSE_CPU] = 80 + 80, [CAUSE_HOST] = 4 + 4},
    [UP] = {[CAUSE_DISK] = 20 + 90, [CAUSE_NOTHING] = 70},
    [FIRST] = {[CAUSE_LINK] = 30 + 80, [CAUSE_LAUNCH] = 5 + 5, [CAUSE_NOTHING] = 50},
    [SECOND] = {[CAUSE_COMPUTE] = 50 + 70, [CAUSE_NOTHING] = 20},
    [OTHER] = {[CAUSE_PIPELINE] = 50 + 80, [CAUSE_NOTHING] = 30},
    [DOWN] = {[CAUSE_COMPUTE] = 70 + 90, [CAUSE_NOTHING] = 20},
    [CPU] = {[CAUSE_LINK] = 80 + 80},
};

TEST(causes_beside_a_disk_are_those_worked_out_by_hand)
{
    struct ran_at runs[3 * COUNT(disk_step)];
    for (unsigned i = 0; i < COUNT(runs); i++) {
        unsigned before = i / COUNT(disk_step);
        struct ran_at run = disk_step[i % COUNT(disk_step)];
        run.step = before + 1;
        run.queued = 100 * before;
        run.start += 100 * before;
        run.end += 100 * before;
        runs[i] = run;
    }
    expect_by_hand("a disk", trace_by_hand(&disk_tables, runs, COUNT(runs)), 90, 290, disk_by_hand);
}

/* ---- a second reckoning ---------------------------------------------------------------------------------------------
 *
 * Moment by moment, straight from the definition, and from the tables alone: between two neighbouring times of any
 * record nothing changes.
 */

static bool before(const struct trace_record *first, const struct trace_record *second)
{
    if (first->start != second->start)
        return first->start < second->start;
    if (first->end != second->end)
        return first->end < second->end;
    if (first->step != second->step)
        return first->step < second->step;
    return first->task < second->task;
}

static bool is(const struct trace *trace, uint32_t task, const char *role)
{
    return strcmp(trace->header.role[trace->tasks[task].role], role) == 0;
}

/* The lane's first record of that list that starts after `now`; NULL: there is none. */
static const struct trace_record *next_on_lane(const struct trace *trace, uint32_t list, size_t lane, uint64_t now)
{
    const struct trace_record *next = NULL;
    for (const struct trace_record *record = trace->records; record < trace->records + trace->n_records; record++) {
        const struct trace_task *task = &trace->tasks[record->task];
        bool comes_later = task->lane == lane && task->list == list && record->start > now;
        if (comes_later && (!next || before(record, next)))
            next = record;
    }
    return next;
}

/* When the host could open the step: when all computing of two steps before had ended. */
static uint64_t when_opened(const struct trace *trace, uint32_t list, uint32_t step)
{
    uint64_t opened = 0;
    for (const struct trace_record *record = trace->records; record < trace->records + trace->n_records; record++) {
        const struct trace_task *task = &trace->tasks[record->task];
        if (task->list == list && record->step + 2 == step && trace->lanes[task->lane].kind == LANE_COMPUTE)
            opened = MAX(opened, record->end);
    }
    return opened;
}

/* The run that `next` waits for by that edge; NULL: there is none. */
static const struct trace_record *run_waited_for(const struct trace *trace, const struct trace_edge *edge,
                                                 const struct trace_record *next)
{
    const struct trace_record *run = NULL;
    for (const struct trace_record *record = trace->records; record < trace->records + trace->n_records; record++) {
        bool in_time = record->step + edge->previous_step <= next->step && before(record, next);
        bool is_of_producer = record->task == edge->producer && in_time;
        if (is_of_producer && (!run || record->step > run->step))
            run = record;
    }
    return run;
}

/* Why a task on lane `to` waits for that instance of a task on lane `from`, by that edge. */
static enum cause cause_of(const struct trace *trace, const struct trace_record *run, const struct trace_edge *edge,
                           const struct trace_lane *to)
{
    const struct trace_lane *from = &trace->lanes[trace->tasks[run->task].lane];
    bool both_compute = from->kind == LANE_COMPUTE && to->kind == LANE_COMPUTE;
    if (edge->reuse)
        return CAUSE_BYTES;
    if (is(trace, run->task, "norm"))
        return CAUSE_NORM;
    if (is(trace, run->task, "feed"))
        return CAUSE_BATCH;
    if (is(trace, run->task, "send") || (both_compute && from->device_index != to->device_index))
        return CAUSE_PIPELINE;
    if (from->kind == LANE_UPLOAD || from->kind == LANE_DOWNLOAD)
        return CAUSE_LINK;
    if (from->kind == LANE_COMPUTE)
        return CAUSE_COMPUTE;
    if (from->kind == LANE_DISK)
        return CAUSE_DISK;
    if (from->kind == LANE_FEED)
        return CAUSE_BATCH;
    return CAUSE_CPU;
}

static enum cause cause_at(const struct trace *trace, uint32_t list, size_t lane, uint64_t now)
{
    const struct trace_record *next = next_on_lane(trace, list, lane, now), *last = NULL;
    const struct trace_edge *edge = NULL;
    if (!next || now < when_opened(trace, list, next->step))
        return CAUSE_NOTHING;
    const struct trace_task *task = &trace->tasks[next->task];
    for (uint32_t e = task->first_edge; e < task->first_edge + task->n_edges; e++) {
        const struct trace_record *run = run_waited_for(trace, &trace->edges[e], next);
        if (run && (!last || run->end > last->end)) {
            last = run;
            edge = &trace->edges[e];
        }
    }
    if (!last || now >= last->end)
        return now < next->queued ? CAUSE_HOST : CAUSE_LAUNCH;
    return cause_of(trace, last, edge, &trace->lanes[lane]);
}

static int by_time(const void *a, const void *b) { return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b); }

/* Does a task of the list run on the lane at that time? */
static bool is_busy(const struct trace *trace, uint32_t list, size_t lane, uint64_t time)
{
    for (const struct trace_record *record = trace->records; record < trace->records + trace->n_records; record++) {
        const struct trace_task *task = &trace->tasks[record->task];
        bool runs = record->start <= time && time < record->end;
        if (runs && task->lane == lane && task->list == list)
            return true;
    }
    return false;
}

/* Both ways find the same causes in the window of the whole trace; what was found is added to `all`. */
static void expect_same_causes(const char *what, const struct trace *trace, uint64_t *all)
{
    struct trace_steps steps = steps_of_list(trace, 0);
    uint64_t *time = allocate(3 * trace->n_records + 2, sizeof *time);
    uint64_t n = 0;
    uint64_t(*found)[CAUSES] = allocate(trace->header.n_lanes, sizeof *found);
    time[n++] = steps.start;
    time[n++] = steps.end;
    for (const struct trace_record *record = trace->records; record < trace->records + trace->n_records; record++) {
        time[n++] = record->queued;
        time[n++] = record->start;
        time[n++] = record->end;
    }
    SORT(time, n, by_time);
    sum_up_causes(trace, &steps, found);
    for (size_t lane = 0; lane < trace->header.n_lanes; lane++) {
        uint64_t expected[CAUSES] = {0}, busy = 0, idle = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            if (time[i] < steps.start || time[i] >= steps.end || time[i] == time[i + 1])
                continue;
            uint64_t length = time[i + 1] - time[i];
            if (is_busy(trace, steps.list, lane, time[i]))
                busy += length;
            else
                expected[cause_at(trace, steps.list, lane, time[i])] += length;
        }
        expect_causes(what, trace, lane, found[lane], expected);
        for (int c = 0; c < CAUSES; c++) {
            idle += found[lane][c];
            all[c] += found[lane][c];
        }
        assert_int_equal(busy + idle, steps.end - steps.start);
    }
    free(time);
    free(found);
}

/* Tasks of any role on any lanes, each of which writes a tensor of its device and reads two more that have been
 * written; copies; some that skip steps.  Few bytes, so that tensors share some. */
static struct list *random_tasks(uint64_t seed)
{
    enum { DEVICES = 4, TENSORS = 6, TASKS = 30 };
    static const char *const device[DEVICES] = {"a", "b", "c", "host"},
                             *const of_device[] = {"compute", "compute", "upload", "download", "download1"},
                             *const of_host[] = {"cpu", "disk", "feed", "report", "cpu"},
                             *const role[] = {"forward", "norm", "send", "feed", "update", "reduce"};
    char *text = copy_string("device a memory=1M\ndevice b memory=1M\ndevice c memory=1M\nlane a.download1\n"
                             "lane b.download1\nlane c.download1\nlink a,b,c up 1e6 100us\nlink a,b,c down 1e6\n");
    bool written[DEVICES][TENSORS] = {{false}};
    struct draws draws = {.seed = seed};
    for (int owner = 0; owner < DEVICES; owner++)
        for (int i = 0; i < TENSORS; i++)
            append_text(&text, "tensor %s%d %s %zu activations%s\n", device[owner], i, device[owner],
                        200 + 100 * draw_below(&draws, 8), i < 2 ? " keep" : "");
    for (int i = 0; i < TASKS; i++) {
        size_t owner = draw_below(&draws, DEVICES);
        size_t to = draw_below(&draws, TENSORS);
        size_t other = draw_below(&draws, DEVICES);
        if (draw_below(&draws, 4) == 0 && other != owner && written[other][0]) {
            append_text(&text, "copy c%d %s0[0:200] %s0[0:200] role=%s\n", i, device[owner], device[other],
                        role[draw_below(&draws, COUNT(role))]);
            written[owner][0] = true;
            continue;
        }
        const char *of_task = role[draw_below(&draws, COUNT(role))];
        size_t microseconds = 100 * draw_below(&draws, 12);
        const char *lane = (owner < 3 ? of_device : of_host)[draw_below(&draws, COUNT(of_host))];
        append_text(&text, "task t%d %s.%s %zuus role=%s", i, device[owner], lane, microseconds, of_task);
        const char *comma = " reads=";
        for (size_t k = draw_below(&draws, 2); k < TENSORS; k += 1 + draw_below(&draws, TENSORS))
            if (written[owner][k]) {
                append_text(&text, "%s%s%zu", comma, device[owner], k);
                comma = ",";
            }
        append_text(&text, " writes=%s%zu%s\n", device[owner], to, draw_below(&draws, 8) ? "" : " every=2");
        written[owner][to] = true;
    }
    struct list *list = read_list_text("%s", text);
    free(text);
    return list;
}

static struct trace *write_and_open_trace(const struct simulation *simulation)
{
    const char *path = temp_path("sim.trace");
    write_simulation(simulation, path, "");
    return read_trace(path);
}

static double cause_ms(const json_t *lanes, const char *lane, const char *cause)
{
    size_t i;
    json_t *one;
    json_array_foreach(lanes, i, one)
    {
        if (strcmp(text_at(one, "name"), lane) == 0)
            return number_at(json_object_get(one, "causes"), cause);
    }
    test_failed("no lane %s\n", lane);
    return 0;
}

/* Tasks whose records overlap, or that run before they are queued, or before they could: their parts add up all the
 * same. */
TEST(causes_of_absurd_records_add_up)
{
    uint64_t all[CAUSES] = {0};
    struct draws draws = {0};
    for (uint64_t seed = 1; seed <= 100; seed++) {
        draws.seed = seed;
        struct ran_at odd[COUNT(example)];
        for (size_t i = 0; i < COUNT(example); i++) { /* a task's steps stay in order */
            unsigned step = 100 * example[i].step, start = step + (unsigned)draw_below(&draws, 100);
            unsigned end = start + (unsigned)draw_below(&draws, 50), queued = step + (unsigned)draw_below(&draws, 150);
            odd[i] = (struct ran_at){
                .step = example[i].step, .task = example[i].task, .start = start, .end = end, .queued = queued};
        }
        struct trace *trace = trace_by_hand(&tables, odd, COUNT(odd));
        expect_same_causes(lasting("absurd %d", (int)seed), trace, all);
        free_trace(trace);
    }
}

/* `use` runs in every other step, `make` in every third, for longer than both.  In step 8 `use` waits for what was made
 * in step 6, and at no time for the host. */
TEST(a_task_waits_for_the_latest_run_of_a_producer_that_skips_steps)
{
    struct list *list =
        read_list_text("device a memory=1M\ntensor x a 8 parameters\ntask use a.compute 1ms every=2 reads=x\n"
                       "task work a.compute 1ms\ntask make a.upload 9ms every=3 writes=x\n");
    finish_list(list);
    struct simulation *simulation = must_simulate(list, NULL);
    json_t *told = simulation_json(simulation);
    assert_above(cause_ms(json_at(told, "lanes"), "a compute", "link"), 0);
    expect_number("ms that the host delays a", cause_ms(json_at(told, "lanes"), "a compute", "host"), 0);
    json_decref(told);
    free_simulation(simulation);
    free_list_and_machine(list);
}

/* On some of the machines lanes and hosts take time too. */
TEST(causes_of_random_lists_add_up)
{
    uint64_t all[CAUSES] = {0};
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct list *list = random_tasks(seed);
        struct machine *machine = list->pool->machine;
        finish_list(list);
        bool hosts_take_time = seed % 3 == 0;
        bool lanes_take_time = seed % 2 == 0;
        machine->issue_seconds = hosts_take_time ? 30e-6 : 0;
        for (int i = 0; i < machine->n_lanes; i++)
            if (lanes_take_time)
                machine->lanes[i]->gap_seconds = 20e-6;
        struct simulation *simulation = must_simulate(list, NULL);
        struct trace *trace = write_and_open_trace(simulation);
        expect_same_causes(lasting("list %d", (int)seed), trace, all);
        json_t *told = simulation_json(simulation), *lane;
        size_t i;
        json_array_foreach(json_object_get(told, "lanes"), i, lane)
        {
            double busy = number_at(lane, "busy_ms");
            double idle = number_at(lane, "idle_ms");
            double sum = 0;
            for (int c = 0; c < CAUSES; c++)
                sum += number_at(json_object_get(lane, "causes"), cause_name[c]);
            assert_close(sum, idle, 1e-9);
            assert_close(busy + idle, 1e3 * simulation->period, 1e-5);
            if (simulation->settled)
                assert_close(busy, 1e3 * simulation->busy[i], 1e-4);
        }
        json_decref(told);
        free_trace(trace);
        free_simulation(simulation);
        free_list_and_machine(list);
    }
    for (int c = 0; c < CAUSES; c++)
        if (all[c] == 0)
            test_failed("no list waited for %s\n", cause_name[c]);
}

/* ---- what is shown ----------------------------------------------------------------------------------------------- */

/* How far a cause's time may be from the expected one, both being sums of some tens of milliseconds. */
#define ROUNDING_MS 1e-9

/* Their heads tell: a step of 1F1B is 54 ms, of which a stage works 36; one with the norm is 14 ms. */
TEST(shipped_lists_have_the_causes_that_their_heads_tell)
{
    static const struct {
        const char *list, *lane, *cause;
        double ms;
    } known[] = {
        {.list = "1f1b", .lane = "stage0 compute", .cause = "pipeline", .ms = 18},
        {.list = "1f1b", .lane = "stage3 compute", .cause = "pipeline", .ms = 18},
        {.list = "clip", .lane = "host cpu", .cause = "norm", .ms = 10},
        {.list = "clip", .lane = "gpu compute", .cause = "link", .ms = 1.5},
        {.list = "clip", .lane = "gpu upload", .cause = "cpu", .ms = 12},
        {.list = "clip", .lane = "gpu download", .cause = "compute", .ms = 12},
        {.list = "chain", .lane = "gpu compute", .cause = "host", .ms = 0},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        json_t *plan = yard_json("plan --list data/steps/%s.txt --simulate --json", known[i].list);
        double ms = cause_ms(json_at(plan, "simulation.lanes"), known[i].lane, known[i].cause);
        if (!(fabs(ms - known[i].ms) <= ROUNDING_MS))
            test_failed("%s: %s waits %.15g ms for %s, expected %g\n", known[i].list, known[i].lane, ms, known[i].cause,
                        known[i].ms);
    }
}

/* The summary's parts and the export's gaps of a run are those that the reckoning finds. */
LONG_TEST(summary_and_export_have_the_causes_of_a_real_run)
{
    const char *path = lasting("%s", temp_path("real.trace"));
    uint64_t all[CAUSES] = {0};
    expect_yard(
        0, "",
        "train --model tiny -d %s --mesh pp=2 --micro-batch 1 --steps 4 --val-batches 1 --sample-tokens 0 --trace %s",
        two_devices(), path);
    struct trace *trace = read_trace(path);
    expect_same_causes("a real run", trace, all);
    assert_above(all[CAUSE_PIPELINE], 0);
    assert_above(all[CAUSE_NORM], 0);
    struct trace_steps steps = steps_of_list(trace, 0);
    json_t *lanes = json_at(yard_json("trace summary %s --json", path), "lanes");
    uint64_t(*found)[CAUSES] = allocate(trace->header.n_lanes, sizeof *found);
    sum_up_causes(trace, &steps, found);
    for (size_t i = 0; i < trace->header.n_lanes; i++)
        for (int c = 0; c < CAUSES; c++) {
            double expected_ms = 1e-6 * (double)found[i][c] / (double)steps.counted;
            assert_close(cause_ms(lanes, trace->lanes[i].name, cause_name[c]), expected_ms, ROUNDING_MS);
        }
    free(found);
    free_trace(trace);
}

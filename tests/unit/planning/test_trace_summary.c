/* test_trace_summary.c - `yard trace summary` and `yard trace diff`.
 *
 * This test compares what both commands print with numbers that were worked out by hand.  The example is in
 * support_trace.h.  Its window is the last three of its four steps, from 600 to 930 us, so most numbers are divided by
 * 330 us, or by 3 steps.
 *
 * To see it fail: in stats.c, count the first step too: first = 0.
 */
#include "planning/trace/follow.h"
#include "tests/support/support_trace.h"
#include "trainer/cmd/cmd.h"
#include "trainer/file/file.h"

#include <fcntl.h>
#include <math.h>

/* ---- summary ----------------------------------------------------------------------------------------------------- */

static void expect_lane(const json_t *summary, const char *name, double busy_us)
{
    const json_t *lane = object_named(json_object_get(summary, "lanes"), "name", name);
    expect_near(number_at(lane, "busy"), busy_us / 330); /* the window is from 600 to 930 */
    expect_near(number_at(lane, "busy_ms"), busy_us / 3 / 1000);
    expect_near(number_at(lane, "idle_ms"), (330 - busy_us) / 3 / 1000);
}

static void expect_task(const json_t *summary, const char *name, double per_step, double median_us, double total_us)
{
    const json_t *task = object_named(json_object_get(summary, "tasks"), "name", name);
    expect_near(number_at(task, "per_step"), per_step);
    expect_near(number_at(task, "median_us"), median_us);
    expect_near(number_at(task, "ms_per_step"), total_us / 3 / 1000);
    expect_near(number_at(task, "share"), total_us / 505);
}

static void check_example_summary(const json_t *json)
{
    expect_near(number_at(json, "period_ms"), 0.110);
    expect_near(number_at(json, "step_ms"), 0.170);
    expect_near(number_at(json, "first_step"), 2);
    expect_near(number_at(json, "steps"), 3);
    expect_lane(json, "0:0 compute", 50 + 60 + 45);
    expect_lane(json, "0:0 upload", 20 + 70 + 70); /* 550-600 lies before the window */
    expect_lane(json, "host cpu", 20 + 50 + 50);
    expect_lane(json, "0:0 compute2", 5 + 5 + 10);
}

TEST(the_summary_has_the_numbers_worked_out_by_hand)
{
    json_t *json = run_for_json(COMMAND("summary", (char *)make_example("a.trace"), "--json"), 0);
    check_example_summary(json);
    expect_task(json, "fwd", 2, 30, 155);
    expect_task(json, "load", 1, 70, 210);
    expect_task(json, "adamw", 1, 50, 120);
    expect_task(json, "side", 1, 5, 20);
    assert_int_equal(json_array_size(json_object_get(json, "tasks")), 4); /* eval is in another list */
    expect_near(number_at(object_named(json_object_get(json, "tasks"), "name", "fwd"), "gflops"), 18e6 / 155e3);
    expect_near(number_at(object_named(json_object_get(json, "tasks"), "name", "load"), "gbytes_per_s"), 2);
    json_decref(json);
}

/* The disk still writes step 1 when step 4 is nearly done: the window is that of the steps all the same. */
TEST(a_slow_disk_cuts_nothing)
{
    struct trace_lane with_disk[COUNT(example_lanes)];
    memcpy(with_disk, example_lanes, sizeof example_lanes);
    with_disk[3] = (struct trace_lane){.name = "host disk", .kind = LANE_DISK, .device_index = 1};
    struct trace slow = example_trace;
    struct task_run when[COUNT(example_runs)];
    size_t n = 0;
    slow.lanes = with_disk;
    for (size_t i = 0; i < COUNT(example_runs); i++)
        if (example_runs[i].task != SIDE)
            when[n++] = example_runs[i];
    when[n++] = (struct task_run){.step = 1, .task = SIDE, .start = 600, .end = 915};
    json_t *json = run_for_json(COMMAND("summary", (char *)make_trace("disk.trace", &slow, when, n), "--json"), 0);
    expect_near(number_at(json, "period_ms"), 0.110);
    expect_lane(json, "0:0 compute", 50 + 60 + 45);
    expect_lane(json, "host disk", 315);
    json_decref(json);
}

/* The lanes' numbers are means, so the period beside them is one: the last step is longer than the middle one. */
TEST(no_lane_is_busier_than_the_period)
{
    struct task_run uneven[COUNT(example_runs)];
    memcpy(uneven, example_runs, sizeof example_runs);
    for (size_t i = 0; i < COUNT(uneven); i++)
        if (uneven[i].step == 4 && uneven[i].task == FWD1)
            uneven[i].end = 1800;
        else if (uneven[i].step == 4 && uneven[i].task == ADAMW) {
            uneven[i].start = 1800;
            uneven[i].end = 1830;
        }
    json_t *json = run_for_json(
        COMMAND("summary", (char *)make_trace("uneven.trace", &example_trace, uneven, COUNT(uneven)), "--json"), 0);
    expect_near(number_at(json, "period_ms"), (1.830 - 0.600) / 3);
    expect_near(number_at(json, "median_period_ms"), 0.120);
    size_t i;
    json_t *lane;
    json_array_foreach(json_object_get(json, "lanes"), i, lane)
        expect_near(number_at(lane, "busy_ms") + number_at(lane, "idle_ms"), number_at(json, "period_ms"));
    json_decref(json);
}

/* Tasks that last from queue to sight overlap all over; the reader is told before the tables, unless it is one. */
TEST(approximate_times_are_called_so)
{
    for (size_t approximate = 0; approximate <= COUNT(example_runs); approximate++) {
        const char *path = temp_path("approximate.trace");
        struct trace_writer *writer = open_trace_writer(path, &example_trace, COUNT(example_runs));
        for (size_t i = 0; i < COUNT(example_runs); i++) {
            uint64_t number =
                begin_trace_record(writer, example_runs[i].step, example_runs[i].task, in_ns(example_runs[i].queued));
            end_trace_record(writer, number, in_ns(example_runs[i].start), in_ns(example_runs[i].end),
                             i < approximate ? TRACE_APPROXIMATE : 0);
        }
        close_trace_writer(writer);
        char *text = run_for_output(COMMAND("summary", (char *)path), 0),
             *warning = strstr(text, "The driver tells few times");
        assert_int_equal(warning != NULL, 10 * approximate > COUNT(example_runs));
        if (warning)
            assert_below(warning - text, strstr(text, "lane  ") - text);
        free(text);
    }
}

static void expect_part(const json_t *path, const char *name, double hops, double microseconds)
{
    const json_t *part = object_named(json_object_get(path, "parts"), "task", name);
    expect_near(number_at(part, "hops"), hops);
    expect_near(number_at(part, "ms"), microseconds / 1000);
    expect_near(number_at(part, "share"), microseconds / 110);
}

/* Step 4 has the median period: 820 to 930.  Back from adamw's end, each through an edge. */
TEST(the_critical_path_is_the_one_found_by_hand)
{
    json_t *json = run_for_json(COMMAND("summary", (char *)make_example("a.trace"), "--json"), 0);
    const json_t *path = json_object_get(json, "critical_path");
    expect_near(number_at(path, "step"), 4);
    expect_near(number_at(path, "ms"), 0.110);
    expect_part(path, "adamw", 1, 50);
    expect_part(path, "fwd", 2, 30 + 15);
    expect_part(path, "load", 1, 10); /* 760-830, of which 820-830 is this step's */
    expect_part(path, "(not yet queued)", 1, 2);
    expect_part(path, "(queued, not started)", 1, 3);
    assert_int_equal(json_array_size(json_object_get(path, "parts")), 5);
    json_decref(json);
}

/* fwd 0 has to wait for its lane, where another list's task runs, and that one waits for nothing. */
TEST(critical_path_follows_lanes)
{
    static const struct task_run when[] = {
        {.step = 1, .task = LOAD, .start = 0, .end = 5},
        {.step = 1, .task = EVAL, .start = 6, .end = 30},
        {.step = 1, .task = FWD0, .start = 30, .end = 40},
        {.step = 1, .task = FWD1, .start = 40, .end = 110},
    };
    json_t *json = run_for_json(
        COMMAND("summary", (char *)make_trace("lane.trace", &example_trace, when, COUNT(when)), "--json"), 0);
    const json_t *path = json_object_get(json, "critical_path");
    expect_part(path, "fwd", 2, 80);
    expect_part(path, "eval", 1, 24);
    expect_part(path, "(queued, not started)", 1, 6);
    assert_int_equal(json_array_size(json_object_get(path, "parts")), 3);
    json_decref(json);
}

static void check_hops(const char *file)
{
    struct trace *trace = read_trace(file);
    struct trace_steps steps = steps_of_list(trace, 0);
    for (size_t step = 0; step < steps.n; step++) {
        struct trace_path path = find_critical_path(trace, &steps, step);
        uint64_t to = path.end;
        for (size_t i = 0; i < path.n; i++) {
            assert_int_equal(path.hops[i].end, to);
            assert_at_most(path.hops[i].wait, path.hops[i].start);
            assert_at_most(path.hops[i].start, path.hops[i].end);
            to = path.hops[i].wait;
        }
        assert_int_equal(to, path.start);
        assert_int_equal(path.start, step ? steps.items[step - 1].end : 0);
        free(path.hops);
    }
    free_trace(trace);
}

/* The hops of a critical path fill the period, also when a producer seems to end after its consumer, by
 * two clocks that disagree. */
TEST(hops_fill_the_period)
{
    static const struct task_run crossed[] = {
        {.step = 1, .task = LOAD, .start = 0, .end = 60},
        {.step = 1, .task = FWD0, .start = 20, .end = 50},
        {.step = 1, .task = FWD1, .start = 50, .end = 70},
    };
    check_hops(make_example("a.trace"));
    check_hops(make_trace("crossed.trace", &example_trace, crossed, COUNT(crossed)));
}

/* Twice as slow and with a clock far from 0: the modelled times are the example's. */
static const char *make_paced(const char *name)
{
    struct trace paced = example_trace;
    paced.header.kind = TRACE_PACED;
    paced.header.pace_scale = 0.5;
    const char *path = temp_path(name);
    struct trace_writer *writer = open_trace_writer(path, &paced, COUNT(example_runs));
    uint64_t zero = 5000000000;
    for (size_t i = 0; i < COUNT(example_runs); i++)
        put_run(writer, &example_runs[i], zero, 2);
    close_trace_writer(writer);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &zero, sizeof zero, offsetof(struct trace_header, start_ns)), sizeof zero);
    close(fd);
    return path;
}

TEST(paced_times_are_modelled_times)
{
    const char *example_path = make_example("a.trace"), *paced = make_paced("paced.trace");
    json_t *summary = run_for_json(COMMAND("summary", (char *)paced, "--json"), 0);
    check_example_summary(summary);
    json_decref(summary);
    json_t *difference = run_for_json(COMMAND("diff", (char *)example_path, (char *)paced, "--json"), 0);
    expect_near(number_at(difference, "task_mape"), 0);
    expect_near(number_at(difference, "makespan_error"), 0);
    expect_near(number_at(difference, "makespan_b_ns"), 110000);
    json_decref(difference);
}

TEST(summary_takes_another_list_and_its_text_is_narrow)
{
    const char *path = make_example("a.trace");
    json_t *json = run_for_json(COMMAND("summary", (char *)path, "--list", "eval", "--json"), 0);
    expect_near(number_at(json, "step_ms"), 0.040);
    expect_near(number_at(json, "period_ms"), 0.040);
    json_decref(json);
    char *text = run_for_output(COMMAND("summary", (char *)path), 0);
    assert_contains(text, "critical path of step 4");
    assert_null(strchr(text, '\033')); /* stdout is no terminal */
    expect_narrow(text);
    free(text);
}

TEST(an_empty_trace_has_a_summary)
{
    const char *path = make_trace("empty.trace", &example_trace, NULL, 0);
    free(run_for_output(COMMAND("summary", (char *)path), 0));
    json_decref(run_for_json(COMMAND("summary", (char *)path, "--json"), 0));
    json_t *json = run_for_json(COMMAND("diff", (char *)path, (char *)path, "--json"), EXIT_FAILED);
    assert_true(json_is_null(json_object_get(json, "task_mape")));
    json_decref(json);
}

/* ---- diff -------------------------------------------------------------------------------------------------------- */

/* One step: load 7 longer and fwd 1 3 shorter than the example's medians (20, 30, 70, 50; eval 40). */
TEST(a_diff_names_what_is_longer_and_shorter)
{
    static const struct task_run other[] = {
        {.step = 1, .task = LOAD, .start = 0, .end = 77},    {.step = 1, .task = FWD0, .start = 77, .end = 97},
        {.step = 1, .task = FWD1, .start = 97, .end = 124},  {.step = 1, .task = ADAMW, .start = 124, .end = 174},
        {.step = 1, .task = EVAL, .start = 200, .end = 240}, {.step = 1, .task = SIDE, .start = 0, .end = 9},
    };
    struct trace_task renamed[N_TASKS];
    struct trace with = example_trace;
    memcpy(renamed, example_tasks, sizeof example_tasks);
    strcpy(renamed[SIDE].name, "other");
    with.tasks = renamed;
    const char *a = make_example("a.trace"), *b = make_trace("b.trace", &with, other, COUNT(other));
    json_t *json = run_for_json(COMMAND("diff", (char *)a, (char *)b, "--json"), 0);
    expect_near(number_at(json, "task_mape"), 10.0 / 210);
    expect_near(number_at(json, "makespan_a_ns"), 110000);
    expect_near(number_at(json, "makespan_b_ns"), 174000);
    expect_near(number_at(json, "makespan_error"), 174.0 / 110 - 1);
    expect_near(number_at(json, "matched"), 5);
    const json_t *worst = json_array_get(json_object_get(json, "worst"), 0);
    assert_string_equal(json_string_value(json_object_get(worst, "task")), "load on 0:0 upload (train)");
    expect_near(number_at(worst, "error"), 0.1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(json, "unmatched_a"), 0)),
                        "side on 0:0 compute2 (train)");
    assert_string_equal(json_string_value(json_array_get(json_object_get(json, "unmatched_b"), 0)),
                        "other on 0:0 compute2 (train)");
    assert_int_equal(json_array_size(json_object_get(json, "unmatched_b")), 1);
    json_decref(json);
    free(run_for_output(COMMAND("diff", (char *)a, (char *)b), 0));
    json = run_for_json(COMMAND("diff", (char *)a, (char *)b, "--json", "--list", "train"), 0);
    expect_near(number_at(json, "task_mape"), 10.0 / 170);
    json_decref(json);
}

/* Tasks that nothing tells apart match in order, and one too many is left over. */
TEST(tasks_of_equal_names_match_in_their_order)
{
    static const struct task_run two[] = {
        {.step = 1, .task = LOAD, .start = 0, .end = 10},
        {.step = 1, .task = FWD0, .start = 10, .end = 30},
    };
    static const struct task_run three[] = {
        {.step = 1, .task = LOAD, .start = 0, .end = 10},
        {.step = 1, .task = FWD0, .start = 10, .end = 30},
        {.step = 1, .task = FWD1, .start = 30, .end = 70},
    };
    struct trace_task same[N_TASKS] = {0};
    struct trace with = example_trace;
    for (int i = 0; i < N_TASKS; i++)
        same[i] = example_tasks[LOAD];
    with.tasks = same;
    const char *a = make_trace("two.trace", &with, two, 2), *b = make_trace("three.trace", &with, three, 3);
    json_t *json = run_for_json(COMMAND("diff", (char *)a, (char *)b, "--json"), 0);
    expect_near(number_at(json, "task_mape"), 0);
    expect_near(number_at(json, "matched"), 2);
    assert_int_equal(json_array_size(json_object_get(json, "unmatched_a")), 0);
    assert_int_equal(json_array_size(json_object_get(json, "unmatched_b")), 1);
    json_decref(json);
}

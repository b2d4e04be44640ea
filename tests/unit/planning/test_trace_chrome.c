/* test_trace_chrome.c - `yard trace export --chrome`: slices, arrows and counters of Chrome's JSON.
 *
 * It tests trace_export.c of src/planning/trace.  It checks that each record is a slice at its time and on its lane,
 * that each wait is an arrow from the end of one slice to the beginning of another, and that counters add up to the
 * memory in use.  It catches a slice of length 0, which a viewer drops, an arrow that leads nowhere, and a number that
 * is left out because it is 0.
 *
 * To see it fail: in trace_export.c, leave out numbers that are 0: > 0 in from_0().
 *
 * The example is in support_trace.h.  The expected slices and arrows follow from its table.
 */
#include "tests/support/child.h"
#include "tests/support/support_trace.h"
#include "tests/support/support_view.h"
#include "trainer/cmd/cmd.h"
#include "trainer/file/file.h"

#include <math.h>

/* ---- Chrome's JSON ----------------------------------------------------------------------------------------------- */

/* The example, with what measured times do: a slice that starts 3 ns before the one before it on its lane ended, a
 * consumer that starts before its producer ended, one that starts before its producer started, and no length. */
static const char *make_untidy(void)
{
    const char *path = temp_path("untidy.trace");
    struct trace_writer *writer = open_trace_writer(path, &example_trace, 100);
    for (size_t i = 0; i < COUNT(example_runs); i++)
        put_run(writer, &example_runs[i], 0, 1);
    end_trace_record(writer, begin_trace_record(writer, 5, LOAD, 0), in_ns(2000), in_ns(2100), 0);
    end_trace_record(writer, begin_trace_record(writer, 5, FWD0, 0), in_ns(2100) - 5, in_ns(2200), 0);
    end_trace_record(writer, begin_trace_record(writer, 5, FWD1, 0), in_ns(2200) - 3, in_ns(2300) + 1,
                     TRACE_APPROXIMATE);
    end_trace_record(writer, begin_trace_record(writer, 5, ADAMW, 0), in_ns(2200) - 2, in_ns(2400), 0);
    end_trace_record(writer, begin_trace_record(writer, 6, LOAD, 0), in_ns(2500), in_ns(2500), 0);
    end_trace_record(writer, begin_trace_record(writer, 6, FWD0, 0), in_ns(2500), in_ns(2600), 0);
    close_trace_writer(writer);
    return path;
}

struct x_event {
    int64_t start, end; /* ns */
    json_int_t lane;
    const char *name;
    json_int_t step;
};

struct flow {
    json_int_t id, lane;
    int64_t at;
    bool finish;
};

enum { MOST_EVENTS = 100 };

struct events {
    struct x_event x[MOST_EVENTS];
    struct flow flow[MOST_EVENTS];
    size_t n_x, n_flow;
};

/* A time of an event, which Chrome has in microseconds; 0 where the event has none. */
static int64_t ns_of(const json_t *event, const char *key)
{
    return llround(1000 * json_number_value(json_object_get(event, key)));
}

static void take_slice(struct events *events, const json_t *event)
{
    const json_t *args = json_object_get(event, "args");
    int64_t start = ns_of(event, "ts");
    assert_int_equal(events->n_flow, 0); /* an arrow needs its slice before it */
    assert_below(events->n_x, MOST_EVENTS);
    events->x[events->n_x++] = (struct x_event){.start = start,
                                                .end = start + ns_of(event, "dur"),
                                                .lane = json_integer_value(json_object_get(event, "tid")),
                                                .name = json_string_value(json_object_get(event, "name")),
                                                .step = json_integer_value(json_object_get(args, "step"))};
}

/* Takes one of an arrow's two ends. */
static void take_flow(struct events *events, const json_t *event, bool finish)
{
    if (finish)
        assert_string_equal(json_string_value(json_object_get(event, "bp")), "e");
    else
        assert_null(json_object_get(event, "bp")); /* the key is left out, and not null */
    assert_below(events->n_flow, MOST_EVENTS);
    events->flow[events->n_flow++] = (struct flow){.id = json_integer_value(json_object_get(event, "id")),
                                                   .lane = json_integer_value(json_object_get(event, "tid")),
                                                   .at = ns_of(event, "ts"),
                                                   .finish = finish};
}

static struct events collect(const json_t *root)
{
    static struct events events;
    size_t i;
    json_t *event;
    memset(&events, 0, sizeof events);
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        const char *ph = json_string_value(json_object_get(event, "ph"));
        const json_t *args = json_object_get(event, "args");
        assert_above(json_integer_value(json_object_get(event, "tid")), 0);
        assert_above(json_integer_value(json_object_get(event, "pid")), 0);
        if (ph[0] == 'X') {
            take_slice(&events, event);
        } else if (ph[0] == 's' || ph[0] == 'f') {
            take_flow(&events, event, ph[0] == 'f');
        } else if (ph[0] == 'C') {
            assert_string_equal(json_string_value(json_object_get(event, "name")), "memory");
        } else {
            assert_string_equal(ph, "M");
            if (strstr(json_string_value(json_object_get(event, "name")), "sort_index"))
                assert_true(json_is_integer(json_object_get(args, "sort_index")));
        }
    }
    return events;
}

static json_t *exported(const char *trace, const char *out, const char *steps)
{
    size_t n;
    json_error_t error;
    free(run_for_output(COMMAND("export", (char *)trace, "--chrome", (char *)out, "--steps", (char *)steps), 0));
    char *text = read_bytes(out, &n);
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        test_failed("%s\n", error.text);
    free(text);
    return root;
}

/* The slice of the lane that is open at this time. */
static const struct x_event *open_slice(const struct events *events, json_int_t lane, int64_t at)
{
    const struct x_event *found = NULL;
    for (size_t i = 0; i < events->n_x; i++)
        if (events->x[i].lane == lane && events->x[i].start <= at && at < events->x[i].end)
            found = &events->x[i];
    return found;
}

TEST(chrome_slices_of_a_lane_do_not_overlap)
{
    json_t *root = exported(make_untidy(), temp_path("untidy.json.gz"), "1:");
    struct events events = collect(root);
    assert_int_equal(events.n_x, COUNT(example_runs) - 1 + 6); /* one is of an evaluation */
    int64_t lane_end[8] = {0};
    for (size_t i = 0; i < events.n_x; i++) {
        assert_at_least(events.x[i].start, lane_end[events.x[i].lane]);
        assert_at_least(events.x[i].end, events.x[i].start);
        lane_end[events.x[i].lane] = events.x[i].end;
    }
    json_decref(root);
}

TEST(chrome_arrows_join_their_slices)
{
    json_t *root = exported(make_untidy(), temp_path("untidy.json.gz"), "1:");
    struct events events = collect(root);
    size_t backwards = 0;
    for (size_t i = 0; i < events.n_flow; i += 2) {
        const struct flow *start = &events.flow[i], *finish = &events.flow[i + 1];
        assert_false(start->finish);
        assert_true(finish->finish);
        assert_int_equal(start->id, finish->id);
        for (size_t k = 0; k < events.n_flow; k++)
            if (k / 2 != i / 2)
                assert_int_not_equal(events.flow[k].id, start->id);
        const struct x_event *from = open_slice(&events, start->lane, start->at),
                             *to = open_slice(&events, finish->lane, finish->at);
        assert_non_null(from);
        assert_non_null(to);
        assert_at_most(start->at, finish->at);
        bool load = strcmp(from->name, "load") == 0 && strcmp(to->name, "fwd") == 0 && from->step == to->step;
        bool update = strcmp(from->name, "fwd") == 0 && strcmp(to->name, "adamw") == 0 && from->step == to->step;
        bool weights = strcmp(from->name, "adamw") == 0 && strcmp(to->name, "fwd") == 0 && from->step + 1 == to->step;
        if (!load && !update && !weights)
            test_failed("arrow from %s of step %d to %s of step %d\n", from->name, (int)from->step, to->name,
                        (int)to->step);
        if (from->start > to->start)
            backwards++;
    }
    assert_int_equal(backwards, 0);
    /* steps 1 to 4: 4 loads, 4 updates, 3 weights.  Step 5: a load, the weights; its update is drawn
     * before its producer.  Step 6: the weights; its load has no length. */
    assert_int_equal(events.n_flow, 2 * (4 + 4 + 3 + 2 + 1));
    json_decref(root);
}

/* The sends of this list take no time, and cannot hold the end of an arrow: 18 arrows go down the stages and 18 come
 * up, from the task that made what is sent to the one that reads it. */
TEST(chrome_arrows_pass_through_what_takes_no_time)
{
    char *trace = trace_of_list("data/steps/1f1b.txt");
    json_t *root = exported(trace, temp_path("1f1b.json.gz"), "2");
    struct events events = collect(root);
    size_t down = 0, up = 0;
    for (size_t i = 0; i < events.n_flow; i += 2) {
        const struct flow *start = &events.flow[i], *finish = &events.flow[i + 1];
        const struct x_event *from = open_slice(&events, start->lane, start->at),
                             *to = open_slice(&events, finish->lane, finish->at);
        assert_non_null(from);
        assert_non_null(to);
        assert_int_equal(finish->at, to->start);
        assert_string_equal(from->name, to->name);
        if (strcmp(from->name, "forward") == 0 && start->lane < finish->lane)
            down++;
        if (strcmp(from->name, "backward") == 0 && start->lane > finish->lane)
            up++;
    }
    assert_int_equal(down, 18);
    assert_int_equal(up, 18);
    assert_int_equal(events.n_flow, 2 * (down + up));
    json_decref(root);
    free(trace);
}

/* The second forward of step 4 was queued at 832, when its batch was there for 2 us, on a lane that was free at 770. */
TEST(chrome_says_what_was_waited_for)
{
    json_t *root = exported(make_example("a.trace"), temp_path("a.json.gz"), "4"), *event;
    size_t i, n = 0;
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        const json_t *args = json_object_get(event, "args"), *idle = json_object_get(args, "idle_us");
        if (!json_object_get(idle, "link"))
            continue;
        assert_string_equal(json_string_value(json_object_get(args, "last_producer")), "load");
        expect_near(number_at(idle, "link"), 830 - 770);
        expect_near(number_at(idle, "host"), 832 - 830);
        expect_near(number_at(idle, "launch"), 835 - 832);
        n++;
    }
    assert_int_equal(n, 1);
    json_decref(root);
}

TEST(chrome_shows_the_steps_asked_for)
{
    const char *out = temp_path("steps.json");
    json_t *root = exported(make_example("a.trace"), out, "2:3");
    struct events events = collect(root);
    assert_int_equal(events.n_x, 2 * 5);              /* two steps of five tasks */
    assert_int_equal(events.n_flow, 2 * (2 + 2 + 1)); /* the weights of step 1 are not shown, nor an arrow from them */
    assert_int_equal(events.x[0].start, 0);
    assert_string_equal(events.x[0].name, "load");
    assert_int_equal(events.x[0].end, 70000);
    FILE *file = fopen(out, "rb"); /* plain: the name does not end in .gz */
    assert_int_equal(fgetc(file), '{');
    fclose(file);
    const json_t *first_fwd = object_named(json_object_get(root, "traceEvents"), "name", "fwd");
    const json_t *args = json_object_get(first_fwd, "args");
    expect_near(number_at(args, "flops"), 3e6);
    expect_near(number_at(args, "GFLOP/s"), 150); /* its 3e6 FLOPs take 20 us in step 2 */
    expect_near(number_at(args, "layer"), 0);
    json_decref(root);
}

/* x lives from FWD0's start to ADAMW's end; steps 2 and 3 are 550 to 820, and weights are kept on both devices. */
TEST(chrome_counts_what_memory_holds)
{
    static const struct {
        int pid, us, bytes;
    } expected[] = {{1, 0, 50}, {1, 50, 0}, {1, 80, 50}, {1, 150, 0}, {1, 160, 50}, {1, 270, 0}, {2, 0, 0}};
    json_t *root = exported(make_example("a.trace"), temp_path("memory.json"), "2:3"), *event;
    size_t i, n = 0;
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        const json_t *args = json_object_get(event, "args");
        if (strcmp(json_string_value(json_object_get(event, "ph")), "C") != 0)
            continue;
        assert_below(n, COUNT(expected));
        expect_near(number_at(event, "pid"), expected[n].pid);
        expect_near(number_at(event, "ts"), expected[n].us);
        expect_near(number_at(args, "parameters"), expected[n].pid == 1 ? 100 : 7);
        expect_near(number_at(args, "activations"), expected[n++].bytes);
    }
    assert_int_equal(n, COUNT(expected));
    json_decref(root);
}

/* Lists count their steps each for itself. */
TEST(chrome_shows_one_list)
{
    char *path = (char *)make_example("a.trace"), *out = temp_path("list.json");
    static const struct {
        char *list;
        size_t n;
        const char *says;
    } shown[] = {{"train", COUNT(example_runs) - 1, "of list train"}, {"eval", 1, "of list eval"}};
    for (size_t i = 0; i < COUNT(shown); i++) {
        char *text = run_for_output(COMMAND("export", path, "--chrome", out, "--list", shown[i].list), 0);
        assert_contains(text, shown[i].says);
        json_t *root = json_load_file(out, JSON_REJECT_DUPLICATES, NULL);
        assert_int_equal(collect(root).n_x, shown[i].n);
        json_decref(root);
        free(text);
    }
    expect_refusal(run_in_child, COMMAND("export", path, "--chrome", out, "--list", "eval", "--steps", "99:"),
                   EXIT_USAGE, "of list eval, none that --steps asks for");
}

/* Chrome has microseconds, and the trace nanoseconds.  A task without a predicted time has no such field. */
TEST(chrome_says_the_predicted_time)
{
    example_tasks[FWD0].predicted_ns = 1500;
    json_t *root = exported(make_example("a.trace"), temp_path("a.json.gz"), "4"), *event;
    example_tasks[FWD0].predicted_ns = 0;
    size_t i, n = 0;
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        const json_t *args = json_object_get(event, "args");
        if (!json_object_get(args, "predicted_us"))
            continue;
        assert_string_equal(json_string_value(json_object_get(event, "name")), "fwd");
        expect_near(number_at(args, "predicted_us"), 1.5);
        n++;
    }
    assert_int_equal(n, 1);
    json_decref(root);
}

TEST(chrome_keeps_nanoseconds)
{
    const char *path = temp_path("long.trace");
    uint64_t day = 86400ull * 1000000000;
    struct trace_writer *writer = open_trace_writer(path, &example_trace, 100);
    end_trace_record(writer, begin_trace_record(writer, 1, LOAD, 0), 1, 4, 0);
    for (uint64_t i = 0; i < 90; i++)
        end_trace_record(writer, begin_trace_record(writer, 2, LOAD, 0), day + 3 * i, day + 3 * i + 3, 0);
    close_trace_writer(writer);
    json_t *root = exported(path, temp_path("long.json.gz"), "1:2");
    struct events events = collect(root);
    for (size_t i = 0; i < 90; i++)
        assert_int_equal(events.x[i + 1].start, (int64_t)(day + 3 * i) - 1);
    json_decref(root);
}

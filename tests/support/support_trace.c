/* support_trace.c - an example of a trace whose numbers are worked out by hand, and `yard trace` run on it. */
#include "support_trace.h"

#include "child.h"
#include "trainer/cmd/cmd.h"
#include "trainer/file/file.h"

#include <math.h>
#include <zlib.h>

/* ---- the example ------------------------------------------------------------------------------------------------- */

struct trace_device example_devices[] = {
    {.id = "0:0", .name = "pthread", .budget = 1 << 20},
    {.id = "host", .name = "host", .budget = 1 << 20},
};

struct trace_lane example_lanes[] = {
    {.name = "0:0 compute", .kind = LANE_COMPUTE, .flops_per_s = 1e9},
    {.name = "0:0 upload", .kind = LANE_UPLOAD, .bytes_per_s = 1e9},
    {.name = "host cpu", .kind = LANE_CPU, .device_index = 1},
    {.name = "0:0 compute2", .kind = LANE_COMPUTE, .flops_per_s = 1e9},
};

struct trace_edge example_edges[] = {{LOAD, 0, 0}, {ADAMW, 1, 0}, {FWD0, 0, 0}, {FWD1, 0, 1}};

struct trace_task example_tasks[N_TASKS] = {
    [LOAD] = {.name = "load", .layer = -1, .micro = -1, .lane = 1, .bytes = 140000},
    [FWD0] = {.name = "fwd", .flops = 3e6, .n_edges = 2, .role = 1, .shape = "4x8 <- 4x2, 2x8"},
    [FWD1] = {.name = "fwd", .layer = 1, .flops = 3e6, .first_edge = 2, .n_edges = 1, .role = 1},
    [ADAMW] = {.name = "adamw", .layer = -1, .micro = -1, .lane = 2, .first_edge = 3, .n_edges = 1},
    [SIDE] = {.name = "side", .layer = -1, .micro = -1, .lane = 3},
    [EVAL] = {.name = "eval", .layer = -1, .micro = -1, .list = 1}};

/* Weights are kept; x is made by FWD0, for ADAMW; y is of the eval list. */
struct trace_tensor example_tensors[] = {{.name = "w", .bytes = 100},
                                         {.name = "x", .class = 1, .n_uses = 3, .bytes = 50},
                                         {.name = "m", .device = 1, .first_use = 3, .bytes = 7},
                                         {.name = "y", .class = 1, .list = 1, .first_use = 3, .n_uses = 1, .bytes = 3}};

uint32_t example_uses[] = {FWD0, FWD1, ADAMW, EVAL};

const struct trace example_trace = {.header = {.kind = TRACE_SIMULATED,
                                               .pace_scale = 1,
                                               .model = "example",
                                               .n_devices = COUNT(example_devices),
                                               .n_lanes = COUNT(example_lanes),
                                               .n_tasks = N_TASKS,
                                               .n_edges = COUNT(example_edges),
                                               .n_tensors = COUNT(example_tensors),
                                               .n_uses = COUNT(example_uses),
                                               .n_lists = 2,
                                               .n_roles = 2,
                                               .n_classes = 2,
                                               .list = {"train", "eval"},
                                               .role = {"other", "forward"},
                                               .memory = {"parameters", "activations"}},
                                    .devices = example_devices,
                                    .lanes = example_lanes,
                                    .tasks = example_tasks,
                                    .edges = example_edges,
                                    .tensors = example_tensors,
                                    .uses = example_uses};

const struct task_run example_runs[] = {
    {.step = 1, .task = LOAD, .start = 0, .end = 100},
    {.step = 1, .task = FWD0, .start = 100, .end = 300},
    {.step = 1, .task = FWD1, .start = 300, .end = 500},
    {.step = 1, .task = ADAMW, .start = 500, .end = 600},
    {.step = 2, .task = LOAD, .start = 550, .end = 620},
    {.step = 2, .task = FWD0, .start = 630, .end = 650},
    {.step = 2, .task = FWD1, .start = 650, .end = 680},
    {.step = 2, .task = ADAMW, .start = 680, .end = 700},
    {.step = 2, .task = SIDE, .start = 635, .end = 640},
    {.step = 3, .task = LOAD, .start = 640, .end = 710},
    {.step = 3, .task = FWD0, .start = 710, .end = 740},
    {.step = 3, .task = FWD1, .start = 740, .end = 770},
    {.step = 3, .task = ADAMW, .start = 770, .end = 820},
    {.step = 3, .task = SIDE, .start = 712, .end = 717},
    {.step = 4, .task = LOAD, .start = 760, .end = 830},
    {.step = 4, .task = FWD0, .start = 835, .end = 850, .queued = 832},
    {.step = 4, .task = FWD1, .start = 850, .end = 880},
    {.step = 4, .task = ADAMW, .start = 880, .end = 930},
    {.step = 4, .task = SIDE, .start = 840, .end = 850},
    {.step = 4, .task = EVAL, .start = 1000, .end = 1040},
};

void put_run(struct trace_writer *writer, const struct task_run *run, uint64_t zero, unsigned scale)
{
    uint64_t unit = 1000 * scale;
    uint64_t number = begin_trace_record(writer, run->step, run->task, zero + run->queued * unit);
    end_trace_record(writer, number, zero + run->start * unit, zero + run->end * unit, 0);
}

const char *make_trace(const char *name, const struct trace *with, const struct task_run *when, size_t n)
{
    const char *path = temp_path(name);
    unlink(path); /* what a test has damaged is no trace any more, and stays */
    struct trace_writer *writer = open_trace_writer(path, with, n + 3);
    for (size_t i = 0; i < n; i++)
        put_run(writer, &when[i], 0, 1);
    close_trace_writer(writer);
    return path;
}

const char *make_example(const char *name)
{
    return make_trace(name, &example_trace, example_runs, COUNT(example_runs));
}

void *read_bytes(const char *path, size_t *n)
{
    gzFile in = gzopen(path, "rb"); /* reads plain files too */
    assert_non_null(in);
    char *bytes = allocate(1 << 24, 1);
    int got = gzread(in, bytes, (1 << 24) - 1);
    assert_at_least(got, 0);
    gzclose(in);
    *n = (size_t)got;
    return bytes;
}

uint64_t in_ns(unsigned x) { return (uint64_t)x * 1000; }

void expect_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * fabs(b) + 1e-12))
        test_failed("expected %.12g, got %.12g\n", b, a);
}

/* ---- running yard trace ------------------------------------------------------------------------------------------ */

void run_in_child(void *argument)
{
    struct command *command = argument;
    if (!freopen(command->out ? command->out : "/dev/null", "w", stdout))
        _exit(99);
    enum exit_code code = find_command("trace")->run(command->argc, command->argv);
    fflush(stdout);
    _exit((int)code);
}

/* What the command writes on stdout, in a process of its own; the caller frees it. */
char *run_for_output(struct command *command, int expected)
{
    const char *path = temp_path("output");
    size_t n;
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen(path, "w", stdout))
            _exit(99);
        enum exit_code code = find_command("trace")->run(command->argc, command->argv);
        fflush(stdout);
        _exit((int)code);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, expected);
    return read_whole(path, &n);
}

json_t *run_for_json(struct command *command, int expected)
{
    json_error_t error;
    char *text = run_for_output(command, expected);
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        test_failed("%s:\n%s\n", error.text, text);
    free(text);
    return object;
}

void expect_narrow(const char *text)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (n > 100)
            test_failed("%zu columns: %.*s\n", n, (int)n, text);
    }
}

/* The object of an array that has this name. */
const json_t *object_named(const json_t *array, const char *key, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach(array, i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, key)), name) == 0)
            return one;
    }
    test_failed("nothing is named %s\n", name);
    return NULL;
}

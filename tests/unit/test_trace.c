/* test_trace.c - trace files and `yard trace`: numbers worked out by hand, damaged and living files, Chrome's JSON. */
#include "tests/support/child.h"
#include "tools/trace/follow.h"
#include "trainer/cmd/cmd.h"
#include "trainer/file/file.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <zlib.h>

/* ---- the example --------------------------------------------------------------------------------------------------
 *
 * Four lanes, the last a second compute lane of the same device; times in microseconds.  Step 2 begins before step 1
 * ends.  Steps end at 600, 700, 820 and 930, so they are 100, 120 and 110 apart.
 *
 *            step 1      step 2                step 3                step 4
 *   load       0-100     550-620               640-710               760-830
 *   fwd 0    100-300     630-650               710-740               835-850, queued 832
 *   fwd 1    300-500     650-680               740-770               850-880
 *   adamw    500-600     680-700               770-820               880-930
 *   side                 635-640               712-717               840-850
 *   eval                                                             1000-1040, once, in a list of its own
 */
enum { LOAD, FWD0, FWD1, ADAMW, SIDE, EVAL, N_TASKS };
static struct trace_device devices[] = {{"0:0", "pthread", 1 << 20, 0}, {"host", "host", 1 << 20, 0}};
static struct trace_lane lanes[] = {{"0:0 compute", LANE_COMPUTE, 0, 1e9, 0},
                                    {"0:0 upload", LANE_UPLOAD, 0, 0, 1e9},
                                    {"host cpu", LANE_CPU, 1, 0, 0},
                                    {"0:0 compute2", LANE_COMPUTE, 0, 1e9, 0}};
static struct trace_edge edges[] = {{LOAD, 0, 0}, {ADAMW, 1, 0}, {FWD0, 0, 0}, {FWD1, 0, 1}};
static struct trace_task tasks[N_TASKS] = {
    [LOAD] = {.name = "load", .layer = -1, .micro = -1, .lane = 1, .bytes = 140000},
    [FWD0] = {.name = "fwd", .flops = 3e6, .n_edges = 2, .role = 1, .shape = "4x8 <- 4x2, 2x8"},
    [FWD1] = {.name = "fwd", .layer = 1, .flops = 3e6, .first_edge = 2, .n_edges = 1, .role = 1},
    [ADAMW] = {.name = "adamw", .layer = -1, .micro = -1, .lane = 2, .first_edge = 3, .n_edges = 1},
    [SIDE] = {.name = "side", .layer = -1, .micro = -1, .lane = 3},
    [EVAL] = {.name = "eval", .layer = -1, .micro = -1, .list = 1}};
/* Weights are kept; x is made by FWD0, for ADAMW; y is of the eval list. */
static struct trace_tensor tensors[] = {{.name = "w", .bytes = 100},
                                        {.name = "x", .class = 1, .n_uses = 3, .bytes = 50},
                                        {.name = "m", .device = 1, .first_use = 3, .bytes = 7},
                                        {.name = "y", .class = 1, .list = 1, .first_use = 3, .n_uses = 1, .bytes = 3}};
static uint32_t uses[] = {FWD0, FWD1, ADAMW, EVAL};
static const struct trace tables = {.header = {.kind = TRACE_SIMULATED,
                                               .pace_scale = 1,
                                               .model = "example",
                                               .n_devices = COUNT(devices),
                                               .n_lanes = COUNT(lanes),
                                               .n_tasks = N_TASKS,
                                               .n_edges = COUNT(edges),
                                               .n_tensors = COUNT(tensors),
                                               .n_uses = COUNT(uses),
                                               .n_lists = 2,
                                               .n_roles = 2,
                                               .n_classes = 2,
                                               .list = {"train", "eval"},
                                               .role = {"other", "forward"},
                                               .memory = {"parameters", "activations"}},
                                    .devices = devices,
                                    .lanes = lanes,
                                    .tasks = tasks,
                                    .edges = edges,
                                    .tensors = tensors,
                                    .uses = uses};

struct when {
    uint32_t step, task;
    unsigned start, end, queued; /* microseconds */
};
static const struct when example[] = {
    {1, LOAD, 0, 100, 0},    {1, FWD0, 100, 300, 0},  {1, FWD1, 300, 500, 0}, {1, ADAMW, 500, 600, 0},
    {2, LOAD, 550, 620, 0},  {2, FWD0, 630, 650, 0},  {2, FWD1, 650, 680, 0}, {2, ADAMW, 680, 700, 0},
    {2, SIDE, 635, 640, 0},  {3, LOAD, 640, 710, 0},  {3, FWD0, 710, 740, 0}, {3, FWD1, 740, 770, 0},
    {3, ADAMW, 770, 820, 0}, {3, SIDE, 712, 717, 0},  {4, LOAD, 760, 830, 0}, {4, FWD0, 835, 850, 832},
    {4, FWD1, 850, 880, 0},  {4, ADAMW, 880, 930, 0}, {4, SIDE, 840, 850, 0}, {4, EVAL, 1000, 1040, 0}};

static void put(struct trace_writer *w, const struct when *x, uint64_t zero, unsigned scale)
{
    uint64_t unit = 1000 * scale;
    uint64_t number = trace_begin(w, x->step, x->task, zero + x->queued * unit);
    trace_end(w, number, zero + x->start * unit, zero + x->end * unit, 0);
}

static const char *make(const char *name, const struct trace *with, const struct when *when, size_t n)
{
    const char *path = temp_path(name);
    unlink(path); /* what a test has damaged is no trace any more, and stays */
    struct trace_writer *w = trace_create(path, with, n + 3);
    for (size_t i = 0; i < n; i++)
        put(w, &when[i], 0, 1);
    trace_close(w);
    return path;
}

static const char *make_example(const char *name) { return make(name, &tables, example, COUNT(example)); }

static void *read_bytes(const char *path, size_t *n)
{
    gzFile in = gzopen(path, "rb"); /* reads plain files too */
    assert_non_null(in);
    char *bytes = allocate(1 << 24, 1);
    int got = gzread(in, bytes, (1 << 24) - 1);
    assert_true(got >= 0);
    gzclose(in);
    *n = (size_t)got;
    return bytes;
}

static uint64_t us(unsigned x) { return (uint64_t)x * 1000; }
static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * fabs(b) + 1e-12))
        test_failed("expected %.12g, got %.12g\n", b, a);
}

/* ---- running yard trace ---------------------------------------------------------------------------------------- */

struct command {
    int argc;
    char *argv[8];
    const char *out; /* a file for its stdout; NULL: that goes nowhere */
};
#define COMMAND(...) (&(struct command){COUNT(((char *[]){__VA_ARGS__})), {__VA_ARGS__}, NULL})

static void run_in_child(void *argument)
{
    struct command *c = argument;
    if (!freopen(c->out ? c->out : "/dev/null", "w", stdout))
        _exit(99);
    int code = find_command("trace")->run(c->argc, c->argv);
    fflush(stdout);
    _exit(code);
}

/* What the command writes on stdout, in a process of its own; the caller frees it. */
static char *output_of(struct command *c, int expected)
{
    const char *path = temp_path("output");
    size_t n;
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int code = freopen(path, "w", stdout) ? find_command("trace")->run(c->argc, c->argv) : 99;
        fflush(stdout);
        _exit(code);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, expected);
    return read_whole(path, &n);
}

static json_t *json_of(struct command *c, int expected)
{
    json_error_t error;
    char *text = output_of(c, expected);
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        test_failed("%s:\n%s\n", error.text, text);
    free(text);
    return object;
}

static void expect_narrow(const char *text)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (n > 100)
            test_failed("%zu columns: %.*s\n", n, (int)n, text);
    }
}

static double number_at(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* The object of an array that has this name. */
static const json_t *named(const json_t *array, const char *key, const char *name)
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

/* ---- writing and reading --------------------------------------------------------------------------------------- */

TEST(what_is_written_is_read)
{
    const char *path = make_example("example.trace");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    struct trace *t = trace_open(path);
    assert_int_equal(t->n_records, COUNT(example));
    assert_int_equal(t->n_unfinished + t->n_lost, 0);
    assert_int_equal((uint64_t)st.st_size, t->header.records_at + COUNT(example) * sizeof(struct trace_record));
    assert_string_equal(t->header.list[1], "eval");
    assert_memory_equal(t->tasks, tasks, sizeof tasks);
    assert_memory_equal(t->edges, edges, sizeof edges);
    assert_memory_equal(t->lanes, lanes, sizeof lanes);
    for (size_t i = 1; i < t->n_records; i++)
        assert_true(t->records[i - 1].start <= t->records[i].start);
    assert_int_equal(t->steps[0].n, 4);
    assert_int_equal(t->steps[0].step[0].step, 1);
    assert_int_equal(t->whole_step, 4);
    trace_free(t);
}

TEST(impossible_ends_are_mended)
{
    const char *path = temp_path("mended.trace");
    struct trace_writer *w = trace_create(path, &tables, 4);
    trace_end(w, trace_begin(w, 1, LOAD, 0), 0, 0, 0);
    trace_end(w, trace_begin(w, 1, FWD0, 0), 90, 70, 0);
    trace_close(w);
    struct trace *t = trace_open(path);
    assert_int_equal(t->n_records, 2);
    assert_int_equal(t->records[0].end, 1);
    assert_int_equal(t->records[0].flags, 0);
    assert_int_equal(t->records[1].start, 70);
    assert_int_equal(t->records[1].end, 70);
    assert_int_equal(t->records[1].flags, TRACE_APPROXIMATE);
    trace_free(t);
}

static void write_and_die(void *path)
{
    struct trace_writer *w = trace_create(path, &tables, 100);
    for (size_t i = 0; i < 7; i++) /* step 1 and most of step 2 */
        put(w, &example[i], 0, 1);
    trace_begin(w, 2, ADAMW, us(555));
    kill(getpid(), SIGKILL);
}

TEST(file_of_a_killed_writer_opens)
{
    const char *path = temp_path("killed.trace");
    assert_int_equal(run_child(write_and_die, (void *)path).signal, SIGKILL);
    struct trace *t = trace_open(path);
    assert_int_equal(t->header.closed_ns, 0);
    assert_int_equal(t->n_records, 7);
    assert_int_equal(t->n_unfinished, 1);
    assert_int_equal(t->unfinished[0].task, ADAMW);
    assert_int_equal(t->unfinished[0].queued, us(555));
    assert_int_equal(t->whole_step, 1);
    struct trace_steps s = trace_steps_of(t, 0);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.counted, 1); /* step 2 is not whole: only the warm-up is left */
    assert_int_equal(s.steps[s.first].step, 1);
    trace_free(t);
    free(output_of(COMMAND("summary", (char *)path), 0));
}

/* A step that is not whole is no last step, nor are those after it: how they would end is not known. */
TEST(unfinished_step_is_not_whole)
{
    const char *path = temp_path("unfinished.trace");
    struct trace_writer *w = trace_create(path, &tables, 100);
    for (size_t i = 0; i < 14; i++)
        put(w, &example[i], 0, 1);
    trace_begin(w, 3, EVAL, us(900));
    put(w, &example[14], 0, 1);
    trace_close(w);
    struct trace *t = trace_open(path);
    assert_int_equal(t->steps[0].step[t->steps[0].n - 1].step, 4);
    assert_int_equal(t->whole_step, 2);
    trace_free(t);
}

/* The writer goes on, whatever is taken from the file and when, and says so once; what was taken stays away. */
static void write_while_cut(void *path)
{
    struct trace_writer *w = trace_create(path, &tables, 10000);
    for (uint32_t i = 0; i < 4000; i++) {
        if (i == 1000 || i == 2000)
            assert_int_equal(truncate(path, i == 1000 ? 8192 : 0), 0);
        trace_end(w, trace_begin(w, i + 1, LOAD, i), i, i + 1, 0);
        trace_alive(w, 0);
        assert_false(trace_asked(w)->pause);
    }
    trace_close(w);
}

static void cut_at_the_end(void *path)
{
    struct trace_writer *w = trace_create(path, &tables, 4);
    assert_int_equal(truncate(path, 0), 0);
    trace_close(w);
}

TEST(a_cut_file)
{
    void (*const ways[])(void *) = {write_while_cut, cut_at_the_end};
    for (size_t i = 0; i < COUNT(ways); i++) {
        char *path = temp_path("cut.trace");
        struct stat status;
        struct outcome o = run_child(ways[i], path);
        const char *said = strstr(o.text, "warning: the trace was cut");
        if (o.code != 0 || !said || strstr(said + 1, "warning"))
            test_failed("code %d, signal %d:\n%s\n", o.code, o.signal, o.text);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_size, 0);
    }
}

static void create_at(void *path) { trace_close(trace_create(path, &tables, 4)); }

TEST(only_plain_files_are_replaced)
{
    const char *fifo = temp_path("fifo");
    struct stat st;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect_refusal(create_at, (void *)fifo, EXIT_IO, fifo);
    assert_int_equal(stat(fifo, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    create_at(temp_path("plain"));
    const char *soft = temp_path("soft");
    assert_int_equal(symlink("plain", soft), 0);
    create_at((void *)soft); /* what it leads to is replaced; /dev/stdout may be such a link */
    assert_true(lstat(soft, &st) == 0);
    assert_true(S_ISLNK(st.st_mode));
    expect_refusal(create_at, temp_path("no/such/folder"), EXIT_IO, "no/such/folder");
}

/* A run's trace is its own until it is closed, and so is a file of another kind. */
static void replace_trace(void *path)
{
    struct trace_writer *w = trace_create(path, &tables, 4);
    expect_refusal(create_at, path, EXIT_USAGE, "another run is writing there");
    trace_close(w);
    create_at(path); /* now that it is closed it may be replaced */
}

TEST(a_trace_has_one_writer)
{
    struct stat before, after;
    char *path = temp_path("one.trace");
    replace_trace(path);
    replace_trace(path); /* a file of that name was there */
    assert_int_equal(stat(path, &before), 0);
    struct trace_writer *w = trace_create(path, &tables, 4);
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_ino != after.st_ino); /* readers of the old file keep it */
    trace_close(w);
    assert_int_equal(system(lasting("test -z \"$(ls %s.tmp-* 2>/dev/null)\"", path)), 0);

    char *notes = write_text("notes.trace", "what I saw in it\n");
    expect_refusal(create_at, notes, EXIT_USAGE, "would write over a file that is no trace of yard's");
    assert_int_equal(stat(notes, &after), 0);
    assert_int_equal(after.st_size, 17);
    create_at(write_text("empty.trace", "%s", ""));
    assert_int_equal(symlink("nowhere.trace", temp_path("dangling")), 0);
    create_at(temp_path("dangling"));
}

/* ---- damaged files --------------------------------------------------------------------------------------------- */

static void expect_damage(const char *path)
{
    expect_refusal(run_in_child, COMMAND("summary", (char *)path), EXIT_FAILED, path);
}

TEST(cut_files_are_refused)
{
    size_t n;
    const char *path = make_example("whole.trace");
    FILE *file = fopen(path, "rb");
    char *bytes = allocate(1 << 16, 1);
    n = fread(bytes, 1, 1 << 16, file);
    fclose(file);
    for (size_t cut = 0; cut < n; cut += 64)
        expect_damage(write_file("cut.trace", bytes, cut));
    expect_damage(write_file("cut.trace", bytes, n - 1));
    free(bytes);
}

/* The example with `size` bytes at `at` replaced. */
static const char *patched(const char *name, uint64_t at, const void *value, size_t size)
{
    const char *path = make_example(name);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, value, size, (off_t)at), size);
    close(fd);
    return path;
}

#define HEADER(field) offsetof(struct trace_header, field)
#define AT(table, field) h->table##s_at + offsetof(struct trace_##table, field)
#define SECOND(table, field) AT(table, field) + sizeof(struct trace_##table)
#define RECORD(field) h->records_at + 3 * sizeof(struct trace_record) + offsetof(struct trace_record, field)
#define TEXT(at, size)                                                                                                 \
    {                                                                                                                  \
        at, size, 0x7878787878787878u                                                                                  \
    } /* without an end */
#define WORD(at, value)                                                                                                \
    {                                                                                                                  \
        at, 4, value                                                                                                   \
    }
#define LONG(at, value)                                                                                                \
    {                                                                                                                  \
        at, 8, value                                                                                                   \
    }
#define REAL(at, value)                                                                                                \
    {                                                                                                                  \
        at, 8,                                                                                                         \
            ((union {                                                                                                  \
                double x;                                                                                              \
                uint64_t bits;                                                                                         \
            }){.x = (value)})                                                                                          \
                .bits                                                                                                  \
    }

TEST(damaged_files_are_refused)
{
    struct trace *t = trace_open(make_example("layout.trace"));
    const struct trace_header *h = &t->header;
    const struct {
        uint64_t at;
        size_t size;
        uint64_t value; /* its bytes are written there; from the ninth on its lowest byte */
    } damage[] = {
        {HEADER(magic), 1, 'X'},
        WORD(HEADER(version), 2),
        WORD(HEADER(n_lanes), UINT32_MAX),
        WORD(HEADER(n_lanes), 0),
        WORD(HEADER(n_tasks), 1),
        WORD(HEADER(n_edges), UINT32_MAX),
        WORD(HEADER(n_lists), 1),
        WORD(HEADER(n_devices), 1),
        WORD(HEADER(n_tensors), UINT32_MAX),
        WORD(HEADER(n_uses), UINT32_MAX),
        WORD(HEADER(n_uses), COUNT(uses) - 1),
        WORD(HEADER(n_classes), TRACE_CLASSES + 1),
        LONG(HEADER(lanes_at), 0),
        LONG(HEADER(tasks_at), UINT64_MAX - 63),
        LONG(HEADER(records_at), UINT64_MAX - 63),
        LONG(HEADER(capacity), 0),
        LONG(HEADER(capacity), UINT32_MAX + UINT64_C(1)),
        LONG(HEADER(head), UINT64_MAX),
        REAL(HEADER(pace_scale), NAN),
        TEXT(HEADER(list), 24),
        TEXT(SECOND(lane, name), 40),
        TEXT(AT(device, name), 80),
        TEXT(SECOND(task, name), 40),
        WORD(SECOND(lane, kind), LANE_KINDS),
        WORD(SECOND(lane, device_index), COUNT(devices)),
        REAL(SECOND(lane, flops_per_s), NAN),
        TEXT(SECOND(tensor, name), 48),
        WORD(SECOND(tensor, device), COUNT(devices)),
        WORD(SECOND(tensor, class), 2),
        WORD(SECOND(tensor, list), 2),
        WORD(SECOND(tensor, first_use), 1), /* the first use would be of no tensor */
        WORD(SECOND(tensor, n_uses), 2),    /* the third use would be of no tensor */
        WORD(SECOND(tensor, n_uses), UINT32_MAX),
        LONG(SECOND(tensor, bytes), UINT64_MAX),
        WORD(h->uses_at, N_TASKS),
        WORD(SECOND(task, role), 2),
        WORD(SECOND(task, lane), COUNT(lanes)),
        REAL(SECOND(task, flops), INFINITY),
        WORD(SECOND(task, n_edges), COUNT(edges) + 1),
        WORD(SECOND(task, first_edge), UINT32_MAX), /* its sum with n_edges wraps in 32 bits */
        WORD(AT(edge, producer), N_TASKS),
        WORD(RECORD(task), N_TASKS),
        WORD(RECORD(step), 0),
        LONG(RECORD(start), us(601)),
    };
    for (size_t i = 0; i < COUNT(damage); i++) {
        char bytes[80];
        memset(bytes, (int)(damage[i].value & 0xFF), sizeof bytes);
        memcpy(bytes, &damage[i].value, MIN(damage[i].size, sizeof damage[i].value));
        expect_damage(patched("damaged.trace", damage[i].at, bytes, damage[i].size));
    }
    uint64_t huge = UINT64_MAX, head = UINT64_MAX / 40 + 2; /* times 40 wraps to a small number */
    const char *path = patched("damaged.trace", HEADER(capacity), &huge, sizeof huge);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &head, sizeof head, HEADER(head)), sizeof head);
    close(fd);
    expect_damage(path);
    trace_free(t);
}

/* Whatever a byte says, the answer is a result or a sentence; times and names may be anything. */
TEST(random_damage_never_crashes)
{
    size_t n, at;
    struct trace *t = trace_open(make_example("layout.trace"));
    n = t->header.records_at + t->n_records * sizeof *t->records;
    trace_free(t);
    for (uint32_t i = 0; i < 300; i++) {
        struct random4 r = random_words(1, STREAM_TEST, 0, i);
        at = r.word[0] % n;
        uint32_t value = r.word[2] % 3 ? r.word[1] : (uint32_t)-1;
        const char *path = patched("random.trace", at, &value, 1 + r.word[3] % 4);
        const char *json = temp_path("random.json");
        struct command *commands[] = {COMMAND("summary", (char *)path),
                                      COMMAND("export", (char *)path, "--chrome", (char *)json),
                                      COMMAND("diff", (char *)path, (char *)path, "--json")};
        struct outcome o = run_child(run_in_child, commands[i % COUNT(commands)]);
        if ((o.code != 0 && o.code != 1) || (o.code == 1 && strncmp(o.text, "yard: ", 6) != 0) ||
            (o.code == 0 && o.text[0]))
            test_failed("damage %u at byte %zu: code %d, signal %d\n%s\n", i, at, o.code, o.signal, o.text);
    }
}

TEST(texts_cannot_reach_the_terminal)
{
    struct trace *t = trace_open(patched("escape.trace", HEADER(model), "\033[31m\xff", 6));
    assert_string_equal(t->header.model, "?[31m?e");
    trace_free(t);
}

/* ---- summary --------------------------------------------------------------------------------------------------- */

static void expect_lane(const json_t *summary, const char *name, double busy_us)
{
    const json_t *lane = named(json_object_get(summary, "lanes"), "name", name);
    near(number_at(lane, "busy"), busy_us / 330); /* the window is from 600 to 930 */
    near(number_at(lane, "busy_ms"), busy_us / 3 / 1000);
    near(number_at(lane, "idle_ms"), (330 - busy_us) / 3 / 1000);
}

static void expect_task(const json_t *summary, const char *name, double per_step, double median_us, double total_us)
{
    const json_t *task = named(json_object_get(summary, "tasks"), "name", name);
    near(number_at(task, "per_step"), per_step);
    near(number_at(task, "median_us"), median_us);
    near(number_at(task, "ms_per_step"), total_us / 3 / 1000);
    near(number_at(task, "share"), total_us / 505);
}

static void check_example_summary(const json_t *s)
{
    near(number_at(s, "period_ms"), 0.110);
    near(number_at(s, "step_ms"), 0.170);
    near(number_at(s, "first_step"), 2);
    near(number_at(s, "steps"), 3);
    expect_lane(s, "0:0 compute", 50 + 60 + 45);
    expect_lane(s, "0:0 upload", 20 + 70 + 70); /* 550-600 lies before the window */
    expect_lane(s, "host cpu", 20 + 50 + 50);
    expect_lane(s, "0:0 compute2", 5 + 5 + 10);
}

TEST(summary_of_the_example)
{
    json_t *s = json_of(COMMAND("summary", (char *)make_example("a.trace"), "--json"), 0);
    check_example_summary(s);
    expect_task(s, "fwd", 2, 30, 155);
    expect_task(s, "load", 1, 70, 210);
    expect_task(s, "adamw", 1, 50, 120);
    expect_task(s, "side", 1, 5, 20);
    assert_int_equal(json_array_size(json_object_get(s, "tasks")), 4); /* eval is in another list */
    near(number_at(named(json_object_get(s, "tasks"), "name", "fwd"), "gflops"), 18e6 / 155e3);
    near(number_at(named(json_object_get(s, "tasks"), "name", "load"), "gbytes_per_s"), 2);
    json_decref(s);
}

/* The disk still writes step 1 when step 4 is nearly done: the window is that of the steps all the same. */
TEST(a_slow_disk_cuts_nothing)
{
    struct trace_lane with_disk[COUNT(lanes)];
    memcpy(with_disk, lanes, sizeof lanes);
    with_disk[3] = (struct trace_lane){"host disk", LANE_DISK, 1, 0, 0};
    struct trace slow = tables;
    struct when when[COUNT(example)];
    size_t n = 0;
    slow.lanes = with_disk;
    for (size_t i = 0; i < COUNT(example); i++)
        if (example[i].task != SIDE)
            when[n++] = example[i];
    when[n++] = (struct when){1, SIDE, 600, 915, 0};
    json_t *s = json_of(COMMAND("summary", (char *)make("disk.trace", &slow, when, n), "--json"), 0);
    near(number_at(s, "period_ms"), 0.110);
    expect_lane(s, "0:0 compute", 50 + 60 + 45);
    expect_lane(s, "host disk", 315);
    json_decref(s);
}

/* The lanes' numbers are means, so the period beside them is one: the last step is longer than the middle one. */
TEST(no_lane_is_busier_than_the_period)
{
    struct when uneven[COUNT(example)];
    memcpy(uneven, example, sizeof example);
    for (size_t i = 0; i < COUNT(uneven); i++)
        if (uneven[i].step == 4 && uneven[i].task == FWD1)
            uneven[i].end = 1800;
        else if (uneven[i].step == 4 && uneven[i].task == ADAMW) {
            uneven[i].start = 1800;
            uneven[i].end = 1830;
        }
    json_t *s = json_of(COMMAND("summary", (char *)make("uneven.trace", &tables, uneven, COUNT(uneven)), "--json"), 0);
    near(number_at(s, "period_ms"), (1.830 - 0.600) / 3);
    near(number_at(s, "median_period_ms"), 0.120);
    size_t i;
    json_t *lane;
    json_array_foreach(json_object_get(s, "lanes"), i, lane)
        near(number_at(lane, "busy_ms") + number_at(lane, "idle_ms"), number_at(s, "period_ms"));
    json_decref(s);
}

/* Tasks that last from queue to sight overlap all over; the reader is told before the tables, unless it is one. */
TEST(approximate_times_are_called_so)
{
    for (size_t approximate = 0; approximate <= COUNT(example); approximate++) {
        const char *path = temp_path("approximate.trace");
        struct trace_writer *w = trace_create(path, &tables, COUNT(example));
        for (size_t i = 0; i < COUNT(example); i++) {
            uint64_t number = trace_begin(w, example[i].step, example[i].task, us(example[i].queued));
            trace_end(w, number, us(example[i].start), us(example[i].end), i < approximate ? TRACE_APPROXIMATE : 0);
        }
        trace_close(w);
        char *text = output_of(COMMAND("summary", (char *)path), 0),
             *warning = strstr(text, "The driver tells few times");
        assert_int_equal(warning != NULL, 10 * approximate > COUNT(example));
        assert_true(!warning || warning < strstr(text, "lane  "));
        free(text);
    }
}

static void expect_part(const json_t *path, const char *name, double hops, double microseconds)
{
    const json_t *part = named(json_object_get(path, "parts"), "task", name);
    near(number_at(part, "hops"), hops);
    near(number_at(part, "ms"), microseconds / 1000);
    near(number_at(part, "share"), microseconds / 110);
}

/* Step 4 has the median period: 820 to 930.  Back from adamw's end, each through an edge. */
TEST(critical_path_of_the_example)
{
    json_t *s = json_of(COMMAND("summary", (char *)make_example("a.trace"), "--json"), 0);
    const json_t *path = json_object_get(s, "critical_path");
    near(number_at(path, "step"), 4);
    near(number_at(path, "ms"), 0.110);
    expect_part(path, "adamw", 1, 50);
    expect_part(path, "fwd", 2, 30 + 15);
    expect_part(path, "load", 1, 10); /* 760-830, of which 820-830 is this step's */
    expect_part(path, "(not yet queued)", 1, 2);
    expect_part(path, "(queued, not started)", 1, 3);
    assert_int_equal(json_array_size(json_object_get(path, "parts")), 5);
    json_decref(s);
}

/* fwd 0 has to wait for its lane, where another list's task runs, and that one waits for nothing. */
TEST(critical_path_follows_lanes)
{
    static const struct when when[] = {
        {1, LOAD, 0, 5, 0}, {1, EVAL, 6, 30, 0}, {1, FWD0, 30, 40, 0}, {1, FWD1, 40, 110, 0}};
    json_t *s = json_of(COMMAND("summary", (char *)make("lane.trace", &tables, when, COUNT(when)), "--json"), 0);
    const json_t *path = json_object_get(s, "critical_path");
    expect_part(path, "fwd", 2, 80);
    expect_part(path, "eval", 1, 24);
    expect_part(path, "(queued, not started)", 1, 6);
    assert_int_equal(json_array_size(json_object_get(path, "parts")), 3);
    json_decref(s);
}

static void check_hops(const char *path)
{
    struct trace *t = trace_open(path);
    struct trace_steps s = trace_steps_of(t, 0);
    for (size_t step = 0; step < s.n; step++) {
        struct trace_path p = trace_critical_path(t, &s, step);
        uint64_t to = p.end;
        for (size_t i = 0; i < p.n; i++) {
            assert_int_equal(p.hops[i].end, to);
            assert_true(p.hops[i].wait <= p.hops[i].start && p.hops[i].start <= p.hops[i].end);
            to = p.hops[i].wait;
        }
        assert_int_equal(to, p.start);
        assert_int_equal(p.start, step ? s.steps[step - 1].end : 0);
        free(p.hops);
    }
    trace_free(t);
}

/* The hops of a critical path fill the period, also when a producer seems to end after its consumer, by
 * two clocks that disagree. */
TEST(hops_fill_the_period)
{
    static const struct when crossed[] = {{1, LOAD, 0, 60, 0}, {1, FWD0, 20, 50, 0}, {1, FWD1, 50, 70, 0}};
    check_hops(make_example("a.trace"));
    check_hops(make("crossed.trace", &tables, crossed, COUNT(crossed)));
}

/* Twice as slow and with a clock far from 0: the modelled times are the example's. */
static const char *make_paced(const char *name)
{
    struct trace paced = tables;
    paced.header.kind = TRACE_PACED;
    paced.header.pace_scale = 0.5;
    const char *path = temp_path(name);
    struct trace_writer *w = trace_create(path, &paced, COUNT(example));
    uint64_t zero = 5000000000;
    for (size_t i = 0; i < COUNT(example); i++)
        put(w, &example[i], zero, 2);
    trace_close(w);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &zero, sizeof zero, HEADER(start_ns)), sizeof zero);
    close(fd);
    return path;
}

TEST(paced_times_are_modelled_times)
{
    const char *example_path = make_example("a.trace"), *paced = make_paced("paced.trace");
    json_t *s = json_of(COMMAND("summary", (char *)paced, "--json"), 0);
    check_example_summary(s);
    json_decref(s);
    json_t *d = json_of(COMMAND("diff", (char *)example_path, (char *)paced, "--json"), 0);
    near(number_at(d, "task_mape"), 0);
    near(number_at(d, "makespan_error"), 0);
    near(number_at(d, "makespan_b_ns"), 110000);
    json_decref(d);
}

TEST(other_list_and_tables)
{
    const char *path = make_example("a.trace");
    json_t *s = json_of(COMMAND("summary", (char *)path, "--list", "eval", "--json"), 0);
    near(number_at(s, "step_ms"), 0.040);
    near(number_at(s, "period_ms"), 0.040);
    json_decref(s);
    char *text = output_of(COMMAND("summary", (char *)path), 0);
    assert_non_null(strstr(text, "critical path of step 4"));
    assert_null(strchr(text, '\033')); /* stdout is no terminal */
    expect_narrow(text);
    free(text);
}

TEST(empty_trace)
{
    const char *path = make("empty.trace", &tables, NULL, 0);
    free(output_of(COMMAND("summary", (char *)path), 0));
    json_decref(json_of(COMMAND("summary", (char *)path, "--json"), 0));
    json_t *d = json_of(COMMAND("diff", (char *)path, (char *)path, "--json"), EXIT_FAILED);
    assert_true(json_is_null(json_object_get(d, "task_mape")));
    json_decref(d);
}

/* ---- diff ------------------------------------------------------------------------------------------------------ */

/* One step: load 7 longer and fwd 1 3 shorter than the example's medians (20, 30, 70, 50; eval 40). */
TEST(diff_of_two_traces)
{
    static const struct when other[] = {{1, LOAD, 0, 77, 0},     {1, FWD0, 77, 97, 0},   {1, FWD1, 97, 124, 0},
                                        {1, ADAMW, 124, 174, 0}, {1, EVAL, 200, 240, 0}, {1, SIDE, 0, 9, 0}};
    struct trace_task renamed[N_TASKS];
    struct trace with = tables;
    memcpy(renamed, tasks, sizeof tasks);
    strcpy(renamed[SIDE].name, "other");
    with.tasks = renamed;
    const char *a = make_example("a.trace"), *b = make("b.trace", &with, other, COUNT(other));
    json_t *d = json_of(COMMAND("diff", (char *)a, (char *)b, "--json"), 0);
    near(number_at(d, "task_mape"), 10.0 / 210);
    near(number_at(d, "makespan_a_ns"), 110000);
    near(number_at(d, "makespan_b_ns"), 174000);
    near(number_at(d, "makespan_error"), 174.0 / 110 - 1);
    near(number_at(d, "matched"), 5);
    const json_t *worst = json_array_get(json_object_get(d, "worst"), 0);
    assert_string_equal(json_string_value(json_object_get(worst, "task")), "load on 0:0 upload (train)");
    near(number_at(worst, "error"), 0.1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(d, "unmatched_a"), 0)),
                        "side on 0:0 compute2 (train)");
    assert_string_equal(json_string_value(json_array_get(json_object_get(d, "unmatched_b"), 0)),
                        "other on 0:0 compute2 (train)");
    assert_int_equal(json_array_size(json_object_get(d, "unmatched_b")), 1);
    json_decref(d);
    free(output_of(COMMAND("diff", (char *)a, (char *)b), 0));
    d = json_of(COMMAND("diff", (char *)a, (char *)b, "--json", "--list", "train"), 0);
    near(number_at(d, "task_mape"), 10.0 / 170);
    json_decref(d);
}

/* Tasks that nothing tells apart match in order, and one too many is left over. */
TEST(diff_of_equal_names)
{
    static const struct when two[] = {{1, LOAD, 0, 10, 0}, {1, FWD0, 10, 30, 0}},
                             three[] = {{1, LOAD, 0, 10, 0}, {1, FWD0, 10, 30, 0}, {1, FWD1, 30, 70, 0}};
    struct trace_task same[N_TASKS] = {0};
    struct trace with = tables;
    for (int i = 0; i < N_TASKS; i++)
        same[i] = tasks[LOAD];
    with.tasks = same;
    const char *a = make("two.trace", &with, two, 2), *b = make("three.trace", &with, three, 3);
    json_t *d = json_of(COMMAND("diff", (char *)a, (char *)b, "--json"), 0);
    near(number_at(d, "task_mape"), 0);
    near(number_at(d, "matched"), 2);
    assert_int_equal(json_array_size(json_object_get(d, "unmatched_a")), 0);
    assert_int_equal(json_array_size(json_object_get(d, "unmatched_b")), 1);
    json_decref(d);
}

/* ---- Chrome's JSON --------------------------------------------------------------------------------------------- */

/* The example, with what measured times do: a slice that starts 3 ns before the one before it on its lane ended, a
 * consumer that starts before its producer ended, one that starts before its producer started, and no length. */
static const char *make_untidy(void)
{
    const char *path = temp_path("untidy.trace");
    struct trace_writer *w = trace_create(path, &tables, 100);
    for (size_t i = 0; i < COUNT(example); i++)
        put(w, &example[i], 0, 1);
    trace_end(w, trace_begin(w, 5, LOAD, 0), us(2000), us(2100), 0);
    trace_end(w, trace_begin(w, 5, FWD0, 0), us(2100) - 5, us(2200), 0);
    trace_end(w, trace_begin(w, 5, FWD1, 0), us(2200) - 3, us(2300) + 1, TRACE_APPROXIMATE);
    trace_end(w, trace_begin(w, 5, ADAMW, 0), us(2200) - 2, us(2400), 0);
    trace_end(w, trace_begin(w, 6, LOAD, 0), us(2500), us(2500), 0);
    trace_end(w, trace_begin(w, 6, FWD0, 0), us(2500), us(2600), 0);
    trace_close(w);
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
struct events {
    struct x_event x[100];
    struct flow flow[100];
    size_t n_x, n_flow;
};

static int64_t ns_of(const json_t *event, const char *key) { return llround(1000 * number_at(event, key)); }

static struct events collect(const json_t *root)
{
    static struct events e;
    size_t i;
    json_t *event;
    memset(&e, 0, sizeof e);
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        const char *ph = json_string_value(json_object_get(event, "ph"));
        json_int_t lane = json_integer_value(json_object_get(event, "tid"));
        int64_t at = ns_of(event, "ts");
        const json_t *args = json_object_get(event, "args");
        assert_true(lane > 0);
        assert_true(json_integer_value(json_object_get(event, "pid")) > 0);
        if (ph[0] == 'X') {
            assert_int_equal(e.n_flow, 0); /* an arrow needs its slice before it */
            e.x[e.n_x++] =
                (struct x_event){at, at + ns_of(event, "dur"), lane, json_string_value(json_object_get(event, "name")),
                                 json_integer_value(json_object_get(args, "step"))};
        } else if (ph[0] == 's' || ph[0] == 'f') {
            if (ph[0] == 'f')
                assert_string_equal(json_string_value(json_object_get(event, "bp")), "e");
            e.flow[e.n_flow++] =
                (struct flow){json_integer_value(json_object_get(event, "id")), lane, at, ph[0] == 'f'};
        } else if (ph[0] == 'C') {
            assert_string_equal(json_string_value(json_object_get(event, "name")), "memory");
        } else {
            assert_string_equal(ph, "M");
            if (strstr(json_string_value(json_object_get(event, "name")), "sort_index"))
                assert_true(json_is_integer(json_object_get(args, "sort_index")));
        }
    }
    return e;
}

static json_t *exported(const char *trace, const char *out, const char *steps)
{
    size_t n;
    json_error_t error;
    free(output_of(COMMAND("export", (char *)trace, "--chrome", (char *)out, "--steps", (char *)steps), 0));
    char *text = read_bytes(out, &n);
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        test_failed("%s\n", error.text);
    free(text);
    return root;
}

/* The slice of the lane that is open at this time. */
static const struct x_event *open_slice(const struct events *e, json_int_t lane, int64_t at)
{
    const struct x_event *found = NULL;
    for (size_t i = 0; i < e->n_x; i++)
        if (e->x[i].lane == lane && e->x[i].start <= at && at < e->x[i].end)
            found = &e->x[i];
    return found;
}

TEST(chrome_slices_of_a_lane_do_not_overlap)
{
    json_t *root = exported(make_untidy(), temp_path("untidy.json.gz"), "1:");
    struct events e = collect(root);
    assert_int_equal(e.n_x, COUNT(example) - 1 + 6); /* one is of an evaluation */
    int64_t lane_end[8] = {0};
    for (size_t i = 0; i < e.n_x; i++) {
        assert_true(e.x[i].start >= lane_end[e.x[i].lane]);
        assert_true(e.x[i].end >= e.x[i].start);
        lane_end[e.x[i].lane] = e.x[i].end;
    }
    json_decref(root);
}

TEST(chrome_arrows_join_their_slices)
{
    json_t *root = exported(make_untidy(), temp_path("untidy.json.gz"), "1:");
    struct events e = collect(root);
    size_t backwards = 0;
    for (size_t i = 0; i < e.n_flow; i += 2) {
        const struct flow *s = &e.flow[i], *f = &e.flow[i + 1];
        assert_true(!s->finish);
        assert_true(f->finish);
        assert_true(s->id == f->id);
        for (size_t k = 0; k < e.n_flow; k++)
            assert_true(k / 2 == i / 2 || e.flow[k].id != s->id);
        const struct x_event *from = open_slice(&e, s->lane, s->at), *to = open_slice(&e, f->lane, f->at);
        assert_non_null(from);
        assert_non_null(to);
        assert_true(s->at <= f->at);
        bool load = strcmp(from->name, "load") == 0 && strcmp(to->name, "fwd") == 0 && from->step == to->step;
        bool update = strcmp(from->name, "fwd") == 0 && strcmp(to->name, "adamw") == 0 && from->step == to->step;
        bool weights = strcmp(from->name, "adamw") == 0 && strcmp(to->name, "fwd") == 0 && from->step + 1 == to->step;
        if (!load && !update && !weights)
            test_failed("arrow from %s of step %d to %s of step %d\n", from->name, (int)from->step, to->name,
                        (int)to->step);
        backwards += from->start > to->start;
    }
    assert_int_equal(backwards, 0);
    /* steps 1 to 4: 4 loads, 4 updates, 3 weights.  Step 5: a load, the weights; its update is drawn
     * before its producer.  Step 6: the weights; its load has no length. */
    assert_int_equal(e.n_flow, 2 * (4 + 4 + 3 + 2 + 1));
    json_decref(root);
}

/* The sends of this list take no time, and cannot hold the end of an arrow: 18 arrows go down the stages and 18 come
 * up, from the task that made what is sent to the one that reads it. */
TEST(chrome_arrows_pass_through_what_takes_no_time)
{
    const char *trace = temp_path("1f1b.trace");
    const char *yard = getenv("YARD");
    assert_int_equal(system(lasting("%s plan --list data/steps/1f1b.txt --simulate --trace '%s' >'%s'",
                                    yard ? yard : "./yard", trace, temp_path("plan.out"))),
                     0);
    json_t *root = exported(trace, temp_path("1f1b.json.gz"), "2");
    struct events e = collect(root);
    size_t down = 0, up = 0;
    for (size_t i = 0; i < e.n_flow; i += 2) {
        const struct flow *s = &e.flow[i], *f = &e.flow[i + 1];
        const struct x_event *from = open_slice(&e, s->lane, s->at), *to = open_slice(&e, f->lane, f->at);
        assert_non_null(from);
        assert_non_null(to);
        assert_int_equal(f->at, to->start);
        assert_string_equal(from->name, to->name);
        down += strcmp(from->name, "forward") == 0 && s->lane < f->lane;
        up += strcmp(from->name, "backward") == 0 && s->lane > f->lane;
    }
    assert_int_equal(down, 18);
    assert_int_equal(up, 18);
    assert_int_equal(e.n_flow, 2 * (down + up));
    json_decref(root);
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
        near(number_at(idle, "link"), 830 - 770);
        near(number_at(idle, "host"), 832 - 830);
        near(number_at(idle, "launch"), 835 - 832);
        n++;
    }
    assert_int_equal(n, 1);
    json_decref(root);
}

TEST(chrome_shows_the_steps_asked_for)
{
    const char *out = temp_path("steps.json");
    json_t *root = exported(make_example("a.trace"), out, "2:3");
    struct events e = collect(root);
    assert_int_equal(e.n_x, 2 * 5);              /* two steps of five tasks */
    assert_int_equal(e.n_flow, 2 * (2 + 2 + 1)); /* the weights of step 1 are not shown, nor an arrow from them */
    assert_int_equal(e.x[0].start, 0);
    assert_string_equal(e.x[0].name, "load");
    assert_int_equal(e.x[0].end, 70000);
    FILE *file = fopen(out, "rb"); /* plain: the name does not end in .gz */
    assert_int_equal(fgetc(file), '{');
    fclose(file);
    const json_t *first_fwd = named(json_object_get(root, "traceEvents"), "name", "fwd");
    const json_t *args = json_object_get(first_fwd, "args");
    near(number_at(args, "flops"), 3e6);
    near(number_at(args, "GFLOP/s"), 150);
    near(number_at(args, "layer"), 0);
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
        assert_true(n < COUNT(expected));
        near(number_at(event, "pid"), expected[n].pid);
        near(number_at(event, "ts"), expected[n].us);
        near(number_at(args, "parameters"), expected[n].pid == 1 ? 100 : 7);
        near(number_at(args, "activations"), expected[n++].bytes);
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
    } shown[] = {{"train", COUNT(example) - 1, "of list train"}, {"eval", 1, "of list eval"}};
    for (size_t i = 0; i < COUNT(shown); i++) {
        char *text = output_of(COMMAND("export", path, "--chrome", out, "--list", shown[i].list), 0);
        assert_non_null(strstr(text, shown[i].says));
        json_t *root = json_load_file(out, JSON_REJECT_DUPLICATES, NULL);
        assert_int_equal(collect(root).n_x, shown[i].n);
        json_decref(root);
        free(text);
    }
    expect_refusal(run_in_child, COMMAND("export", path, "--chrome", out, "--list", "eval", "--steps", "99:"),
                   EXIT_USAGE, "of list eval, none that --steps asks for");
}

TEST(chrome_keeps_nanoseconds)
{
    const char *path = temp_path("long.trace");
    uint64_t day = 86400ull * 1000000000;
    struct trace_writer *w = trace_create(path, &tables, 100);
    trace_end(w, trace_begin(w, 1, LOAD, 0), 1, 4, 0);
    for (uint64_t i = 0; i < 90; i++)
        trace_end(w, trace_begin(w, 2, LOAD, 0), day + 3 * i, day + 3 * i + 3, 0);
    trace_close(w);
    json_t *root = exported(path, temp_path("long.json.gz"), "1:2");
    struct events e = collect(root);
    for (size_t i = 0; i < 90; i++)
        assert_int_equal(e.x[i + 1].start, (int64_t)(day + 3 * i) - 1);
    json_decref(root);
}

/* ---- usage ----------------------------------------------------------------------------------------------------- */

static size_t open_files(void)
{
    size_t n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

/* A reader that follows a growing trace may try again: the program does not end, and no file stays open. */
TEST(a_bad_trace_is_a_problem)
{
    size_t before = open_files();
    for (int i = 0; i < 3; i++) {
        struct trace_follow *f;
        struct problem *p = trace_follow_open(patched("bad.trace", HEADER(n_lanes), &(uint32_t){99999}, 4), &f);
        assert_non_null(p);
        assert_null(f);
        assert_int_equal(p->code, EXIT_FAILED);
        assert_non_null(strstr(p->sentence, "number of lanes 99999"));
        free(p);
    }
    assert_int_equal(open_files(), before);
}

TEST(usage_mistakes_get_a_sentence)
{
    char *path = (char *)make_example("a.trace");
    expect_refusal(run_in_child, COMMAND("sumary", path), EXIT_USAGE, "it takes summary, export or diff");
    expect_refusal(run_in_child, COMMAND("frobnicate", path), EXIT_USAGE, "summary, export or diff");
    expect_refusal(run_in_child, &(struct command){0}, EXIT_USAGE, "needs a word");
    expect_refusal(run_in_child, COMMAND("summary"), EXIT_USAGE, "takes FILE");
    expect_refusal(run_in_child, COMMAND("diff", path), EXIT_USAGE, "takes A B");
    expect_refusal(run_in_child, COMMAND("summary", path, "--chrome", "x"), EXIT_USAGE, "another command");
    expect_refusal(run_in_child, COMMAND("summary", path, "--list", "tain"), EXIT_USAGE, "train, eval");
    expect_refusal(run_in_child, COMMAND("export", path), EXIT_USAGE, "--chrome");
    expect_refusal(run_in_child, COMMAND("summary", temp_path("none.trace")), EXIT_IO, "none.trace");
    char *out = temp_path("x.json");
    char *wrong[] = {"3:2", "0", "x", "1:y", "", "-1:3", "99:"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_refusal(run_in_child, COMMAND("export", path, "--chrome", out, "--steps", wrong[i]), EXIT_USAGE,
                       "--steps");
    assert_int_equal(access(out, F_OK), -1);
}

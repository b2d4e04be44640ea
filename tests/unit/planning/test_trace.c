/* test_trace.c - trace files: whole, cut or damaged; and mistakes in the use of `yard trace`.
 *
 * It tests read.c, write.c, record.c and near.h of src/planning/trace.  It checks that what is written can be read,
 * that the file of a killed trainer opens without its unfinished step, and that reading stays inside the file and ends
 * with a sentence, whatever the bytes are.  It catches a record that is lost, a length that is believed, a text that
 * reaches the terminal unchanged, and a search that ends beside its place.
 *
 * To see it fail: in read.c, let clean_text() leave texts as they are: no make_printable().
 *
 * The traces are the example of support_trace.h, and files that are damaged here.  test_trace_summary.c tests the
 * example's summary, and test_trace_chrome.c its JSON for Chrome.
 */
#include "planning/trace/follow.h"
#include "planning/trace/near.h"
#include "tests/support/child.h"
#include "tests/support/sorted.h"
#include "tests/support/support_trace.h"
#include "trainer/cmd/cmd.h"
#include "trainer/file/file.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>

/* ---- writing and reading ----------------------------------------------------------------------------------------- */

TEST(what_is_written_is_read)
{
    const char *path = make_example("example.trace");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    struct trace *trace = read_trace(path);
    assert_int_equal(trace->n_records, COUNT(example_runs));
    assert_int_equal(trace->n_unfinished + trace->n_lost, 0);
    assert_int_equal((uint64_t)st.st_size,
                     trace->header.records_at + COUNT(example_runs) * sizeof(struct trace_record));
    assert_string_equal(trace->header.list[1], "eval");
    assert_memory_equal(trace->tasks, example_tasks, sizeof example_tasks);
    assert_memory_equal(trace->edges, example_edges, sizeof example_edges);
    assert_memory_equal(trace->lanes, example_lanes, sizeof example_lanes);
    for (size_t i = 1; i < trace->n_records; i++)
        assert_at_most(trace->records[i - 1].start, trace->records[i].start);
    assert_int_equal(trace->steps[0].n, 4);
    assert_int_equal(trace->steps[0].items[0].step, 1);
    assert_int_equal(trace->whole_step, 4);
    free_trace(trace);
}

TEST(impossible_ends_are_mended)
{
    const char *path = temp_path("mended.trace");
    struct trace_writer *writer = open_trace_writer(path, &example_trace, 4);
    end_trace_record(writer, begin_trace_record(writer, 1, LOAD, 0), 0, 0, 0);
    end_trace_record(writer, begin_trace_record(writer, 1, FWD0, 0), 90, 70, 0);
    close_trace_writer(writer);
    struct trace *trace = read_trace(path);
    assert_int_equal(trace->n_records, 2);
    assert_int_equal(trace->records[0].end, 1);
    assert_int_equal(trace->records[0].flags, 0);
    assert_int_equal(trace->records[1].start, 70);
    assert_int_equal(trace->records[1].end, 70);
    assert_int_equal(trace->records[1].flags, TRACE_APPROXIMATE);
    free_trace(trace);
}

static void write_and_die(void *path)
{
    struct trace_writer *writer = open_trace_writer(path, &example_trace, 100);
    for (size_t i = 0; i < 7; i++) /* step 1 and most of step 2 */
        put_run(writer, &example_runs[i], 0, 1);
    begin_trace_record(writer, 2, ADAMW, in_ns(555));
    kill(getpid(), SIGKILL);
}

TEST(a_file_of_a_killed_writer_opens)
{
    const char *path = temp_path("killed.trace");
    assert_int_equal(run_child(write_and_die, (void *)path).signal, SIGKILL);
    struct trace *trace = read_trace(path);
    assert_int_equal(trace->header.closed_ns, 0);
    assert_int_equal(trace->n_records, 7);
    assert_int_equal(trace->n_unfinished, 1);
    assert_int_equal(trace->unfinished[0].task, ADAMW);
    assert_int_equal(trace->unfinished[0].queued, in_ns(555));
    assert_int_equal(trace->whole_step, 1);
    struct trace_steps steps = steps_of_list(trace, 0);
    assert_int_equal(steps.n, 2);
    assert_int_equal(steps.counted, 1); /* step 2 is not whole: only the warm-up is left */
    assert_int_equal(steps.items[steps.first].step, 1);
    free_trace(trace);
    free(run_for_output(COMMAND("summary", (char *)path), 0));
}

/* A step that is not whole is no last step, nor are those after it: how they would end is not known. */
TEST(an_unfinished_step_is_not_whole)
{
    const char *path = temp_path("unfinished.trace");
    struct trace_writer *writer = open_trace_writer(path, &example_trace, 100);
    for (size_t i = 0; i < 14; i++)
        put_run(writer, &example_runs[i], 0, 1);
    begin_trace_record(writer, 3, EVAL, in_ns(900));
    put_run(writer, &example_runs[14], 0, 1);
    close_trace_writer(writer);
    struct trace *trace = read_trace(path);
    assert_int_equal(trace->steps[0].items[trace->steps[0].n - 1].step, 4);
    assert_int_equal(trace->whole_step, 2);
    free_trace(trace);
}

/* The writer goes on, whatever is taken from the file and when, and says so once; what was taken stays away. */
static void write_while_cut(void *path)
{
    struct trace_writer *writer = open_trace_writer(path, &example_trace, 10000);
    for (uint32_t i = 0; i < 4000; i++) {
        if (i == 1000 || i == 2000)
            assert_int_equal(truncate(path, i == 1000 ? 8192 : 0), 0);
        end_trace_record(writer, begin_trace_record(writer, i + 1, LOAD, i), i, i + 1, 0);
        show_trainer_alive(writer, 0);
        assert_false(request_in_file(writer)->pause);
    }
    close_trace_writer(writer);
}

static void cut_at_the_end(void *path)
{
    struct trace_writer *writer = open_trace_writer(path, &example_trace, 4);
    assert_int_equal(truncate(path, 0), 0);
    close_trace_writer(writer);
}

TEST(a_cut_trace_is_warned_of_once)
{
    void (*const ways[])(void *) = {write_while_cut, cut_at_the_end};
    for (size_t i = 0; i < COUNT(ways); i++) {
        char *path = temp_path("cut.trace");
        struct stat status;
        struct outcome outcome = run_child(ways[i], path);
        const char *said = strstr(outcome.text, "warning: the trace was cut");
        if (outcome.code != EXIT_OK || !said || strstr(said + 1, "warning"))
            test_failed("code %d, signal %d:\n%s\n", outcome.code, outcome.signal, outcome.text);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_size, 0);
    }
}

static void create_at(void *path) { close_trace_writer(open_trace_writer(path, &example_trace, 4)); }

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
    assert_int_equal(lstat(soft, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    expect_refusal(create_at, temp_path("no/such/folder"), EXIT_IO, "no/such/folder");
}

/* No other run replaces a trace until it is closed. */
static void replace_trace(void *path)
{
    struct trace_writer *writer = open_trace_writer(path, &example_trace, 4);
    expect_refusal(create_at, path, EXIT_USAGE, "another run is writing there");
    close_trace_writer(writer);
    create_at(path); /* now that it is closed it may be replaced */
}

TEST(a_trace_has_one_writer)
{
    struct stat before, after;
    char *path = temp_path("one.trace");
    replace_trace(path);
    replace_trace(path); /* a file of that name was there */
    assert_int_equal(stat(path, &before), 0);
    struct trace_writer *writer = open_trace_writer(path, &example_trace, 4);
    assert_int_equal(stat(path, &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino); /* readers of the old file keep it */
    close_trace_writer(writer);
    assert_int_equal(system(lasting("test -z \"$(ls %s.tmp-* 2>/dev/null)\"", path)), 0);

    char *notes = write_text("notes.trace", "what I saw in it\n");
    expect_refusal(create_at, notes, EXIT_USAGE, "would write over a file that is not a trace that yard wrote");
    assert_int_equal(stat(notes, &after), 0);
    assert_int_equal(after.st_size, 17);
    create_at(write_text("empty.trace", "%s", ""));
    assert_int_equal(symlink("nowhere.trace", temp_path("dangling")), 0);
    create_at(temp_path("dangling"));
}

/* ---- damaged files ----------------------------------------------------------------------------------------------- */

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

/* Where a field lies: of the header, of a table's first and second entry, and of record 3.  `header` is the file's. */
#define HEADER(field) offsetof(struct trace_header, field)

#define AT(table, field) header->table##s_at + offsetof(struct trace_##table, field)

#define SECOND(table, field) AT(table, field) + sizeof(struct trace_##table)

#define RECORD(field) header->records_at + 3 * sizeof(struct trace_record) + offsetof(struct trace_record, field)

/* A field of the file and what is written there. */
struct damage {
    uint64_t at;
    size_t size;
    uint64_t value; /* its bytes are written; from the ninth on its lowest byte */
};

static struct damage word(uint64_t at, uint32_t value) { return (struct damage){at, sizeof value, value}; }

static struct damage long_word(uint64_t at, uint64_t value) { return (struct damage){at, sizeof value, value}; }

static struct damage real(uint64_t at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (struct damage){at, sizeof value, bits};
}

/* A text of so many bytes, without an end. */
static struct damage endless_text(uint64_t at, size_t size) { return (struct damage){at, size, 0x7878787878787878u}; }

static void expect_all_refused(const struct damage *damage, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char bytes[80];
        memset(bytes, (int)(damage[i].value & 0xFF), sizeof bytes);
        memcpy(bytes, &damage[i].value, MIN(damage[i].size, sizeof damage[i].value));
        expect_damage(patched("damaged.trace", damage[i].at, bytes, damage[i].size));
    }
}

TEST(a_damaged_header_is_refused)
{
    const struct damage damage[] = {
        {HEADER(magic), 1, 'X'},
        word(HEADER(version), 2),
        word(HEADER(n_lanes), UINT32_MAX),
        word(HEADER(n_lanes), 0),
        word(HEADER(n_tasks), 1),
        word(HEADER(n_edges), UINT32_MAX),
        word(HEADER(n_lists), 1),
        word(HEADER(n_devices), 1),
        word(HEADER(n_tensors), UINT32_MAX),
        word(HEADER(n_uses), UINT32_MAX),
        word(HEADER(n_uses), COUNT(example_uses) - 1),
        word(HEADER(n_classes), TRACE_CLASSES + 1),
        long_word(HEADER(lanes_at), 0),
        long_word(HEADER(tasks_at), UINT64_MAX - 63),
        long_word(HEADER(records_at), UINT64_MAX - 63),
        long_word(HEADER(capacity), 0),
        long_word(HEADER(capacity), UINT32_MAX + UINT64_C(1)),
        long_word(HEADER(head), UINT64_MAX),
        real(HEADER(pace_scale), NAN),
        endless_text(HEADER(list), 24),
    };
    expect_all_refused(damage, COUNT(damage));
}

TEST(damaged_tables_are_refused)
{
    struct trace *trace = read_trace(make_example("layout.trace"));
    const struct trace_header *header = &trace->header;
    const struct damage damage[] = {
        endless_text(SECOND(lane, name), 40),
        endless_text(AT(device, name), 80),
        endless_text(SECOND(task, name), 40),
        word(SECOND(lane, kind), LANE_KINDS),
        word(SECOND(lane, device_index), COUNT(example_devices)),
        real(SECOND(lane, flops_per_s), NAN),
        endless_text(SECOND(tensor, name), 48),
        word(SECOND(tensor, device), COUNT(example_devices)),
        word(SECOND(tensor, class), 2),
        word(SECOND(tensor, list), 2),
        word(SECOND(tensor, first_use), 1), /* the first use would be of no tensor */
        word(SECOND(tensor, n_uses), 2),    /* the third use would be of no tensor */
        word(SECOND(tensor, n_uses), UINT32_MAX),
        long_word(SECOND(tensor, bytes), UINT64_MAX),
        word(header->uses_at, N_TASKS),
        word(SECOND(task, role), 2),
        word(SECOND(task, lane), COUNT(example_lanes)),
        real(SECOND(task, flops), INFINITY),
        word(SECOND(task, n_edges), COUNT(example_edges) + 1),
        word(SECOND(task, first_edge), UINT32_MAX), /* its sum with n_edges wraps in 32 bits */
        word(AT(edge, producer), N_TASKS),
    };
    expect_all_refused(damage, COUNT(damage));
    free_trace(trace);
}

TEST(damaged_records_are_refused)
{
    struct trace *trace = read_trace(make_example("layout.trace"));
    const struct trace_header *header = &trace->header;
    const struct damage damage[] = {
        word(RECORD(task), N_TASKS),
        word(RECORD(step), 0),
        long_word(RECORD(start), in_ns(601)),
    };
    expect_all_refused(damage, COUNT(damage));
    free_trace(trace);
}

TEST(a_number_of_records_whose_bytes_wrap_is_refused)
{
    uint64_t huge = UINT64_MAX, head = UINT64_MAX / 40 + 2; /* head * 40, its bytes, is a small number modulo 2^64 */
    const char *path = patched("wraps.trace", HEADER(capacity), &huge, sizeof huge);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &head, sizeof head, HEADER(head)), sizeof head);
    close(fd);
    expect_damage(path);
}

/* Whatever a byte says, the answer is a result or a sentence; times and names may be anything. */
TEST(random_damage_never_crashes)
{
    struct trace *trace = read_trace(make_example("layout.trace"));
    size_t n = trace->header.records_at + trace->n_records * sizeof *trace->records;
    free_trace(trace);
    for (uint32_t i = 0; i < 300; i++) {
        struct random4 random4 = random_words(1, STREAM_TEST, 0, i);
        size_t at = random4.word[0] % n;
        bool is_extreme = random4.word[2] % 3 == 0;
        uint32_t value = is_extreme ? UINT32_MAX : random4.word[1];
        const char *path = patched("random.trace", at, &value, 1 + random4.word[3] % 4);
        const char *json = temp_path("random.json");
        struct command *commands[] = {COMMAND("summary", (char *)path),
                                      COMMAND("export", (char *)path, "--chrome", (char *)json),
                                      COMMAND("diff", (char *)path, (char *)path, "--json")};
        struct outcome outcome = run_child(run_in_child, commands[i % COUNT(commands)]);
        bool is_silent = outcome.code == EXIT_OK && !outcome.text[0];
        bool is_refused = outcome.code == EXIT_FAILED && strncmp(outcome.text, "yard: ", 6) == 0;
        if (!is_silent && !is_refused)
            test_failed("damage %u at byte %zu: code %d, signal %d\n%s\n", i, at, outcome.code, outcome.signal,
                        outcome.text);
    }
}

TEST(texts_cannot_reach_the_terminal)
{
    struct trace *trace = read_trace(patched("escape.trace", HEADER(model), "\033[31m\xff", 6));
    assert_string_equal(trace->header.model, "?[31m?e");
    free_trace(trace);
}

/* ---- searching --------------------------------------------------------------------------------------------------- */

/* In 0, 2, 4 ... a search finds the place that a walk finds, from wherever it begins at or before that place; one that
 * begins after the end stays there. */
TEST(a_place_is_found_from_any_place_before_it)
{
    enum { MOST = 40 };
    int items[MOST];
    for (int i = 0; i < MOST; i++)
        items[i] = 2 * i;
    for (size_t n = 0; n <= MOST; n++)
        for (int key = -1; key <= 2 * (int)n; key++) {
            size_t place = place_by_walk(items, n, key);
            for (size_t from = 0; from <= place; from++)
                assert_int_equal(lower_bound_near(from, &key, items, n, sizeof *items, is_smaller), place);
            assert_int_equal(lower_bound_near(n + 1, &key, items, n, sizeof *items, is_smaller), n + 1);
        }
}

/* ---- usage ------------------------------------------------------------------------------------------------------- */

static size_t open_files(void)
{
    size_t n = 0;
    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) != -1)
            n++;
    return n;
}

/* A reader that follows a growing trace may try again: the program does not end, and no file stays open. */
TEST(a_bad_trace_is_a_problem)
{
    size_t before = open_files();
    for (int i = 0; i < 3; i++) {
        struct trace_follower *follower;
        struct problem *problem =
            open_follower(patched("bad.trace", HEADER(n_lanes), &(uint32_t){99999}, 4), &follower);
        assert_non_null(problem);
        assert_null(follower);
        assert_int_equal(problem->code, EXIT_FAILED);
        assert_contains(problem->sentence, "number of lanes 99999");
        free(problem);
    }
    assert_int_equal(open_files(), before);
}

TEST(usage_mistakes_get_a_sentence)
{
    char *path = (char *)make_example("a.trace");
    expect_refusal(run_in_child, COMMAND("sumary", path), EXIT_USAGE, "say summary, export or diff");
    expect_refusal(run_in_child, COMMAND("frobnicate", path), EXIT_USAGE, "summary, export or diff");
    expect_refusal(run_in_child, &(struct command){0}, EXIT_USAGE,
                   "trace needs a word that says what to do: summary, export or diff");
    expect_refusal(run_in_child, COMMAND("summary"), EXIT_USAGE, "takes FILE");
    expect_refusal(run_in_child, COMMAND("diff", path), EXIT_USAGE, "takes A B");
    expect_refusal(run_in_child, COMMAND("summary", path, "--chrome", "x"), EXIT_USAGE, "yard trace export");
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

/* test_follow.c - a trace that is followed while it is written, cut, replaced or left behind; and its trainer, which is
 * asked to wait.
 *
 * It tests follow.c of src/planning/trace, and how a viewer makes a trainer wait.  It checks that all polls together
 * give the records that the file has in the end, or say how many were lost, and that the trainer goes on when its
 * viewer is killed.  It catches a record that is read while it is half written, a loss that is not counted, and a
 * trainer that waits although no viewer asks it to.
 *
 * To see it fail: in follow.c, let is_lapped() be false.
 *
 * The writer is this program or a real run, and the expected records are those of the whole trace, read afterwards.
 * The real run is a process of ./yard, because a viewer holds such a process in practice, and because it must outlive
 * the viewer.
 */
#include "planning/trace/follow.h"
#include "planning/trace/stats.h"
#include "tests/support/child.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>

enum { LOAD, WORK, SAVE, N_TASKS };
static struct trace_device devices[] = {
    {.id = "0:0", .name = "pthread", .budget = 1 << 20},
};
static struct trace_lane lanes[] = {
    {.name = "0:0 compute", .kind = LANE_COMPUTE},
    {.name = "0:0 upload", .kind = LANE_UPLOAD},
};
static struct trace_edge edges[] = {{LOAD, 0, 0}, {WORK, 0, 0}, {WORK, 1, 0}};
static struct trace_task tasks[N_TASKS] = {[LOAD] = {.name = "load", .lane = 1, .first_edge = 2, .n_edges = 1},
                                           [WORK] = {.name = "work", .lane = 0, .first_edge = 0, .n_edges = 1},
                                           [SAVE] = {.name = "save", .lane = 1, .first_edge = 1, .n_edges = 1}};
static struct trace_tensor tensors[] = {{.name = "x", .n_uses = 2, .bytes = 10}};
static uint32_t uses[] = {LOAD, SAVE};
static const struct trace tables = {.header = {.kind = TRACE_REAL,
                                               .pace_scale = 1,
                                               .model = "example",
                                               .n_devices = 1,
                                               .n_lanes = 2,
                                               .n_tasks = N_TASKS,
                                               .n_edges = COUNT(edges),
                                               .n_tensors = COUNT(tensors),
                                               .n_uses = COUNT(uses),
                                               .n_lists = 1,
                                               .n_classes = 1,
                                               .list = {"train"}},
                                    .devices = devices,
                                    .lanes = lanes,
                                    .tasks = tasks,
                                    .edges = edges,
                                    .tensors = tensors,
                                    .uses = uses};

static struct trace_follower *must_open_follower(const char *path)
{
    struct trace_follower *follower;
    must(open_follower(path, &follower));
    return follower;
}

static bool poll_trace(struct trace_follower *follower)
{
    bool changed;
    must(poll_follower(follower, &changed));
    const struct trace *trace = followed_trace(follower);
    assert_int_equal(trace->n_records + trace->n_unfinished + trace->n_lost, trace->header.head);
    for (size_t i = 1; i < trace->n_records; i++)
        assert_at_most(trace->records[i - 1].start, trace->records[i].start);
    return changed;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* Many small polls find what one reading finds. */
TEST(polls_add_up_to_the_trace)
{
    enum { N = 3000, LATE = 7 };
    const char *path = temp_path("grows.trace");
    struct trace_writer *writer = open_trace_writer(path, &tables, N);
    struct trace_follower *follower = must_open_follower(path);
    const struct trace *trace = followed_trace(follower);
    uint64_t number[N];
    for (uint32_t i = 0; i < N; i++) { /* each ends LATE records later, starts within a few of its neighbours */
        struct random4 random4 = random_words(1, STREAM_TEST, 0, i);
        number[i] = begin_trace_record(writer, i / N_TASKS + 1, i % N_TASKS, i);
        if (i >= LATE)
            end_trace_record(writer, number[i - LATE], 10 * i + random4.word[0] % 50, 10 * i + 60, 0);
        if (random4.word[1] % 5)
            continue;
        assert_true(poll_trace(follower));
        assert_int_equal(trace->n_records, i < LATE ? 0 : i + 1 - LATE);
    }
    for (uint32_t i = N - LATE; i < N; i++)
        end_trace_record(writer, number[i], 10 * N, 10 * N + 1, 0);
    close_trace_writer(writer);
    assert_true(poll_trace(follower));
    assert_false(poll_trace(follower));
    struct trace *whole = read_trace(path);
    assert_int_equal(whole->n_records, N);
    assert_int_equal(trace->n_records, N);
    assert_memory_equal(whole->records, trace->records, N * sizeof *whole->records);
    assert_int_equal(trace->whole_step, whole->whole_step);
    assert_int_equal(trainer_life(follower), LIFE_CLOSED);
    free_trace(whole);
    close_follower(follower);
}

TEST(a_lapped_reader_counts_its_losses)
{
    const char *path = temp_path("lapped.trace");
    struct trace_writer *writer = open_trace_writer(path, &tables, 8);
    struct trace_follower *follower = must_open_follower(path);
    const struct trace *trace = followed_trace(follower);
    uint64_t stuck = begin_trace_record(writer, 1, LOAD, 1);
    poll_trace(follower);
    assert_int_equal(trace->n_unfinished, 1);
    for (uint32_t i = 0; i < 100; i++)
        end_trace_record(writer, begin_trace_record(writer, i + 1, WORK, i), 10 * i, 10 * i + 5, 0);
    end_trace_record(writer, stuck, 5, 6, 0); /* too late: its slot is another record's */
    poll_trace(follower);
    assert_int_equal(trace->n_records, 8);
    assert_int_equal(trace->n_unfinished, 0);
    assert_int_equal(trace->n_lost, 93);          /* the ring has room for 8 of 101 records */
    assert_int_equal(trace->records[0].step, 93); /* the last 8 of 100 steps */
    close_trace_writer(writer);
    close_follower(follower);
}

static atomic_bool stop;

/* Record i is of step i + 1 and says so in all its fields. */
static void *write_until_stopped(void *writer)
{
    for (uint64_t i = 0; !stop; i++)
        end_trace_record(writer, begin_trace_record(writer, (uint32_t)i + 1, (uint32_t)(i % N_TASKS), 10 * i),
                         10 * i + 3, 10 * i + 7, 0);
    return NULL;
}

LONG_TEST(a_ring_that_is_overwritten_gives_no_torn_record)
{
    const char *path = temp_path("fast.trace");
    struct trace_writer *writer = open_trace_writer(path, &tables, 5);
    struct trace_follower *followed = must_open_follower(path);
    const struct trace *trace = followed_trace(followed);
    pthread_t thread;
    stop = false;
    assert_int_equal(pthread_create(&thread, NULL, write_until_stopped, writer), 0);
    for (int polls = 0; polls < 5000 || trace->n_records < 1000; polls++) {
        bool changed;
        size_t checked = trace->n_records;
        must(poll_follower(followed, &changed));
        assert_int_equal(trace->n_records + trace->n_unfinished + trace->n_lost, trace->header.head);
        for (size_t i = checked - MIN(checked, 100); i < trace->n_records; i++) {
            const struct trace_record *record = &trace->records[i];
            assert_int_equal(record->queued, 10 * (uint64_t)(record->step - 1));
            assert_int_equal(record->start, record->queued + 3);
            assert_int_equal(record->task, (record->step - 1) % N_TASKS);
            if (i > 0)
                assert_above(record->step, trace->records[i - 1].step); /* each once */
        }
    }
    stop = true;
    pthread_join(thread, NULL);
    close_trace_writer(writer);
    close_follower(followed);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void expect_poll_problem(struct trace_follower *follower, const char *part)
{
    bool changed;
    size_t before = followed_trace(follower)->n_records;
    struct problem *problem = poll_follower(follower, &changed);
    assert_non_null(problem);
    if (!strstr(problem->sentence, part))
        test_failed("expected \"%s\" in: %s\n", part, problem->sentence);
    assert_int_equal(followed_trace(follower)->n_records, before);
    free(problem);
}

static struct trace_writer *write_three(const char *path)
{
    struct trace_writer *writer = open_trace_writer(path, &tables, 100);
    for (uint32_t i = 0; i < 3; i++)
        end_trace_record(writer, begin_trace_record(writer, 1, i, i), 10 * i, 10 * i + 5, 0);
    return writer;
}

TEST(a_file_that_is_cut_or_changed_under_the_reader_is_a_problem)
{
    const char *path = temp_path("cut.trace");
    struct trace_writer *writer = write_three(path);
    struct trace_follower *followed = must_open_follower(path);
    uint32_t one = 1, many = 99;
    uint64_t absurd = (uint64_t)1 << 60;
    int fd = open(path, O_RDWR);
    begin_trace_record(writer, 2, LOAD, 50);
    assert_int_equal(pwrite(fd, &many, sizeof many, (off_t)followed_trace(followed)->header.records_at + 3 * 40 + 4),
                     4);
    expect_poll_problem(followed, "record 3 is impossible");
    close_trace_writer(writer);
    assert_int_equal(pwrite(fd, &absurd, sizeof absurd, TRACE_LIVE), 8);
    expect_poll_problem(followed, "shorter");
    assert_int_equal(pwrite(fd, &one, sizeof one, offsetof(struct trace_header, n_tasks)), 4);
    expect_poll_problem(followed, "overwritten");
    assert_int_equal(ftruncate(fd, 700), 0);
    expect_poll_problem(followed, "shorter");
    close(fd);
    close_follower(followed);
}

/* ---- the trainer ------------------------------------------------------------------------------------------------- */

/* The child is killed when this program ends, as it may in the midst of a test that fails. */
static pid_t fork_mortal(void)
{
    pid_t child = fork();
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

/* Poll until it is so, up to a minute. */
static bool becomes(struct trace_follower *follower, enum trace_life life)
{
    for (uint64_t until = now_ns() + 60000000000; now_ns() < until; usleep(2000)) {
        poll_trace(follower);
        if (trainer_life(follower) == life)
            return true;
    }
    return false;
}

TEST(a_stopped_trainer_shows_what_runs)
{
    const char *path = temp_path("stopped.trace");
    struct trace_running_task running;
    pid_t child = fork_mortal();
    if (child == 0) {
        struct trace_writer *writer = write_three(path);
        begin_trace_record(writer, 2, LOAD, 30);
        begin_trace_record(writer, 2, WORK, 31);
        raise(SIGSTOP);
        for (;;)
            pause();
    }
    while (access(path, R_OK) != 0)
        usleep(1000);
    struct trace_follower *followed = must_open_follower(path);
    assert_true(becomes(followed, LIFE_STOPPED));
    poll_trace(followed); /* the last records may have come after the poll before */
    assert_true(find_running_task(followed_trace(followed), 1, &running));
    assert_int_equal(running.record->task, LOAD);
    assert_false(running.waits);
    assert_int_equal(running.since, 30);
    assert_true(find_running_task(followed_trace(followed), 0, &running));
    assert_true(running.waits); /* for load */
    kill(child, SIGCONT);
    assert_true(becomes(followed, LIFE_RUNS));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(becomes(followed, LIFE_GONE));
    assert_false(can_request(followed));
    close_follower(followed);
}

static void ask(struct trace_follower *follower, bool hold, uint64_t more_tasks, uint64_t more_steps)
{
    const struct trace_control *now = current_request(follower);
    send_request(follower, (struct trace_control){
                               .pause = hold, .tasks = now->tasks + more_tasks, .steps = now->steps + more_steps});
}

static pid_t start_training(const char *trace, const char *log, const char *more)
{
    const char *yard = getenv("YARD");
    pid_t child = fork_mortal();
    if (child == 0) {
        freopen("/dev/null", "w", stdout);
        execl(yard ? yard : "./yard", "yard", "train", "--model", "tiny", "--steps", "150", "--sample-tokens", "0",
              "--trace", trace, "--log", log, more, NULL);
        _exit(99);
    }
    while (access(trace, R_OK) != 0)
        usleep(1000);
    return child;
}

static int exit_code(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static uint64_t poll_for_head(struct trace_follower *follower)
{
    poll_trace(follower);
    return followed_trace(follower)->header.head;
}

/* Until the trainer, paused, has begun `head` records; then a while longer, in which there must be no more. */
static void expect_head(struct trace_follower *follower, uint64_t head)
{
    for (int i = 0; i < 10000 && (poll_for_head(follower) < head || trainer_life(follower) != LIFE_PAUSED); i++)
        usleep(1000);
    usleep(20000);
    assert_int_equal(poll_for_head(follower), head);
}

/* Pauses come one after another, nothing runs in them, and what comes after one was queued then. */
static void expect_pauses(const struct trace *trace, size_t least)
{
    uint64_t before = 0;
    assert_at_least(trace->n_pauses, least);
    for (const struct pause *pause = trace->pauses; pause < trace->pauses + trace->n_pauses; pause++) {
        assert_below(pause->start, pause->end);
        assert_int_equal(pause->before, before);
        if (pause > trace->pauses)
            assert_at_most(pause[-1].end, pause->start);
        assert_int_equal(trace->records[pause->record].queued, pause->end);
        for (size_t i = 0; i < trace->n_records; i++)
            assert_true(trace->records[i].end <= pause->start || trace->records[i].start >= pause->end);
        before += pause->end - pause->start;
    }
}

/* The trace that `yard trace` reads is as long as the run. */
static void expect_cut(const char *path, const struct trace *trace)
{
    struct trace *cut = read_modelled_trace(path);
    const struct pause *last = &trace->pauses[trace->n_pauses - 1];
    uint64_t ended = 0, cut_ended = 0;
    for (size_t i = 0; i < trace->n_records; i++) {
        ended = MAX(ended, trace->records[i].end);
        cut_ended = MAX(cut_ended, cut->records[i].end);
        assert_int_equal(cut->records[i].end - cut->records[i].start, trace->records[i].end - trace->records[i].start);
    }
    assert_int_equal(cut_ended + last->before + (last->end - last->start), ended);
    assert_int_equal(cut->n_pauses, 0);
    free_trace(cut);
}

/* A task, a step, and what comes between them; then full speed to the end. */
static void step_through(const char *more)
{
    char *path = temp_path("stepped.trace"), *log = temp_path("stepped.jsonl");
    unlink(path);
    pid_t child = start_training(path, log, more);
    struct trace_follower *follower = must_open_follower(path);
    const struct trace *trace = followed_trace(follower);
    ask(follower, true, 0, 0);
    assert_true(becomes(follower, LIFE_PAUSED));
    uint64_t head = poll_for_head(follower);
    uint32_t next = (uint32_t)trace->header.paused_task - 1, in_step = 0;
    ask(follower, true, 1, 0);
    expect_head(follower, head + 1);
    ask(follower, true, 1, 0);
    ask(follower, true, 1, 0);
    expect_head(follower, head + 3);
    for (uint32_t i = 0; i < trace->header.n_tasks; i++)
        if (trace->tasks[i].list == trace->tasks[next].list)
            in_step++;
    ask(follower, true, 0, 1); /* the rest of the step that has begun */
    expect_head(follower, head - next + in_step);
    ask(follower, true, 0, 1);
    expect_head(follower, head - next + 2 * in_step);
    ask(follower, false, 0, 0);
    assert_true(becomes(follower, LIFE_CLOSED));
    assert_int_equal(exit_code(child), 0);
    assert_false(can_request(follower));
    expect_pauses(trace, 4); /* one after each that was granted; one before them, unless nothing had run */
    expect_cut(path, trace);
    close_follower(follower);
}

TEST(a_paused_run_does_one_task_or_one_step) { step_through(NULL); }

LONG_TEST(serial_runs_are_stepped_too) { step_through("--serial"); }

/* The viewer holds a pause and is killed: the trainer goes on. */
LONG_TEST(a_killed_viewer_lets_the_trainer_go)
{
    char *trace = temp_path("held.trace"), *log = temp_path("held.jsonl");
    unlink(trace);
    pid_t viewer = fork_mortal(); /* first: on a busy machine a training may end before a process has begun */
    if (viewer == 0) {
        while (access(trace, R_OK) != 0)
            usleep(1000);
        struct trace_follower *follower = must_open_follower(trace);
        bool changed;
        ask(follower, true, 0, 0);
        for (;; usleep(10000))
            free(poll_follower(follower, &changed));
    }
    pid_t trainer = start_training(trace, log, NULL);
    struct trace_follower *follower = must_open_follower(trace);
    assert_true(becomes(follower, LIFE_PAUSED));
    uint64_t head = poll_for_head(follower);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(poll_for_head(follower), head);
        usleep(10000);
    }
    kill(viewer, SIGKILL);
    waitpid(viewer, NULL, 0);
    assert_true(becomes(follower, LIFE_CLOSED));
    assert_above(poll_for_head(follower), head);
    assert_int_equal(exit_code(trainer), 0);
    close_follower(follower);
}

/* Words that no viewer would write. */
TEST(made_up_control_words_hold_no_trainer)
{
    char *trace = temp_path("words.trace"), *log = temp_path("words.jsonl");
    struct trace_control words = {.until = UINT64_MAX, .pause = 1, .tasks = UINT64_MAX, .steps = UINT64_MAX};
    pid_t trainer = start_training(trace, log, NULL);
    int fd = open(trace, O_WRONLY);
    assert_int_equal(pwrite(fd, &words, sizeof words, TRACE_CONTROL), sizeof words);
    close(fd);
    assert_int_equal(exit_code(trainer), 0);
}

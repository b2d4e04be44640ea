/* test_snaprun.c - snapshots while training runs.
 *
 * It tests src/techniques/snapshot on real queues.  It checks that no bit of the training changes, that the stored
 * state is the state right after its iteration, that a step which went wrong is never stored as the newest, and that
 * training goes on however slow the writer is.  It catches a copy that reads what the next update has begun to write,
 * and a training that waits for the disk.
 *
 * To see it fail: in snapshot_stored.c, let writes_state() leave out what the optimizer keeps.
 *
 * The expected states are those of the run without snapshots, after each of its steps.
 */
#include "planning/trace/trace.h"
#include "techniques/checkpoint/resume.h"
#include "techniques/snapfile/snapfile_parts.h"
#include "techniques/snapshot/snapshot_parts.h"
#include "tests/support/support.h"
#include "tests/support/support_training.h"
#include "tools/pace/pace.h"

#include <dlfcn.h>
#include <math.h>
#include <signal.h>

#define TINY "--model tiny --layers 1 --batch 4 --tokens bytes "

/* ---- meshes and passes ------------------------------------------------------------------------------------------- */

enum { STEPS = 6 };
static const struct kind {
    const char *words;
    bool apart; /* each device has a context of its own */
} kinds[] = {
    {"-d 0:0", false},
    {"-d 0:0x2 --zero 3 --overlap all-cpu --swap layer --swap-what parameters,optimizer", true},
    {"-d 0:0 --micro-batch 1 --untied --snapshot-slots 3", false},
    {"-d 0:0 --delay-seed 3 --clip 0", false},
    {"-d 0:0 --overlap all-cpu", false},
    {"-d 0:0 --overlap local --delay-seed 2 --hardware data/hardware/server.txt --clip 0", false},
    {"-d 0:0 --channels 640 --seq-len 8 --batch 2 --overlap local --delay-seed 4 --hardware data/hardware/server.txt",
     false}, /* updates are cut into slices */
    {"-d 0:0x2 --zero 3 --overlap local --delay-seed 3 --hardware data/hardware/server.txt --snapshot-in device", true},
    {"-d 0:0 --swap layer --swap-what parameters,optimizer,activations", false},
    {"-d 0:0x2 --zero 0", true},
    {"-d 0:0x2 --zero 0 --overlap all-cpu", false},
    {"-d 0:0x2 --zero 1 --delay-seed 1 --broadcast-queues 3", true},
    {"-d 0:0x2 --mesh pp=2 --layers 2 --micro-batch 2", true},
    {"-d 0:0x2 --mesh tp=2", true},
    {"-d 0:0x8 --mesh dp=2,pp=2,tp=2 --layers 2 --micro-batch 1 --zero 3 --overlap all-cpu --broadcast-queues 3 "
     "--swap layer --swap-what parameters,optimizer --recompute full",
     false},
};

/* The path of a file that is not there yet: a run stores into the file that an earlier test left. */
static const char *new_file(const char *name)
{
    const char *path = temp_path(name);
    unlink(path);
    return path;
}

static struct trainer *open_kind(const struct kind *kind, const char *more)
{
    char *words = lasting(TINY "%s %s", kind->words, more);
    contexts_apart(kind->apart);
    struct trainer *trainer = new_trainer(parse_words(words), LIST_TRAIN | OPEN_DATA);
    restore_contexts();
    init_random(trainer->model, 1337);
    return trainer;
}

/* A trainer that is ready to train, and to store in that file. */
static struct trainer *open_storing(const struct kind *kind, const char *file)
{
    char *words = lasting("--snapshot %s", file);
    struct trainer *trainer = open_kind(kind, words);
    start_snapshots(trainer);
    return trainer;
}

/* Checks the state in the file, which another trainer of the kind loads. */
static void expect_stored(struct trainer *reader, const char *words, const char *file, uint32_t step,
                          const struct state *expected)
{
    struct checkpoint *checkpoint = read_newest_snapshot(file);
    assert_int_equal(checkpoint->step, step);
    load_checkpoint(reader->model, checkpoint, LOAD_ALL_STATE);
    struct state state = read_whole_state(reader);
    assert_int_equal(state.n, expected->n);
    expect_same_bits(words, state.values, expected->values, state.n);
    free_checkpoint(checkpoint);
    free(state.values);
}

/* The states after each step of a training that stores nothing; [0] is not set.  Returns its trainer. */
static struct trainer *train_plainly(const struct kind *kind, struct state states[STEPS + 1])
{
    struct trainer *trainer = open_kind(kind, "");
    for (uint32_t i = 1; i <= STEPS; i++) {
        issue_step(trainer, i);
        drain(trainer->train_list);
        states[i] = read_whole_state(trainer);
    }
    return trainer;
}

/* Stopped after each step for a look at the file: all are stored; or running freely, and what is stored is right. */
static void expect_kind(const struct kind *kind, const struct state states[STEPS + 1], struct trainer *reader,
                        bool stopping)
{
    const char *file = new_file("kind.snap");
    struct trainer *trainer = open_storing(kind, file);
    for (uint32_t i = 1; i <= STEPS; i++) {
        issue_step(trainer, i);
        if (!stopping)
            continue;
        drain(trainer->train_list);
        expect_stored(reader, kind->words, file, i, &states[i]);
    }
    drain(trainer->train_list);
    struct commit_times *commits;
    size_t n = take_commits(trainer, &commits);
    struct state end = read_whole_state(trainer);
    expect_same_bits(kind->words, end.values, states[STEPS].values, end.n);
    struct snapfile_counts counts = close_snapshots(trainer);
    assert_int_equal(counts.stored + counts.dropped, STEPS);
    assert_int_equal(counts.stored, n);
    assert_int_equal(counts.newest, commits[n - 1].step);
    for (size_t i = 0; i < n; i++) {
        assert_at_most(commits[i].recoverable, commits[i].durable);
        if (i > 0) {
            assert_above(commits[i].step, commits[i - 1].step);
            assert_above(commits[i].recoverable, commits[i - 1].durable);
        }
    }
    if (stopping)
        assert_int_equal(counts.dropped, 0);
    free_trainer(trainer);
    expect_stored(reader, kind->words, file, counts.newest, &states[counts.newest]);
    free(commits);
    free(end.values);
}

static struct kind by_device(const struct kind *kind)
{
    return (struct kind){lasting("%s --snapshot-in device", kind->words), kind->apart};
}

LAW(snapshots_of_any_mesh_are_its_state)
{
    const struct cases some = cases_of(2, COUNT(kinds));
    for (int i = some.begin; i < some.end; i++) {
        struct state states[STEPS + 1] = {{0}};
        struct trainer *reader = train_plainly(&kinds[i], states);
        struct kind device = by_device(&kinds[i]);
        expect_kind(&kinds[i], states, reader, true);
        expect_kind(&kinds[i], states, reader, false);
        expect_kind(&device, states, reader, false);
        free_trainer(reader);
        for (int k = 1; k <= STEPS; k++)
            free(states[k].values);
    }
}

/* ---- a slow writer ----------------------------------------------------------------------------------------------- */

enum { BLOCKED = 30, ALL = 40 };
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    host_function *persist; /* the persist task's own work */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .open = false};

static void wait_at_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    while (!gate.open)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void persist_behind_gate(void *context, const struct task *task, uint32_t iteration)
{
    wait_at_gate();
    gate.persist(context, task, iteration);
}

/* Copies the bytes down from a copy on the device, when the gate opens. */
static void copy_behind_gate(const struct task *task, uint32_t iteration, cl_uint n, const cl_event *wait,
                             cl_event *done)
{
    struct tensor *to = tensor_at(task->accesses[0].tensor, iteration),
                  *from = tensor_at(task->accesses[1].tensor, iteration);
    wait_at_gate();
    CL(clEnqueueReadBuffer(task->lane->queue, tensor_buffer(from), CL_FALSE, 0, to->bytes, tensor_memory(to), n, wait,
                           done));
}

static void set_gate(bool open)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = open;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void put_gate(struct trainer *trainer)
{
    for (size_t i = 0; i < trainer->train_list->n; i++) {
        struct task *task = trainer->train_list->tasks[i];
        bool stores = task->action == ACT_HOST && task->extra.slot.needed && !task->extra.slot.returns;
        if (task->extra.slot.aside && is_copy(task)) {
            task->action = ACT_OWN;
            task->extra.commands.enqueue = copy_behind_gate;
        }
        if (!stores)
            continue;
        gate.persist = task->function;
        task->function = persist_behind_gate;
    }
    set_gate(false);
}

/* The disk ends nothing before step 30 has been computed: a task that waited for it would wait for ever.  The first
 * iterations got the slots. */
static void expect_no_waiting(const struct kind *kind)
{
    const char *file = new_file("slow.snap");
    struct trainer *trainer = open_storing(kind, file);
    struct commit_times *commits = NULL;
    uint32_t slots = (uint32_t)asked_snapshot.slots;
    put_gate(trainer);
    alarm(120);
    for (uint32_t i = 1; i <= ALL; i++) {
        issue_step(trainer, i);
        assert_true(isfinite(step_result(trainer, i)->loss));
        if (i == BLOCKED / 2 || i == BLOCKED) /* so that step BLOCKED has asked for a slot before one becomes free */
            drain_except_disk(trainer->train_list);
        if (i == BLOCKED) {
            assert_int_equal(take_commits(trainer, &commits), 0);
            set_gate(true);
            drain(trainer->train_list);
        }
    }
    drain(trainer->train_list);
    alarm(0);
    size_t n = take_commits(trainer, &commits);
    struct snapfile_counts counts = close_snapshots(trainer);
    assert_above(n, slots);
    for (uint32_t i = 0; i <= slots; i++)
        assert_int_equal(commits[i].step, i < slots ? i + 1 : BLOCKED + 1);
    assert_int_equal(counts.stored, n);
    assert_int_equal(counts.stored + counts.dropped, ALL);
    free(commits);
    free_trainer(trainer);
}

LONG_TEST(training_waits_for_no_snapshot)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strncmp(kinds[i].words, "-d 0:0x8", 8) != 0) { /* eight threads more on two cores show nothing else */
            struct kind device = by_device(&kinds[i]);
            expect_no_waiting(&kinds[i]);
            expect_no_waiting(&device);
        }
}

/* ---- what is not stored ------------------------------------------------------------------------------------------ */

static uint32_t newest_in(const char *file)
{
    struct checkpoint *checkpoint = read_snapshot(file);
    uint32_t step = snapfile_of(checkpoint)->newest.slot ? checkpoint->step : 0;
    free_checkpoint(checkpoint);
    return step;
}

/* A report of a bad step: neither it nor any later one is committed, though their bytes are finite. */
TEST(bad_steps_are_not_committed)
{
    const char *file = new_file("bad.snap");
    struct trainer *trainer = open_storing(&kinds[0], file);
    for (uint32_t i = 1; i <= 5; i++) {
        if (i == 3)
            note_reported(trainer, i, false);
        issue_step(trainer, i);
        drain(trainer->train_list);
    }
    struct snapfile_counts counts = close_snapshots(trainer);
    assert_int_equal(counts.newest, 2);
    assert_int_equal(counts.dropped, 3);
    assert_int_equal(newest_in(file), 2);
    free_trainer(trainer);
}

/* ---- as planned -------------------------------------------------------------------------------------------------- */

/* "1 2 9", of commits that the pass foretold, or that were made; at most up to `last`. */
static char *foretold(const struct trainer *trainer, int last)
{
    char *text = copy_string("");
    json_t *commit;
    size_t i;
    json_array_foreach(json_object_get(reports_of(trainer).items[reports_of(trainer).n - 1].fields, "commits"), i,
                       commit)
    {
        int step = (int)json_integer_value(json_object_get(commit, "iteration"));
        char *more = step <= last ? format_string("%s %d", text, step) : copy_string(text);
        free(text);
        text = more;
    }
    return text;
}

static const char slow_disk[] = "hardware = paced\ndevices = 1\ndevices_per_link = 1\nflops = 1e12\nefficiency = "
                                "0.5\nbandwidth = 1e11\nlaunch = 2e-6\n"
                                "host_bandwidth = 1e10\nhost_launch = 1e-6\nlink upload = 1e10 1e-6\n"
                                "link download = 1e10 1e-6\nlink disk = 1.6e9 1e-5\nmemory = 1G\nhost_memory = 1G\n";

/* On a disk that needs 1.2 steps for an iteration: the same ones are stored when the run is paced.  A slot is free half
 * a second after iteration 3 and before iteration 4, since real work and writes may be late. */
LONG_TEST(paced_runs_store_what_was_planned)
{
    enum { PACED = 4 };
    const char *file = new_file("paced.snap"), *hardware = write_file("slow.txt", slow_disk, sizeof slow_disk - 1);
    struct settings *settings = parse_words(lasting(TINY "%s --snapshot %s --pace %s", kinds[0].words, file, hardware));
    asked_pace.scale = 6000;
    struct trainer *trainer = open_training(settings, LIST_TRAIN);
    char *expected = foretold(trainer, PACED), *found = copy_string("");
    struct commit_times *commits;
    start_snapshots(trainer);
    for (uint32_t i = 1; i <= PACED; i++)
        issue_step(trainer, i);
    drain(trainer->train_list);
    size_t n = take_commits(trainer, &commits);
    for (size_t i = 0; i < n; i++) {
        char *longer = format_string("%s %u", found, commits[i].step);
        free(found);
        found = longer;
    }
    assert_string_equal(expected, " 1 2 4");
    assert_string_equal(found, expected);
    assert_int_equal(close_snapshots(trainer).dropped, PACED - n);
    free_trainer(trainer);
    free(expected);
    free(found);
    free(commits);
}

/* ---- one after another, and what is seen ------------------------------------------------------------------------- */

TEST(serial_and_audited_runs_store_the_same)
{
    for (int on_device = 0; on_device < 2; on_device++) {
        const char *file = new_file("serial.snap");
        expect_yard(EXIT_OK, "3 stored",
                    "train " TINY "--steps 3 --sample-tokens 0 --val-batches 1 --serial --audit --snapshot %s "
                    "--snapshot-in %s",
                    file, on_device ? "device" : "host");
        assert_int_equal(newest_in(file), 3);
    }
}

/* A trace has the tasks of a slot where they ran: all of an iteration that was stored, and of no other. */
TEST(a_trace_has_the_iterations_that_were_stored)
{
    char *file = temp_path("traced.snap");
    char *path = temp_path("run.trace");
    char *log = temp_path("log.jsonl");
    struct ran ran = expect_yard(
        EXIT_OK, "", "train " TINY "--steps 12 --sample-tokens 0 --val-batches 1 --snapshot %s --trace %s --log %s",
        file, path, log);
    struct trace *trace = read_trace(path);
    int commits[13] = {0}, copies[13] = {0}, persists[13] = {0}, stored = 0;
    for (size_t i = 0; i < trace->n_records; i++) {
        const char *name = trace->tasks[trace->records[i].task].name;
        uint32_t step = trace->records[i].step;
        if (strcmp(trace->header.list[trace->tasks[trace->records[i].task].list], "train") != 0)
            continue;
        if (strcmp(name, "commit") == 0)
            commits[step]++;
        if (strcmp(name, "snapshot") == 0)
            copies[step]++;
        if (strcmp(name, "persist") == 0)
            persists[step]++;
    }
    assert_int_equal(trace->n_unfinished, 0);
    for (int i = 1; i <= 12; i++) {
        stored += commits[i];
        assert_int_equal(copies[i], 9 * commits[i]); /* value, m and v of three units */
        assert_int_equal(persists[i], 3 * commits[i]);
    }
    char *line = lasting("%d stored in", stored);
    assert_contains(ran.out, line);
    free_trace(trace);
}

/* ---- the file of a run before ------------------------------------------------------------------------------------ */

/* A new run of the same sizes writes into the same bytes, but what is stored has its own options, even where these are
 * texts of the same length.  Another model's snapshot is not replaced unless that is asked for. */
TEST(another_run_takes_the_file_over)
{
    const char *file = new_file("again.snap"), *words = TINY "--data LICENSE -d 0:0 --val-batches 1 --sample-tokens 0";
    for (int seed = 5; seed <= 6; seed++) {
        expect_yard(EXIT_OK, "", "train %s --seed %d --steps 2 --snapshot %s --snapshot-every 2", words, seed, file);
    }
    expect_yard(EXIT_USAGE, "is a snapshot of another model (1 layers", "train %s --layers 2 --steps 2 --snapshot %s",
                words, file);
    struct checkpoint *checkpoint = read_newest_snapshot(file);
    assert_int_equal(checkpoint->step, 2);
    assert_string_equal(text_at(checkpoint->options, "seed"), "6");
    free_checkpoint(checkpoint);
}

/* Where libpmem is installed it can be told to take any file for one in persistent memory. */
TEST(persistent_memory_is_written_by_libpmem)
{
    const char *words = TINY "--data LICENSE -d 0:0 --val-batches 1 --sample-tokens 0 --steps 4";
    if (!dlopen("libpmem.so.1", RTLD_NOW)) {
        print_message("libpmem is not installed\n");
        skip();
    }
    const char *file = new_file("memory.snap");
    setenv("PMEM_IS_PMEM_FORCE", "1", 1);
    for (int run = 0; run < 2; run++) { /* a new file, and one that is taken over */
        expect_yard(EXIT_OK, " into persistent memory", "train %s --snapshot %s --snapshot-every 4", words, file);
    }
    unsetenv("PMEM_IS_PMEM_FORCE");
    const char *whole = temp_path("whole");
    assert_int_equal(run_yard("train %s --save %s", words, whole).code, EXIT_OK);
    assert_int_equal(run_yard("ckpt diff %s %s", file, whole).code, EXIT_OK);
    struct ran ran = expect_yard(EXIT_OK, "", "train --resume %s --snapshot %s --steps 6", file, file);
    assert_null(strstr(ran.out, " into persistent memory"));
}

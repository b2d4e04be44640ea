/* record.c - a run as a trace: an observer of the run (run/observe.c) that begins a record when a task is issued and
 * ends it when the task ends, and that pauses the run between two tasks as long as a viewer asks for it.
 */
#include "record.h"
#include "command.h"
#include "follow.h"
#include "list_tables.h"
#include "planning/console/table.h"
#include "planning/pass/pass.h"
#include "planning/peak/peak.h"
#include "stats.h"
#include "trainer/file/file.h"
#include "trainer/train/hooks.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

static struct recording {
    struct trace_writer *writer; /* NULL: no trace is written */
    struct observer observer;
    const struct trainer *trainer;         /* the one that is recorded */
    struct trace_follower *follower;       /* a reader of the same trace */
    bool trains;                           /* true: yard train records it */
    const struct list *lists[TRACE_LISTS]; /* the lists in the trace, in the order of its table of tasks */
    size_t n;
    bool paused;                /* true: a viewer has asked for a pause */
    uint64_t tasks, steps;      /* the viewer's counts, as far as they have been granted */
    const struct list *granted; /* the list of an iteration that may run to its end in a pause; NULL: none may */
    uint32_t iteration;         /* that iteration */
} current_recording;

/* The number of task i of the list in the trace's table of tasks. */
static uint32_t index_in_trace(const struct recording *recording, const struct list *list, size_t i)
{
    size_t before = 0; /* the tasks of the lists before this one */
    size_t k = 0;
    while (k < recording->n && recording->lists[k] != list) {
        before += recording->lists[k]->n;
        k++;
    }
    CHECK(k < recording->n, "list %s runs, and is not in the trace", list->name);
    return (uint32_t)(before + i);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static void begin_record(void *context, const struct list *list, const struct task *task, struct task_flight *flight)
{
    struct recording *recording = context;
    flight->mark = begin_trace_record(recording->writer, flight->iteration,
                                      index_in_trace(recording, list, task->index), flight->queued);
}

static void end_record(void *context, const struct list *list, const struct task *task,
                       const struct task_flight *flight)
{
    static const uint32_t flags[] = {
        [TIMES_TRUE] = 0,
        [TIMES_MISSING] = TRACE_APPROXIMATE,
        [TIMES_STEPPED_BACK] = TRACE_APPROXIMATE | TRACE_STEPPED_BACK,
    };
    struct recording *recording = context;
    (void)list;
    if (task == recording->trainer->report)
        tell_record_loss(recording->writer, flight->mark,
                         recording->trainer->results[flight->iteration % RESULTS].loss);
    end_trace_record(recording->writer, flight->mark, flight->start, flight->end, flags[flight->time_source]);
}

/* ---- a viewer's pause -------------------------------------------------------------------------------------------- */

/* A request holds until its lease ends, which the viewer renews as long as it lives: a viewer that was killed cannot
 * keep the trainer. */
static bool is_pause_asked(const struct trace_control *control)
{
    uint64_t until = __atomic_load_n(&control->until, __ATOMIC_RELAXED);
    if (until == 0)
        return false;
    uint64_t now = now_ns();
    if (until <= now || until - now > TRACE_LONGEST_LEASE_MS * UINT64_C(1000000))
        return false;
    return __atomic_load_n(&control->pause, __ATOMIC_RELAXED) != 0;
}

static uint64_t tasks_asked(const struct trace_control *control)
{
    return __atomic_load_n(&control->tasks, __ATOMIC_RELAXED);
}

static uint64_t steps_asked(const struct trace_control *control)
{
    return __atomic_load_n(&control->steps, __ATOMIC_RELAXED);
}

/* Waits until the viewer grants the rest of the step, or one task, or asks for no pause any more. */
static void wait_for_grant(struct recording *recording, const struct trace_control *control, const struct list *list,
                           const struct task *task, uint32_t iteration)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    while (is_pause_asked(control) && !interrupted()) {
        uint64_t tasks = tasks_asked(control);
        if (steps_asked(control) > recording->steps) {
            recording->steps++;
            recording->granted = list;
            recording->iteration = iteration;
            return;
        }
        if (tasks > recording->tasks) {
            recording->tasks++;
            return;
        }
        show_trainer_alive(recording->writer, 1 + (uint64_t)index_in_trace(recording, list, task->index));
        nanosleep(&moment, NULL);
    }
}

/* Waits while a viewer asks for it, until the viewer lets that task be issued or is gone.  All tasks that were
 * issued have ended by then. */
static void obey_viewer(void *context, struct list *list, const struct task *task, uint32_t iteration)
{
    struct recording *recording = context;
    const struct trace_control *control = request_in_file(recording->writer);
    if (!is_pause_asked(control)) {
        recording->paused = false;
        return;
    }
    if (!recording->paused) { /* what was asked before the pause does not count */
        recording->paused = true;
        recording->tasks = tasks_asked(control);
        recording->steps = steps_asked(control);
        recording->granted = NULL;
    }
    if (recording->granted == list && recording->iteration == iteration)
        return;
    retire_all(list);
    uint64_t from = now_ns();
    wait_for_grant(recording, control, list, task, iteration);
    execution.held_ns += now_ns() - from;
    show_trainer_alive(recording->writer, 0);
}

/* ---- the trace of a training ------------------------------------------------------------------------------------- */

struct record_options asked_record;

char *path_of_trace(void)
{
    const struct record_options *options = &asked_record;
    if (options->file && this_process->restarts) /* the traces before the restart stay */
        return format_string("%s.%d", options->file, this_process->restarts);
    if (options->file)
        return copy_string(options->file);
    return options->shown ? private_trace_path() : NULL;
}

static const struct trace_window *find_window(void)
{
    const struct trace_window *found = NULL;
    for (size_t i = 0; i < n_modules; i++)
        found = sole_part(found, modules[i], planning_parts_of(modules[i])->window);
    return found;
}

void show_if_asked(const char *path)
{
    if (!asked_record.shown)
        return;
    const struct trace_window *window = find_window();
    CHECK(window, "no folder of %zu has a window", n_modules);
    window->open(path);
    if (!asked_record.file)
        unlink(path);
}

static bool is_recorded(const struct settings *settings)
{
    return !settings->demands.trial && (asked_record.file || asked_record.shown);
}

/* This comes before the log is opened, so that a run which is refused leaves no log. */
static void refuse_if_file_to_keep(struct trainer *trainer)
{
    if (is_recorded(trainer->settings) && asked_record.file && trainer->settings->log)
        expect_replaceable("--trace", asked_record.file, KIND_TRACE, "trace that yard wrote");
}

static double predicted_ns(void *trainer, const struct task *task)
{
    double seconds = ask_predicted_seconds(trainer, task);
    return isnan(seconds) ? 0 : 1e9 * seconds;
}

/* How long each device is measured: so short that the training begins without a noticeable wait. */
static const double PROBE_SECONDS = 0.05;

/* Measures what each device reaches at most, for a viewer. */
static void measure_peaks(const struct machine *machine)
{
    for (int i = 0; i < machine->n_devices; i++) {
        struct device *device = &machine->devices[i];
        struct probe *probe = open_probe(device);
        device->flops_per_s = run_probe(probe, PROBE_SECONDS);
        close_probe(probe);
    }
}

char *describe_shape(const struct trainer *trainer)
{
    struct config config = trainer->config;
    config.seq_len = trainer->seq_len;
    int n = trainer->machine->n_devices;
    char sizes[SIZES_BYTES];
    return format_string("%s, batch %d in %d x %d on %d device%s", describe_sizes(sizes, &config), trainer->batch,
                         trainer->micros, trainer->micro_batch, n, PLURAL(n));
}

static void begin_recording(struct trainer *trainer, const char *path)
{
    struct list *lists[MOST_LISTS];
    size_t n = lists_of(trainer, lists);
    const struct pacer *pacer = lists[0]->running->pacer;
    bool paced = pacer && pacer->scale > 0;
    char *title = describe_shape(trainer);
    struct trace_about about = {.model = title,
                                .kind = paced ? TRACE_PACED : TRACE_REAL,
                                .pace_scale = paced ? 1 / pacer->scale : 1,
                                .predicted = predicted_ns,
                                .context = trainer};
    struct trace *tables = new_trace_of_lists(trainer->machine, lists, n, &about);
    current_recording =
        (struct recording){.writer = open_trace_writer(path, tables, TRACE_RING),
                           .observer = {obey_viewer, begin_record, end_record, &current_recording, NULL}};
    for (size_t k = 0; k < n; k++)
        current_recording.lists[k] = lists[k];
    current_recording.n = n;
    current_recording.trainer = trainer;
    add_observer(&current_recording.observer);
    free_trace(tables);
    free(title);
}

static void start_trace(struct trainer *trainer)
{
    if (!is_recorded(trainer->settings))
        return;
    char *path = path_of_trace();
    if (asked_record.shown)
        measure_peaks(trainer->machine);
    begin_recording(trainer, path);
    /* This comes before show_if_asked(), which may remove the file's name. */
    must(open_follower(path, &current_recording.follower));
    show_if_asked(path);
    free(path);
}

static void begin_training(struct trainer *trainer)
{
    (void)trainer;
    current_recording.trains = true;
}

/* A file that has lost its name is gone when it is closed. */
static void tell_when_removed(void)
{
    char *path = asked_record.file ? path_of_trace() : NULL;
    if (path && access(path, F_OK) != 0)
        warn("the trace %s was removed while it was written: it is lost", path);
    free(path);
}

/* After a training: how updates on the CPU ran beside the devices' work. */
static void print_updates_beside(struct trace_follower *follower)
{
    bool grew = false;
    struct problem *problem = poll_follower(follower, &grew);
    if (problem) {
        warn("%s", problem->sentence);
        free(problem);
        return;
    }
    const struct trace *trace = followed_trace(follower);
    struct trace_steps steps = steps_of_list(trace, 0);
    struct table *beside = new_beside_table(trace, &steps);
    print_beside(beside);
    free_table(beside);
}

static void end_trace(struct trainer *trainer)
{
    (void)trainer;
    if (!current_recording.writer)
        return;
    remove_observer(&current_recording.observer);
    close_trace_writer(current_recording.writer);
    current_recording.writer = NULL;
    if (current_recording.trains) {
        tell_when_removed();
        print_updates_beside(current_recording.follower);
    }
    close_follower(current_recording.follower);
    current_recording.follower = NULL;
}

static void check_record_options(struct settings *settings)
{
    settings->demands.time_tasks |= asked_record.file || asked_record.shown;
}

static const struct option options[] = {
    {.name = "trace",
     .type = OPT_OUTPUT,
     .value = &asked_record.file,
     .argument = "FILE",
     .group = GROUP_LOOKING,
     .classes = OF_TRAIN | OF_PLAN | OF_STEP_FILE,
     .help = "record what ran when, or with plan what is simulated (see `yard trace --help`)"},
};
static const struct hooks hooks = {
    .machine_opened = refuse_if_file_to_keep,
    .lists_ready = start_trace,
    .model_filled = begin_training,
    .trainer_closing = end_trace,
};
static const struct foreign_words foreign[] = {
    {"trace", "profiler torch-profile nvtx", NULL},
};
static const struct training_parts training = {.hooks = &hooks};
const struct module module_trace = {
    .name = "trace",
    .needs = "console pass peak",
    .after = "pace", /* which decides the scale of time that a trace begins with */
    .commands = &trace_command,
    .n_commands = 1,
    .options = options,
    .n_options = COUNT(options),
    .foreign = foreign,
    .n_foreign = COUNT(foreign),
    .check_settings = check_record_options,
    .training = &training,
};

/* snapshot_run.c - does the work of the tasks of snapshots: stores an update's bytes, and commits an iteration.
 *
 * The pass (snapshot.c) has put the tasks into the list.  Each persist task says whose state its buffer has (struct
 * state_range): these are the file's payloads, in list order.
 *
 *     thread of            calls                   does                                   in snapfile_write.c
 *     a copy's lane        begin_iteration()       takes a slot for the iteration         begin_commit()
 *     the disk's lane      persist()               writes a payload                       write_payload()
 *     the disk's lane      commit_iteration()      waits for the report, writes the page  finish_commit()
 *     the report's lane    note_reported()         says whether the step is sound
 *     the issuing thread   show_commits()          logs what has been committed
 *
 * An iteration is committed when its step has been reported sound and all values that were stored of it are finite.
 * Else the iteration is given up, which the run counts as dropped too.  After a step that is not sound no iteration is
 * committed.
 */
#include "snapshot_parts.h"
#include "techniques/checkpoint/resume.h"
#include "trainer/train/log.h"
#include "trainer/train/progress.h"

#include <pthread.h>

struct snapshot_run {
    struct snapfile_writer *file;
    size_t *payload;      /* by position of a persist task: the payload that it stores */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    uint32_t reported;            /* the last step that has been reported */
    uint32_t bad_step;            /* the first step that was not sound */
    struct commit_times *commits; /* those that have not been shown yet */
    size_t n_commits, cap_commits;
    struct snapfile_counts counts; /* set when the file is closed */
    bool closed;
};

static struct snapshot_run *snapshot_run_of(const struct trainer *trainer)
{
    return *folder_data_of(trainer, &module_snapshot);
}

/* ---- the tasks' work --------------------------------------------------------------------------------------------- */

static void begin_iteration(void *context, uint32_t iteration)
{
    struct snapshot_run *snapshot_run = context;
    begin_commit(snapshot_run->file, iteration);
}

static void persist(void *context, const struct task *task, uint32_t iteration)
{
    const struct snapshot_run *snapshot_run = context;
    const struct tensor *buffer = tensor_at(task->accesses[0].tensor, iteration);
    write_payload(snapshot_run->file, iteration, snapshot_run->payload[task->index], tensor_memory(buffer));
}

/* The disk's lane waits here until the step's report has come.  The report itself never waits for this lane. */
static void commit_iteration(void *context, const struct task *task, uint32_t iteration)
{
    (void)task;
    struct snapshot_run *snapshot_run = context;
    struct commit_times times;
    pthread_mutex_lock(&snapshot_run->lock);
    while (snapshot_run->reported < iteration)
        pthread_cond_wait(&snapshot_run->changed, &snapshot_run->lock);
    bool sound = iteration < snapshot_run->bad_step;
    pthread_mutex_unlock(&snapshot_run->lock);
    if (!finish_commit(snapshot_run->file, iteration, sound, &times))
        return;
    pthread_mutex_lock(&snapshot_run->lock);
    GROW(snapshot_run->commits, snapshot_run->cap_commits, snapshot_run->n_commits + 1);
    snapshot_run->commits[snapshot_run->n_commits++] = times;
    pthread_mutex_unlock(&snapshot_run->lock);
}

void note_reported(struct trainer *trainer, uint32_t iteration, bool sound)
{
    struct snapshot_run *snapshot_run = snapshot_run_of(trainer);
    if (!snapshot_run || snapshot_run->closed)
        return;
    pthread_mutex_lock(&snapshot_run->lock);
    snapshot_run->reported = iteration;
    if (!sound)
        snapshot_run->bad_step = MIN(snapshot_run->bad_step, iteration);
    pthread_cond_broadcast(&snapshot_run->changed);
    pthread_mutex_unlock(&snapshot_run->lock);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* Gives the tasks their work, and says in `plan` what they store. */
static void bind_tasks(struct snapshot_run *snapshot_run, struct list *list, struct snapfile_plan *plan)
{
    size_t cap = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct task *task = list->tasks[i];
        if (!is_persist(task) && !is_commit(task))
            continue;
        task->function = is_commit(task) ? commit_iteration : persist;
        task->argument = snapshot_run;
        if (is_commit(task))
            continue;
        size_t bytes = task->accesses[0].tensor->bytes;
        CHECK(bytes == payload_bytes(&task->extra.state), "%zu bytes are stored of %zu elements", bytes,
              task->extra.state.elements.end - task->extra.state.elements.begin);
        snapshot_run->payload[i] = plan->n;
        GROW(plan->ranges, cap, plan->n + 1);
        plan->ranges[plan->n++] = task->extra.state;
    }
}

/* A run in which nothing has been stored yet.  step: the last one before it. */
static struct snapshot_run *new_snapshot_run(size_t n_tasks, uint32_t step)
{
    struct snapshot_run *snapshot_run = allocate(1, sizeof *snapshot_run);
    snapshot_run->payload = allocate(n_tasks, sizeof *snapshot_run->payload);
    snapshot_run->reported = step;
    snapshot_run->bad_step = UINT32_MAX;
    pthread_mutex_init(&snapshot_run->lock, NULL);
    pthread_cond_init(&snapshot_run->changed, NULL);
    return snapshot_run;
}

static void free_snapshot_run(struct snapshot_run *snapshot_run)
{
    free(snapshot_run->payload);
    free(snapshot_run->commits);
    pthread_mutex_destroy(&snapshot_run->lock);
    pthread_cond_destroy(&snapshot_run->changed);
    free(snapshot_run);
}

void start_snapshots(struct trainer *trainer)
{
    if (!asked_snapshot.file)
        return;
    uint32_t step = trainer->settings->resumed ? trainer->settings->resumed->step : 0;
    struct snapfile_plan plan = {.config = &trainer->config,
                                 .mesh = &trainer->mesh,
                                 .slots = &trainer->train_list->pool->slots,
                                 .batch = trainer->batch};
    struct snapshot_run *snapshot_run = new_snapshot_run(trainer->train_list->n, step);
    bind_tasks(snapshot_run, trainer->train_list, &plan);
    if (!plan.n) { /* the list stores nothing */
        free_snapshot_run(snapshot_run);
        return;
    }
    struct checkpoint *checkpoint = new_checkpoint(trainer, step);
    must(open_snapfile_writer(asked_snapshot.file, checkpoint, &plan, &snapshot_run->file));
    free_checkpoint(checkpoint);
    free(plan.ranges);
    *folder_data_of(trainer, &module_snapshot) = snapshot_run;
    start_late(trainer->train_list, begin_iteration, snapshot_run);
}

size_t take_commits(struct trainer *trainer, struct commit_times **commits)
{
    struct snapshot_run *snapshot_run = snapshot_run_of(trainer);
    *commits = NULL;
    if (!snapshot_run || snapshot_run->closed)
        return 0;
    pthread_mutex_lock(&snapshot_run->lock);
    size_t n = snapshot_run->n_commits;
    *commits = snapshot_run->commits;
    snapshot_run->commits = NULL;
    snapshot_run->n_commits = 0;
    snapshot_run->cap_commits = 0;
    pthread_mutex_unlock(&snapshot_run->lock);
    return n;
}

struct snapfile_counts close_snapshots(struct trainer *trainer)
{
    struct snapshot_run *snapshot_run = snapshot_run_of(trainer);
    stop_late(trainer->train_list);
    snapshot_run->counts = close_snapfile_writer(snapshot_run->file);
    snapshot_run->closed = true;
    return snapshot_run->counts;
}

/* ---- what the user sees ------------------------------------------------------------------------------------------ */

/* Writes each commit to the log, and none to the terminal.  Times count from the run's beginning. */
static void show_commits(struct trainer *trainer)
{
    struct commit_times *commits;
    size_t n = take_commits(trainer, &commits);
    for (size_t i = 0; i < n; i++)
        write_log(trainer->extra.log,
                  json_pack("{s:i, s:f, s:f}", "snapshot", (int)commits[i].step, "written_ms",
                            1e-6 * (double)(commits[i].recoverable - run_begin_ns(trainer)), "durable_ms",
                            1e-6 * (double)(commits[i].durable - run_begin_ns(trainer))));
    free(commits);
}

/* Waits until all snapshots are stored, and says on the terminal how many there are. */
static void end_snapshots(struct trainer *trainer)
{
    const struct snapshot_run *snapshot_run = snapshot_run_of(trainer);
    if (!snapshot_run || snapshot_run->closed)
        return;
    drain(trainer->train_list);
    show_commits(trainer);
    const struct snapfile_counts counts = close_snapshots(trainer);
    erase_line();
    printf("\nsnapshots   %u stored in %s, %u dropped", counts.stored, asked_snapshot.file, counts.dropped);
    if (counts.stored)
        printf(", newest of step %u; persist %.0f MB/s%s", counts.newest,
               1e3 * (double)counts.bytes / (double)MAX(counts.ns, 1),
               counts.in_memory ? " into persistent memory" : "");
    printf("\n");
    fflush(stdout);
}

static void add_kept(struct trainer *trainer, struct kept_run *kept_run)
{
    const struct snapshot_run *snapshot_run = snapshot_run_of(trainer);
    if (!asked_snapshot.file)
        return;
    if (!trainer->settings->save && snapshot_run && snapshot_run->counts.stored > 0) {
        kept_run->where = format_string("the newest snapshot is of step %u", snapshot_run->counts.newest);
        append_text(&kept_run->command, " --resume ");
        append_quoted(&kept_run->command, asked_snapshot.file);
    }
    append_text(&kept_run->more_words, " --snapshot ");
    append_quoted(&kept_run->more_words, asked_snapshot.file);
}

static void free_snapshots(struct trainer *trainer)
{
    struct snapshot_run *snapshot_run = snapshot_run_of(trainer);
    if (snapshot_run)
        free_snapshot_run(snapshot_run);
}

const struct hooks snapshot_hooks = {
    .model_filled = start_snapshots,
    .step_issued = show_commits,
    .step_reported = note_reported,
    .steps_ended = end_snapshots,
    .kept = add_kept,
    .trainer_closing = free_snapshots,
};

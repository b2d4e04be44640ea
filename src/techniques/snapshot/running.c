/* running.c - does the work of the tasks of snapshots in a run: stores an update's bytes, and commits an iteration.
 *
 * The pass (snapshot.c) has put the tasks into the list.  Each persist task says whose state its buffer has (struct
 * state_range): these are the file's payloads, in list order.
 *
 *     thread of            calls                   does
 *     a copy's lane        begin_iteration()       takes a slot for the iteration            writer.c: snap_begin()
 *     the disk's lane      persist()               writes a payload                                    snap_write()
 *     the disk's lane      commit_iteration()      waits for the report, writes the page               snap_commit()
 *     the report's lane    note_reported()         says whether the step is sound
 *     the issuing thread   show_commits()          logs what has been committed
 *
 * An iteration is committed when its step has been reported sound and all values that were stored of it are finite.
 * Else the iteration is given up, which the run counts as dropped too.  After a step that is not sound no iteration is
 * committed.
 */
#include "snapshot.h"
#include "techniques/reshard/resume.h"

struct snapshots {
    struct snap *file;
    size_t *payload;      /* by position of a persist task: the payload that it stores */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    uint32_t reported;           /* the last step that has been reported */
    uint32_t bad_step;           /* the first step that was not sound */
    struct stored_step *commits; /* those that have not been shown yet */
    size_t n_commits, cap_commits;
    struct snap_counts counts; /* set when the file is closed */
    bool closed;
};

static struct snapshots *snapshots_of(const struct trainer *t) { return *own_of(t, &module_snapshot); }

/* ---- the tasks' work -------------------------------------------------------------------------------------------- */

static void begin_iteration(void *snapshots, uint32_t number)
{
    struct snapshots *s = snapshots;
    snap_begin(s->file, number);
}

static void persist(void *snapshots, const struct task *task, uint32_t number)
{
    const struct snapshots *s = snapshots;
    const struct tensor *buffer = tensor_at(task->access[0].tensor, number);
    snap_write(s->file, number, s->payload[task->index], tensor_memory(buffer));
}

/* The disk's lane waits here until the step's report has come.  The report itself never waits for this lane. */
static void commit_iteration(void *snapshots, const struct task *task, uint32_t number)
{
    (void)task;
    struct snapshots *s = snapshots;
    struct stored_step stored;
    pthread_mutex_lock(&s->lock);
    while (s->reported < number)
        pthread_cond_wait(&s->changed, &s->lock);
    bool sound = number < s->bad_step;
    pthread_mutex_unlock(&s->lock);
    if (!snap_commit(s->file, number, sound, &stored))
        return;
    pthread_mutex_lock(&s->lock);
    *APPEND(s->commits, s->n_commits, s->cap_commits) = stored;
    pthread_mutex_unlock(&s->lock);
}

void note_reported(struct trainer *t, uint32_t number, bool sound)
{
    struct snapshots *s = snapshots_of(t);
    if (!s || s->closed)
        return;
    pthread_mutex_lock(&s->lock);
    s->reported = number;
    s->bad_step = sound ? s->bad_step : MIN(s->bad_step, number);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

/* Gives the tasks their work, and says in `plan` what they store. */
static void bind_tasks(struct snapshots *s, struct step *list, struct snap_plan *plan)
{
    size_t cap = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct task *task = list->task[i];
        if (!task->member.needed || is_copy(task))
            continue;
        task->run = task->member.returned ? commit_iteration : persist;
        task->context = s;
        if (task->member.returned)
            continue;
        size_t bytes = task->access[0].tensor->bytes;
        CHECK(bytes == payload_bytes(&task->state), "%zu bytes are stored of %zu elements", bytes,
              task->state.end - task->state.begin);
        s->payload[i] = plan->n;
        *APPEND(plan->range, plan->n, cap) = task->state;
    }
}

/* Opens the file and gives the tasks of the list their work.  Nothing is in flight meanwhile. */
void open_snapshots(struct trainer *t)
{
    const struct snapshot_options *o = &snapshot_options;
    const uint32_t step = t->settings->resumed ? t->settings->resumed->step : 0;
    struct snap_plan plan = {.config = &t->config, .mesh = &t->mesh, .ring = &t->train->pool->ring, .batch = t->batch};
    if (!o->file)
        return;
    struct snapshots *s = allocate(1, sizeof *s);
    s->payload = allocate(t->train->n, sizeof *s->payload);
    bind_tasks(s, t->train, &plan);
    if (!plan.n) {
        free(s->payload);
        free(s);
        return;
    }
    s->reported = step;
    s->bad_step = UINT32_MAX;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    struct checkpoint *c = describe_training(t, step);
    must(open_snap(o->file, c, &plan, &s->file));
    free_checkpoint(c);
    free(plan.range);
    *own_of(t, &module_snapshot) = s;
    start_late(t->train, begin_iteration, s);
}

size_t take_commits(struct trainer *t, struct stored_step **commits)
{
    struct snapshots *s = snapshots_of(t);
    *commits = NULL;
    if (!s || s->closed)
        return 0;
    pthread_mutex_lock(&s->lock);
    size_t n = s->n_commits;
    *commits = s->commits;
    s->commits = NULL;
    s->n_commits = s->cap_commits = 0;
    pthread_mutex_unlock(&s->lock);
    return n;
}

struct snap_counts close_snapshots(struct trainer *t)
{
    struct snapshots *s = snapshots_of(t);
    stop_late(t->train);
    s->counts = close_snap(s->file);
    s->closed = true;
    return s->counts;
}

/* ---- what the user sees ------------------------------------------------------------------------------------------ */

/* Writes each commit to the log, and none to the terminal.  Times count from the run's beginning. */
static void show_commits(struct trainer *t)
{
    struct stored_step *commits;
    size_t n = take_commits(t, &commits);
    for (size_t i = 0; i < n; i++)
        write_log(t, json_pack("{s:i, s:f, s:f}", "snapshot", (int)commits[i].step, "written_ms",
                               1e-6 * (double)(commits[i].recoverable - run_began(t)), "durable_ms",
                               1e-6 * (double)(commits[i].durable - run_began(t))));
    free(commits);
}

/* Waits until all snapshots are stored, and says on the terminal how many there are. */
static void end_snapshots(struct trainer *t)
{
    const struct snapshots *s = snapshots_of(t);
    if (!s || s->closed)
        return;
    drain(t->train);
    show_commits(t);
    const struct snap_counts c = close_snapshots(t);
    erase_line();
    printf("\nsnapshots   %u stored in %s, %u dropped", c.stored, snapshot_options.file, c.dropped);
    if (c.stored)
        printf(", newest of step %u; persist %.0f MB/s%s", c.newest, 1e3 * (double)c.bytes / (double)MAX(c.ns, 1),
               c.in_memory ? " into persistent memory" : "");
    printf("\n");
    fflush(stdout);
}

static void tell_kept(struct trainer *t, struct kept_run *k)
{
    const struct snapshots *s = snapshots_of(t);
    const struct snapshot_options *o = &snapshot_options;
    if (!o->file)
        return;
    if (!t->settings->save && s && s->counts.newest) {
        k->where = format_string("the newest snapshot is of step %u", s->counts.newest);
        append_text(&k->command, " --resume ");
        append_quoted(&k->command, o->file);
    }
    append_text(&k->more_words, " --snapshot ");
    append_quoted(&k->more_words, o->file);
}

static void free_snapshots(struct trainer *t)
{
    struct snapshots *s = snapshots_of(t);
    if (!s)
        return;
    free(s->payload);
    free(s->commits);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
}

const struct hooks snapshot_hooks = {
    .model_filled = open_snapshots,
    .step_issued = show_commits,
    .step_reported = note_reported,
    .steps_ended = end_snapshots,
    .kept = tell_kept,
    .trainer_closing = free_snapshots,
};

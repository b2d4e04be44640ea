/* snapshots.c - what the tasks of snapshots do in a run: store an update's bytes, and make an iteration count.
 *
 * The pass (snapshot/snapshot.c) has put the tasks into the list, and each persist task says whose state its buffer has
 * (struct state_range): those of a slot are the file's payloads, in list order.
 *
 * An iteration is committed when its step has been reported sound, and all that was stored of it is finite: else it is
 * dropped, and none behind a bad step is ever committed.  (Other files of nearly this name: snapshot/snap.h.)
 */
#include "snap.h"

#include <pthread.h>

struct snapshots {
    struct snap *file;
    size_t *payload;      /* by position of a persist task: which one it stores, the same for all slots */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    uint32_t reported, bad_step; /* the last step that was; the first that was not sound */
    struct stored_step *commits; /* that nobody has taken yet */
    size_t n_commits, cap_commits;
    struct snap_counts counts; /* when the file is closed */
    bool closed;
};

static struct snapshots *snapshots_of(const struct trainer *t) { return *own_of(t, &module_snapshot); }

/* ---- the tasks' work -------------------------------------------------------------------------------------------- */

static int choose(void *snapshots, uint32_t number)
{
    return snap_begin(((struct snapshots *)snapshots)->file, number);
}

static void persist(void *snapshots, const struct task *task, uint32_t number)
{
    (void)number;
    const struct snapshots *s = snapshots;
    snap_write(s->file, task->condition.slot, s->payload[task->index], tensor_memory(task->access[0].tensor));
}

/* Holds up the disk's lane until the report has come, which needs nothing of that lane. */
static void commit_iteration(void *snapshots, const struct task *task, uint32_t number)
{
    struct snapshots *s = snapshots;
    struct stored_step stored;
    pthread_mutex_lock(&s->lock);
    while (s->reported < number)
        pthread_cond_wait(&s->changed, &s->lock);
    bool sound = number < s->bad_step;
    pthread_mutex_unlock(&s->lock);
    if (!snap_commit(s->file, task->condition.slot, sound, &stored))
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
    size_t nth[MAX_SLOTS + 1] = {0}, cap = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct task *task = list->task[i];
        if (task->condition.ends) {
            task->run = commit_iteration;
            task->context = s;
        }
        if (!task->condition.slot || task->copy || task->condition.ends)
            continue;
        s->payload[i] = nth[task->condition.slot];
        nth[task->condition.slot]++;
        task->run = persist;
        task->context = s;
        if (task->condition.slot == 1)
            *APPEND(plan->range, plan->n, cap) = task->state;
        CHECK(task->access[0].tensor->bytes == payload_bytes(&task->state), "%zu bytes are stored of %zu elements",
              task->access[0].tensor->bytes, task->state.end - task->state.begin);
    }
}

/* Nothing is in flight. */
void open_snapshots(struct trainer *t)
{
    const struct snapshot_options *o = &snapshot_options;
    const uint32_t step = t->settings->past ? t->settings->past->step : 0;
    struct snap_plan plan = {&t->config, &t->mesh, o->slots, t->batch, NULL, 0};
    if (!o->file)
        return;
    struct snapshots *s = allocate(1, sizeof *s);
    s->payload = allocate(t->train->n, sizeof *s->payload);
    bind_tasks(s, t->train, &plan);
    if (!plan.n) {
        free(s->payload), free(s);
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
    start_late(t->train, choose, s);
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

/* In the log; on the terminal nothing is said of each.  Moments count from the run's beginning. */
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

/* All are awaited, and counted on the terminal. */
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
        k->what = format_string("the newest snapshot is of step %u", s->counts.newest);
        append_path(&k->command, "--resume", o->file);
    }
    append_path(&k->more, "--snapshot", o->file);
    if (o->restart)
        append_text(&k->more, " --restart");
}

static void forget(struct trainer *t)
{
    struct snapshots *s = snapshots_of(t);
    if (!s)
        return;
    free(s->payload), free(s->commits);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
}

const struct hooks snapshot_hooks = {.before = train_in_children,
                                     .begins = open_snapshots,
                                     .stepped = show_commits,
                                     .reported = note_reported,
                                     .ends = end_snapshots,
                                     .keeps = tell_kept,
                                     .leaves = forget};

/* snapshots.c - what the tasks of snapshots do in a run: store an update's bytes, and make an iteration count.
 *
 * The pass (snapshot/snapshot.c) has put the tasks into the list, and each persist task says whose state its buffer has
 * (struct state_range): those of a slot are the file's payloads, in list order.
 *
 * An iteration is committed when its step has been reported sound, and all that was stored of it is finite: else it is
 * dropped, and none behind a bad step is ever committed.  (Other files of nearly this name: snapshot/snap.h.)
 */
#include "trainer/train/train.h"

struct snapshots {
    struct snap *file;
    size_t *payload;      /* by position of a persist task: which one it stores, the same for all slots */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    uint32_t reported, bad_step; /* the last step that was; the first that was not sound */
    struct stored_step *commits; /* that nobody has taken yet */
    size_t n_commits, cap_commits;
};

/* ---- the tasks' work -------------------------------------------------------------------------------------------- */

static int choose(void *snapshots, uint32_t number)
{
    return snap_begin(((struct snapshots *)snapshots)->file, number);
}

static void persist(void *snapshots, const struct task *task, uint32_t number)
{
    (void)number;
    const struct snapshots *s = snapshots;
    snap_write(s->file, task->slot, s->payload[task->index], tensor_memory(task->access[0].tensor));
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
    if (!snap_commit(s->file, task->slot, sound, &stored))
        return;
    pthread_mutex_lock(&s->lock);
    *APPEND(s->commits, s->n_commits, s->cap_commits) = stored;
    pthread_mutex_unlock(&s->lock);
}

void note_reported(struct trainer *t, uint32_t number, bool sound)
{
    struct snapshots *s = t->snapshots;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->reported = number;
    s->bad_step = sound ? s->bad_step : MIN(s->bad_step, number);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

void open_snapshots(struct trainer *t, uint32_t step)
{
    const struct settings *o = t->settings;
    size_t nth[MAX_SLOTS + 1] = {0}, cap = 0;
    struct snap_plan plan = {&t->config, &t->mesh, o->pass.snapshot.slots, t->batch, NULL, 0};
    struct snapshots *s = allocate(1, sizeof *s);
    s->payload = allocate(t->train->n, sizeof *s->payload);
    for (size_t i = 0; i < t->train->n; i++) {
        struct task *task = t->train->task[i];
        if (task->commits)
            task->run = commit_iteration, task->context = s;
        if (!task->slot || task->copy || task->commits)
            continue;
        s->payload[i] = nth[task->slot]++;
        task->run = persist, task->context = s;
        if (task->slot == 1)
            *APPEND(plan.range, plan.n, cap) = task->state;
        CHECK(task->access[0].tensor->bytes == payload_bytes(&task->state), "%zu bytes are stored of %zu elements",
              task->access[0].tensor->bytes, task->state.end - task->state.begin);
    }
    if (!o->pass.snapshot.file || !plan.n) {
        free(s->payload), free(s);
        return;
    }
    s->reported = step;
    s->bad_step = UINT32_MAX;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    struct checkpoint *c = describe_training(t, step);
    must(open_snap(o->pass.snapshot.file, c, &plan, &s->file));
    free_checkpoint(c);
    free(plan.range);
    t->snapshots = s;
    start_late(t->train, choose, s);
}

size_t take_commits(struct trainer *t, struct stored_step **commits)
{
    struct snapshots *s = t->snapshots;
    if (!s)
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
    struct snapshots *s = t->snapshots;
    stop_late(t->train);
    struct snap_counts counts = close_snap(s->file);
    t->snapshots = NULL;
    free(s->payload), free(s->commits);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
    return counts;
}

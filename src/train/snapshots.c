/* snapshots.c - what the tasks of snapshots do in a run: which bytes are whose, writing them, and when they count.
 *
 * The pass (../pass/snapshot.c) has put the tasks into the list; here they get their work, from the list alone: a
 * persist task writes a buffer, the copies in front of it say what lies where in it, and the model knows whose state
 * that is.  What data-parallel ranks have alike is named as the first one's, as in checkpoints, whoever stored it.
 *
 * An iteration is committed when its step has been reported sound, and all that was stored of it is finite: else it is
 * dropped, and none behind a bad step is ever committed.
 */
#include "train.h"

struct stored { /* one persist task */
    struct snapshots *all;
    size_t payload;
};
struct open_slot {
    bool open;      /* chosen and not committed */
    bool bad;       /* something in it is not finite */
    size_t written; /* payloads: in list order, and once however often an audit runs the task */
};
struct snapshots {
    struct snap *file;
    struct snap_plan plan;
    struct stored *stored; /* by payload: the same for all slots */
    struct open_slot *slot;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    uint32_t reported, bad_step; /* the last step that was; the first that was not sound */
    struct stored_step *commits; /* that nobody has taken yet */
    size_t n_commits, cap_commits;
};

/* ---- whose bytes ------------------------------------------------------------------------------------------------ */

struct place { /* what a rank keeps of a unit for a role */
    int rank, unit;
    enum kept role;
};

/* at: bytes from the tensor's start; of parameters that lie in shards, they are counted in the shard. */
static bool find_state(const struct model *m, const struct tensor *storage, struct place *p, size_t *at)
{
    for (int rank = 0; rank < n_ranks(m->mesh); rank++)
        for (int u = 0; u < m->params->n_units; u++) {
            const struct replica *r = &m->replica[rank];
            const struct tensor *shard = r->shard[u], *of[] = {r->value[u], r->m[u], r->v[u], shard};
            for (int i = 0; storage && i < (int)COUNT(of); i++)
                if (of[i] == storage) {
                    *p = (struct place){rank, u, of[i] == shard ? KEPT_VALUE : (enum kept)i};
                    *at -= shard && i == KEPT_VALUE ? shard->replica_begin : 0;
                    return true;
                }
        }
    return false;
}

/* State of the host that a pass brings to the device for a while: what `x` is a copy of. */
static const struct tensor *origin_of(const struct step *s, const struct tensor *x)
{
    size_t i = 0;
    while (i < s->n && !(s->task[i]->copy && s->task[i]->access[0].tensor == x))
        i++;
    CHECK(i < s->n, "an update writes tensor %s, which is not of the model's state", x->name);
    return s->task[i]->access[1].tensor;
}

/* The bytes of x: whose they are, and where they begin there.  Passes keep state elsewhere than the model does. */
static struct place place_of(const struct trainer *t, const struct tensor *x, size_t *at)
{
    struct place p;
    for (*at = x->offset; !find_state(t->model, x->storage, &p, at); *at += x->offset)
        x = x->storage->mirrors ? x->storage->mirrors : origin_of(t->train, x->storage);
    return p;
}

static struct snap_part part_stored_by(const struct trainer *t, const struct task *copy)
{
    const struct mesh *mesh = t->model->mesh;
    const struct tensor *to = copy->access[0].tensor;
    size_t at;
    struct place p = place_of(t, copy->access[1].tensor, &at);
    bool own = is_shared_out(mesh, p.role);
    return (struct snap_part){
        .rank = own ? p.rank : rank_at(mesh, 0, stage_of(t->model, p.unit)) + tp_of(mesh, p.rank),
        .unit = p.unit,
        .role = p.role,
        .begin = at / ELEMENT_BYTES,
        .end = (at + to->bytes) / ELEMENT_BYTES,
        .at = to->offset,
    };
}

/* What a persist task stores: its copies stand right before it. */
static struct snap_payload payload_of(const struct trainer *t, const struct task *persist)
{
    const struct tensor *buffer = persist->access[0].tensor;
    struct snap_payload p = {.bytes = buffer->bytes};
    size_t cap = 0, first = persist->index;
    while (first > 0 && t->train->task[first - 1]->copy &&
           t->train->task[first - 1]->access[0].tensor->storage == buffer)
        first--;
    for (size_t i = first; i < persist->index; i++)
        *APPEND(p.part, p.n, cap) = part_stored_by(t, t->train->task[i]);
    return p;
}

/* ---- the tasks' work -------------------------------------------------------------------------------------------- */

static int choose(void *snapshots, uint32_t number)
{
    struct snapshots *s = snapshots;
    int slot = snap_begin(s->file, number);
    if (slot)
        s->slot[slot - 1] = (struct open_slot){.open = true};
    return slot;
}

static void persist(void *context, const struct task *task, uint32_t number)
{
    (void)number;
    const struct stored *p = context;
    struct open_slot *slot = &p->all->slot[task->slot - 1];
    if (!slot->bad && slot->written == p->payload) {
        slot->bad = !snap_write(p->all->file, task->slot, p->payload, tensor_memory(task->access[0].tensor));
        slot->written++;
    }
}

/* Waits for the step's report, which waits for nothing here. */
static bool is_sound(struct snapshots *s, uint32_t number)
{
    pthread_mutex_lock(&s->lock);
    while (s->reported < number)
        pthread_cond_wait(&s->changed, &s->lock);
    bool sound = number < s->bad_step;
    pthread_mutex_unlock(&s->lock);
    return sound;
}

static void commit_iteration(void *snapshots, const struct task *task, uint32_t number)
{
    struct snapshots *s = snapshots;
    struct open_slot *slot = &s->slot[task->slot - 1];
    struct snap_times times;
    if (!slot->open) /* an audit runs it several times */
        return;
    slot->open = false;
    if (slot->bad || !is_sound(s, number)) {
        snap_drop(s->file, task->slot);
        return;
    }
    if (!snap_commit(s->file, task->slot, &times))
        return;
    pthread_mutex_lock(&s->lock);
    *APPEND(s->commits, s->n_commits, s->cap_commits) = (struct stored_step){number, times.written, times.durable};
    pthread_mutex_unlock(&s->lock);
}

void note_reported(struct trainer *t, uint32_t number, bool sound)
{
    struct snapshots *s = t->snapshots;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->reported = number;
    if (!sound)
        s->bad_step = MIN(s->bad_step, number);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

/* The persist tasks of the first slot are the payloads, in list order; those of the other slots store the same. */
static void give_work(struct trainer *t, struct snapshots *s)
{
    size_t *nth = allocate((size_t)s->plan.slots + 1, sizeof *nth), cap = 0;
    s->stored = allocate(t->train->n, sizeof *s->stored);
    for (size_t i = 0; i < t->train->n; i++) {
        struct task *task = t->train->task[i];
        if (!task->slot || task->copy)
            continue;
        if (task->commits) {
            task->run = commit_iteration, task->context = s;
            continue;
        }
        size_t payload = nth[task->slot]++;
        task->run = persist, task->context = &s->stored[payload];
        s->stored[payload] = (struct stored){s, payload};
        if (task->slot == 1)
            *APPEND(s->plan.payload, s->plan.n, cap) = payload_of(t, task);
    }
    free(nth);
}

static bool stores(const struct trainer *t)
{
    bool yes = false;
    for (size_t i = 0; i < t->train->n; i++)
        yes |= t->train->task[i]->commits;
    return yes;
}

void open_snapshots(struct trainer *t, uint32_t step)
{
    const struct settings *o = t->settings;
    if (!o->snapshot || !stores(t))
        return;
    struct snapshots *s = allocate(1, sizeof *s);
    struct checkpoint *c = describe_training(t, step);
    s->plan =
        (struct snap_plan){.config = &t->config, .mesh = &t->mesh, .slots = (int)o->snapshot_slots, .batch = t->batch};
    s->slot = allocate((size_t)s->plan.slots, sizeof *s->slot);
    s->reported = step;
    s->bad_step = UINT32_MAX;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    give_work(t, s);
    must(open_snap(o->snapshot, c, &s->plan, &s->file));
    free_checkpoint(c);
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
    drain(t->train);
    stop_late(t->train);
    struct snap_counts counts = snap_counts(s->file);
    close_snap(s->file);
    t->snapshots = NULL;
    for (size_t i = 0; i < s->plan.n; i++)
        free(s->plan.payload[i].part);
    free(s->plan.payload), free(s->stored), free(s->slot), free(s->commits);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
    return counts;
}

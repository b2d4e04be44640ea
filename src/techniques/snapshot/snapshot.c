/* snapshot.c - per-layer snapshots: each unit is stored as soon as it is updated, while the next ones are still being
 * differentiated.  A *unit* is what one update makes anew: here the parameters of a layer, and Adam's m and v of them.
 *
 *     device      B3   U3   B2   U2   B1   U1   B0   U0   | F0       B: backward, U: update of a unit
 *     copies              s3        s2        s1        s0           s: snapshot
 *     disk                   [p3  ] [p2  ] [p1  ] [p0  ] c           p: persist, c: commit
 *
 * The rewrite.  After every update come tasks for what it wrote:
 *
 *     snapshot   one for each tensor: copies it to a buffer of the host, on a lane of its own.  The unit's next update
 *                waits for these alone
 *     persist    one: writes the buffer to the file, in one piece, on the host's disk lane
 *
 * and after all of them, on the disk lane too,
 *
 *     commit     writes the page that names the iteration: it is *recoverable* after a kill.  Then it flushes the file:
 *                the iteration is *durable*, after a power cut too.  (In a run it first waits for the report that the
 *                step is sound, which is not simulated.)
 *
 * A commit waits for its persists by the order of the disk's thread, which gets both in the order of the list.
 *
 * The rule.  The file has S slots, each with room for a whole iteration, and the host has S buffers for each unit.  An
 * iteration takes a slot when its first unit has been updated, and returns it when its commit has ended.  It may not
 * take the slot of the newest durable commit, nor one that another iteration has.  When no slot is free the iteration
 * is dropped, so that training waits for nothing.  The buffers are a *ring* of S members (trainer/step/ring.c has this
 * rule): the list has each task once, and where it reads and writes is decided for each iteration.
 *
 * Persist and commit stand *aside* (struct condition in task.h): nothing of the training waits for them.  Such a
 * task is parked outside of its lane until its iteration has asked for a slot; without one it is dropped
 * (trainer/run/late.c).
 *
 * On the device (--snapshot-in device).  Where the link is slow the next update waits long for the copy to the host.  A
 * copy within the device's memory is faster:
 *
 *     device      U1   B0   U0   | F0        F1        B1   U1   B0
 *     snapshot      d1        d0                                        into a ring of buffers on the device
 *     copies          [s1           ] [s0           ]                   from there to the host's buffers
 *
 * Now the next update waits for d alone, and s stands aside too.  d has a compute lane of its own: it is work of the
 * device and needs no link.  The main lane will not do, since its tasks are issued ahead, and d only when its update
 * has ended.  Its time follows from the device's memory; that kernels beside it are slower then is not simulated.
 *
 * Source: "Method and apparatus for model training" (Huawei Cloud, 2023).
 */
#include "snapshot.h"
#include "cl/shared.h" /* defines: CHOICE_CPU, CHOICE_DEVICE */
#include "tools/predict/predict.h"

#include <math.h>

struct snapshot_options snapshot_options;

struct storing { /* a list that is to be stored */
    struct step *step;
    struct edit *edit;
    enum snapshot_in in;
    bool by_hand; /* the tasks of a step file say themselves how long they take */
};

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* A buffer on d for each slot: a ring, whose first member is returned. */
static struct tensor *new_buffers(struct pool *p, struct device *d, size_t bytes)
{
    struct tensor *first = NULL;
    struct tensor **end = &first;
    for (int k = 0; k < snapshot_options.slots; k++) {
        *end = new_bytes_tensor(p, d, MEM_WORK, "snapshot", bytes);
        (*end)->persistent = true;
        end = &(*end)->next_member;
    }
    first->ring = &p->ring;
    return first;
}

/* Bytes [begin, end) of each of them. */
static struct tensor *part_of_buffers(struct pool *p, struct tensor *buffers, const char *name, size_t begin,
                                      size_t end)
{
    struct tensor *first = NULL;
    struct tensor **next = &first;
    for (struct tensor *member = buffers; member; member = member->next_member) {
        *next = new_range(p, member, name, begin, end);
        next = &(*next)->next_member;
    }
    return first;
}

/* ---- the tasks of an update -------------------------------------------------------------------------------------- */

/* A task that runs only where its iteration has a slot. */
static struct task *in_slot(struct task *t)
{
    t->condition.member = true;
    t->when.every = (uint32_t)snapshot_options.every;
    return t;
}

/* Copies go on a download lane that nothing else uses: lane order does not hold between tasks that are decided late and
 * others.  (In a step file the link may have no lane more.) */
static struct task *add_snapshot(struct step *s, struct tensor *to, struct tensor *from)
{
    if (from->device->is_host)
        return in_slot(add_copy(s, from->device->lane[LANE_CPU], "snapshot", to, from));
    return in_slot(carry(s, "snapshot", to, from, FOR_SNAPSHOT));
}

/* The same by way of a buffer on x's device. */
static void add_snapshot_by_device(struct step *s, struct tensor *to, struct tensor *x)
{
    struct tensor *here = new_buffers(s->pool, x->device, x->bytes);
    struct lane *lane = lane_for(s->pool->machine, x->device, LANE_COMPUTE, FOR_SNAPSHOT);
    in_slot(add_copy(s, lane, "snapshot.device", here, x));
    add_snapshot(s, to, here)->condition.aside = true;
}

/* Copies the tensors that `update` wrote into the buffers.  `update` writes all that is stored of `whole`, or, on the
 * host, a piece of it, which begins as many bytes into each of its tensors. */
static void copy_written(const struct storing *v, struct tensor *buffers, const struct task *whole,
                         const struct task *update, enum snapshot_in in)
{
    struct pool *p = v->step->pool;
    size_t at = update->first - whole->first;
    for (int i = 0; i < whole->n_access; i++) {
        struct tensor *x = update->access[i].tensor;
        if (!is_state(&whole->access[i]))
            continue;
        struct tensor *to = part_of_buffers(p, buffers, x->name, at, at + x->bytes);
        if (in == IN_DEVICE && !x->device->is_host)
            add_snapshot_by_device(v->step, to, x);
        else
            add_snapshot(v->step, to, x);
        at += round_up(whole->access[i].tensor->bytes, p->machine->host->alignment);
    }
}

static void add_persist(const struct storing *v, struct tensor *buffers, const struct task *update)
{
    struct step *s = v->step;
    struct task *persist = in_slot(add_host(s, s->pool->machine->host->lane[LANE_DISK], "persist", NULL, NULL));
    add_access(persist, buffers, ACCESS_READ);
    persist->condition.aside = true;
    persist->state = update->state;
    if (v->by_hand)
        persist->seconds = given_seconds(persist);
}

static void store_update(struct storing *v, struct task *update, size_t bytes)
{
    struct step *s = v->step;
    struct tensor *buffers = new_buffers(s->pool, s->pool->machine->host, bytes);
    insert_behind(v->edit, update);
    s->tags = (struct tags){.layer = update->layer, .micro = update->micro, .role = ROLE_SNAPSHOT};
    copy_written(v, buffers, update, update, v->in);
    add_persist(v, buffers, update);
}

/* ---- an update that runs on either side (--overlap local): skip it at first -------------------------------------- */

/* The host's last task that stands in for the update where the running step chooses; NULL: it runs where it is. */
static struct task *last_on_host(const struct step *s, size_t n, const struct task *update)
{
    struct task *last = NULL;
    if (!choice_word(update))
        return NULL;
    for (size_t i = update->index + 1; i < n; i++)
        if (s->task[i]->origin == update->origin)
            last = s->task[i];
    return last;
}

/* The copies that were added to the list from position `from` on work when the choice has these bits.  expected: the
 * forecast counts on it that the update runs there. */
static void need_side(const struct step *s, size_t from, struct tensor *word, int bits, bool expected)
{
    for (size_t i = from; i < s->n; i++)
        need_choice(s->task[i], word, bits, expected);
}

/* The update is in the list twice, on the host perhaps in pieces.  Both sides fill the same buffers, after the last
 * task of both: the device's copies after the host's, so that no CPU lane waits for them.
 *
 *     U  h1 h2  up up | s(h1) s(h2)  s(U)  persist        U: on the device, h: on the host, up: its copies back
 *
 * All copies go straight to the host: what stands aside would look at the word of the choice too late. */
static void store_either(struct storing *v, struct task *update, struct task *last, size_t n, size_t bytes)
{
    struct step *s = v->step;
    struct tensor *buffers = new_buffers(s->pool, s->pool->machine->host, bytes);
    struct tensor *word = choice_word(last);
    while (last->next->role == ROLE_OFFLOAD && last->next->condition.needs)
        last = last->next; /* its copies back */
    insert_behind(v->edit, last);
    s->tags = (struct tags){.layer = update->layer, .micro = update->micro, .role = ROLE_SNAPSHOT};
    for (size_t i = update->index + 1; i < n; i++) {
        const struct task *piece = s->task[i];
        size_t from = s->n;
        if (piece->origin != update->origin)
            continue;
        copy_written(v, buffers, update, piece, IN_HOST);
        need_side(s, from, word, CHOICE_CPU, !piece->condition.unexpected);
    }
    size_t from = s->n;
    copy_written(v, buffers, update, update, IN_HOST);
    need_side(s, from, word, CHOICE_DEVICE, !update->condition.unexpected);
    add_persist(v, buffers, update);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* It is the last task of the list, since all others are inserted before it: with --serial the report comes before it,
 * for which it waits. */
static void add_commit(const struct storing *v)
{
    struct step *s = v->step;
    struct device *host = s->pool->machine->host;
    s->tags.role = ROLE_SNAPSHOT;
    struct task *t = in_slot(add_host(s, host->lane[LANE_DISK], "commit", NULL, NULL));
    t->condition.aside = true;
    t->condition.ends = true;
    if (v->by_hand)
        t->seconds = host->disk ? host->disk->latency : 0;
}

/* How many updates are stored. */
static size_t store_all(struct storing *v)
{
    struct step *s = v->step;
    size_t n = s->n, updates = 0;
    size_t *bytes = bytes_to_store(s->task, n, s->pool);
    s->pool->ring.n = snapshot_options.slots;
    add_commit(v);
    for (size_t i = 0; i < n; i++) {
        struct task *update = s->task[i];
        if (!bytes[i])
            continue;
        struct task *last = last_on_host(s, n, update);
        if (last)
            store_either(v, update, last, n, bytes[i]);
        else
            store_update(v, update, bytes[i]);
        updates++;
    }
    free(bytes);
    return updates;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool wants_snapshot(const struct run_facts *w) { return snapshot_options.file && !w->trial; }

/* The period with copies in that place; INFINITY: it does not fit. */
static double try_place(struct step *s, const struct costs *c, enum snapshot_in in)
{
    struct storing v = {.step = s, .edit = open_edit(s), .in = in, .by_hand = !c};
    store_all(&v);
    struct forecast f = try_list(s, c, 0, NULL, NULL);
    double period = f.excess > 0 ? INFINITY : f.period;
    free_forecast(&f);
    undo(v.edit);
    return period;
}

static bool run_snapshot(struct step *s, const struct costs *c, const struct run_facts *w, struct pass_report *r)
{
    enum snapshot_in in = snapshot_options.in;
    enum snapshot_in other = in == IN_DEVICE ? IN_HOST : IN_DEVICE;
    double other_period = has_times(s, c) ? try_place(s, c, other) : NAN;
    struct storing v = {.step = s, .edit = open_edit(s), .in = in, .by_hand = !c};
    bool any = store_all(&v) > 0;
    if (any)
        commit(v.edit); /* the edit's: from here on the list has the tasks */
    else
        undo(v.edit);
    report_snapshot(s, c, w, other_period, r);
    return any;
}

/* Tells passes that run earlier, and look for what fits, how many bytes all buffers will take. */
static void reserve_buffers(struct step *s, const struct run_facts *w)
{
    (void)w;
    size_t n;
    struct task **task = tasks_in_order(s, &n);
    size_t *bytes = bytes_to_store(task, n, s->pool);
    for (size_t i = 0; i < n; i++) {
        bool either = choice_word(task[i]) != NULL;
        if (!bytes[i])
            continue;
        new_buffers(s->pool, s->pool->machine->host, bytes[i]);
        for (int k = 0; k < task[i]->n_access; k++) {
            const struct access *a = &task[i]->access[k];
            if (snapshot_options.in == IN_DEVICE && is_state(a) && !either && !a->tensor->device->is_host)
                new_buffers(s->pool, a->tensor->device, a->tensor->bytes);
        }
    }
    free(task);
    free(bytes);
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static const struct pass_traits traits = {.reserve = reserve_buffers};
static const struct pass pass = {.place = 60,
                                 .name = "snapshot",
                                 .wanted = wants_snapshot,
                                 .run = run_snapshot,
                                 .turned_on = {NULL},
                                 .traits = &traits};

static void check(struct settings *s)
{
    const struct snapshot_options *o = &snapshot_options;
    if (!o->file)
        return;
    if (o->slots == 1)
        warn("--snapshot-slots 1: the first snapshot keeps the only slot, and no later one is stored; use 2 or more");
    if (s->trains && o->every > s->steps)
        warn("--snapshot-every %d: the last step is %d, so no snapshot is stored; use a smaller one", o->every,
             s->steps);
    s->kept = true;
}

/* name, letter, type, value, default, argument, low, high, group, commands, help */
static const struct option options[] = {
    {"snapshot", 0, OPT_KEPT, &snapshot_options.file, NULL, "FILE", 0, 0, GROUP_TECHNIQUES, OF_TRAIN | OF_PLAN,
     "store each unit in FILE as soon as it is updated, while the rest of the step goes on: --resume FILE goes on from "
     "there after any interruption (plan: say when which iteration could be recovered, and write nothing)"},
    {"snapshot-every", 0, OPT_INT, &snapshot_options.every, "1", "K", 1, MOST_EVERY, GROUP_TECHNIQUES,
     OF_TRAIN | OF_PLAN, "store every Kth iteration"},
    {"snapshot-slots", 0, OPT_INT, &snapshot_options.slots, "2", "S", 1, MOST_MEMBERS, GROUP_TECHNIQUES,
     OF_TRAIN | OF_PLAN,
     "iterations for which the file has room; one that finds no slot free is dropped, and training does not wait. The "
     "newest one keeps its slot, so with 1 only the first is stored"},
    {"snapshot-in", 0, OPT_CHOICE, &snapshot_options.in, "host", WORDS([IN_HOST] = "host", [IN_DEVICE] = "device"), 0,
     0, GROUP_TECHNIQUES, OF_TRAIN | OF_PLAN,
     "a unit's next update waits for its copy. host: into the host's memory; device: into the device's, with room for "
     "S copies, from where it goes down while training goes on: for slow links"},
    {"iterations", 0, OPT_INT, &snapshot_options.iterations, "16", "N", 1, 1e6, GROUP_PREDICTING, OF_PLAN,
     "with --snapshot: report the commits of the first N iterations"},
};
static const struct law laws[] = {{"snapshot-every", "snapshot", NULL},
                                  {"snapshot-slots", "snapshot", NULL},
                                  {"snapshot-in", "snapshot", NULL},
                                  {"iterations", "snapshot", NULL},
                                  {"print-list", "snapshot", "a step file has no words for slots"}};
const struct module module_snapshot = {.name = "snapshot",
                                       .needs = "pass predict reshard",
                                       .place = 24,
                                       .pass = &pass,
                                       .options = options,
                                       .n_options = COUNT(options),
                                       .unrecorded = "snapshot",
                                       .laws = laws,
                                       .n_laws = COUNT(laws),
                                       .check = check,
                                       .hooks = &snapshot_hooks,
                                       .store = &snapshot_store};

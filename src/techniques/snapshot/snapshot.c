/* snapshot.c - each unit is stored as soon as it is updated, while the next ones are still being differentiated.
 *
 *     device      B3   U3   B2   U2   B1   U1   B0   U0   | F0       B: backward, U: update of a unit, here a layer
 *     copies              s3        s2        s1        s0           s: snapshot
 *     disk                   [p3  ] [p2  ] [p1  ] [p0  ] c           p: persist, c: commit
 *
 * The rewrite.  Behind every update, for what it wrote of parameters and optimizer:
 *
 *     snapshot   a copy to the host, on a lane of its own: all that the unit's next update has to wait for
 *     persist    the host's disk lane writes that copy to the file, in one piece
 *
 * and behind all of them, on the disk lane too,
 *
 *     commit     the page that names the iteration, when its last unit is written: the iteration is *recoverable* after
 *                a kill.  Then a flush, which takes the disk's latency: it is *durable*, after a power cut too.  (In a
 *                run it also waits for the step's report that it is sound, which is not simulated.)
 *
 * A commit waits for its persists by the order of the disk's lane.  Both stand *aside* (struct task): only tasks of the
 * same slot wait for them, and so training never does.  Until the slot is chosen they are parked outside of their lane
 * (run/late.c).
 *
 * On the device (--snapshot-in device).  Where the link is slow, the next update waits for the copy to the host.  A
 * copy within the device's memory is faster:
 *
 *     device      U1   B0   U0   | F0        F1        B1   U1   B0
 *     snapshot      d1        d0                                        into a buffer of the device, one for each slot
 *     copies          [s1           ] [s0           ]                   from there to the host's buffer
 *
 * Now the next update waits for d alone.  s stands aside too: the slot's next iteration begins when it is free.  d has
 * a compute lane of its own: it is work of the device and needs no link, and on the main one it would have to be
 * issued before it is known which slot the iteration gets.  It takes its time by the device's memory; that kernels
 * beside it are then slower is not simulated.
 *
 * The rule.  The file has S slots, each for a whole iteration, and the host as many buffers.  The tasks are in the list
 * once for every slot; which of them run is decided when an iteration's first unit is ready.  take_slot() of
 * step/condition.c decides, here as in a run; the report's advice asks it too.  An iteration that finds no slot free is
 * dropped.
 *
 * Ranks that update the same shard, without ZeRO, store it once: the one that summed its gradient does, and not those
 * that were sent the sum.
 *
 * What the tasks do when they run, and the file, are snapshot/snapshots.c's business; when they run is run/late.c's.
 *
 * Source: "Method and apparatus for model training" (Huawei Cloud, 2023).
 */
#include "../../../cl/shared.h" /* defines: CHOICE_CPU, CHOICE_DEVICE */
#include "snap.h"
#include "tools/predict/predict.h"

#include <math.h>

struct storing {
    struct step *step;
    const struct costs *costs;
    const struct snapshot_options *options;
    enum snapshot_in in;
    size_t updates;
    double bytes, device_bytes; /* of an iteration: stored; and of the devices' buffers */
    double chosen, on_host;     /* stored bytes that --snapshot-in device cannot copy there, and why: see
                                   describe_place() */
    double other;               /* the period with copies in the other place */
    struct pass_report *report;
};

struct snapshot_options snapshot_options;

static bool wants_snapshot(const struct run_facts *w) { return snapshot_options.file && !w->trial; }

/* ---- what is stored ---------------------------------------------------------------------------------------------- */

static bool is_state(const struct access *a)
{
    return (a->mode & ACCESS_WRITE) && (a->tensor->class == MEM_PARAMETERS || a->tensor->class == MEM_OPTIMIZER);
}

/* The bytes that copies of role broadcast have brought so far, in list order, by way of other copies too: what was sent
 * to a device may go on, to the host, and come back.  Each copy is looked at once, whatever the way is. */
struct arrivals {
    struct arrival {
        size_t begin, end; /* bytes of a storage */
        int before;        /* the arrival in the same storage before this one, or NOWHERE */
    } * list;
    size_t n, cap;
    int *last; /* by storage: its last arrival, or NOWHERE */
};

/* Was some of x sent? */
static bool has_arrived(const struct arrivals *a, const struct tensor *x)
{
    bool arrived = false;
    for (int i = a->last[x->storage->id]; i != NOWHERE && !arrived; i = a->list[i].before)
        arrived = a->list[i].begin < x->offset + x->bytes && x->offset < a->list[i].end;
    return arrived;
}

static void note_arrival(struct arrivals *a, const struct tensor *storage, size_t begin, size_t end)
{
    int *last = &a->last[storage->id];
    for (int i = *last; i != NOWHERE; i = a->list[i].before)
        if (a->list[i].begin <= begin && end <= a->list[i].end)
            return;
    struct arrival *new = APPEND(a->list, a->n, a->cap);
    *new = (struct arrival){begin, end, *last};
    *last = (int)a->n - 1;
}

/* Of a copy that is no broadcast only those bytes that had been sent to where it begins: a whole gradient that comes
 * back from the host has a part that this rank summed, and others that it was sent. */
static void note_copy(struct arrivals *a, const struct task *copy)
{
    const struct tensor *to = copy->access[0].tensor, *from = copy->access[1].tensor;
    if (copy->role == ROLE_BROADCAST)
        note_arrival(a, to->storage, to->offset, to->offset + to->bytes);
    for (int i = a->last[from->storage->id]; i != NOWHERE; i = a->list[i].before) {
        size_t begin = MAX(a->list[i].begin, from->offset), end = MIN(a->list[i].end, from->offset + from->bytes);
        if (begin < end)
            note_arrival(a, to->storage, to->offset + begin - from->offset, to->offset + end - from->offset);
    }
}

/* Bytes that each of n tasks of a list makes and a snapshot stores; 0: nothing.  --overlap local lists an update
 * twice.  The device's is stored, and store_update() finds the other one, which `needs` the choice of the CPU.  The
 * caller frees the array. */
static size_t *bytes_to_store(struct task *const *task, size_t n, const struct pool *pool)
{
    struct arrivals arrivals = {.last = allocate(pool->n, sizeof *arrivals.last)};
    size_t *bytes = allocate(n, sizeof *bytes);
    memset(arrivals.last, NOWHERE, pool->n * sizeof *arrivals.last);
    for (size_t i = 0; i < n; i++) {
        const struct task *t = task[i];
        bool sent = false;
        if (t->copy)
            note_copy(&arrivals, t);
        if (t->role != ROLE_UPDATE || t->condition.needs)
            continue;
        for (int a = 0; a < t->n_access; a++) {
            const struct tensor *x = t->access[a].tensor;
            sent |= x->class == MEM_GRADIENTS && has_arrived(&arrivals, x);
            if (is_state(&t->access[a]))
                bytes[i] += round_up(x->bytes, pool->machine->host->alignment);
        }
        if (sent)
            bytes[i] = 0;
    }
    free(arrivals.list);
    free(arrivals.last);
    return bytes;
}

/* ---- storing it -------------------------------------------------------------------------------------------------- */

static struct task *in_slot(const struct storing *v, struct task *t, int slot)
{
    t->condition.slot = slot;
    t->when.every = (uint32_t)v->options->every;
    return t;
}

/* To the host, on a download lane that nothing else uses, since lane order does not hold between copies that are
 * decided late and others; unless the link takes no more, as in a step file. */
static void copy_state(struct storing *v, struct tensor *to, struct tensor *x, int slot, bool on_device)
{
    struct step *s = v->step;
    struct tensor *from = x;
    if (on_device) {
        from = new_bytes_tensor(s->pool, x->device, MEM_WORK, "snapshot", x->bytes);
        from->persistent = true;
        v->device_bytes += (double)round_up(x->bytes, x->device->alignment);
        struct lane *lane = lane_for(s->pool->machine, x->device, LANE_COMPUTE, FOR_SNAPSHOT);
        in_slot(v, add_copy(s, lane, "snapshot.device", from, x), slot);
    }
    struct task *down = x->device->is_host ? add_copy(s, x->device->lane[LANE_CPU], "snapshot", to, x)
                                           : carry(s, "snapshot", to, from, FOR_SNAPSHOT);
    in_slot(v, down, slot)->condition.aside = on_device;
}

/* Of an update that is in the list twice, the word by which the running step chooses; else NULL.  *last: the last task
 * that stands in for it, the host's, or itself. */
static struct tensor *choice_of(struct task *const *task, size_t at, size_t n, struct task **last)
{
    *last = task[at];
    for (size_t i = at; choice_word(task[at]) && i < n; i++)
        *last = task[i]->origin == task[at]->origin ? task[i] : *last;
    return choice_word(*last); /* the host's, which copies look at */
}

static bool passes_by_device(enum snapshot_in in, const struct tensor *x, const struct tensor *choice)
{
    return in == IN_DEVICE && !choice && !x->device->is_host;
}

/* What `update` wrote: all that is stored, or, on the host, a piece of it, which begins so many bytes into each of its
 * tensors.  choice: the word by which the running step decides whether device or host updates (--overlap local).  Only
 * what works is copied then, and to the host: what stands aside would look too late.  An update takes 0 seconds if it
 * is not expected to work, and then so do its copies. */
static void copy_written(struct storing *v, struct tensor *buffer, const struct task *whole, const struct task *update,
                         int slot, struct tensor *choice)
{
    struct step *s = v->step;
    size_t n = s->n, at = update->first - whole->first;
    for (int a = 0; a < whole->n_access; a++) {
        struct tensor *x = update->access[a].tensor;
        if (!is_state(&whole->access[a]))
            continue;
        if (slot == 1 && x->device->is_host && !choice)
            v->on_host += (double)x->bytes;
        if (slot == 1 && choice && !x->device->is_host)
            v->chosen += (double)x->bytes;
        copy_state(v, new_range(s->pool, buffer, x->name, at, at + x->bytes), x, slot,
                   passes_by_device(v->in, x, choice));
        at += round_up(whole->access[a].tensor->bytes, s->pool->machine->host->alignment);
    }
    for (; choice && n < s->n; n++)
        need_choice(s->task[n], choice, update->condition.needs ? CHOICE_CPU : CHOICE_DEVICE, update->seconds != 0);
}

/* An update that may run on either side is in the list twice, on the host perhaps in pieces.  Both sides fill the one
 * buffer, behind the last task of both: the device's copies behind the host's, so that no CPU lane waits for them.
 *
 *     U  h1 h2  up up | s(h1) s(h2)  s(U)  persist        U: on the device, h: on the host, up: its copies back
 */
static void store_update(struct storing *v, struct edit *e, struct task *t, size_t bytes, int slot)
{
    struct step *s = v->step;
    struct machine *m = s->pool->machine;
    struct tensor *buffer = new_bytes_tensor(s->pool, m->host, MEM_WORK, "snapshot", bytes);
    struct task *last;
    size_t n = s->n;
    buffer->persistent = true;
    struct tensor *choice = choice_of(s->task, t->index, n, &last);
    while (choice && last->next->role == ROLE_OFFLOAD && last->next->condition.needs) /* behind the copies back */
        last = last->next;
    insert_behind(e, last);
    s->tags = (struct tags){t->layer, t->micro, ROLE_SNAPSHOT};
    for (size_t i = t->index + 1; choice && i < n; i++)
        if (s->task[i]->origin == t->origin)
            copy_written(v, buffer, t, s->task[i], slot, choice);
    copy_written(v, buffer, t, t, slot, choice);
    struct task *persist = in_slot(v, add_host(s, m->host->lane[LANE_DISK], "persist", NULL, NULL), slot);
    add_access(persist, buffer, ACCESS_READ);
    persist->condition.aside = true;
    persist->state = t->state;
    if (!v->costs)
        persist->seconds = given_seconds(persist);
}

static void add_commit(const struct storing *v, int slot)
{
    const struct device *host = v->step->pool->machine->host;
    v->step->tags.role = ROLE_SNAPSHOT;
    struct task *t = in_slot(v, add_host(v->step, host->lane[LANE_DISK], "commit", NULL, NULL), slot);
    t->condition.ends = t->condition.aside = true;
    if (!v->costs)
        t->seconds = host->disk ? host->disk->latency : 0;
}

/* The commits are the last tasks of the list: with --serial the report comes before, for which they wait.  Slots go
 * down, since what is added later lands right behind the update, before what is there:
 *
 *     U s2 p2    then    U s1 p1 s2 p2
 */
static void store_all(struct storing *v, struct edit *e)
{
    size_t n = v->step->n, *bytes = bytes_to_store(v->step->task, n, v->step->pool);
    v->updates = 0;
    v->bytes = v->device_bytes = 0;
    for (int slot = 1; slot <= v->options->slots; slot++)
        add_commit(v, slot);
    for (size_t i = 0; i < n; i++) {
        for (int slot = v->options->slots; slot > 0 && bytes[i]; slot--)
            store_update(v, e, v->step->task[i], bytes[i], slot);
        v->updates += bytes[i] > 0;
        v->bytes += (double)bytes[i];
    }
    free(bytes);
}

/* ---- room for it, in lists that do not have it yet --------------------------------------------------------------- */

static void reserve(struct step *s, struct device *d, size_t bytes)
{
    new_bytes_tensor(s->pool, d, MEM_WORK, "snapshot", bytes)->persistent = true;
}

static void reserve_buffers(struct step *s, const struct run_facts *w)
{
    const struct snapshot_options *o = &snapshot_options;
    (void)w;
    size_t n_tasks;
    struct task **task = tasks_in_order(s, &n_tasks), *last;
    size_t *bytes = bytes_to_store(task, n_tasks, s->pool);
    for (size_t i = 0; i < n_tasks; i++) {
        const struct tensor *choice = choice_of(task, i, n_tasks, &last);
        for (int slot = 0; slot < o->slots && bytes[i]; slot++) {
            reserve(s, s->pool->machine->host, bytes[i]);
            for (int a = 0; a < task[i]->n_access; a++) {
                const struct access *x = &task[i]->access[a];
                if (is_state(x) && passes_by_device(o->in, x->tensor, choice))
                    reserve(s, x->tensor->device, x->tensor->bytes);
            }
        }
    }
    free(task);
    free(bytes);
}

/* ---- which iterations are stored, and when ----------------------------------------------------------------------- */

struct outcome {                        /* of an iteration */
    double begin, recoverable, durable; /* seconds; begin, of its first copy: INFINITY if it is dropped */
};

/* Of iteration i, from 1.  The last sim->pattern iterations that were simulated go on for ever; see simulate.c. */
static struct outcome outcome_at(const struct simulation *sim, int i)
{
    struct outcome o = {.begin = INFINITY};
    int behind = i - sim->steps, rounds = behind > 0 ? (behind + sim->pattern - 1) / sim->pattern : 0;
    const struct moment *moments = &sim->moments[(size_t)(i - rounds * sim->pattern - 1) * sim->step->n];
    double shift = rounds * sim->pattern * sim->period;
    for (size_t t = 0; t < sim->step->n; t++) {
        const struct task *task = sim->step->task[t];
        const struct moment *m = &moments[t];
        if (!task->condition.slot || m->skipped)
            continue;
        o.begin = fmin(o.begin, m->start + shift);
        if (task->lane->kind == LANE_DISK) /* the page is written with the last persist; a commit's time is the flush */
            *(task->condition.ends ? &o.durable : &o.recoverable) = m->end + shift;
    }
    return o;
}

/* The longest time from an update's end to that of the copies for which the unit's next update waits.  They stand right
 * behind it: `before` is the last task of no slot.  Where it skips an iteration the copies alone hold the next one. */
static double longest_hold(const struct simulation *sim)
{
    const struct moment *m = &sim->moments[(size_t)sim->first * sim->step->n], *before = m;
    double hold = 0;
    for (size_t i = 0; i < (size_t)sim->pattern * sim->step->n; i++) {
        const struct task *t = sim->step->task[i % sim->step->n];
        if (!t->condition.slot)
            before = &m[i];
        else if (t->copy && !t->condition.aside && !m[i].skipped)
            hold = fmax(hold, m[i].end - (before->skipped ? m[i].start : before->end));
    }
    return hold;
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

static void report_times(void *storing, const struct simulation *sim)
{
    const struct storing *v = storing;
    const int every = v->options->every, most = v->options->iterations, under_way = most_under_way(v->options->slots);
    json_t *commits = json_object_get(v->report->fields, "commits");
    json_t *dropped = json_object_get(v->report->fields, "dropped");
    char **text = &v->report->reason;
    double disk = 0, links = 0; /* seconds for an iteration */
    struct outcome first = outcome_at(sim, every);
    for (size_t t = 0; t < sim->step->n; t++)
        if (sim->step->task[t]->condition.slot == 1 && sim->step->task[t]->lane->kind != LANE_COMPUTE)
            *(sim->step->task[t]->lane->kind == LANE_DISK ? &disk : &links) += sim->seconds[t];
    for (int i = every; i <= most; i += every) {
        struct outcome o = outcome_at(sim, i);
        if (isfinite(o.begin))
            json_array_append_new(commits, json_pack("{s:i, s:f, s:f}", "iteration", i, "written_ms",
                                                     1e3 * o.recoverable, "durable_ms", 1e3 * o.durable));
        else
            json_array_append_new(dropped, json_integer(i));
    }
    if (disk > 0 && (!v->costs || v->step->pool->machine->host->disk))
        append_text(text, "; the disk needs %.3f ms for them", 1e3 * disk);
    else
        append_text(text, "; how fast the disk is nobody said (link disk), and it counts as if it took no time");
    append_text(text, "; iteration %d is recoverable after %.3f ms, durable after %.3f ms", every,
                1e3 * first.recoverable, 1e3 * first.durable);
    append_text(text, "; %zu of %d iterations dropped", json_array_size(dropped), most / every);
    if (json_array_size(dropped) && !under_way)
        append_text(text, ": the newest commit holds the only slot");
    else if (json_array_size(dropped)) {
        double apart = fmax(fmax(disk, links), (first.durable - first.begin) / under_way);
        double advised = fmax(ceil(apart / fmin(sim->period, v->other) - 1e-6), 1);
        append_text(text, "; the %s up with ", disk < links ? "links keep" : "disk keeps");
        append_text(text,
                    advised > MOST_EVERY ? "one iteration in %.0f, and --snapshot-every takes at most %d"
                                         : "--snapshot-every %.0f",
                    advised, MOST_EVERY);
    }
    report_ms(v->report, "held_ms", "the next update is held for at most", longest_hold(sim));
}

/* The period with copies on the device, or without; INFINITY: it does not fit. */
static double try_place(struct storing v, enum snapshot_in in)
{
    struct edit *e = open_edit(v.step);
    v.in = in;
    store_all(&v, e);
    struct forecast f = try_list(v.step, v.costs, 0, NULL, NULL);
    double period = f.excess > 0 ? INFINITY : f.period;
    free_forecast(&f);
    undo(e);
    return period;
}

/* What --snapshot-in device came to. */
static void describe_place(const struct storing *v, char **text)
{
    char bytes[32];
    if (v->device_bytes > 0)
        append_text(text, ", by way of %s on the device", format_bytes(bytes, v->device_bytes));
    else
        append_text(text, "; --snapshot-in device has no effect here");
    if (v->chosen > 0)
        append_text(text, ": %s go straight to the host, since --overlap local decides in the step who updates them",
                    format_bytes(bytes, v->chosen));
    if (v->on_host > 0)
        append_text(text, ": %s are on the host when they are updated", format_bytes(bytes, v->on_host));
}

static bool run_snapshot(struct step *s, const struct costs *c, const struct run_facts *w, struct pass_report *r)
{
    struct storing v = {.step = s, .costs = c, .options = &snapshot_options, .in = snapshot_options.in, .report = r};
    bool on_device = v.in == IN_DEVICE;
    v.other = has_times(s, c) ? try_place(v, on_device ? IN_HOST : IN_DEVICE) : NAN;
    struct edit *e = open_edit(s);
    store_all(&v, e);
    r->fields =
        json_pack("{s:[], s:[], s:s, s:I, s:n}", "commits", "dropped", "in", v.device_bytes > 0 ? "device" : "host",
                  "device_bytes", (json_int_t)v.device_bytes, "held_ms");
    if (!v.updates) {
        undo(e);
        r->reason = copy_string("no task of role update writes parameters or the optimizer's state from gradients that "
                                "were summed there, not sent");
        return false;
    }
    commit(e); /* the edit's: from here on the list has the tasks */
    r->reason = format_string("%s of %zu updates into each of %d slots of %s", format_bytes((char[32]){0}, v.bytes),
                              v.updates, v.options->slots, v.options->file);
    if (on_device)
        describe_place(&v, &r->reason);
    r->after = keep_forecast(try_list(s, c, INFINITY, report_times, &v));
    if (w->clipped)
        append_text(&r->reason, "; --clip holds all updates until the last backward has ended, so nothing is stored "
                                "before; --clip 0 stores each layer behind its backward");
    if (on_device && r->after->excess > 0)
        refuse_budget(s->pool->machine, r->after, "--snapshot-in device", true);
    report_ms(r, "host_ms", "with copies in the host a step takes", on_device ? v.other : r->after->period);
    report_ms(r, "device_ms", "on the device", on_device ? r->after->period : v.other);
    return true;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static const struct pass pass = {.place = 60,
                                 .name = "snapshot",
                                 .wanted = wants_snapshot,
                                 .run = run_snapshot,
                                 .turned_on = {NULL},
                                 .reserve = reserve_buffers};

static void check(struct settings *s)
{
    const struct snapshot_options *o = &snapshot_options;
    if (o->restart && !o->file)
        fail(EXIT_USAGE, "--restart goes on from a snapshot: add --snapshot FILE");
    if (o->file && o->slots == 1)
        warn("--snapshot-slots 1: the first snapshot keeps the only slot, and no later one is stored; use 2 or more");
    if (o->file && s->trains && o->every > s->steps)
        warn("--snapshot-every %d: the last step is %d, so no snapshot is stored; use a smaller one", o->every,
             s->steps);
    s->kept |= o->file != NULL;
}

static const struct option options[] = {
    {"snapshot", 0, OPT_KEPT, &snapshot_options.file, NULL, "FILE", 0, 0, GROUP_TECHNIQUES, OF_TRAIN | OF_PLAN,
     "store each unit in FILE as soon as it is updated, while the rest of the step goes on: --resume FILE goes on from "
     "there after any interruption (plan: say when which iteration could be recovered, and write nothing)"},
    {"snapshot-every", 0, OPT_INT, &snapshot_options.every, "1", "K", 1, MOST_EVERY, GROUP_TECHNIQUES,
     OF_TRAIN | OF_PLAN, "every Kth iteration"},
    {"snapshot-slots", 0, OPT_INT, &snapshot_options.slots, "2", "S", 1, 16, GROUP_TECHNIQUES, OF_TRAIN | OF_PLAN,
     "iterations for which the file has room; one that finds no slot free is dropped, and training does not wait. The "
     "newest one keeps its slot, so with 1 only the first is stored"},
    {"snapshot-in", 0, OPT_CHOICE, &snapshot_options.in, "host", WORDS([IN_HOST] = "host", [IN_DEVICE] = "device"), 0,
     0, GROUP_TECHNIQUES, OF_TRAIN | OF_PLAN,
     "a unit's next update waits for its copy. host: into the host's memory; device: into the device's, with room for "
     "S copies, from where it goes down while training goes on: for slow links"},
    {"restart", 0, OPT_FLAG, &snapshot_options.restart, NULL, NULL, 0, 0, GROUP_TECHNIQUES, OF_TRAIN,
     "train in a process of its own. When that dies, the next one goes on from the newest commit in --snapshot FILE; "
     "without --resume the first one does too. Ctrl-C, a not-a-number that comes again, and 3 restarts without a newer "
     "commit end the run"},
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
                                       .unrecorded = "snapshot restart",
                                       .laws = laws,
                                       .n_laws = COUNT(laws),
                                       .check = check,
                                       .hooks = &snapshot_hooks,
                                       .store = &snapshot_store};

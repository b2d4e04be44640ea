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
 *     commit     the page that names the iteration is written when its last unit is; it lasts through a power cut when
 *                the disk has been told to flush, which takes the disk's latency
 *
 * The rule.  The file has S slots, each for a whole iteration, and the host as many buffers.  The tasks are in the list
 * once for every slot; which of them run is decided when an iteration's first unit is ready (../step/snapslots.c).
 * An iteration that finds no slot free is dropped, and training never waits for the disk.
 *
 * Ranks that update the same shard, without ZeRO, store it once: the one that summed its gradient does, and not those
 * that were sent the sum.
 *
 * What the tasks do when they run, and the file, are ../train/snapshots.c's business; when they run is ../run/late.c's.
 *
 * Source: "Method and apparatus for model training" (Huawei Cloud, 2023).  Features E1-E3.
 */
#include "pass.h"

#include <math.h>

struct outcome { /* of one iteration */
    bool stored;
    double written, durable; /* seconds */
};
struct storing {
    struct step *step;
    const struct costs *costs;
    const struct snapshot_options *options;
    size_t updates;
    double bytes;             /* of an iteration */
    struct outcome *outcomes; /* of the first ones simulated, from 1 */
    int n_outcomes, pattern;
    double period, disk; /* disk: seconds that it is busy with an iteration */
};

bool wants_snapshot(const struct pass_options *w) { return w->snapshot.file != NULL; }

/* ---- what is stored ---------------------------------------------------------------------------------------------- */

static bool is_state(const struct access *a)
{
    return (a->mode & ACCESS_WRITE) && (a->tensor->class == MEM_PARAMETERS || a->tensor->class == MEM_OPTIMIZER);
}

/* Has a copy of role broadcast brought some of it, before the task?  Or of what it is a copy of? */
static bool was_sent(const struct step *s, const struct task *t, const struct tensor *x)
{
    bool sent = false;
    for (size_t i = 0; i < t->index && !sent; i++) {
        const struct task *copy = s->task[i];
        if (copy->copy && share_bytes(copy->access[0].tensor, x))
            sent = copy->role == ROLE_BROADCAST || was_sent(s, copy, copy->access[1].tensor);
    }
    return sent;
}

static size_t bytes_to_store(const struct step *s, const struct task *t)
{
    size_t bytes = 0;
    for (int a = 0; t->role == ROLE_UPDATE && !t->slot && a < t->n_access; a++)
        if (t->access[a].tensor->class == MEM_GRADIENTS && was_sent(s, t, t->access[a].tensor))
            return 0;
        else if (is_state(&t->access[a]))
            bytes += round_up(t->access[a].tensor->bytes, s->pool->machine->host->alignment);
    return bytes;
}

/* ---- storing it -------------------------------------------------------------------------------------------------- */

/* On a download lane that nothing else uses, since copies that are decided late stand behind nothing and before nothing
 * on it; unless the link takes no more, as in a step file. */
static struct task *copy_state(const struct storing *v, struct tensor *to, struct tensor *x)
{
    struct machine *m = v->step->pool->machine;
    return x->device->is_host ? add_copy(v->step, m->host->lane[LANE_CPU], "snapshot", to, x)
                              : carry(v->step, "snapshot", to, x, FOR_SNAPSHOT);
}

static struct task *in_slot(const struct storing *v, struct task *t, int slot)
{
    t->slot = slot;
    t->when.every = (uint32_t)v->options->every;
    return t;
}

static void store_update(struct storing *v, struct edit *e, struct task *t, size_t bytes, int slot)
{
    struct step *s = v->step;
    struct machine *m = s->pool->machine;
    struct tensor *buffer = new_bytes_tensor(s->pool, m->host, MEM_WORK, "snapshot", bytes);
    size_t at = 0;
    buffer->persistent = true;
    insert_behind(e, t);
    s->tags.role = ROLE_SNAPSHOT;
    for (int a = 0; a < t->n_access; a++) {
        struct tensor *x = t->access[a].tensor;
        if (!is_state(&t->access[a]))
            continue;
        in_slot(v, copy_state(v, new_range(s->pool, buffer, x->name, at, at + x->bytes), x), slot);
        at += round_up(x->bytes, m->host->alignment);
    }
    struct task *persist = in_slot(v, add_host(s, m->host->lane[LANE_DISK], "persist", NULL, NULL), slot);
    add_access(persist, buffer, ACCESS_READ);
    persist->state = t->state;
    if (!v->costs)
        persist->seconds = given_seconds(persist);
}

static void add_commit(const struct storing *v, int slot)
{
    const struct device *host = v->step->pool->machine->host;
    v->step->tags.role = ROLE_SNAPSHOT;
    struct task *t = in_slot(v, add_host(v->step, host->lane[LANE_DISK], "commit", NULL, NULL), slot);
    t->commits = true;
    if (!v->costs)
        t->seconds = host->disk ? host->disk->latency : 0;
}

/* The commits are the last tasks of the list. */
static void store_all(struct storing *v, struct edit *e)
{
    size_t n = v->step->n;
    for (int slot = 1; slot <= v->options->slots; slot++)
        add_commit(v, slot);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = bytes_to_store(v->step, v->step->task[i]);
        for (int slot = v->options->slots; slot > 0 && bytes; slot--)
            store_update(v, e, v->step->task[i], bytes, slot);
        v->updates += bytes > 0;
        v->bytes += (double)bytes;
    }
}

/* ---- which iterations are stored, and when ----------------------------------------------------------------------- */

/* Of simulated iteration i, from 0. */
static struct outcome outcome_of(const struct simulation *sim, int i)
{
    struct outcome o = {.written = 0};
    for (size_t t = 0; t < sim->step->n; t++) {
        const struct task *task = sim->step->task[t];
        const struct moment *m = &sim->moments[(size_t)i * sim->step->n + t];
        if (!task->slot || task->lane->kind != LANE_DISK || m->blocker == SKIPPED)
            continue;
        o.stored = true;
        *(task->commits ? &o.durable : &o.written) = m->end;
    }
    return o;
}

static void note_outcomes(void *storing, const struct simulation *sim)
{
    struct storing *v = storing;
    free(v->outcomes);
    v->outcomes = allocate((size_t)sim->steps, sizeof *v->outcomes);
    v->n_outcomes = sim->steps;
    v->pattern = sim->pattern;
    v->period = sim->period;
    v->disk = 0;
    for (int i = 0; i < sim->steps; i++)
        v->outcomes[i] = outcome_of(sim, i);
    for (size_t t = 0; t < sim->step->n; t++)
        if (sim->step->task[t]->slot == 1 && sim->step->task[t]->lane->kind == LANE_DISK)
            v->disk += sim->seconds[t];
}

/* Of iteration i, from 1: behind those that were simulated the pattern goes on. */
static struct outcome outcome_at(const struct storing *v, int i)
{
    int behind = i - v->n_outcomes, rounds = behind > 0 ? (behind + v->pattern - 1) / v->pattern : 0;
    struct outcome o = v->outcomes[i - rounds * v->pattern - 1];
    o.written += rounds * v->pattern * v->period;
    o.durable += rounds * v->pattern * v->period;
    return o;
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

static void report_outcomes(const struct storing *v, json_t *commits, json_t *dropped)
{
    for (int i = v->options->every; v->outcomes && i <= v->options->iterations; i += v->options->every) {
        struct outcome o = outcome_at(v, i);
        if (o.stored)
            json_array_append_new(commits, json_pack("{s:i, s:f, s:f}", "iteration", i, "written_ms", 1e3 * o.written,
                                                     "durable_ms", 1e3 * o.durable));
        else
            json_array_append_new(dropped, json_integer(i));
    }
}

static char *describe(const struct storing *v, size_t dropped)
{
    char bytes[32];
    char *text = format_string("%s of %zu updates into each of %d slots of %s", format_bytes(bytes, v->bytes),
                               v->updates, v->options->slots, v->options->file);
    if (!v->outcomes)
        return text;
    struct outcome first = outcome_at(v, v->options->every);
    double spared = ceil(v->disk / v->period); /* steps in which the disk gets done with one */
    if (v->disk > 0 && (!v->costs || v->step->pool->machine->host->disk))
        append_text(&text, "; the disk needs %.3f ms for them", 1e3 * v->disk);
    else
        append_text(&text, "; how fast the disk is nobody said (link disk), and it counts as if it took no time");
    append_text(&text, "; iteration %d can be recovered after %.3f ms, after a power cut from %.3f ms on",
                v->options->every, 1e3 * first.written, 1e3 * first.durable);
    append_text(&text, "; %zu of %d iterations dropped", dropped, v->options->iterations / v->options->every);
    if (dropped && v->options->slots == 1)
        append_text(&text, ": the newest commit holds the only slot");
    else if (dropped)
        append_text(&text, "; the disk keeps up with --snapshot-every %.0f", spared);
    return text;
}

bool run_snapshot(struct step *s, const struct costs *c, const struct pass_options *w, struct pass_report *r)
{
    struct storing v = {.step = s, .costs = c, .options = &w->snapshot};
    json_t *commits = json_array(), *dropped = json_array();
    struct edit *e = open_edit(s);
    store_all(&v, e);
    if (v.updates) {
        commit(e);
        r->after = try_list(s, c, INFINITY, note_outcomes, &v);
        report_outcomes(&v, commits, dropped);
        r->reason = describe(&v, json_array_size(dropped));
        if (w->clipped)
            append_text(&r->reason, "; --clip holds all updates until the last backward has ended, so nothing is "
                                    "stored before; --clip 0 stores each layer behind its backward");
    } else {
        undo(e);
        r->reason = copy_string("no task of role update writes parameters or the optimizer's state");
    }
    r->fields = json_pack("{s:o, s:o}", "commits", commits, "dropped", dropped);
    free(v.outcomes);
    return v.updates > 0;
}

/* simulate.c - the cyclic list on a virtual clock.
 *
 * The rules are execute()'s own: a lane runs its tasks in list order; a task starts when the one before it on its lane
 * and all that it waits for have ended, and not before the host has issued it.  The host opens an iteration when the
 * compute lanes are done with the one two before it, and no task has MOST_RUNS runs in flight.  A task that skips an
 * iteration is not there: who waits for it waits for the last time that it ran.  A copy waits for the latency of its
 * links and is then on them: each of the k copies on a link gets 1/k of its rate, at most what one queue reaches; a
 * copy on two links goes at the smaller share.
 *
 * Iterations are run until their times repeat: the last ones, MOST_RUNS or as many as conditional tasks need to come
 * round, are those of `pattern` iterations before, all moved by the same time.  What follows depends on nothing older,
 * so from there on everything repeats, and the mean over the pattern is the period.  An iteration's end is the moment
 * from which all up to it have ended.  `pattern` is 1 unless tasks skip iterations or the list itself alternates.  A
 * list that does not settle is stopped, and its later half counts.
 *
 * Nodes number the tasks of all iterations: task i of iteration s is node s * n + i.  At most one node per lane runs,
 * so the next event is the earliest one over the lanes: the winner of a tournament between them.
 */
#include "predict.h"

#include <math.h>

enum { LEAST_STEPS = 64, MOST_STEPS = 20000, MOST_NODES = 1 << 25 };
enum { STORED_STEPS = 1024, STORED_NODES = 1 << 21 }; /* with snapshots, whose pattern may be long, or there is none */

struct turn {      /* what a lane does */
    int started;   /* how many of its nodes */
    int node;      /* that runs, or NONE */
    bool begun;    /* else it waits for the host, or the lane's gap */
    bool on_links; /* else it computes, or waits for the latency */
    double latency;
    double left; /* seconds of work left at `now`, at full speed */
    double next; /* when it ends at the present speed, or its latency or its wait does */
    double full; /* bytes per second alone */
    const struct link *link[2];
};
struct user { /* lanes whose copies are on a link */
    int *lane;
    size_t n, cap;
};
struct simulator {
    struct simulation *sim;
    int n, n_lanes, limit, repeat; /* iterations at most; so many until conditional tasks come round */
    int ring;                      /* iterations whose tensors are told apart: those that can be open at once */
    int *first_out, *out;        /* waits, by producer: consumers of task i, out[first_out[i]] ...; bit 30: next step */
    int *unmet;                  /* by node: producers that have not ended, the lane's turn not counted */
    int *lane_list, *lane_first; /* tasks of each lane in order */
    struct turn *turn;           /* by lane */
    int *winner;               /* [2 n_lanes]: of 2 i and 2 i + 1 the lane with the earlier event; behind: the lanes */
    struct user *users;        /* by link */
    int *load;                 /* by link: copies on it */
    int opened, done;          /* iterations that the host has opened; of which all up to there have ended */
    int *left, *computing;     /* by iteration: tasks that have not ended; of them on compute lanes */
    int *ended, *in_flight;    /* by task: its last run that has ended, NONE; runs that have been opened and not */
    int full;                  /* tasks with MOST_RUNS in flight */
    double *end, *issue_begin; /* by iteration: its end; when the host begins it */
    double issue, now;         /* host seconds per task */
    bool stop;
    size_t cap_moments, cap_unmet;
    struct snap_slots slots;
    int *commit, n_commits; /* tasks that commit them */
    int *leaving;           /* room for as many */
    bool *first;            /* by task: a task with a slot follows from it within the iteration */
    bool *decided;          /* by iteration */
    int *uses;     /* [ring, tensor] accesses in that iteration that have not ended, negative until the first starts */
    int *holders;  /* [tensor] iterations in which it is live: two may meet where they touch different bytes of it */
    int64_t *live; /* bytes held now, by device */
};
enum { NEXT_STEP = 1 << 30 };

static const struct task *task_of(const struct simulator *k, int node) { return k->sim->step->task[node % k->n]; }

static bool skipped(const struct simulator *k, int node) { return k->sim->moments[node].blocker == SKIPPED; }

/* ---- preparing ------------------------------------------------------------------------------------------------- */

static void index_consumers(struct simulator *k)
{
    const struct step *s = k->sim->step;
    k->first_out = allocate((size_t)k->n + 2, sizeof *k->first_out);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < k->n; i++)
            for (size_t e = 0; e < s->task[i]->n_edges; e++) {
                const struct edge *edge = &s->task[i]->edges[e];
                if (!edge->wait)
                    continue;
                if (pass == 0)
                    k->first_out[edge->from + 2]++;
                else
                    k->out[k->first_out[edge->from + 1]++] = i | (edge->previous ? NEXT_STEP : 0);
            }
        if (pass == 1)
            break;
        for (int i = 0; i < k->n; i++)
            k->first_out[i + 2] += k->first_out[i + 1];
        k->out = allocate((size_t)k->first_out[k->n + 1], sizeof *k->out);
    }
}

static void list_lanes(struct simulator *k)
{
    k->lane_list = allocate((size_t)k->n, sizeof *k->lane_list);
    k->lane_first = allocate((size_t)k->n_lanes + 2, sizeof *k->lane_first);
    for (int i = 0; i < k->n; i++)
        k->lane_first[task_of(k, i)->lane->index + 2]++;
    for (int lane = 0; lane < k->n_lanes; lane++)
        k->lane_first[lane + 2] += k->lane_first[lane + 1];
    for (int i = 0; i < k->n; i++)
        k->lane_list[k->lane_first[task_of(k, i)->lane->index + 1]++] = i;
    for (int lane = 0; lane < k->n_lanes; lane++) {
        k->turn[lane].node = NONE;
        k->turn[lane].next = INFINITY;
        k->winner[k->n_lanes + lane] = lane;
    }
    for (int i = k->n_lanes - 1; i > 0; i--)
        k->winner[i] = k->winner[2 * i];
}

/* ---- running --------------------------------------------------------------------------------------------------- */

/* The share of its full speed at which the lane's task goes. */
static double speed(const struct simulator *k, const struct turn *l)
{
    return l->on_links && isfinite(l->full) ? link_rate(l->link, k->load) / l->full : 1;
}

/* Of two lanes with their events at the same time, the first goes first. */
static int sooner(const struct simulator *k, int a, int b)
{
    double x = k->turn[a].next, y = k->turn[b].next;
    return y < x || (y == x && b < a) ? b : a;
}

static void set_next(struct simulator *k, struct turn *l, double next)
{
    l->next = next;
    for (int i = (k->n_lanes + (int)(l - k->turn)) / 2; i > 0; i /= 2)
        k->winner[i] = sooner(k, k->winner[2 * i], k->winner[2 * i + 1]);
}

/* The other copies on its links: what they have left is brought up to now, or their ends follow from it. */
static void for_others(struct simulator *k, const struct turn *copy, bool ends)
{
    for (int i = 0; i < 2; i++)
        for (size_t n = 0; copy->link[i] && n < k->users[copy->link[i]->index].n; n++) {
            struct turn *l = &k->turn[k->users[copy->link[i]->index].lane[n]];
            if (l != copy && ends)
                set_next(k, l, k->now + l->left / speed(k, l));
            else if (l != copy)
                l->left = (l->next - k->now) * speed(k, l);
        }
}

static void join_or_leave(struct user *u, int lane, bool join)
{
    size_t i = 0;
    if (join) {
        *APPEND(u->lane, u->n, u->cap) = lane;
        return;
    }
    while (u->lane[i] != lane)
        i++;
    u->lane[i] = u->lane[--u->n];
}

/* The lane's copy joins or leaves its links, and what the others there have left takes another time. */
static void change_load(struct simulator *k, const struct turn *copy, bool join)
{
    for_others(k, copy, false);
    for (int i = 0; i < 2; i++)
        if (copy->link[i]) {
            k->load[copy->link[i]->index] += join ? 1 : -1;
            join_or_leave(&k->users[copy->link[i]->index], (int)(copy - k->turn), join);
        }
    for_others(k, copy, true);
}

static int *uses_of(const struct simulator *k, int node)
{
    return k->uses + (size_t)(node / k->n % k->ring) * k->sim->step->pool->n;
}

/* A tensor is live from the start of the first task that touches it in an iteration ... */
static void take_bytes(struct simulator *k, int node)
{
    const struct task *t = task_of(k, node);
    int *left = uses_of(k, node);
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor->storage;
        int d = x->device->index;
        if (x->persistent || left[x->id] >= 0)
            continue;
        left[x->id] = -left[x->id];
        if (k->holders[x->id]++)
            continue;
        k->live[d] += (int64_t)x->bytes;
        k->sim->peak[d] = MAX(k->sim->peak[d], (size_t)k->live[d]);
    }
}

/* ... to the end of the last one, wherever they run. */
static void give_bytes(struct simulator *k, int node)
{
    const struct task *t = task_of(k, node);
    int *left = uses_of(k, node);
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor->storage;
        if (!x->persistent && --left[x->id] == 0 && --k->holders[x->id] == 0)
            k->live[x->device->index] -= (int64_t)x->bytes;
    }
}

/* The next task of the lane that is not skipped, of the iterations that are open. */
static int head_of(const struct simulator *k, int lane)
{
    int size = k->lane_first[lane + 1] - k->lane_first[lane];
    for (int *nth = &k->turn[lane].started; size && *nth / size < k->opened; ++*nth) {
        int node = *nth / size * k->n + k->lane_list[k->lane_first[lane] + *nth % size];
        if (!skipped(k, node))
            return node;
    }
    return NONE;
}

/* When the host has issued the node: in list order. */
static double issued(const struct simulator *k, int node)
{
    return k->issue > 0 ? k->issue_begin[node / k->n] + (node % k->n + 1) * k->issue : 0;
}

static void join_links(struct simulator *k, struct turn *l)
{
    l->on_links = true;
    change_load(k, l, true);
    set_next(k, l, k->now + l->left / speed(k, l));
}

/* Its first moment: the bytes are held from here on. */
static void begin(struct simulator *k, struct turn *l)
{
    bool copies = isfinite(l->full);
    l->begun = true;
    take_bytes(k, l->node);
    set_next(k, l, k->now + (copies ? l->latency : l->left));
    if (copies && l->next <= k->now)
        join_links(k, l);
}

static void start(struct simulator *k, int lane, int node, int blocker)
{
    struct turn *l = &k->turn[lane];
    int i = node % k->n;
    double seconds = k->sim->seconds[i], from = fmax(k->now + k->sim->gaps[i], issued(k, node));
    l->started++;
    l->node = node;
    l->on_links = l->begun = false;
    l->link[0] = l->link[1] = NULL;
    if (k->load && seconds > 0)
        links_of(task_of(k, node), l->link);
    l->full = link_rate(l->link, NULL);
    l->latency = isfinite(l->full) ? fmin(link_latency(l->link), seconds) : 0;
    l->left = seconds - l->latency;
    k->sim->moments[node] = (struct moment){.start = from, .blocker = blocker};
    if (from > k->now)
        set_next(k, l, from);
    else
        begin(k, l);
}

/* Start the lane's next task if all that it waits for has ended; `blocker` is what ended last. */
static void try_start(struct simulator *k, int lane, int blocker)
{
    int node = k->turn[lane].node == NONE ? head_of(k, lane) : NONE;
    if (node != NONE && k->unmet[node] == 0)
        start(k, lane, node, blocker);
}

/* ---- opening an iteration ---------------------------------------------------------------------------------------- */

/* The last iteration up to this one in which task i runs, or NONE. */
static int latest_run(const struct simulator *k, int i, int iteration)
{
    while (iteration >= 0 && skipped(k, iteration * k->n + i))
        iteration--;
    return iteration;
}

static void open_task(struct simulator *k, int node)
{
    const struct task *t = task_of(k, node);
    int i = node % k->n, iteration = node / k->n, *left = uses_of(k, node);
    bool now = runs(t, (uint32_t)iteration + 1);
    k->sim->moments[node] = (struct moment){.blocker = now ? NONE : SKIPPED};
    k->unmet[node] = now && t->slot; /* the choice of one */
    if (!now)
        return;
    for (size_t e = 0; e < t->n_edges; e++) {
        int from = (int)t->edges[e].from, run = NONE;
        if (t->edges[e].wait)
            run = latest_run(k, from, iteration - t->edges[e].previous);
        k->unmet[node] += run != NONE && run > k->ended[from];
    }
    for (int a = 0; a < t->n_access; a++)
        left[t->access[a].tensor->storage->id]--;
    k->left[iteration]++;
    k->computing[iteration] += t->lane->kind == LANE_COMPUTE;
    k->full += ++k->in_flight[i] == MOST_RUNS;
}

static void open_iteration(struct simulator *k)
{
    size_t n = k->sim->step->pool->n, nodes = (size_t)(k->opened + 1) * (size_t)k->n;
    int iteration = k->opened++;
    k->sim->moments = grow(k->sim->moments, &k->cap_moments, nodes, sizeof *k->sim->moments);
    k->unmet = grow(k->unmet, &k->cap_unmet, nodes, sizeof *k->unmet);
    memset(k->uses + (size_t)(iteration % k->ring) * n, 0, n * sizeof *k->uses);
    if (iteration > 0)
        k->issue_begin[iteration] = fmax(k->now, k->issue_begin[iteration - 1] + k->n * k->issue);
    for (int i = 0; i < k->n; i++)
        open_task(k, iteration * k->n + i);
}

static bool may_open(const struct simulator *k)
{
    return k->opened < k->limit && k->full == 0 && (k->opened < 2 || k->computing[k->opened - 2] == 0);
}

/* ---- until the times repeat ------------------------------------------------------------------------------------ */

/* Has iteration b the times of iteration a, moved by `shift`? */
static bool repeats(const struct simulator *k, int a, int b, double shift, double tolerance)
{
    const struct moment *x = &k->sim->moments[(size_t)a * (size_t)k->n],
                        *y = &k->sim->moments[(size_t)b * (size_t)k->n];
    for (int i = 0; i < k->n; i++) {
        bool skips = x[i].blocker == SKIPPED;
        if (skips != (y[i].blocker == SKIPPED))
            return false;
        if (!skips &&
            (fabs(y[i].start - x[i].start - shift) > tolerance || fabs(y[i].end - x[i].end - shift) > tolerance))
            return false;
    }
    return fabs(k->issue_begin[b] - k->issue_begin[a] - shift) <= tolerance || k->issue == 0;
}

/* With snapshots, which may be in flight for long, all of the pattern and one that got a slot. */
static bool repeats_for(const struct simulator *k, int iteration, int p, double shift, double tolerance)
{
    bool stored = !k->slots.n;
    for (int i = 0; i < p && !stored; i++)
        for (int c = 0; c < k->n_commits && !stored; c++)
            stored = !skipped(k, (iteration - i) * k->n + k->commit[c]);
    if (!stored)
        return false;
    for (int i = 0; i < MAX(k->slots.n ? p : k->repeat, MOST_RUNS); i++)
        if (iteration - p - i < 0 || !repeats(k, iteration - p - i, iteration - i, shift, tolerance))
            return false;
    return true;
}

/* Without a pattern ends tell little: an iteration that is stored ends long after its neighbours.  Its tasks that run
 * in every iteration do so at an even pace. */
static double mean_seconds(const struct simulator *k, int from, int to)
{
    const struct moment *m = k->sim->moments;
    for (int a = from * k->n, b = to * k->n; a < (from + 1) * k->n; a++, b++)
        if (m[a].blocker != SKIPPED && m[b].blocker != SKIPPED && !task_of(k, a)->slot)
            return (m[b].end - m[a].end) / (to - from);
    return (k->end[to] - k->end[from]) / (to - from);
}

static void look_for_pattern(struct simulator *k, int iteration)
{
    struct simulation *sim = k->sim;
    for (int p = k->repeat; p < iteration && !sim->settled; p += k->repeat) {
        double shift = k->end[iteration] - k->end[iteration - p], tolerance = 1e-9 * shift / p;
        tolerance += 1e-14 * k->end[iteration]; /* what adding up has rounded */
        sim->pattern = p;
        sim->settled = repeats_for(k, iteration, p, shift, tolerance);
    }
    k->stop = sim->settled || iteration == k->limit - 1;
    if (!sim->settled)
        sim->pattern = MAX(k->limit / 2 / k->repeat, 1) * k->repeat;
    sim->steps = iteration + 1;
    sim->pattern = MIN(sim->pattern, iteration);
    sim->first = sim->steps - sim->pattern;
    sim->period = sim->settled ? (k->end[iteration] - k->end[iteration - sim->pattern]) / sim->pattern
                               : mean_seconds(k, iteration - sim->pattern, iteration);
}

/* What the last end, that of `node`, brings about: iterations are over, others are opened, and lanes go on. */
static void move_on(struct simulator *k, int node)
{
    int before = k->opened;
    while (!k->stop) {
        if (k->done < k->opened && k->left[k->done] == 0) {
            k->end[k->done] = k->now;
            if (k->done > 0)
                look_for_pattern(k, k->done);
            k->done++;
        } else if (may_open(k))
            open_iteration(k);
        else
            break;
    }
    for (int lane = 0; k->opened > before && lane < k->n_lanes; lane++)
        try_start(k, lane, node);
}

/* ---- snapshots ----------------------------------------------------------------------------------------------------
 */

/* The tasks of a snapshot are in the list once for every slot, and open with their iteration.  When its first unit has
 * been updated, those of all slots but the one that it gets leave it; without a free one all of them do. */
static void find_slots(struct simulator *k)
{
    const struct step *s = k->sim->step;
    k->first = allocate(s->n, sizeof *k->first);
    k->commit = allocate(s->n, sizeof *k->commit);
    k->leaving = allocate(s->n, sizeof *k->leaving);
    for (size_t i = 0; i < s->n; i++) {
        k->slots.n = MAX(k->slots.n, s->task[i]->slot);
        if (s->task[i]->commits)
            k->commit[k->n_commits++] = (int)i;
        for (size_t e = 0; e < s->task[i]->n_edges && s->task[i]->slot; e++)
            k->first[s->task[i]->edges[e].from] |= !s->task[i]->edges[e].previous;
    }
    if (k->slots.n)
        k->limit = MAX(k->limit, MIN(STORED_STEPS, STORED_NODES / k->n));
    k->decided = allocate((size_t)k->limit, sizeof *k->decided);
}

static void release(struct simulator *k, int i, int iteration, int blocker);

static void leave(struct simulator *k, int node)
{
    int i = node % k->n, iteration = node / k->n;
    k->sim->moments[node].blocker = SKIPPED;
    k->full -= k->in_flight[i]-- == MOST_RUNS;
    k->left[iteration]--;
}

/* node: the update that was the first. */
static void choose_slot(struct simulator *k, int iteration, int node)
{
    const struct task *commit = k->sim->step->task[k->commit[0]];
    size_t n = 0;
    k->decided[iteration] = true;
    if (!runs(commit, (uint32_t)iteration + 1))
        return;
    int slot = take_slot(&k->slots);
    for (int i = 0; i < k->n; i++) {
        int copy = iteration * k->n + i, of = task_of(k, copy)->slot;
        if (of && of != slot) {
            leave(k, copy);
            k->leaving[n++] = i;
        }
    }
    for (size_t i = 0; i < n; i++) { /* (all have left before one that waits for them can start) */
        int task = k->leaving[i], before = latest_run(k, task, iteration - 1);
        if (before == NONE || before <= k->ended[task]) /* else its end releases them */
            release(k, task, iteration, node);
        try_start(k, task_of(k, task)->lane->index, node);
    }
    for (int i = 0; i < k->n && slot; i++)
        if (k->sim->step->task[i]->slot == slot && --k->unmet[iteration * k->n + i] == 0)
            try_start(k, task_of(k, i)->lane->index, node);
}

static void note_snapshot(struct simulator *k, int node)
{
    if (k->first[node % k->n] && !k->decided[node / k->n] && !task_of(k, node)->slot)
        choose_slot(k, node / k->n, node);
    if (task_of(k, node)->commits) {
        slot_written(&k->slots, task_of(k, node)->slot);
        k->slots.durable = k->slots.written;
    }
}

/* ---- the clock --------------------------------------------------------------------------------------------------- */

/* Task i of that iteration has ended, or left with the end of `blocker`, for all that wait for this run of it. */
static void release_one(struct simulator *k, int i, int iteration, int consumer, int step, int blocker)
{
    for (int c = iteration; c + step < k->opened && (c == iteration || skipped(k, c * k->n + i)); c++) {
        int node = (c + step) * k->n + consumer;
        if (!skipped(k, node) && --k->unmet[node] == 0)
            try_start(k, task_of(k, node)->lane->index, blocker);
    }
}

static void release(struct simulator *k, int i, int iteration, int blocker)
{
    for (int e = k->first_out[i]; e < k->first_out[i + 1]; e++)
        release_one(k, i, iteration, k->out[e] & ~NEXT_STEP, k->out[e] & NEXT_STEP ? 1 : 0, blocker);
}

static void finish(struct simulator *k, int lane)
{
    struct turn *l = &k->turn[lane];
    int node = l->node, i = node % k->n, iteration = node / k->n;
    give_bytes(k, node);
    k->sim->moments[node].end = k->now;
    if (l->on_links)
        change_load(k, l, false);
    l->node = NONE;
    set_next(k, l, INFINITY);
    k->ended[i] = iteration;
    if (k->slots.n)
        note_snapshot(k, node);
    release(k, i, iteration, node);
    k->full -= k->in_flight[i]-- == MOST_RUNS;
    k->left[iteration]--;
    k->computing[iteration] -= task_of(k, node)->lane->kind == LANE_COMPUTE;
    move_on(k, node);
    try_start(k, lane, node);
}

/* Of those at the same time the disk's, which may set a slot free. */
static int earliest(const struct simulator *k)
{
    int best = k->winner[1];
    const struct lane *disk = k->sim->step->pool->machine->host->lane[LANE_DISK];
    if (k->slots.n && k->turn[disk->index].next <= k->turn[best].next * (1 + 1e-12))
        best = disk->index;
    return k->turn[best].node == NONE ? NONE : best;
}

static void run_clock(struct simulator *k)
{
    move_on(k, NONE);
    for (int lane = earliest(k); lane != NONE && !k->stop; lane = earliest(k)) {
        struct turn *l = &k->turn[lane];
        k->now = fmax(k->now, l->next); /* (a disk that is a rounding late comes first) */
        if (!l->begun)
            begin(k, l);
        else if (isfinite(l->full) && !l->on_links)
            join_links(k, l);
        else
            finish(k, lane);
    }
    CHECK(k->stop, "%d iterations ended: the list deadlocks", k->sim->steps);
}

/* ---- what came out --------------------------------------------------------------------------------------------- */

/* Within the last `pattern` periods, whichever iteration it is for; what is in flight counts up to now. */
static void sum_busy(const struct simulator *k)
{
    struct simulation *sim = k->sim;
    double from = k->now - sim->pattern * sim->period;
    for (int lane = 0; lane < k->n_lanes; lane++)
        if (k->turn[lane].node != NONE)
            sim->moments[k->turn[lane].node].end = k->now;
    for (int node = 0; node < k->opened * k->n; node++) {
        const struct moment *m = &sim->moments[node]; /* (none: 0 to 0) */
        sim->busy[task_of(k, node)->lane->index] += fmax(m->end - fmax(m->start, from), 0) / sim->pattern;
    }
}

static void sum_up(struct simulation *sim)
{
    const struct step *s = sim->step;
    sim->steady = allocate(s->n, sizeof *sim->steady);
    for (size_t i = 0; i < s->n; i++) {
        int n = 0;
        for (int iteration = sim->first; iteration < sim->steps; iteration++) {
            const struct moment *m = &sim->moments[(size_t)iteration * s->n + i];
            sim->steady[i] += m->end - m->start;
            n += m->blocker != SKIPPED;
        }
        sim->steady[i] = n ? sim->steady[i] / n : sim->seconds[i];
    }
}

static void hold_persistent(struct simulator *k)
{
    const struct pool *p = k->sim->step->pool;
    for (size_t i = 0; i < p->n; i++)
        if (p->tensors[i]->storage == p->tensors[i] && p->tensors[i]->persistent)
            k->live[p->tensors[i]->device->index] += (int64_t)p->tensors[i]->bytes;
    for (int d = 0; d <= p->machine->n_devices; d++)
        k->sim->peak[d] = (size_t)k->live[d];
}

static int most_seldom(const struct step *s)
{
    uint32_t every = 1;
    for (size_t i = 0; i < s->n; i++)
        every = MAX(every, s->task[i]->when.every);
    return (int)every;
}

static void free_simulator(struct simulator *k)
{
    free(k->first_out), free(k->out), free(k->unmet), free(k->lane_list), free(k->lane_first);
    for (size_t i = 0; i < k->sim->step->pool->machine->n_links && k->users; i++)
        free(k->users[i].lane);
    free(k->users), free(k->winner);
    free(k->turn), free(k->load), free(k->left), free(k->computing), free(k->ended), free(k->in_flight);
    free(k->end), free(k->issue_begin), free(k->uses), free(k->holders), free(k->live);
    free(k->first), free(k->commit), free(k->leaving), free(k->decided);
}

/* by_links: copies take their turns on the machine's links. */
static struct simulation *run_simulation(struct simulation *sim, double issue, bool by_links)
{
    const struct step *s = sim->step;
    const struct machine *m = s->pool->machine;
    CHECK(s->n > 0, "list %s has no tasks", s->name);
    struct simulator k = {
        .sim = sim, .n = (int)s->n, .n_lanes = m->n_lanes, .issue = issue, .repeat = (int)repeat_of(s, 2 * MOST_STEPS)};
    k.limit = MIN(MIN(MAX(LEAST_STEPS, 4 * k.repeat), MOST_STEPS), MAX(8, MOST_NODES / k.n));
    find_slots(&k);
    k.turn = allocate((size_t)k.n_lanes, sizeof *k.turn);
    k.winner = allocate(2 * (size_t)k.n_lanes, sizeof *k.winner);
    k.load = by_links ? allocate(m->n_links + 1, sizeof *k.load) : NULL;
    k.users = by_links ? allocate(m->n_links + 1, sizeof *k.users) : NULL;
    k.left = allocate((size_t)k.limit, sizeof *k.left);
    k.computing = allocate((size_t)k.limit, sizeof *k.computing);
    k.ended = allocate(s->n, sizeof *k.ended);
    memset(k.ended, NONE, s->n * sizeof *k.ended);
    k.in_flight = allocate(s->n, sizeof *k.in_flight);
    k.ring = MIN(MOST_RUNS * most_seldom(s) + 1, k.limit);
    k.uses = allocate((size_t)k.ring * s->pool->n, sizeof *k.uses);
    k.end = allocate((size_t)k.limit + 1, sizeof *k.end);
    k.issue_begin = allocate((size_t)k.limit + 1, sizeof *k.issue_begin);
    k.holders = allocate(s->pool->n, sizeof *k.holders);
    k.live = allocate((size_t)m->n_devices + 1, sizeof *k.live);
    sim->busy = allocate((size_t)m->n_lanes, sizeof *sim->busy);
    sim->peak = allocate((size_t)m->n_devices + 1, sizeof *sim->peak);
    index_consumers(&k);
    list_lanes(&k);
    hold_persistent(&k);
    run_clock(&k);
    sum_busy(&k);
    free_simulator(&k);
    sum_up(sim);
    return sim;
}

/* Eleven days.  Beyond, and below a nanosecond, some number of the file is wrong, and times would not fit their clocks.
 */
static struct problem *check_total(const struct simulation *sim, const struct costs *c)
{
    double total = (double)sim->step->n * sim->step->pool->machine->issue;
    for (size_t i = 0; i < sim->step->n; i++)
        total += sim->gaps[i] + sim->seconds[i];
    if (total >= 1e-9 && total <= 1e6)
        return NULL;
    return new_problem(EXIT_USAGE,
                       "%s%s the tasks of a step take %.3g s together, expected 1e-9 to 1e6: is a number in it wrong?",
                       c ? c->path : "in the step file", c ? ", with --what-if, makes" : "", total);
}

static struct simulation *new_simulation(const struct step *s)
{
    struct simulation *sim = allocate(1, sizeof *sim);
    sim->step = s;
    sim->seconds = allocate(s->n, sizeof *sim->seconds);
    sim->gaps = allocate(s->n, sizeof *sim->gaps);
    return sim;
}

struct problem *simulate(const struct step *s, const struct costs *c, struct simulation **out)
{
    struct simulation *sim = new_simulation(s);
    if (c)
        describe_speeds(s->pool->machine, c);
    for (size_t i = 0; i < s->n; i++) {
        enum cost_source source = COST_GIVEN;
        sim->gaps[i] = s->task[i]->lane->gap;
        sim->seconds[i] = c ? task_seconds(c, s->task[i], &source) : given_seconds(s->task[i]);
        sim->by_source[source]++;
    }
    struct problem *wrong = check_total(sim, c);
    if (wrong)
        free_simulation(sim);
    else
        *out = run_simulation(sim, s->pool->machine->issue, true);
    return wrong;
}

struct simulation *must_simulate(const struct step *s, const struct costs *c)
{
    struct simulation *sim;
    must(simulate(s, c, &sim));
    return sim;
}

struct simulation *simulate_durations(const struct step *s, const double *seconds)
{
    struct simulation *sim = new_simulation(s);
    memcpy(sim->seconds, seconds, s->n * sizeof *seconds);
    return run_simulation(sim, 0, false);
}

void free_simulation(struct simulation *sim)
{
    free(sim->moments);
    free(sim->seconds);
    free(sim->steady);
    free(sim->gaps);
    free(sim->busy), free(sim->peak);
    free(sim);
}

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

/* false: one that needs a choice which is not to be expected. */
static bool is_expected(const struct task *t) { return !t->condition.needs || t->seconds != 0; }

enum { NONE = -1 };
enum { LEAST_STEPS = 64, MOST_STEPS = 20000, MOST_NODES = 1 << 25 };
enum { STORED_STEPS = 1024, STORED_NODES = 1 << 21 }; /* with snapshots, whose pattern may be long, or there is none */

struct turn {            /* what a lane does */
    int first;           /* of its tasks; NONE: it has none */
    int task, iteration; /* that comes next */
    int node;            /* that runs, or NONE */
    bool begun;          /* else it waits for the host, or the lane's gap */
    bool on_links;       /* else it computes, or waits for the latency */
    double latency;
    double left; /* seconds of work left at `now`, at full speed */
    double next; /* when it ends at the present speed, or its latency or its wait does */
    double full; /* bytes per second alone */
    const struct link *link[2];
};
struct wait { /* for a task */
    int consumer;
    bool next_step; /* it is the consumer of the next iteration that waits */
    int more;       /* the next wait for the same task, or NONE */
};
struct state { /* of a task */
    int next_on_lane, waits;
    int ended;          /* its last run that has ended, or NONE */
    int in_flight;      /* runs that have been opened and have not ended */
    bool before_member; /* a task that needs a member of the rings follows from it within the iteration */
};
struct iteration {
    int left, computing; /* tasks that have not ended; of them on compute lanes */
    double end, issue_begin;
    bool asked, stored; /* has it asked for a member of the rings; and has it got one? */
};
struct simulator {
    struct simulation *sim;
    int n, n_lanes, limit, repeat; /* iterations at most; so many until conditional tasks come round */
    struct state *state;           /* by task */
    struct wait *wait;
    struct turn *turn;     /* by lane */
    int *winner;           /* [2 n_lanes]: of 2 i and 2 i + 1 the lane with the earlier event; behind: the lanes */
    struct turn **copying; /* lanes whose copies are on links */
    int n_copying, *load;  /* by link: copies on it */
    struct iteration *iteration;
    int opened, done;  /* iterations that the host has opened; of which all up to there have ended */
    int full;          /* tasks with MOST_RUNS in flight */
    double issue, now; /* issue: host seconds per task */
    bool stop;
    size_t cap_moments;
    struct ring ring;
    const struct task *ends; /* the task that returns a member; NULL: none needs one */
};

static const struct task *task_of(const struct simulator *k, int node) { return k->sim->step->task[node % k->n]; }

static bool skipped(const struct simulator *k, int node) { return k->sim->moments[node].skipped; }

/* ---- the lanes' events ----------------------------------------------------------------------------------------- */

static void set_next(struct simulator *k, struct turn *l, double next)
{
    l->next = next;
    for (int i = (k->n_lanes + (int)(l - k->turn)) / 2; i > 0; i /= 2) {
        int a = k->winner[2 * i], b = k->winner[2 * i + 1];
        double x = k->turn[a].next, y = k->turn[b].next;
        k->winner[i] = y < x || (y == x && b < a) ? b : a;
    }
}

/* The share of its full speed at which the lane's copy goes. */
static double speed(const struct simulator *k, const struct turn *l) { return link_rate(l->link, k->load) / l->full; }

static bool share_link(const struct turn *a, const struct turn *b)
{
    return (a->link[0] && (a->link[0] == b->link[0] || a->link[0] == b->link[1])) ||
           (a->link[1] && (a->link[1] == b->link[0] || a->link[1] == b->link[1]));
}

/* The lane's copy joins or leaves its links, and what the others there have left takes another time. */
static void change_load(struct simulator *k, struct turn *copy, bool joins)
{
    if (!joins) {
        int at = 0;
        while (k->copying[at] != copy)
            at++;
        k->copying[at] = k->copying[--k->n_copying];
    }
    for (int i = 0; i < k->n_copying; i++)
        if (share_link(k->copying[i], copy))
            k->copying[i]->left = (k->copying[i]->next - k->now) * speed(k, k->copying[i]);
    for (int i = 0; i < 2; i++)
        if (copy->link[i])
            k->load[copy->link[i]->index] += joins ? 1 : -1;
    for (int i = 0; i < k->n_copying; i++)
        if (share_link(k->copying[i], copy))
            set_next(k, k->copying[i], k->now + k->copying[i]->left / speed(k, k->copying[i]));
    if (joins)
        k->copying[k->n_copying++] = copy;
}

/* ---- running --------------------------------------------------------------------------------------------------- */

static void pass_turn(const struct simulator *k, struct turn *l)
{
    l->task = k->state[l->task].next_on_lane;
    if (l->task == NONE) {
        l->task = l->first;
        l->iteration++;
    }
}

static void join_links(struct simulator *k, struct turn *l)
{
    l->on_links = true;
    change_load(k, l, true);
    set_next(k, l, k->now + l->left / speed(k, l));
}

/* Its first moment. */
static void begin(struct simulator *k, struct turn *l)
{
    bool copies = isfinite(l->full);
    l->begun = true;
    set_next(k, l, k->now + (copies ? l->latency : l->left));
    if (copies && l->next <= k->now)
        join_links(k, l);
}

static void ask_for_member(struct simulator *k, struct iteration *iteration);

/* A copy of a snapshot has its turn, and its iteration has only to ask for a member.  The update before it has asked,
 * unless it skips this iteration: then the copy does, as in a run (run/late.c).  Else an update that comes after it on
 * its lane would wait for an answer that waits for this update. */
static bool must_ask(const struct simulator *k, const struct task *t, int node)
{
    return t->condition.member && !t->condition.aside && is_expected(t) && !k->iteration[node / k->n].asked &&
           k->sim->moments[node].unmet == 1;
}

/* Start the lane's next task that is not skipped, of the iterations that are open, if all that it waits for has
 * ended. */
static void try_start(struct simulator *k, int lane)
{
    struct turn *l = &k->turn[lane];
    if (l->node != NONE || l->first == NONE)
        return;
    while (l->iteration < k->opened && skipped(k, l->iteration * k->n + l->task))
        pass_turn(k, l);
    int i = l->task, node = l->iteration * k->n + i;
    if (l->iteration == k->opened)
        return;
    if (must_ask(k, task_of(k, node), node)) {
        ask_for_member(k, &k->iteration[l->iteration]);
        try_start(k, lane); /* perhaps another one has the turn now */
        return;
    }
    if (k->sim->moments[node].unmet)
        return;
    double seconds = k->sim->seconds[i], from = k->now + task_of(k, node)->lane->gap;
    if (k->issue > 0) /* the host issues in list order */
        from = fmax(from, k->iteration[l->iteration].issue_begin + (i + 1) * k->issue);
    pass_turn(k, l);
    l->node = node;
    l->on_links = l->begun = false;
    l->link[0] = l->link[1] = NULL;
    if (seconds > 0)
        links_of(task_of(k, node), l->link);
    l->full = link_rate(l->link, NULL);
    l->latency = isfinite(l->full) ? fmin(link_latency(l->link), seconds) : 0;
    l->left = seconds - l->latency;
    k->sim->moments[node] = (struct moment){.start = from};
    if (from > k->now)
        set_next(k, l, from);
    else
        begin(k, l);
}

/* ---- opening an iteration ---------------------------------------------------------------------------------------- */

/* The last iteration up to this one in which task i runs, or NONE. */
static int latest_run(const struct simulator *k, int i, int iteration)
{
    while (iteration >= 0 && skipped(k, iteration * k->n + i))
        iteration--;
    return iteration;
}

/* What stands aside is outside of its lane until its iteration has asked, and no count of runs in flight knows of it.
 */
static void count_run(struct simulator *k, int i, int change)
{
    struct state *state = &k->state[i];
    bool was_full = state->in_flight == MOST_RUNS;
    if (task_of(k, i)->condition.aside)
        return;
    state->in_flight += change;
    k->full += (state->in_flight == MOST_RUNS) - was_full;
}

/* Does a task run in it after which it asks for a member?  Else it asks at once. */
static bool open_iteration(struct simulator *k)
{
    int number = k->opened++;
    bool updates = false;
    struct iteration *iteration = &k->iteration[number];
    k->sim->moments = grow(k->sim->moments, &k->cap_moments, (size_t)k->opened * (size_t)k->n, sizeof *k->sim->moments);
    if (number > 0)
        iteration->issue_begin = fmax(k->now, k->iteration[number - 1].issue_begin + k->n * k->issue);
    for (int i = 0; i < k->n; i++) {
        const struct task *t = k->sim->step->task[i];
        struct moment *m = &k->sim->moments[number * k->n + i];
        *m = (struct moment){.skipped = !runs(t, (uint32_t)number + 1),
                             .unmet = t->condition.member}; /* (until the iteration has asked) */
        if (m->skipped)
            continue;
        updates |= k->state[i].before_member && !t->condition.member;
        for (size_t e = 0; e < t->n_edges; e++) {
            int from = (int)t->edges[e].from, run = NONE;
            if (t->edges[e].wait)
                run = latest_run(k, from, number - t->edges[e].previous);
            m->unmet += run > k->state[from].ended;
        }
        iteration->left++;
        iteration->computing += t->lane->kind == LANE_COMPUTE;
        count_run(k, i, 1);
    }
    return updates;
}

/* ---- until the times repeat ------------------------------------------------------------------------------------ */

/* Has iteration b the times of iteration a, moved by `shift`? */
static bool repeats(const struct simulator *k, int a, int b, double shift, double tolerance)
{
    const struct moment *x = &k->sim->moments[(size_t)a * (size_t)k->n],
                        *y = &k->sim->moments[(size_t)b * (size_t)k->n];
    for (int i = 0; i < k->n; i++) {
        if (x[i].skipped != y[i].skipped)
            return false;
        if (!x[i].skipped &&
            (fabs(y[i].start - x[i].start - shift) > tolerance || fabs(y[i].end - x[i].end - shift) > tolerance))
            return false;
    }
    return k->issue == 0 || fabs(k->iteration[b].issue_begin - k->iteration[a].issue_begin - shift) <= tolerance;
}

/* With snapshots, which may be in flight for long, all of the pattern and one that got a member. */
static bool repeats_for(const struct simulator *k, int last, int pattern, double shift, double tolerance)
{
    bool stored = !k->ends;
    for (int i = 0; i < pattern && !stored; i++)
        stored = k->iteration[last - i].stored;
    for (int i = 0; stored && i < MAX(k->ends ? pattern : k->repeat, MOST_RUNS); i++)
        if (last - pattern - i < 0 || !repeats(k, last - pattern - i, last - i, shift, tolerance))
            return false;
    return stored;
}

/* Without a pattern ends tell little: an iteration that is stored ends long after its neighbours.  Its tasks that run
 * in every iteration do so at an even pace. */
static double mean_seconds(const struct simulator *k, int from, int to)
{
    const struct moment *m = k->sim->moments;
    for (int a = from * k->n, b = to * k->n; a < (from + 1) * k->n; a++, b++)
        if (!m[a].skipped && !m[b].skipped && !task_of(k, a)->condition.member)
            return (m[b].end - m[a].end) / (to - from);
    return (k->iteration[to].end - k->iteration[from].end) / (to - from);
}

static void look_for_pattern(struct simulator *k, int last)
{
    struct simulation *sim = k->sim;
    double end = k->iteration[last].end;
    for (int p = k->repeat; p < last && !sim->settled; p += k->repeat) {
        double shift = end - k->iteration[last - p].end, rounded = 1e-14 * end; /* by adding up */
        sim->pattern = p;
        sim->settled = repeats_for(k, last, p, shift, 1e-9 * shift / p + rounded);
    }
    k->stop = sim->settled || last == k->limit - 1;
    if (!sim->settled)
        sim->pattern = MIN(MAX(k->limit / 2 / k->repeat, 1) * k->repeat, last);
    sim->steps = last + 1;
    sim->first = sim->steps - sim->pattern;
    sim->period = sim->settled ? (end - k->iteration[last - sim->pattern].end) / sim->pattern
                               : mean_seconds(k, last - sim->pattern, last);
}

/* ---- the clock --------------------------------------------------------------------------------------------------- */

/* Task i of that iteration has ended, or left: so it has for all that wait for this run, in later iterations too as far
 * as it is skipped there. */
static void release(struct simulator *k, int i, int iteration)
{
    for (int w = k->state[i].waits; w != NONE; w = k->wait[w].more) {
        int step = k->wait[w].next_step;
        for (int c = iteration; c + step < k->opened && (c == iteration || skipped(k, c * k->n + i)); c++) {
            int node = (c + step) * k->n + k->wait[w].consumer;
            if (skipped(k, node))
                continue;
            int unmet = --k->sim->moments[node].unmet;
            if (unmet == 0 || must_ask(k, task_of(k, node), node))
                try_start(k, task_of(k, node)->lane->index);
        }
    }
}

/* Task i needs a member, and its iteration has none: it leaves the iteration. */
static void leave(struct simulator *k, struct iteration *iteration, int i)
{
    int number = (int)(iteration - k->iteration);
    k->sim->moments[number * k->n + i].skipped = true;
    count_run(k, i, -1);
    iteration->left--;
    iteration->computing -= task_of(k, i)->lane->kind == LANE_COMPUTE;
}

/* When its first unit has been updated, an iteration asks for a member of the rings.  Without one all tasks that need
 * one leave it. */
static void ask_for_member(struct simulator *k, struct iteration *iteration)
{
    int number = (int)(iteration - k->iteration);
    struct task *const *task = k->sim->step->task;
    iteration->asked = true;
    if (!runs(k->ends, (uint32_t)number + 1))
        return;
    iteration->stored = take_member(&k->ring, (uint32_t)number + 1) > 0;
    for (int i = 0; i < k->n && !iteration->stored; i++)
        if (task[i]->condition.member)
            leave(k, iteration, i);
    for (int i = 0; i < k->n; i++) { /* (all have left before one that waits for them can start) */
        if (!task[i]->condition.member)
            continue;
        if (iteration->stored)
            k->sim->moments[number * k->n + i].unmet--;
        else if (latest_run(k, i, number - 1) <= k->state[i].ended) /* else its end releases them */
            release(k, i, number);
        try_start(k, task[i]->lane->index);
    }
}

/* What the last end brings about: iterations are over, others are opened, and lanes go on. */
static void move_on(struct simulator *k)
{
    int before = k->opened;
    while (!k->stop) {
        if (k->done < k->opened && k->iteration[k->done].left == 0) {
            k->iteration[k->done].end = k->now;
            if (k->done > 0)
                look_for_pattern(k, k->done);
            k->done++;
        } else if (k->opened < k->limit && k->full == 0 &&
                   (k->opened < 2 || k->iteration[k->opened - 2].computing == 0)) {
            if (!open_iteration(k) && k->ends)
                ask_for_member(k, &k->iteration[k->opened - 1]);
        } else
            break;
    }
    for (int lane = 0; k->opened > before && lane < k->n_lanes; lane++)
        try_start(k, lane);
}

static void finish(struct simulator *k, struct turn *l)
{
    int node = l->node, i = node % k->n;
    struct iteration *iteration = &k->iteration[node / k->n];
    const struct task *t = task_of(k, node);
    k->sim->moments[node].end = k->now;
    if (l->on_links)
        change_load(k, l, false);
    l->node = NONE;
    set_next(k, l, INFINITY);
    k->state[i].ended = node / k->n;
    if (k->state[i].before_member && !iteration->asked && !t->condition.member)
        ask_for_member(k, iteration);
    if (t->condition.ends)
        return_member(&k->ring, (uint32_t)(node / k->n) + 1, true);
    release(k, i, node / k->n);
    count_run(k, i, -1);
    iteration->left--;
    iteration->computing -= t->lane->kind == LANE_COMPUTE;
    move_on(k);
    try_start(k, (int)(l - k->turn));
}

/* Of those at the same time the disk's, which may return a member. */
static struct turn *earliest(const struct simulator *k)
{
    struct turn *best = &k->turn[k->winner[1]];
    struct turn *disk = &k->turn[k->sim->step->pool->machine->host->lane[LANE_DISK]->index];
    return k->ends && disk->next <= best->next * (1 + 1e-12) ? disk : best;
}

static void run_clock(struct simulator *k)
{
    move_on(k);
    for (struct turn *l = earliest(k); l->node != NONE && !k->stop; l = earliest(k)) {
        k->now = fmax(k->now, l->next); /* (a disk that is a rounding late comes first) */
        if (!l->begun)
            begin(k, l);
        else if (isfinite(l->full) && !l->on_links)
            join_links(k, l);
        else
            finish(k, l);
    }
    CHECK(k->stop, "%d iterations ended: the list deadlocks", k->sim->steps);
}

/* ---- before and behind ------------------------------------------------------------------------------------------- */

/* Lists of the tasks of each lane and of the waits for each task, both in list order. */
static void index_list(struct simulator *k)
{
    const struct step *s = k->sim->step;
    int n_waits = 0;
    for (int lane = 0; lane < k->n_lanes; lane++) {
        k->turn[lane] = (struct turn){.first = NONE, .node = NONE, .next = INFINITY};
        k->winner[k->n_lanes + lane] = lane;
    }
    for (int i = k->n_lanes - 1; i > 0; i--)
        k->winner[i] = k->winner[2 * i];
    for (int i = 0; i < k->n; i++)
        k->state[i].waits = k->state[i].ended = NONE;
    for (int i = k->n - 1; i >= 0; i--) {
        const struct task *t = s->task[i];
        struct turn *l = &k->turn[t->lane->index];
        k->state[i].next_on_lane = l->first;
        l->first = l->task = i;
        k->ends = t->condition.ends ? t : k->ends;
        for (size_t e = t->n_edges; e-- > 0;) {
            const struct edge *edge = &t->edges[e];
            struct state *from = &k->state[edge->from];
            from->before_member |=
                t->condition.member && is_expected(t) && !edge->previous && !chooses(s->task[edge->from]);
            if (!edge->wait)
                continue;
            k->wait[n_waits] = (struct wait){i, edge->previous, from->waits};
            from->waits = n_waits++;
        }
    }
}

/* Of the pattern: how long each task takes; and what lanes do within its periods, whichever iteration it is for. */
static void sum_up(const struct simulator *k)
{
    struct simulation *sim = k->sim;
    double from = k->now - sim->pattern * sim->period;
    sim->end = k->now;
    sim->begun = k->opened;
    for (int i = 0; i < k->n; i++) {
        int n = 0;
        for (int iteration = sim->first; iteration < sim->steps; iteration++) {
            const struct moment *m = &sim->moments[iteration * k->n + i];
            sim->steady[i] += m->end - m->start;
            n += !m->skipped;
        }
        sim->steady[i] = n ? sim->steady[i] / n : sim->seconds[i];
    }
    for (int lane = 0; lane < k->n_lanes; lane++)
        if (k->turn[lane].node != NONE) /* what is in flight counts up to now */
            sim->moments[k->turn[lane].node].end = k->now;
    for (int node = 0; node < k->opened * k->n; node++) {
        const struct moment *m = &sim->moments[node]; /* (none: 0 to 0) */
        sim->busy[task_of(k, node)->lane->index] += fmax(m->end - fmax(m->start, from), 0) / sim->pattern;
    }
}

struct problem *simulate(const struct step *s, const struct costs *c, struct simulation **out)
{
    struct simulation *sim = allocate(1, sizeof *sim);
    struct machine *m = s->pool->machine;
    sim->step = s;
    sim->seconds = allocate(s->n, sizeof *sim->seconds);
    sim->steady = allocate(s->n, sizeof *sim->steady);
    sim->busy = allocate((size_t)m->n_lanes, sizeof *sim->busy);
    if (c)
        describe_speeds(m, c);
    double total = (double)s->n * m->issue;
    for (size_t i = 0; i < s->n; i++) {
        enum cost_source source;
        sim->seconds[i] = task_seconds(c, s->task[i], &source);
        sim->by_source[source]++;
        total += s->task[i]->lane->gap + sim->seconds[i];
    }
    if (!(total >= 1e-9 && total <= 1e6)) { /* from a nanosecond to eleven days: times fit their clocks */
        free_simulation(sim);
        return new_problem(
            EXIT_USAGE, "%s%s the tasks of a step take %.3g s together, expected 1e-9 to 1e6: is a number in it wrong?",
            c ? c->path : "in the step file", c ? ", with --what-if, makes" : "", total);
    }
    struct simulator k = {.sim = sim,
                          .n = (int)s->n,
                          .n_lanes = m->n_lanes,
                          .issue = m->issue,
                          .ring.n = s->pool->ring.n,
                          .repeat = (int)repeat_of(s, 2 * MOST_STEPS),
                          .state = allocate(s->n, sizeof *k.state),
                          .wait = allocate(s->n_edges, sizeof *k.wait),
                          .turn = allocate((size_t)m->n_lanes, sizeof *k.turn),
                          .winner = allocate(2 * (size_t)m->n_lanes, sizeof *k.winner),
                          .copying = allocate((size_t)m->n_lanes, sizeof *k.copying),
                          .load = allocate(m->n_links, sizeof *k.load)};
    index_list(&k);
    k.limit = MIN(MIN(MAX(LEAST_STEPS, 4 * k.repeat), MOST_STEPS), MAX(8, MOST_NODES / k.n));
    if (k.ends)
        k.limit = MAX(k.limit, MIN(STORED_STEPS, STORED_NODES / k.n));
    k.iteration = allocate((size_t)k.limit, sizeof *k.iteration);
    run_clock(&k);
    sum_up(&k);
    free(k.state), free(k.wait), free(k.turn), free(k.winner), free(k.copying), free(k.load), free(k.iteration);
    *out = sim;
    return NULL;
}

struct simulation *must_simulate(const struct step *s, const struct costs *c)
{
    struct simulation *sim;
    must(simulate(s, c, &sim));
    return sim;
}

void free_simulation(struct simulation *sim)
{
    free(sim->moments), free(sim->seconds), free(sim->steady), free(sim->busy);
    free(sim);
}

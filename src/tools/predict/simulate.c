/* simulate.c - the cyclic list on a virtual clock.
 *
 * The rules are execute()'s own: a lane runs its tasks in list order; a task starts when the one before it on its lane
 * and all that it waits for have ended, and not before the host has issued it.  The host opens an iteration when the
 * compute lanes are done with the one two before it, and no task has MOST_RUNS runs in flight.  A task that skips an
 * iteration is not there: what waits for it waits for the last time that it ran.  A copy waits for the latency of its
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
 *
 * Tasks that store a snapshot need a member of the rings (step/ring.c).  An iteration asks for one when its first
 * update has ended.  If none is free, these tasks leave the iteration: they skip it.
 */
#include "predict.h"

#include <math.h>

enum { LEAST_STEPS = 64, MOST_STEPS = 20000, MOST_NODES = 1 << 25 };
enum { STORED_STEPS = 1024, STORED_NODES = 1 << 21 }; /* with snapshots, whose pattern may be long, or there is none */

struct lane_state {
    int first;           /* the first task of the lane; NONE: it has none */
    int task, iteration; /* the task whose turn is next, and its iteration */
    int node;            /* the node that runs; NONE: the lane is idle */
    bool begun;          /* false: the node still waits for the host, or for the lane's gap */
    bool on_links;       /* false: the node computes, or waits for the latency */
    double latency;      /* seconds that the node's copy waits before it is on its links */
    double left;         /* seconds of work that the node has left at `now`, at full speed */
    double next;         /* when the node, its latency or its wait ends, at the present speed; INFINITY: idle */
    double full;         /* bytes per second that the node's copy reaches alone */
    const struct link *link[2];
};
struct wait {
    int consumer;   /* the task that waits */
    bool next_step; /* true: the consumer of the next iteration waits */
    int more;       /* the next wait for the same task; NONE: this is the last one */
};
struct task_state {
    int next_on_lane;   /* the next task of its lane; NONE: this is the last one */
    int waits;          /* the first wait for it; NONE: nothing waits for it */
    int ended;          /* the last iteration in which it has ended; NONE: it never has */
    int in_flight;      /* runs that have been opened and have not ended */
    bool before_member; /* a task that needs a member of the rings follows from it within the iteration */
};
struct iteration {
    int left;      /* tasks that have not ended */
    int computing; /* how many of these are on compute lanes */
    double end;    /* when it and all iterations before it had ended */
    double issue_begin;
    bool asked;  /* it has asked for a member of the rings */
    bool stored; /* it has got one */
};
struct simulator {
    struct simulation *sim;
    int n, n_lanes;              /* tasks and lanes */
    int limit;                   /* the most iterations that are simulated */
    int repeat;                  /* iterations until conditional tasks come round */
    struct task_state *tasks;    /* by task */
    struct wait *wait;           /* lists, by `waits` and `more` */
    struct lane_state *lanes;    /* by lane */
    int *winner;                 /* [2 n_lanes]: node i is the lane with the earlier event of nodes 2 i and 2 i + 1;
                                   * the last n_lanes nodes are the lanes */
    struct lane_state **copying; /* lanes whose copies are on links */
    int n_copying;
    int *load; /* by link: copies on it */
    struct iteration *iteration;
    int opened;   /* iterations that the host has opened */
    int done;     /* iterations that have ended, and all before them */
    int full;     /* tasks with MOST_RUNS in flight */
    double issue; /* host seconds per task */
    double now;
    bool stop;
    size_t cap_moments;
    struct ring ring;
    const struct task *ends; /* the task that returns a member; NULL: no task needs one */
};

static const struct task *task_of(const struct simulator *clock, int node)
{
    return clock->sim->step->task[node % clock->n];
}

static struct lane_state *lane_of_node(const struct simulator *clock, int node)
{
    return &clock->lanes[task_of(clock, node)->lane->index];
}

static bool skipped(const struct simulator *clock, int node) { return clock->sim->moments[node].skipped; }

/* ---- the lanes' events ----------------------------------------------------------------------------------------- */

/* The lane with the earlier event; at the same time the one with the smaller number. */
static int earlier_lane(const struct simulator *clock, int a, int b)
{
    double next_a = clock->lanes[a].next;
    double next_b = clock->lanes[b].next;
    if (next_a == next_b)
        return MIN(a, b);
    return next_b < next_a ? b : a;
}

static void set_next(struct simulator *clock, struct lane_state *lane, double next)
{
    lane->next = next;
    int leaf = clock->n_lanes + (int)(lane - clock->lanes);
    for (int i = leaf / 2; i > 0; i /= 2)
        clock->winner[i] = earlier_lane(clock, clock->winner[2 * i], clock->winner[2 * i + 1]);
}

/* The share of its full speed at which the lane's copy goes. */
static double speed(const struct simulator *clock, const struct lane_state *lane)
{
    return link_rate(lane->link, clock->load) / lane->full;
}

static bool share_link(const struct lane_state *a, const struct lane_state *b)
{
    for (int i = 0; i < 2; i++)
        if (a->link[i] && (a->link[i] == b->link[0] || a->link[i] == b->link[1]))
            return true;
    return false;
}

static void drop_copy(struct simulator *clock, const struct lane_state *copy)
{
    int at = 0;
    while (clock->copying[at] != copy)
        at++;
    clock->n_copying--;
    clock->copying[at] = clock->copying[clock->n_copying];
}

/* The lane's copy joins or leaves its links, and what the others there have left takes another time. */
static void change_load(struct simulator *clock, struct lane_state *copy, bool joins)
{
    if (!joins)
        drop_copy(clock, copy);
    for (int i = 0; i < clock->n_copying; i++) {
        struct lane_state *other = clock->copying[i];
        if (share_link(other, copy))
            other->left = (other->next - clock->now) * speed(clock, other);
    }
    for (int i = 0; i < 2; i++)
        if (copy->link[i])
            clock->load[copy->link[i]->index] += joins ? 1 : -1;
    for (int i = 0; i < clock->n_copying; i++) {
        struct lane_state *other = clock->copying[i];
        if (share_link(other, copy))
            set_next(clock, other, clock->now + other->left / speed(clock, other));
    }
    if (joins)
        clock->copying[clock->n_copying++] = copy;
}

/* ---- running --------------------------------------------------------------------------------------------------- */

static void pass_turn(const struct simulator *clock, struct lane_state *lane)
{
    lane->task = clock->tasks[lane->task].next_on_lane;
    if (lane->task == NONE) {
        lane->task = lane->first;
        lane->iteration++;
    }
}

static void join_links(struct simulator *clock, struct lane_state *lane)
{
    lane->on_links = true;
    change_load(clock, lane, true);
    set_next(clock, lane, clock->now + lane->left / speed(clock, lane));
}

/* The lane's node begins to compute, or to wait for the latency of its links. */
static void begin(struct simulator *clock, struct lane_state *lane)
{
    bool copies = isfinite(lane->full);
    lane->begun = true;
    set_next(clock, lane, clock->now + (copies ? lane->latency : lane->left));
    if (copies && lane->next <= clock->now)
        join_links(clock, lane);
}

static void ask_for_member(struct simulator *clock, struct iteration *iteration);

/* A copy of a snapshot has its turn, and its iteration has only to ask for a member.  The update before it has asked,
 * unless it skips this iteration: then the copy does, as in a run (run/late.c).  Else an update that comes after it on
 * its lane would wait for an answer that waits for this update. */
static bool must_ask(const struct simulator *clock, const struct task *t, int node)
{
    if (!t->condition.member || t->condition.aside || t->condition.unexpected)
        return false;
    return !clock->iteration[node / clock->n].asked && clock->sim->moments[node].unmet == 1;
}

/* The lane runs the node from `from` on, which is now or later. */
static void start(struct simulator *clock, struct lane_state *lane, int node, double from)
{
    double seconds = clock->sim->seconds[node % clock->n];
    lane->node = node;
    lane->on_links = false;
    lane->begun = false;
    lane->link[0] = NULL;
    lane->link[1] = NULL;
    if (seconds > 0)
        links_of(task_of(clock, node), lane->link);
    lane->full = link_rate(lane->link, NULL);
    lane->latency = isfinite(lane->full) ? fmin(link_latency(lane->link), seconds) : 0;
    lane->left = seconds - lane->latency;
    clock->sim->moments[node] = (struct moment){.start = from};
    if (from > clock->now)
        set_next(clock, lane, from);
    else
        begin(clock, lane);
}

/* Start the lane's next task that is not skipped, of the open iterations, if all that it waits for has ended. */
static void try_start(struct simulator *clock, struct lane_state *lane)
{
    if (lane->node != NONE || lane->first == NONE)
        return;
    while (lane->iteration < clock->opened && skipped(clock, lane->iteration * clock->n + lane->task))
        pass_turn(clock, lane);
    if (lane->iteration == clock->opened)
        return;
    int node = lane->iteration * clock->n + lane->task;
    if (must_ask(clock, task_of(clock, node), node)) {
        ask_for_member(clock, &clock->iteration[lane->iteration]);
        try_start(clock, lane); /* perhaps another task has the turn now */
        return;
    }
    if (clock->sim->moments[node].unmet)
        return;
    double from = clock->now + task_of(clock, node)->lane->gap;
    if (clock->issue > 0) /* the host issues in list order */
        from = fmax(from, clock->iteration[lane->iteration].issue_begin + (lane->task + 1) * clock->issue);
    pass_turn(clock, lane);
    start(clock, lane, node, from);
}

/* ---- opening an iteration ---------------------------------------------------------------------------------------- */

/* The last iteration up to this one in which task i runs, or NONE. */
static int latest_run(const struct simulator *clock, int i, int iteration)
{
    while (iteration >= 0 && skipped(clock, iteration * clock->n + i))
        iteration--;
    return iteration;
}

/* A run of task i comes into flight (change 1) or ends (-1).  What stands aside is outside of its lane until its
 * iteration has asked, and no count of runs in flight knows of it. */
static void count_run(struct simulator *clock, int i, int change)
{
    struct task_state *state = &clock->tasks[i];
    if (task_of(clock, i)->condition.aside)
        return;
    bool was_full = state->in_flight == MOST_RUNS;
    state->in_flight += change;
    bool is_full = state->in_flight == MOST_RUNS;
    clock->full += is_full - was_full;
}

/* How many ends a task of that iteration has to wait for. */
static int count_unmet(const struct simulator *clock, const struct task *t, int iteration)
{
    int unmet = 0;
    for (size_t e = 0; e < t->n_edges; e++) {
        int from = (int)t->edges[e].from;
        if (t->edges[e].wait && latest_run(clock, from, iteration - t->edges[e].previous) > clock->tasks[from].ended)
            unmet++;
    }
    return unmet;
}

/* Returns whether a task runs in the iteration after which it asks for a member; if none does, it asks at once. */
static bool open_iteration(struct simulator *clock)
{
    int number = clock->opened++;
    bool updates = false;
    struct simulation *sim = clock->sim;
    struct iteration *iteration = &clock->iteration[number];
    size_t n_moments = (size_t)clock->opened * (size_t)clock->n;
    sim->moments = grow(sim->moments, &clock->cap_moments, n_moments, sizeof *sim->moments);
    if (number > 0)
        iteration->issue_begin = fmax(clock->now, clock->iteration[number - 1].issue_begin + clock->n * clock->issue);
    for (int i = 0; i < clock->n; i++) {
        const struct task *t = sim->step->task[i];
        struct moment *m = &sim->moments[number * clock->n + i];
        *m = (struct moment){.skipped = !runs(t, (uint32_t)number + 1)};
        if (t->condition.member)
            m->unmet = 1; /* until the iteration has asked */
        if (m->skipped)
            continue;
        if (clock->tasks[i].before_member && !t->condition.member)
            updates = true;
        m->unmet += count_unmet(clock, t, number);
        iteration->left++;
        if (t->lane->kind == LANE_COMPUTE)
            iteration->computing++;
        count_run(clock, i, 1);
    }
    return updates;
}

/* ---- until the times repeat ------------------------------------------------------------------------------------ */

/* Has iteration b the times of iteration a, moved by `shift`? */
static bool repeats(const struct simulator *clock, int a, int b, double shift, double tolerance)
{
    const struct moment *x = &clock->sim->moments[(size_t)a * (size_t)clock->n];
    const struct moment *y = &clock->sim->moments[(size_t)b * (size_t)clock->n];
    for (int i = 0; i < clock->n; i++) {
        if (x[i].skipped != y[i].skipped)
            return false;
        if (x[i].skipped)
            continue;
        if (fabs(y[i].start - x[i].start - shift) > tolerance || fabs(y[i].end - x[i].end - shift) > tolerance)
            return false;
    }
    if (clock->issue == 0)
        return true;
    return fabs(clock->iteration[b].issue_begin - clock->iteration[a].issue_begin - shift) <= tolerance;
}

/* With snapshots, which may be in flight for long, all of the pattern must repeat, and one iteration of it
 * have got a member. */
static bool repeats_for(const struct simulator *clock, int last, int pattern, double shift, double tolerance)
{
    int compared = MAX(clock->ends ? pattern : clock->repeat, MOST_RUNS);
    bool stored = clock->ends == NULL;
    for (int i = 0; i < pattern && !stored; i++)
        stored = clock->iteration[last - i].stored;
    if (!stored || last - pattern - (compared - 1) < 0)
        return false;
    for (int i = 0; i < compared; i++)
        if (!repeats(clock, last - pattern - i, last - i, shift, tolerance))
            return false;
    return true;
}

/* Without a pattern ends tell little: an iteration that is stored ends long after its neighbours.  Its tasks that run
 * in every iteration do so at an even pace. */
static double mean_seconds(const struct simulator *clock, int from, int to)
{
    for (int i = 0; i < clock->n; i++) {
        const struct moment *first = &clock->sim->moments[from * clock->n + i];
        const struct moment *last = &clock->sim->moments[to * clock->n + i];
        if (!first->skipped && !last->skipped && !task_of(clock, i)->condition.member)
            return (last->end - first->end) / (to - from);
    }
    return (clock->iteration[to].end - clock->iteration[from].end) / (to - from);
}

static void look_for_pattern(struct simulator *clock, int last)
{
    struct simulation *sim = clock->sim;
    double end = clock->iteration[last].end;
    double rounded = 1e-14 * end; /* by adding up */
    for (int p = clock->repeat; p < last && !sim->settled; p += clock->repeat) {
        double shift = end - clock->iteration[last - p].end;
        sim->pattern = p;
        sim->settled = repeats_for(clock, last, p, shift, 1e-9 * shift / p + rounded);
    }
    clock->stop = sim->settled || last == clock->limit - 1;
    sim->steps = last + 1;
    if (sim->settled) {
        sim->period = (end - clock->iteration[last - sim->pattern].end) / sim->pattern;
    } else {
        sim->pattern = MIN(MAX(clock->limit / 2 / clock->repeat, 1) * clock->repeat, last);
        sim->period = mean_seconds(clock, last - sim->pattern, last);
    }
    sim->first = sim->steps - sim->pattern;
}

/* ---- the clock --------------------------------------------------------------------------------------------------- */

/* One that the node waits for has ended. */
static void end_wait(struct simulator *clock, int node)
{
    struct moment *m = &clock->sim->moments[node];
    if (m->skipped)
        return;
    m->unmet--;
    if (m->unmet == 0 || must_ask(clock, task_of(clock, node), node))
        try_start(clock, lane_of_node(clock, node));
}

/* Task i of that iteration has ended, or left: so it has for all that wait for this run, in later iterations too as far
 * as it is skipped there. */
static void release(struct simulator *clock, int i, int iteration)
{
    for (int w = clock->tasks[i].waits; w != NONE; w = clock->wait[w].more) {
        int step = clock->wait[w].next_step;
        for (int c = iteration; c + step < clock->opened; c++) {
            if (c > iteration && !skipped(clock, c * clock->n + i))
                break;
            end_wait(clock, (c + step) * clock->n + clock->wait[w].consumer);
        }
    }
}

/* Task i of the iteration has ended there, or skips it after all. */
static void count_end(struct simulator *clock, struct iteration *iteration, int i)
{
    count_run(clock, i, -1);
    iteration->left--;
    if (task_of(clock, i)->lane->kind == LANE_COMPUTE)
        iteration->computing--;
}

/* All tasks that need a member leave the iteration, which has none. */
static void leave(struct simulator *clock, struct iteration *iteration)
{
    int number = (int)(iteration - clock->iteration);
    for (int i = 0; i < clock->n; i++) {
        if (!task_of(clock, i)->condition.member)
            continue;
        clock->sim->moments[number * clock->n + i].skipped = true;
        count_end(clock, iteration, i);
    }
}

/* When its first unit has been updated, an iteration asks for a member of the rings.  Without one all tasks that need
 * one leave it. */
static void ask_for_member(struct simulator *clock, struct iteration *iteration)
{
    int number = (int)(iteration - clock->iteration);
    iteration->asked = true;
    if (!runs(clock->ends, (uint32_t)number + 1))
        return;
    iteration->stored = take_member(&clock->ring, (uint32_t)number + 1) > 0;
    if (!iteration->stored)
        leave(clock, iteration); /* all, before one that waits for them can start */
    for (int i = 0; i < clock->n; i++) {
        if (!task_of(clock, i)->condition.member)
            continue;
        if (iteration->stored)
            clock->sim->moments[number * clock->n + i].unmet--;
        else if (latest_run(clock, i, number - 1) <= clock->tasks[i].ended) /* else its end releases them */
            release(clock, i, number);
        try_start(clock, lane_of_node(clock, i));
    }
}

/* May the host open another iteration? */
static bool may_open(const struct simulator *clock)
{
    if (clock->opened == clock->limit || clock->full > 0)
        return false;
    return clock->opened < 2 || clock->iteration[clock->opened - 2].computing == 0;
}

/* Does what the last end brings about: iterations are over, others are opened, and lanes go on. */
static void move_on(struct simulator *clock)
{
    int before = clock->opened;
    while (!clock->stop) {
        if (clock->done < clock->opened && clock->iteration[clock->done].left == 0) {
            clock->iteration[clock->done].end = clock->now;
            if (clock->done > 0)
                look_for_pattern(clock, clock->done);
            clock->done++;
        } else if (may_open(clock)) {
            bool updates = open_iteration(clock);
            if (!updates && clock->ends)
                ask_for_member(clock, &clock->iteration[clock->opened - 1]);
        } else
            break;
    }
    for (int i = 0; clock->opened > before && i < clock->n_lanes; i++)
        try_start(clock, &clock->lanes[i]);
}

static void finish(struct simulator *clock, struct lane_state *lane)
{
    int node = lane->node, i = node % clock->n;
    int number = node / clock->n;
    struct iteration *iteration = &clock->iteration[number];
    const struct task *t = task_of(clock, node);
    clock->sim->moments[node].end = clock->now;
    if (lane->on_links)
        change_load(clock, lane, false);
    lane->node = NONE;
    set_next(clock, lane, INFINITY);
    clock->tasks[i].ended = number;
    if (clock->tasks[i].before_member && !iteration->asked && !t->condition.member)
        ask_for_member(clock, iteration);
    if (t->condition.ends)
        return_member(&clock->ring, (uint32_t)number + 1, true);
    release(clock, i, number);
    count_end(clock, iteration, i);
    move_on(clock);
    try_start(clock, lane);
}

/* The lane with the earliest event; of those at the same time the disk's, which may return a member. */
static struct lane_state *earliest(const struct simulator *clock)
{
    const struct device *host = clock->sim->step->pool->machine->host;
    struct lane_state *best = &clock->lanes[clock->winner[1]];
    struct lane_state *disk = &clock->lanes[host->lane[LANE_DISK]->index];
    if (clock->ends && disk->next <= best->next * (1 + 1e-12))
        return disk;
    return best;
}

static void run_clock(struct simulator *clock)
{
    move_on(clock);
    for (struct lane_state *lane = earliest(clock); lane->node != NONE && !clock->stop; lane = earliest(clock)) {
        clock->now = fmax(clock->now, lane->next); /* (a disk that is a rounding late comes first) */
        if (!lane->begun)
            begin(clock, lane);
        else if (isfinite(lane->full) && !lane->on_links)
            join_links(clock, lane);
        else
            finish(clock, lane);
    }
    CHECK(clock->stop, "%d iterations ended: the list deadlocks", clock->sim->steps);
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static void clear_lanes(struct simulator *clock)
{
    for (int i = 0; i < clock->n_lanes; i++) {
        clock->lanes[i] = (struct lane_state){.first = NONE, .node = NONE, .next = INFINITY};
        clock->winner[clock->n_lanes + i] = i;
    }
    for (int i = clock->n_lanes - 1; i > 0; i--)
        clock->winner[i] = clock->winner[2 * i];
}

/* Must the task that the edge comes from have run before task t, in the same iteration, asks for a member? */
static bool leads_to_member(const struct step *s, const struct task *t, const struct edge *edge)
{
    return t->condition.member && !t->condition.unexpected && !edge->previous && !chooses(s->task[edge->from]);
}

/* Makes lists of the tasks of each lane and of the waits for each task, both in list order. */
static void index_list(struct simulator *clock)
{
    const struct step *s = clock->sim->step;
    int n_waits = 0;
    clear_lanes(clock);
    for (int i = 0; i < clock->n; i++) {
        clock->tasks[i].waits = NONE;
        clock->tasks[i].ended = NONE;
    }
    for (int i = clock->n - 1; i >= 0; i--) {
        const struct task *t = s->task[i];
        struct lane_state *lane = lane_of_node(clock, i);
        clock->tasks[i].next_on_lane = lane->first;
        lane->first = lane->task = i;
        if (t->condition.ends)
            clock->ends = t;
        for (size_t e = t->n_edges; e-- > 0;) {
            const struct edge *edge = &t->edges[e];
            struct task_state *from = &clock->tasks[edge->from];
            if (leads_to_member(s, t, edge))
                from->before_member = true;
            if (!edge->wait)
                continue;
            clock->wait[n_waits] = (struct wait){.consumer = i, .next_step = edge->previous, .more = from->waits};
            from->waits = n_waits++;
        }
    }
}

/* The mean time of task i in the steady pattern; where it never runs there, its time alone. */
static double mean_of_task(const struct simulator *clock, int i)
{
    const struct simulation *sim = clock->sim;
    double seconds = 0;
    int n = 0;
    for (int iteration = sim->first; iteration < sim->steps; iteration++) {
        const struct moment *m = &sim->moments[iteration * clock->n + i];
        seconds += m->end - m->start;
        if (!m->skipped)
            n++;
    }
    return n ? seconds / n : sim->seconds[i];
}

/* Sums up the pattern: how long each task takes, and what lanes do in its periods, whichever iteration it is for. */
static void sum_up(const struct simulator *clock)
{
    struct simulation *sim = clock->sim;
    double from = clock->now - sim->pattern * sim->period;
    sim->end = clock->now;
    sim->begun = clock->opened;
    for (int i = 0; i < clock->n; i++)
        sim->steady[i] = mean_of_task(clock, i);
    for (int i = 0; i < clock->n_lanes; i++)
        if (clock->lanes[i].node != NONE) /* what is in flight counts up to now */
            sim->moments[clock->lanes[i].node].end = clock->now;
    for (int node = 0; node < clock->opened * clock->n; node++) {
        const struct moment *m = &sim->moments[node]; /* one that has not run is from 0 to 0 */
        double seconds = fmax(m->end - fmax(m->start, from), 0);
        sim->busy[task_of(clock, node)->lane->index] += seconds / sim->pattern;
    }
}

/* Asks for the time of each task.  Returns a problem where they make no sense together. */
static struct problem *take_times(struct simulation *sim, const struct costs *c)
{
    const struct step *s = sim->step;
    double total = (double)s->n * s->pool->machine->issue;
    for (size_t i = 0; i < s->n; i++) {
        enum cost_source source;
        sim->seconds[i] = task_seconds(c, s->task[i], &source);
        sim->by_source[source]++;
        total += s->task[i]->lane->gap + sim->seconds[i];
    }
    if (total >= 1e-9 && total <= 1e6) /* from a nanosecond to eleven days: times fit their clocks */
        return NULL;
    return new_problem(EXIT_USAGE,
                       "%s%s the tasks of a step take %.3g s together, expected 1e-9 to 1e6: is a number in it wrong?",
                       c ? c->path : "in the step file", c ? ", with --what-if, makes" : "", total);
}

static struct simulator new_simulator(struct simulation *sim)
{
    const struct step *s = sim->step;
    const struct machine *m = s->pool->machine;
    size_t n_lanes = (size_t)m->n_lanes;
    struct simulator clock = {.sim = sim,
                              .n = (int)s->n,
                              .n_lanes = m->n_lanes,
                              .issue = m->issue,
                              .ring.n = s->pool->ring.n,
                              .repeat = (int)repeat_of(s, 2 * MOST_STEPS)};
    clock.tasks = allocate(s->n, sizeof *clock.tasks);
    clock.wait = allocate(s->n_edges, sizeof *clock.wait);
    clock.lanes = allocate(n_lanes, sizeof *clock.lanes);
    clock.winner = allocate(2 * n_lanes, sizeof *clock.winner);
    clock.copying = allocate(n_lanes, sizeof *clock.copying);
    clock.load = allocate(m->n_links, sizeof *clock.load);
    index_list(&clock);
    clock.limit = MIN(MAX(LEAST_STEPS, 4 * clock.repeat), MOST_STEPS);
    clock.limit = MIN(clock.limit, MAX(8, MOST_NODES / clock.n));
    if (clock.ends)
        clock.limit = MAX(clock.limit, MIN(STORED_STEPS, STORED_NODES / clock.n));
    clock.iteration = allocate((size_t)clock.limit, sizeof *clock.iteration);
    return clock;
}

static void free_simulator(struct simulator *clock)
{
    free(clock->tasks);
    free(clock->wait);
    free(clock->lanes);
    free(clock->winner);
    free(clock->copying);
    free(clock->load);
    free(clock->iteration);
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
    struct problem *problem = take_times(sim, c);
    if (problem) {
        free_simulation(sim);
        return problem;
    }
    struct simulator clock = new_simulator(sim);
    run_clock(&clock);
    sum_up(&clock);
    free_simulator(&clock);
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
    free(sim->moments);
    free(sim->seconds);
    free(sim->steady);
    free(sim->busy);
    free(sim);
}

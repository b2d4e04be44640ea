/* simulate.c - the cyclic list on a virtual clock.
 *
 * Four iterations are run, and the third, which is the steady state, is reported.  The rules are execute()'s own:
 * a lane runs its tasks in list order; a task starts when the one before it on its lane and all that it waits for have
 * ended, and not before the iteration two back has ended, nor before the host has issued it.  A link that devices share
 * is shared evenly by the copies that are on it (processor sharing): each of k copies goes at 1/k of its speed.
 *
 * Nodes number the tasks of all iterations: task i of iteration s is node s * n + i.  At most one node per lane runs,
 * so the next event is the earliest end over the lanes.
 */
#include "predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1, MAX_LINKS = 2 * MAX_DEVICES };

struct clockwork {
    struct simulation *sim;
    int n, n_nodes, n_lanes;
    int *first_out, *out;        /* waits, by producer: consumers of task i, out[first_out[i]] ...; bit 30: next step */
    int *unmet;                  /* per node: producers that have not ended, its lane's turn not counted */
    int *lane_list, *lane_first; /* tasks of each lane in order */
    int next[MAX_LANES];         /* per lane: how many of its nodes have started */
    int running[MAX_LANES];      /* node, or NONE */
    double left[MAX_LANES];      /* seconds of work left at `now`, at full speed */
    double end[MAX_LANES];       /* when it ends at the present speed */
    int link[MAX_LANES], on_link[MAX_LINKS]; /* shared link of a lane or NONE; copies running on it */
    int ended[SIMULATED_STEPS];
    double issue, issue_begin[SIMULATED_STEPS]; /* host seconds per task; when the host begins an iteration */
    double now;
    int *uses;                     /* per tensor: how many accesses an iteration makes */
    int *left_uses;                /* [iteration, tensor]: of them not yet ended; -1: none has started */
    int64_t live[MAX_DEVICES + 1]; /* bytes held now, by device */
};
enum { NEXT_STEP = 1 << 30 };

static const struct task *task_of(const struct clockwork *k, int node) { return k->sim->step->task[node % k->n]; }

/* ---- preparing ------------------------------------------------------------------------------------------------- */

static void index_consumers(struct clockwork *k)
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

static void count_unmet(struct clockwork *k)
{
    k->unmet = allocate((size_t)k->n_nodes, sizeof *k->unmet);
    for (int node = 0; node < k->n_nodes; node++) {
        const struct task *t = task_of(k, node);
        for (size_t e = 0; e < t->n_edges; e++)
            k->unmet[node] += t->edges[e].wait && (!t->edges[e].previous || node >= k->n);
        k->unmet[node] += node >= 2 * k->n; /* the iteration two back */
    }
}

static void list_lanes(struct clockwork *k)
{
    k->lane_list = allocate((size_t)k->n, sizeof *k->lane_list);
    k->lane_first = allocate((size_t)k->n_lanes + 1, sizeof *k->lane_first);
    int at = 0;
    for (int lane = 0; lane < k->n_lanes; lane++) {
        for (int i = 0; i < k->n; i++)
            if (task_of(k, i)->lane->index == lane)
                k->lane_list[at++] = i;
        k->lane_first[lane + 1] = at;
        k->running[lane] = k->link[lane] = NONE;
        k->end[lane] = INFINITY;
    }
}

/* Copies to and from the host of `devices_per_link` devices share a link per direction. */
static void share_links(struct clockwork *k, const struct costs *c)
{
    const struct machine *m = k->sim->step->pool->machine;
    for (int i = 0; i < k->n_lanes && c && c->link_share > 1; i++) {
        const struct lane *l = &m->lane[i];
        if (l->kind == LANE_UPLOAD || l->kind == LANE_DOWNLOAD)
            k->link[i] = 2 * (l->device->index / (int)c->link_share) + (l->kind == LANE_DOWNLOAD);
    }
}

/* ---- running --------------------------------------------------------------------------------------------------- */

/* The share of its full speed at which the lane's task goes. */
static double speed(const struct clockwork *k, int lane)
{
    return k->link[lane] == NONE ? 1 : 1.0 / k->on_link[k->link[lane]];
}

/* A copy has joined or left the link: what the others have left is brought up to now, and their ends move. */
static void change_link(struct clockwork *k, int link, int change)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int lane = 0; lane < k->n_lanes; lane++)
            if (k->running[lane] != NONE && k->link[lane] == link) {
                if (pass == 0)
                    k->left[lane] = (k->end[lane] - k->now) * speed(k, lane);
                else
                    k->end[lane] = k->now + k->left[lane] / speed(k, lane);
            }
        if (pass == 0)
            k->on_link[link] += change;
    }
}

/* A tensor is live from the start of the first task that touches it in an iteration ... */
static void take_bytes(struct clockwork *k, int node)
{
    const struct task *t = task_of(k, node);
    int *left = k->left_uses + (size_t)(node / k->n) * k->sim->step->pool->n;
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor->root;
        int d = x->device->index;
        if (x->persistent || left[x->id] >= 0)
            continue;
        left[x->id] = k->uses[x->id];
        k->live[d] += (int64_t)x->bytes;
        k->sim->peak[d] = MAX(k->sim->peak[d], (size_t)k->live[d]);
    }
}

/* ... to the end of the last one, wherever they run. */
static void give_bytes(struct clockwork *k, int node)
{
    const struct task *t = task_of(k, node);
    int *left = k->left_uses + (size_t)(node / k->n) * k->sim->step->pool->n;
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor->root;
        if (!x->persistent && --left[x->id] == 0)
            k->live[x->device->index] -= (int64_t)x->bytes;
    }
}

static int head_of(const struct clockwork *k, int lane)
{
    int size = k->lane_first[lane + 1] - k->lane_first[lane], nth = k->next[lane];
    if (size == 0 || nth >= SIMULATED_STEPS * size)
        return NONE;
    return nth / size * k->n + k->lane_list[k->lane_first[lane] + nth % size];
}

/* When the host has issued the node: in list order, and an iteration only when the one two back has ended. */
static double issued(const struct clockwork *k, int node)
{
    return k->issue > 0 ? k->issue_begin[node / k->n] + (node % k->n + 1) * k->issue : 0;
}

/* Start the lane's next task if all that it waits for has ended; `blocker` is what ended last. */
static void try_start(struct clockwork *k, int lane, int blocker)
{
    int node = k->running[lane] == NONE ? head_of(k, lane) : NONE;
    if (node == NONE || k->unmet[node])
        return;
    double seconds = k->sim->seconds[node % k->n], start = fmax(k->now + k->sim->gaps[node % k->n], issued(k, node));
    k->next[lane]++;
    take_bytes(k, node);
    k->sim->moments[node] = (struct moment){.start = start, .blocker = blocker};
    if (k->link[lane] != NONE)
        change_link(k, k->link[lane], 1);
    k->running[lane] = node;
    k->end[lane] = start + seconds / speed(k, lane);
}

static void release(struct clockwork *k, int node, int producer)
{
    if (node < k->n_nodes && --k->unmet[node] == 0)
        try_start(k, task_of(k, node)->lane->index, producer);
}

static void begin_iteration(struct clockwork *k, int iteration, int node)
{
    if (iteration >= SIMULATED_STEPS)
        return;
    k->issue_begin[iteration] = fmax(k->now, k->issue_begin[iteration - 1] + k->n * k->issue);
    for (int i = 0; i < k->n; i++)
        release(k, iteration * k->n + i, node);
}

static void finish(struct clockwork *k, int lane)
{
    int node = k->running[lane], i = node % k->n, iteration = node / k->n;
    k->running[lane] = NONE;
    k->end[lane] = INFINITY;
    give_bytes(k, node);
    k->sim->moments[node].end = k->now;
    if (k->link[lane] != NONE)
        change_link(k, k->link[lane], -1);
    for (int e = k->first_out[i]; e < k->first_out[i + 1]; e++)
        release(k, (k->out[e] & ~NEXT_STEP) + (iteration + (k->out[e] & NEXT_STEP ? 1 : 0)) * k->n, node);
    if (++k->ended[iteration] == k->n)
        begin_iteration(k, iteration + 2, node);
    try_start(k, lane, node);
}

static int earliest(const struct clockwork *k)
{
    int best = 0;
    for (int lane = 1; lane < k->n_lanes; lane++)
        if (k->end[lane] < k->end[best])
            best = lane;
    return k->running[best] == NONE ? NONE : best;
}

static void run_clock(struct clockwork *k)
{
    for (int lane = 0; lane < k->n_lanes; lane++)
        try_start(k, lane, NONE);
    for (int lane = earliest(k); lane != NONE; lane = earliest(k)) {
        k->now = k->end[lane];
        finish(k, lane);
    }
    CHECK(k->ended[SIMULATED_STEPS - 1] == k->n, "%d of %d tasks ended: the list deadlocks",
          k->ended[SIMULATED_STEPS - 1], k->n);
}

/* ---- what came out --------------------------------------------------------------------------------------------- */

static double end_of(const struct simulation *sim, int iteration)
{
    double end = 0;
    for (size_t i = 0; i < sim->step->n; i++)
        end = fmax(end, sim->moments[(size_t)iteration * sim->step->n + i].end);
    return end;
}

static void sum_up(struct simulation *sim)
{
    const struct step *s = sim->step;
    sim->period = end_of(sim, STEADY_STEP) - end_of(sim, STEADY_STEP - 1);
    sim->steady = allocate(s->n, sizeof *sim->steady);
    for (size_t i = 0; i < s->n; i++) {
        const struct moment *m = &sim->moments[STEADY_STEP * s->n + i];
        sim->steady[i] = m->end - m->start;
        sim->busy[s->task[i]->lane->index] += sim->steady[i];
    }
}

static void count_uses(struct clockwork *k)
{
    const struct step *s = k->sim->step;
    const struct pool *p = s->pool;
    size_t n = SIMULATED_STEPS * p->n;
    k->uses = allocate(p->n, sizeof *k->uses);
    k->left_uses = allocate(n, sizeof *k->left_uses);
    memset(k->left_uses, -1, n * sizeof *k->left_uses);
    for (size_t i = 0; i < s->n; i++)
        for (int a = 0; a < s->task[i]->n_access; a++)
            k->uses[s->task[i]->access[a].tensor->root->id]++;
    for (size_t i = 0; i < p->n; i++)
        if (p->tensors[i]->root == p->tensors[i] && p->tensors[i]->persistent)
            k->live[p->tensors[i]->device->index] += (int64_t)p->tensors[i]->bytes;
    for (int d = 0; d <= p->machine->n_devices; d++)
        k->sim->peak[d] = (size_t)k->live[d];
}

static struct simulation *run_simulation(struct simulation *sim, const struct costs *c)
{
    const struct step *s = sim->step;
    struct clockwork k = {
        .sim = sim, .n = (int)s->n, .n_nodes = SIMULATED_STEPS * (int)s->n, .n_lanes = s->pool->machine->n_lanes};
    CHECK(k.n > 0, "list %s has no tasks", s->name);
    sim->moments = allocate((size_t)k.n_nodes, sizeof *sim->moments);
    k.issue = c ? c->issue : 0;
    k.issue_begin[1] = k.n * k.issue;
    index_consumers(&k);
    count_unmet(&k);
    list_lanes(&k);
    share_links(&k, c);
    count_uses(&k);
    run_clock(&k);
    free(k.uses), free(k.left_uses);
    sum_up(sim);
    free(k.first_out), free(k.out), free(k.unmet), free(k.lane_list), free(k.lane_first);
    return sim;
}

/* Eleven days.  Beyond, and below a nanosecond, some number of the file is wrong, and times would not fit their clocks.
 */
static void check_total(const struct simulation *sim, const struct costs *c)
{
    double total = (double)sim->step->n * c->issue;
    for (size_t i = 0; i < sim->step->n; i++)
        total += sim->gaps[i] + sim->seconds[i];
    if (!(total >= 1e-9 && total <= 1e6))
        fail(EXIT_USAGE,
             "%s, with --what-if, makes the tasks of a step take %.3g s together, expected 1e-9 to 1e6: is a "
             "number in it wrong?",
             c->path, total);
}

struct simulation *simulate(const struct step *s, const struct costs *c)
{
    struct simulation *sim = allocate(1, sizeof *sim);
    sim->step = s;
    sim->seconds = allocate(s->n, sizeof *sim->seconds);
    sim->gaps = allocate(s->n, sizeof *sim->gaps);
    for (size_t i = 0; i < s->n; i++) {
        enum cost_source source;
        sim->gaps[i] = c->gap[s->task[i]->lane->kind];
        sim->seconds[i] = task_seconds(c, s->task[i], &source);
        sim->by_source[source]++;
    }
    check_total(sim, c);
    return run_simulation(sim, c);
}

struct simulation *simulate_durations(const struct step *s, const double *seconds)
{
    struct simulation *sim = allocate(1, sizeof *sim);
    sim->step = s;
    sim->seconds = allocate(s->n, sizeof *sim->seconds);
    sim->gaps = allocate(s->n, sizeof *sim->gaps);
    memcpy(sim->seconds, seconds, s->n * sizeof *seconds);
    return run_simulation(sim, NULL);
}

void free_simulation(struct simulation *sim)
{
    free(sim->moments);
    free(sim->seconds);
    free(sim->steady);
    free(sim->gaps);
    free(sim);
}

/* waits.c - chooses the edges that need a wait.  Skip it at first: a wait for every edge between lanes would give the
 * same results, only with more events.
 *
 * A lane runs its tasks in order, so an edge within a lane needs no wait.  An edge between lanes needs none either if
 * another wait makes sure that its producer has ended.  To know that, each node has a vector clock: for each lane, the
 * latest node that has certainly ended before this one starts.
 *
 * Clocks of all lanes would take gigabytes for the list of a hundred devices, and so clocks are kept for some lanes at
 * a time.  That takes no longer: the list is walked over more often, but more of what is needed lies in the caches.
 */
#include "step_parts.h"

/* An edge between lanes that may need a wait: see collect_crossings(). */
struct crossing {
    struct edge *edge;
    int producer, lane; /* its position and its lane */
    bool always_runs;   /* the producer runs in every iteration */
};

/* Clocks are kept for this many lanes at a time, which is right since what is known of one lane does not depend on what
 * is known of another. */
enum { LANES_AT_A_TIME = 32 };
struct clocks {
    int n, n_lanes;             /* tasks and lanes */
    int first, width;           /* lanes first .. first + width - 1 */
    int *lane;                  /* by task: its lane */
    bool *conditional;          /* by task: there are iterations in which it does not run */
    struct crossing *crossings; /* those of task 0, of task 1 ... */
    size_t *end;                /* by task: where its crossings end */
    int *ended; /* [2n, width] by node and lane: the latest node of that lane that has ended for certain; or NONE */
};

static int *clock_of_node(const struct clocks *clocks, int node)
{
    return &clocks->ended[(size_t)node * (size_t)clocks->width];
}

static int later_first(const void *left, const void *right)
{
    const struct edge *a = left;
    const struct edge *b = right;
    return BY(a->previous, b->previous, COMPARE(b->producer, a->producer));
}

/* Each task gets its n_edges edges, in the order in which waits are chosen. */
static void assign_edges(struct list *list)
{
    size_t first = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct task *task = list->tasks[i];
        task->edges = list->edges + first;
        SORT(task->edges, task->n_edges, later_first);
        first += task->n_edges;
    }
}

static void note_lanes(struct clocks *clocks, const struct list *list)
{
    for (int i = 0; i < clocks->n; i++) {
        const struct task *task = list->tasks[i];
        clocks->lane[i] = task->lane->index;
        clocks->conditional[i] = is_conditional(task);
    }
}

/* Lists the crossings of each task.  One from each lane is enough, since what ran there before has then ended too: the
 * latest, and a task's edges come with the latest producer first (later_first).  But if that producer may be skipped,
 * the next one is listed too, and so on up to one that always runs. */
static void collect_crossings(struct clocks *clocks, const struct list *list)
{
    size_t n = 0;
    int *listed = allocate_each(clocks->n_lanes, sizeof *listed); /* by lane: the last task with such a crossing */
    fill_none(listed, (size_t)clocks->n_lanes);
    for (int i = 0; i < clocks->n; i++) {
        struct task *task = list->tasks[i];
        for (struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
            int producer = (int)edge->producer, lane = clocks->lane[producer];
            if (lane == clocks->lane[i] || listed[lane] == i)
                continue;
            clocks->crossings[n++] = (struct crossing){
                .edge = edge, .producer = producer, .lane = lane, .always_runs = !clocks->conditional[producer]};
            if (!clocks->conditional[producer])
                listed[lane] = i;
        }
        clocks->end[i] = n;
    }
    free(listed);
}

/* Fills in the clock of a node: what is known from the task before it on its lane and from its waits, which are chosen
 * on the way.  A wait for a task that may be skipped tells nothing. */
static void choose_waits(struct clocks *clocks, int node, int *ended)
{
    int i = node % clocks->n;
    for (size_t k = i ? clocks->end[i - 1] : 0; k < clocks->end[i]; k++) {
        const struct crossing *crossing = &clocks->crossings[k];
        int producer_node = crossing->producer + node - i;
        if (crossing->edge->previous)
            producer_node -= clocks->n;
        int lane = crossing->lane - clocks->first;
        bool tracked = lane >= 0 && lane < clocks->width;
        if (producer_node < 0)
            continue; /* before the first round */
        if (tracked && producer_node <= ended[lane])
            continue; /* the wait follows from others, and so does all that was known there */
        crossing->edge->needs_wait |= tracked;
        if (!crossing->always_runs)
            continue;
        if (tracked)
            ended[lane] = producer_node;
        const int *producer_ended = clock_of_node(clocks, producer_node);
        for (int l = 0; l < clocks->width; l++)
            ended[l] = MAX(ended[l], producer_ended[l]);
    }
}

/* Walks over both rounds, for these lanes.  By lane, last[] is the latest node so far, and certain[] the latest node
 * that is never skipped. */
static void walk_clocks(struct clocks *clocks, int *last, int *certain)
{
    size_t width = (size_t)clocks->width;
    fill_none(last, (size_t)clocks->n_lanes);
    fill_none(certain, (size_t)clocks->n_lanes);
    for (int node = 0; node < 2 * clocks->n; node++) {
        int lane = clocks->lane[node % clocks->n];
        int *ended = clock_of_node(clocks, node);
        if (certain[lane] == NONE)
            fill_none(ended, width);
        else
            memcpy(ended, clock_of_node(clocks, certain[lane]), width * sizeof *ended);
        if (lane >= clocks->first && lane < clocks->first + clocks->width)
            ended[lane - clocks->first] = last[lane];
        choose_waits(clocks, node, ended);
        last[lane] = node;
        if (!clocks->conditional[node % clocks->n])
            certain[lane] = node;
    }
}

void mark_waits(struct list *list)
{
    struct clocks clocks = {.n = (int)list->n, .n_lanes = list->pool->machine->n_lanes};
    int most = MIN(clocks.n_lanes, LANES_AT_A_TIME);
    int *last = allocate_each(clocks.n_lanes, sizeof *last);
    int *certain = allocate_each(clocks.n_lanes, sizeof *certain);
    clocks.lane = allocate(list->n, sizeof *clocks.lane);
    clocks.conditional = allocate(list->n, sizeof *clocks.conditional);
    clocks.crossings = allocate(list->n_edges, sizeof *clocks.crossings);
    clocks.end = allocate(list->n, sizeof *clocks.end);
    clocks.ended = allocate(2 * list->n * (size_t)most, sizeof *clocks.ended);
    assign_edges(list);
    note_lanes(&clocks, list);
    collect_crossings(&clocks, list);
    while (clocks.first < clocks.n_lanes) {
        clocks.width = MIN(clocks.n_lanes - clocks.first, most);
        walk_clocks(&clocks, last, certain);
        clocks.first += clocks.width;
    }
    free(clocks.lane);
    free(clocks.conditional);
    free(clocks.crossings);
    free(clocks.end);
    free(clocks.ended);
    free(last);
    free(certain);
}

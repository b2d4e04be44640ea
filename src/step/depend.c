/* depend.c - which task must wait for which.
 *
 * Two accesses to the same bytes conflict when one of them writes; the later one in the list then depends on the
 * earlier.  The list is cyclic, so it is walked twice: an edge from the first copy to the second one is a
 * *previous-step* edge.  Walked over tensors this gives the data edges; walked over addresses it gives these and the
 * reuse edges, which exist only because place() gave two tensors the same bytes.
 *
 * Nodes number the tasks of both copies: task i of copy c is node c * n + i.  Lanes run in order, so only edges
 * that cross lanes need a wait, and of those only the ones that do not follow from others: each node carries, per lane,
 * the latest node known to have ended before it starts (a vector clock).
 *
 * A task that may be skipped (step.h: when) orders no others: what waits for it, or stands behind it on its lane, waits
 * for what it waits for by itself.
 */
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

struct walk {
    struct step *step;
    struct space *spaces;
    size_t n_spaces;
    bool by_address;
    int n;                /* tasks */
    struct task **holder; /* hold.c */
    size_t n_holders;
};

static void add_edge(struct walk *w, int from, int to)
{
    if (from == NOBODY || from == to || to < w->n)
        return; /* the second copy shows every edge of the steady state */
    struct task *t = w->step->task[to - w->n];
    struct edge e = {.from = (uint32_t)(from % w->n), .previous = from < w->n};
    e.kind = w->by_address ? EDGE_REUSE : EDGE_DATA;
    for (size_t i = 0; i < t->n_edges; i++)
        if (t->edges[i].from == e.from && t->edges[i].previous == e.previous)
            return;
    *APPEND(t->edges, t->n_edges, t->cap_edges) = e;
}

/* A task that may be skipped does not hide who wrote before it: it stands, complemented, beside the readers. */
static void touch_segment(struct walk *w, struct segment *s, int node, enum access_mode mode)
{
    bool writes = mode & ACCESS_WRITE, may_skip = is_conditional(w->step->task[node % w->n]);
    add_edge(w, s->writer, node);
    for (size_t i = 0; i < s->n_readers && (writes || s->may_write); i++)
        if (writes || s->readers[i] < 0)
            add_edge(w, MAX(s->readers[i], ~s->readers[i]), node);
    if (writes && !may_skip) {
        s->writer = node;
        s->n_readers = 0;
        s->may_write = false;
        return;
    }
    *APPEND(s->readers, s->n_readers, s->cap_readers) = writes ? ~node : node;
    s->may_write |= writes;
}

static void touch(struct walk *w, int node, const struct access *a)
{
    size_t begin, end, count;
    struct space *space = find_range(w->spaces, w->by_address, a->tensor, &begin, &end);
    struct segment *s = cut_range(space, begin, end, &count);
    for (size_t i = 0; i < count; i++)
        touch_segment(w, &s[i], node, a->mode);
}

/* A tensor that does not persist is a new value in every iteration: only its bytes connect it to the last one. */
static void forget_transient(struct walk *w)
{
    const struct pool *p = w->step->pool;
    for (size_t i = 0; i < p->n; i++)
        if (!p->tensors[i]->persistent)
            clear_space(&w->spaces[i]);
}

/* Edges from the last holder of each lane. */
static void hold_task(struct walk *w, int node)
{
    int n_lanes = w->step->pool->machine->n_lanes;
    bool *seen = allocate((size_t)n_lanes, sizeof *seen);
    for (size_t i = w->n_holders; i-- > 0;) {
        const struct task *t = w->holder[i];
        if (!seen[t->lane->index])
            add_edge(w, node - node % w->n + (int)t->index, node);
        seen[t->lane->index] |= !is_conditional(t);
    }
    free(seen);
}

static void walk_twice(struct step *s, bool by_address)
{
    struct walk w = {.step = s, .by_address = by_address, .n = (int)s->n};
    w.holder = allocate(s->n, sizeof *w.holder);
    w.n_holders = list_holders(s, w.holder);
    w.spaces = new_spaces(s->pool, by_address, &w.n_spaces);
    for (int node = 0; node < 2 * w.n; node++) {
        const struct task *t = s->task[node % w.n];
        if (node == w.n && !by_address)
            forget_transient(&w);
        for (int pass = ACCESS_READ; pass <= ACCESS_WRITE; pass++) /* a task reads before it writes */
            for (int i = 0; i < t->n_access; i++)
                if (t->access[i].mode != ACCESS_NONE &&
                    ((t->access[i].mode & ACCESS_WRITE) != 0) == (pass == ACCESS_WRITE))
                    touch(&w, node, &t->access[i]);
        if (t->held)
            hold_task(&w, node);
    }
    free(w.holder);
    free_spaces(w.spaces, w.n_spaces);
}

/* ---- which edges need a wait ----------------------------------------------------------------------------------- */

static int later_first(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->previous != y->previous)
        return x->previous - y->previous;
    return x->from < y->from ? 1 : x->from > y->from ? -1 : 0;
}

static void take_over(int *known, const int *other, int n_lanes)
{
    for (int i = 0; i < n_lanes; i++)
        known[i] = MAX(known[i], other[i]);
}

/* known[lane] of `node`, from the task before it on its lane and from its waits, which are chosen on the way.  Nothing
 * follows from a wait for a task that may be skipped, but that its own last run has ended. */
static void choose_waits(struct step *s, int node, int *known, const int *clocks, int n_lanes)
{
    int n = (int)s->n;
    struct task *t = s->task[node % n];
    for (size_t i = 0; i < t->n_edges; i++) {
        struct edge *e = &t->edges[i];
        int from = (int)e->from + (node < n ? 0 : n) - (e->previous ? n : 0);
        int lane = s->task[e->from]->lane->index;
        if (from < 0)
            continue; /* before the first copy */
        if (node >= n)
            e->wait = from > known[lane];
        if (from > known[lane] && !is_conditional(s->task[e->from])) {
            take_over(known, &clocks[from * n_lanes], n_lanes);
            known[lane] = MAX(known[lane], from);
        }
    }
}

static void mark_waits(struct step *s)
{
    int n = (int)s->n, n_lanes = s->pool->machine->n_lanes;
    int *clocks = allocate((size_t)(2 * n * n_lanes), sizeof *clocks);
    int *last = allocate((size_t)n_lanes, sizeof *last);       /* latest node of each lane ... */
    int *certain = allocate((size_t)n_lanes, sizeof *certain); /* ... and the latest that is not skipped */
    for (int i = 0; i < n_lanes; i++)
        last[i] = certain[i] = NOBODY;
    for (int node = 0; node < 2 * n; node++) {
        int lane = s->task[node % n]->lane->index, *known = &clocks[node * n_lanes];
        for (int i = 0; i < n_lanes; i++)
            known[i] = NOBODY;
        if (certain[lane] != NOBODY)
            take_over(known, &clocks[certain[lane] * n_lanes], n_lanes);
        known[lane] = last[lane];
        choose_waits(s, node, known, clocks, n_lanes);
        last[lane] = node;
        if (!is_conditional(s->task[node % n]))
            certain[lane] = node;
    }
    free(clocks);
    free(last), free(certain);
}

/* The context in which a task's own event lives; host tasks complete a user event of context 0. */
static int event_context(const struct task *t)
{
    return t->lane->device->is_host ? 0 : t->lane->device->context->index;
}

static void mark_producers(struct step *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->task[i]->n_edges; k++) {
            const struct edge *e = &s->task[i]->edges[k];
            struct task *producer = s->task[e->from];
            if (!e->wait)
                continue;
            producer->flush = true;
            if (!s->task[i]->lane->device->is_host && event_context(producer) != event_context(s->task[i]))
                producer->notify |= 1u << event_context(s->task[i]);
        }
}

void depend(struct step *s, bool with_addresses)
{
    for (size_t i = 0; i < s->n; i++) {
        s->task[i]->n_edges = 0;
        s->task[i]->notify = 0;
        s->task[i]->flush = false;
    }
    walk_twice(s, false);
    if (with_addresses)
        walk_twice(s, true);
    for (size_t i = 0; i < s->n; i++)
        if (s->task[i]->n_edges)
            qsort(s->task[i]->edges, s->task[i]->n_edges, sizeof(struct edge), later_first);
    mark_waits(s);
    mark_producers(s);
}

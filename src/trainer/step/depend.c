/* depend.c - which task must wait for which.
 *
 * Two accesses to the same bytes conflict when one of them writes; the later one in the list then depends on the
 * earlier.  The list is cyclic, so it is walked twice: an edge from the first copy to the second one is a
 * *previous-step* edge.  Walked over tensors this gives the data edges; walked over addresses it gives these and the
 * reuse edges, which exist only because place() gave two tensors the same bytes.
 *
 * A *node* is a task in one of the two copies: task i of copy c is node c * n + i.  A lane runs its tasks in order, so
 * an edge within a lane needs no wait.  An edge between lanes needs none either if another wait makes sure that its
 * producer has ended.  To know that, each node has a vector clock: for each lane, the latest node that has certainly
 * ended before this one starts.
 *
 * A task that does not run in every iteration (struct when in step.h) cannot stand for others.  A task that waits for
 * it, or stands behind it on its lane, has its own edges to what it waits for.
 */
#include "step.h"

/* ---- who touched which bytes ----------------------------------------------------------------------------------- */

/* A space is a tensor's own bytes (data edges) or a slab of a device (reuse edges).  It is a sorted list of segments,
 * one at first; a touched range is cut out of it, so that every segment has one history: who wrote it, and who has read
 * it since. */
enum { NOBODY = -1 };
struct segment {        /* up to the next one */
    size_t begin;       /* its first byte */
    int writer, reader; /* the latest of each, in `touches`, or NOBODY */
};
struct space {
    struct segment *segments;
    size_t n, cap;
};
struct touch { /* each points to the one before it, so that segments which are cut share their past */
    int node, before;
};

/* The segment that begins at that byte: what lay across it becomes two. */
static size_t cut_at(struct space *s, size_t byte)
{
    size_t i;
    if (!s->n)
        *APPEND(s->segments, s->n, s->cap) = (struct segment){0, NOBODY, NOBODY};
    FIND_FIRST(i, s->n, s->segments[i].begin < byte);
    if (i == s->n || s->segments[i].begin > byte) {
        (void)APPEND(s->segments, s->n, s->cap);
        memmove(&s->segments[i], &s->segments[i - 1], (s->n - i) * sizeof *s->segments);
        s->segments[i].begin = byte;
    }
    return i;
}

/* ---- edges ----------------------------------------------------------------------------------------------------- */

struct walk {
    struct step *step;
    struct space *spaces[2]; /* of each kind of edge: tensors, and addresses */
    struct touch *touches;
    size_t n_touches, cap_touches;
    int *consumer; /* [2n] the last one to which an edge from this node was added */
    int n;         /* tasks */
};

static void add_edge(struct walk *w, int from, int to, enum edge_kind kind)
{
    struct step *s = w->step;
    if (from == to || to < w->n || w->consumer[from] == to)
        return; /* the second copy shows every edge of the steady state */
    w->consumer[from] = to;
    *APPEND(s->edges, s->n_edges, s->cap_edges) =
        (struct edge){.from = (uint32_t)(from % w->n), .previous = from < w->n, .kind = kind};
}

/* From a touch and those before it. */
static void add_edges(struct walk *w, int touch, int to, enum edge_kind kind)
{
    for (; touch != NOBODY; touch = w->touches[touch].before)
        add_edge(w, w->touches[touch].node, to, kind);
}

/* Over addresses, the space is the storage's slab.  A write that may be skipped does not hide who touched the bytes
 * before it. */
static void touch(struct walk *w, int node, const struct access *a, enum edge_kind kind)
{
    const struct tensor *storage = a->tensor->storage;
    bool by_address = kind == EDGE_REUSE, writes = a->mode & ACCESS_WRITE;
    bool hides = writes && !is_conditional(w->step->task[node % w->n]);
    struct space *space =
        &w->spaces[kind][by_address ? storage->device->index * SLABS_PER_DEVICE + storage->slab : storage->id];
    size_t begin = a->tensor->offset + (by_address ? storage->address : 0);
    size_t first = cut_at(space, begin), end = cut_at(space, begin + a->tensor->bytes);
    for (struct segment *s = space->segments + first; s < space->segments + end; s++) {
        int *latest = writes ? &s->writer : &s->reader;
        add_edges(w, s->writer, node, kind);
        if (writes)
            add_edges(w, s->reader, node, kind);
        *APPEND(w->touches, w->n_touches, w->cap_touches) = (struct touch){node, hides ? NOBODY : *latest};
        *latest = (int)w->n_touches - 1;
        s->reader = hides ? NOBODY : s->reader;
    }
}

/* A task reads before it writes.  A tensor that does not persist is a new value in every iteration: only its bytes
 * connect it to the last one.  One that persists shares its bytes with none, so they connect it to nothing more than
 * its value does.  Of a ring another member is written in the next iteration: nothing connects the two. */
static void touch_all(struct walk *w, int node, enum edge_kind kind)
{
    const struct task *t = w->step->task[node % w->n];
    for (int writing = 0; writing < 2; writing++)
        for (int i = 0; i < t->n_access; i++) {
            const struct access *a = &t->access[i];
            bool lasts = a->tensor->persistent && !a->tensor->storage->ring;
            bool concerned = kind == EDGE_REUSE ? !a->tensor->persistent : lasts || node >= w->n;
            if (concerned && writing == ((a->mode & ACCESS_WRITE) != 0))
                touch(w, node, a, kind);
        }
}

ORDER(later_first, struct edge, BY(a->previous, b->previous, COMPARE(b->from, a->from)))

/* The step's edges lie behind each other: those of a task are all found when its second copy is walked over. */
static void find_edges(struct step *s, int kinds)
{
    struct walk w = {.step = s, .n = (int)s->n, .consumer = allocate(2 * s->n, sizeof *w.consumer)};
    size_t n_spaces[2] = {s->pool->n, (size_t)(s->pool->machine->n_devices + 1) * SLABS_PER_DEVICE}, n_holds = 0;
    int *holds = allocate(s->n, sizeof *holds); /* of each lane the last that always runs (a gate), those behind it */
    bool *passed = allocate((size_t)s->pool->machine->n_lanes, sizeof *passed);
    for (int kind = 0; kind < kinds; kind++)
        w.spaces[kind] = allocate(n_spaces[kind], sizeof *w.spaces[kind]);
    for (int i = w.n; i-- > 0;)
        if (s->task[i]->gate == GATE_HOLDS && !passed[s->task[i]->lane->index]) {
            holds[n_holds++] = i;
            passed[s->task[i]->lane->index] = !is_conditional(s->task[i]);
        }
    s->n_edges = 0;
    for (int node = 0; node < 2 * w.n; node++) {
        struct task *t = s->task[node % w.n];
        size_t before = s->n_edges;
        for (int kind = 0; kind < kinds; kind++)
            touch_all(&w, node, (enum edge_kind)kind);
        for (size_t i = 0; i < n_holds && t->gate == GATE_HELD; i++)
            add_edge(&w, node - node % w.n + holds[i], node, EDGE_DATA);
        t->n_edges = s->n_edges - before;
    }
    for (size_t i = 0, first = 0; i < s->n; first += s->task[i++]->n_edges) {
        s->task[i]->edges = s->edges + first;
        SORT(s->task[i]->edges, s->task[i]->n_edges, later_first);
    }
    for (int kind = 0; kind < kinds; kind++) {
        for (size_t i = 0; i < n_spaces[kind]; i++)
            free(w.spaces[kind][i].segments);
        free(w.spaces[kind]);
    }
    free(w.touches), free(w.consumer), free(holds), free(passed);
}

/* ---- which edges need a wait ----------------------------------------------------------------------------------- */

/* Clocks are kept for so many lanes at a time: what is known of one lane follows from what is known of that lane alone.
 */
enum { LANES_AT_A_TIME = 32 };
struct clocks {
    const struct step *step;
    int first, width; /* lanes first .. first + width - 1 */
    int *known;       /* [2n, width] */
};

/* At the start of `node`: what is known from the task before it on its lane and from its waits, which are chosen on the
 * way.  From a wait for a task that may be skipped nothing follows. */
static void choose_waits(struct clocks *c, int node, int *known)
{
    int n = (int)c->step->n;
    struct task *t = c->step->task[node % n];
    for (size_t i = 0; i < t->n_edges; i++) {
        struct edge *e = &t->edges[i];
        int from = (int)e->from + (node < n ? 0 : n) - (e->previous ? n : 0);
        const struct task *producer = c->step->task[e->from];
        int lane = producer->lane->index - c->first;
        bool here = lane >= 0 && lane < c->width;
        if (from < 0 || producer->lane == t->lane)
            continue; /* before the first copy, or known from the task before on the lane */
        if (here && from <= known[lane])
            continue; /* it follows, and all that was known there */
        e->wait |= here;
        if (is_conditional(producer))
            continue;
        if (here)
            known[lane] = from;
        const int *other = &c->known[(size_t)from * (size_t)c->width];
        for (int k = 0; k < c->width; k++)
            known[k] = MAX(known[k], other[k]);
    }
}

static void mark_waits(const struct step *s)
{
    int n = (int)s->n, n_lanes = s->pool->machine->n_lanes, most = MIN(n_lanes, LANES_AT_A_TIME);
    struct clocks c = {.step = s, .known = allocate(2 * s->n * (size_t)most, sizeof *c.known)};
    int *last = allocate(2 * (size_t)n_lanes, sizeof *last); /* by lane: its latest node so far ... */
    int *certain = last + n_lanes;                           /* ... and the latest that is not skipped */
    for (; c.first < n_lanes; c.first += c.width) {
        c.width = MIN(n_lanes - c.first, most);
        memset(last, -1, 2 * (size_t)n_lanes * sizeof *last);
        for (int node = 0; node < 2 * n; node++) {
            int lane = s->task[node % n]->lane->index;
            size_t width = (size_t)c.width;
            int *known = &c.known[(size_t)node * width];
            if (certain[lane] == NOBODY)
                memset(known, -1, width * sizeof *known);
            else
                memcpy(known, &c.known[(size_t)certain[lane] * width], width * sizeof *known);
            if (lane >= c.first && lane < c.first + c.width)
                known[lane - c.first] = last[lane];
            choose_waits(&c, node, known);
            last[lane] = node;
            if (!is_conditional(s->task[node % n]))
                certain[lane] = node;
        }
    }
    free(c.known), free(last);
}

int event_context(const struct task *t) { return t->lane->device->is_host ? 0 : t->lane->device->context->index; }

void depend(struct step *s, bool with_addresses)
{
    find_edges(s, with_addresses ? 2 : 1);
    mark_waits(s);
    for (size_t i = 0; i < s->n; i++) {
        s->task[i]->notify = 0;
        s->task[i]->flush = false;
    }
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->task[i]->n_edges; k++) {
            struct task *producer = s->task[s->task[i]->edges[k].from];
            if (!s->task[i]->edges[k].wait)
                continue;
            producer->flush = true;
            if (!s->task[i]->lane->device->is_host && event_context(producer) != event_context(s->task[i]))
                producer->notify |= 1u << event_context(s->task[i]);
        }
}

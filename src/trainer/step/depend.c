/* depend.c - which task must wait for which.
 *
 * Two accesses to the same bytes conflict when one of them writes; the later one in the list then depends on the
 * earlier. The list is cyclic, so it is walked twice: an edge from the first copy to the second one is a
 * *previous-step* edge.  A walk over tensors gives the data edges.  A walk over addresses gives the data edges and the
 * reuse edges, which exist only because place() gave two tensors the same bytes.  A few edges follow from no access:
 * those of gates (enum gate), and those that the list says (after.c).
 *
 * A *node* is a task in one of the two copies: task i of copy c is node c * n + i.  A lane runs its tasks in order, so
 * an edge within a lane needs no wait.  An edge between lanes needs none either if another wait makes sure that its
 * producer has ended.  To know that, each node has a vector clock: for each lane, the latest node that has certainly
 * ended before this one starts.
 *
 * A task that does not run in every iteration (struct when in task.h) cannot stand for others.  If task b waits for
 * such a task a, or comes after it on its lane, then b also has edges of its own to all that a waits for.
 */
#include "step.h"

/* ---- which nodes touched which bytes --------------------------------------------------------------------------- */

/* A space is a tensor's own bytes (data edges) or a slab of a device (reuse edges).  It is a sorted list of segments,
 * one at first; a touched range is cut out of it, so that every segment has one history: the node that wrote it last,
 * and those that have read it since. */
struct segment {        /* bytes up to the next segment */
    size_t begin;       /* its first byte */
    int writer, reader; /* its latest write and its latest read since, as positions in `touches`; or NONE */
};
struct space {
    struct segment *segments;
    size_t n, cap;
};
struct touch { /* a read or a write */
    int node;
    int before; /* the touch of the same bytes before it, or NONE; so segments that are cut share their past */
};

/* The segment that begins at that byte.  A segment that lies across the byte is cut in two. */
static size_t cut_segment(struct space *s, size_t byte)
{
    size_t i;
    if (!s->n)
        *APPEND(s->segments, s->n, s->cap) = (struct segment){.begin = 0, .writer = NONE, .reader = NONE};
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
    struct space *spaces[2]; /* by kind of edge: one for each tensor, one for each slab of each device */
    struct touch *touches;
    size_t n_touches, cap_touches;
    int *consumer; /* [2n] by node: the last node to which an edge from it was added */
    int n;         /* tasks of the list */
    struct after_pair *pairs;
    size_t n_pairs, next_pair; /* next_pair: those of earlier tasks come before it */
};

/* Adds an edge, unless it goes from a node to itself, or has been added before, or goes into the first copy of the
 * list: the second copy shows every edge of the steady state. */
static void add_edge(struct walk *w, int producer, int consumer, enum edge_kind kind)
{
    struct step *s = w->step;
    if (producer == consumer || consumer < w->n || w->consumer[producer] == consumer)
        return;
    w->consumer[producer] = consumer;
    *APPEND(s->edges, s->n_edges, s->cap_edges) =
        (struct edge){.producer = (uint32_t)(producer % w->n), .previous = producer < w->n, .kind = kind};
}

/* Adds edges from a touch and from all touches before it.  latest: its position in `touches`, or NONE. */
static void add_edges(struct walk *w, int latest, int consumer, enum edge_kind kind)
{
    for (int i = latest; i != NONE; i = w->touches[i].before)
        add_edge(w, w->touches[i].node, consumer, kind);
}

/* Notes that a node touches a tensor's bytes, and adds the edges that follow from it.  For reuse edges, the space is
 * the storage's slab.  A write that may be skipped does not hide the touches before it. */
static void note_touch(struct walk *w, int node, const struct access *a, enum edge_kind kind)
{
    const struct tensor *storage = a->tensor->storage;
    bool writes = a->mode & ACCESS_WRITE;
    bool hides = writes && !is_conditional(w->step->task[node % w->n]);
    struct space *space = &w->spaces[EDGE_DATA][storage->id];
    size_t begin = a->tensor->offset;
    if (kind == EDGE_REUSE) {
        space = &w->spaces[EDGE_REUSE][storage->device->index * SLABS_PER_DEVICE + storage->slab];
        begin += storage->address;
    }
    size_t first = cut_segment(space, begin), end = cut_segment(space, begin + a->tensor->bytes);
    for (struct segment *segment = space->segments + first; segment < space->segments + end; segment++) {
        int *latest = writes ? &segment->writer : &segment->reader;
        add_edges(w, segment->writer, node, kind);
        if (writes)
            add_edges(w, segment->reader, node, kind);
        *APPEND(w->touches, w->n_touches, w->cap_touches) = (struct touch){node, hides ? NONE : *latest};
        *latest = (int)w->n_touches - 1;
        if (hides)
            segment->reader = NONE;
    }
}

/* Does an access of a node connect it to others by edges of that kind?  A tensor that does not persist is a new value
 * in every iteration: only its bytes connect it to the iteration before.  One that persists shares its bytes with none,
 * so they connect it to nothing more than its value does.  In a ring the next iteration writes another member: nothing
 * connects the two. */
static bool connects(const struct walk *w, int node, const struct tensor *x, enum edge_kind kind)
{
    if (kind == EDGE_REUSE)
        return !x->persistent;
    bool lasts = x->persistent && !x->storage->ring;
    return lasts || node >= w->n;
}

/* A task reads before it writes. */
static void note_touches(struct walk *w, int node, enum edge_kind kind)
{
    const struct task *t = w->step->task[node % w->n];
    for (const struct access *a = t->access; a < t->access + t->n_access; a++)
        if (!(a->mode & ACCESS_WRITE) && connects(w, node, a->tensor, kind))
            note_touch(w, node, a, kind);
    for (const struct access *a = t->access; a < t->access + t->n_access; a++)
        if (a->mode & ACCESS_WRITE && connects(w, node, a->tensor, kind))
            note_touch(w, node, a, kind);
}

COMPARISON(later_first, struct edge, BY(a->previous, b->previous, COMPARE(b->producer, a->producer)))

/* The tasks that a held task must wait for: on each lane the last of those that hold and always run, and those that
 * hold after it.  Returns how many. */
static size_t find_holds(const struct step *s, int *holds)
{
    /* By lane: has the last task that holds and always runs been found? */
    bool *passed = allocate((size_t)s->pool->machine->n_lanes, sizeof *passed);
    size_t n = 0;
    for (size_t i = s->n; i-- > 0;) {
        const struct task *t = s->task[i];
        if (t->gate != GATE_HOLDS || passed[t->lane->index])
            continue;
        holds[n++] = (int)i;
        passed[t->lane->index] = !is_conditional(t);
    }
    free(passed);
    return n;
}

/* Adds the edges of a node that the list asks for by `after=`. */
static void add_after_edges(struct walk *w, int node)
{
    for (; w->next_pair < w->n_pairs && w->pairs[w->next_pair].second == node - w->n; w->next_pair++) {
        const struct after_pair *p = &w->pairs[w->next_pair];
        add_edge(w, p->previous ? p->first : p->first + w->n, node, EDGE_DATA);
    }
}

/* Each task gets its edges, of which n_edges says how many there are, in the order in which waits are chosen. */
static void deal_edges(struct step *s)
{
    size_t first = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct task *t = s->task[i];
        t->edges = s->edges + first;
        SORT(t->edges, t->n_edges, later_first);
        first += t->n_edges;
    }
}

static void free_walk(struct walk *w, int kinds, const size_t *n_spaces)
{
    for (int kind = 0; kind < kinds; kind++) {
        for (size_t i = 0; i < n_spaces[kind]; i++)
            free(w->spaces[kind][i].segments);
        free(w->spaces[kind]);
    }
    free(w->touches);
    free(w->consumer);
    free(w->pairs);
}

/* Finds the edges of all tasks.  All edges of a task are found while its second copy is walked over, so in s->edges
 * they lie side by side. */
static void find_edges(struct step *s, int kinds)
{
    struct walk w = {.step = s, .n = (int)s->n, .consumer = allocate(2 * s->n, sizeof *w.consumer)};
    size_t n_spaces[2] = {s->pool->n, (size_t)(s->pool->machine->n_devices + 1) * SLABS_PER_DEVICE};
    int *holds = allocate(s->n, sizeof *holds);
    size_t n_holds = find_holds(s, holds);
    w.pairs = find_after_pairs(s, &w.n_pairs);
    for (int kind = 0; kind < kinds; kind++)
        w.spaces[kind] = allocate(n_spaces[kind], sizeof *w.spaces[kind]);
    s->n_edges = 0;
    for (int node = 0; node < 2 * w.n; node++) {
        struct task *t = s->task[node % w.n];
        int first_of_copy = node < w.n ? 0 : w.n;
        size_t before = s->n_edges;
        for (int kind = 0; kind < kinds; kind++)
            note_touches(&w, node, (enum edge_kind)kind);
        if (t->gate == GATE_HELD)
            for (size_t i = 0; i < n_holds; i++)
                add_edge(&w, first_of_copy + holds[i], node, EDGE_DATA);
        add_after_edges(&w, node);
        t->n_edges = s->n_edges - before;
    }
    deal_edges(s);
    free_walk(&w, kinds, n_spaces);
    free(holds);
}

/* ---- which edges need a wait ----------------------------------------------------------------------------------- */

/* An edge between lanes that may need a wait.  An edge from an earlier task of the same lane needs none, since its
 * producer has ended when a later one has that always runs. */
struct crossing {
    struct edge *edge;
    int producer, lane; /* its position and its lane */
    bool stands;        /* the producer runs in every iteration, so what has ended before it follows */
};
/* Clocks are kept for so many lanes at a time: what is known of one lane does not depend on other lanes' clocks. */
enum { LANES_AT_A_TIME = 32 };
struct clocks {
    int n, n_lanes;            /* tasks and lanes */
    int first, width;          /* lanes first .. first + width - 1 */
    int *lane;                 /* by task: its lane */
    bool *conditional;         /* by task: there are iterations in which it does not run */
    struct crossing *crossing; /* those of task 0, of task 1 ... */
    size_t *end;               /* by task: where its crossings end */
    int *known; /* [2n, width] by node and lane: the latest node of that lane that has ended for certain; or NONE */
};

/* Lists the crossings of each task.  Of a task's edges from one lane, those after the first that stands are left out:
 * the edges stand with the latest producer first (later_first), and what ended before it follows.  found: by lane, one
 * more than the last task that has a crossing from a task there that stands; all 0 at first. */
static void list_crossings(struct clocks *c, const struct step *s, int *found)
{
    size_t n = 0;
    for (int i = 0; i < c->n; i++) {
        const struct task *t = s->task[i];
        c->lane[i] = t->lane->index;
        c->conditional[i] = is_conditional(t);
    }
    for (int i = 0; i < c->n; i++) {
        struct task *t = s->task[i];
        for (struct edge *e = t->edges; e < t->edges + t->n_edges; e++) {
            int producer = (int)e->producer, lane = c->lane[producer];
            if (lane == c->lane[i] || found[lane] == i + 1)
                continue;
            c->crossing[n++] = (struct crossing){e, producer, lane, !c->conditional[producer]};
            if (!c->conditional[producer])
                found[lane] = i + 1;
        }
        c->end[i] = n;
    }
}

/* Fills in the clock of a node: what is known from the task before it on its lane and from its waits, which are chosen
 * on the way.  From a wait for a task that may be skipped nothing follows. */
static void choose_waits(struct clocks *c, int node, int *known)
{
    int i = node % c->n;
    for (size_t k = i ? c->end[i - 1] : 0; k < c->end[i]; k++) {
        const struct crossing *x = &c->crossing[k];
        int producer_node = x->producer + node - i;
        if (x->edge->previous)
            producer_node -= c->n;
        int lane = x->lane - c->first;
        bool tracked = lane >= 0 && lane < c->width;
        if (producer_node < 0)
            continue; /* before the first copy */
        if (tracked && producer_node <= known[lane])
            continue; /* the wait follows from others, and so does all that was known there */
        x->edge->wait |= tracked;
        if (!x->stands)
            continue;
        if (tracked)
            known[lane] = producer_node;
        const int *producer_known = &c->known[(size_t)producer_node * (size_t)c->width];
        for (int l = 0; l < c->width; l++)
            known[l] = MAX(known[l], producer_known[l]);
    }
}

/* Walks over both copies, for the lanes of c.  By lane, last[] is the latest node so far, and certain[] the latest node
 * that is never skipped. */
static void walk_clocks(struct clocks *c, int *last, int *certain)
{
    size_t width = (size_t)c->width;
    for (int lane = 0; lane < c->n_lanes; lane++)
        last[lane] = certain[lane] = NONE;
    for (int node = 0; node < 2 * c->n; node++) {
        int lane = c->lane[node % c->n];
        int *known = &c->known[(size_t)node * width];
        if (certain[lane] == NONE)
            fill_none(known, width);
        else
            memcpy(known, &c->known[(size_t)certain[lane] * width], width * sizeof *known);
        if (lane >= c->first && lane < c->first + c->width)
            known[lane - c->first] = last[lane];
        choose_waits(c, node, known);
        last[lane] = node;
        if (!c->conditional[node % c->n])
            certain[lane] = node;
    }
}

static void mark_waits(const struct step *s)
{
    struct clocks c = {.n = (int)s->n, .n_lanes = s->pool->machine->n_lanes};
    int most = MIN(c.n_lanes, LANES_AT_A_TIME);
    int *last = allocate((size_t)c.n_lanes, sizeof *last);
    int *certain = allocate((size_t)c.n_lanes, sizeof *certain);
    c.lane = allocate(s->n, sizeof *c.lane);
    c.conditional = allocate(s->n, sizeof *c.conditional);
    c.crossing = allocate(s->n_edges, sizeof *c.crossing);
    c.end = allocate(s->n, sizeof *c.end);
    c.known = allocate(2 * s->n * (size_t)most, sizeof *c.known);
    list_crossings(&c, s, last);
    while (c.first < c.n_lanes) {
        c.width = MIN(c.n_lanes - c.first, most);
        walk_clocks(&c, last, certain);
        c.first += c.width;
    }
    free(c.lane);
    free(c.conditional);
    free(c.crossing);
    free(c.end);
    free(c.known);
    free(last);
    free(certain);
}

int event_context(const struct task *t) { return t->lane->device->is_host ? 0 : t->lane->device->context->index; }

void depend(struct step *s, enum edges_wanted wanted)
{
    find_edges(s, wanted == ALL_EDGES ? 2 : 1);
    mark_waits(s);
    for (size_t i = 0; i < s->n; i++) {
        s->task[i]->notify = 0;
        s->task[i]->flush = false;
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        for (const struct edge *e = t->edges; e < t->edges + t->n_edges; e++) {
            struct task *producer = s->task[e->producer];
            if (!e->wait)
                continue;
            producer->flush = true;
            if (!t->lane->device->is_host && event_context(producer) != event_context(t))
                producer->notify |= 1u << event_context(t);
        }
    }
}

/* depend.c - which task must wait for which.
 *
 * Two accesses to the same bytes conflict when one of them writes; the later one in the list then depends on the
 * earlier.  The list is cyclic, so it is walked twice: an edge from the first round to the second one is a
 * *previous-step* edge.  *Data* edges are found by the bytes of each tensor.  *Reuse* edges, which exist only because
 * place() gave two tensors the same bytes, are found by the bytes of each slab.  Accesses to one tensor conflict in its
 * slab too.  But no edge is added twice, and a task's data edges are found first, so these do not become reuse edges.
 * A few edges follow from no access: after.c finds those that the list says.
 *
 * A *node* is a task in one of the two rounds: task i of round r is node r * n + i, where r is 0 or 1.
 *
 * A task that does not run in every iteration (struct when in when.h) cannot stand for others.  If task b waits for
 * such a task a, or comes after it on its lane, then b also has edges of its own to all that a waits for.
 *
 * Not every edge becomes a wait: waits.c marks those that do.
 */
#include "step_parts.h"

struct touch { /* a read or a write */
    int node;
    int previous; /* the touch of the same bytes before it, or NONE; so segments that are cut share their past */
};

struct walk {
    struct list *list;
    struct space *spaces[EDGE_KINDS]; /* by kind of edge: one for each tensor, one for each slab of each device */
    struct touch *touches;
    size_t n_touches, cap_touches;
    int *last_consumer;         /* [2n] by node: the last node to which an edge from it was added */
    int n;                      /* tasks of the list */
    struct listed_wait *listed; /* after.c: waits that follow from no access */
    size_t n_listed;
    size_t next_listed; /* index in `listed` of the first wait whose consumer has not been walked over */
};

/* ---- edges ------------------------------------------------------------------------------------------------------- */

/* Adds an edge, unless it goes from a node to itself, or has been added before, or goes into the first round: the
 * second round shows every edge of the steady state. */
static void add_edge(struct walk *walk, int producer, int consumer, enum edge_kind kind)
{
    struct list *list = walk->list;
    if (producer == consumer || consumer < walk->n || walk->last_consumer[producer] == consumer)
        return;
    walk->last_consumer[producer] = consumer;
    GROW(list->edges, list->cap_edges, list->n_edges + 1);
    list->edges[list->n_edges++] =
        (struct edge){.producer = (uint32_t)(producer % walk->n), .previous = producer < walk->n, .kind = kind};
}

/* Adds edges from a touch and from all touches before it.  latest: its position in `touches`, or NONE. */
static void add_edges(struct walk *walk, int latest, int consumer, enum edge_kind kind)
{
    for (int i = latest; i != NONE; i = walk->touches[i].previous)
        add_edge(walk, walk->touches[i].node, consumer, kind);
}

/* Does an access of a node connect it to others by edges of that kind?
 *
 *     reuse    Not if the tensor persists: it shares its bytes with no other, so its data edges say all.
 *     data     A tensor that does not persist has a new value in each iteration.  The value connects nothing to the
 *              iteration before (the bytes do), so it counts in one round alone, the second.  A tensor in slots does
 *              not last either: the next iteration writes into another slot.
 *
 *     task           data edges: round 0, round 1     reuse edges: round 0, round 1
 *     0 writes x     no                   yes         yes                  yes          x: an activation
 *     1 reads w      yes                  yes         no                   no           w: a parameter, which persists
 */
static bool connects(const struct walk *walk, int node, const struct tensor *tensor, enum edge_kind kind)
{
    if (kind == EDGE_REUSE)
        return !tensor->persistent;
    bool lasts = tensor->persistent && !tensor->storage->extra.slots;
    return lasts || node >= walk->n;
}

/* Notes that a node touches a tensor's bytes, and adds the edges that follow from it.  For reuse edges, the space is
 * the storage's slab.  A write that may be skipped does not hide the touches before it. */
static void note_touch(struct walk *walk, int node, const struct access *access, enum edge_kind kind)
{
    const struct tensor *storage = access->tensor->storage;
    bool writes = access->mode & ACCESS_WRITE;
    bool hides = writes && !is_conditional(walk->list->tasks[node % walk->n]);
    struct space *space = &walk->spaces[EDGE_DATA][storage->id];
    size_t begin = access->tensor->offset;
    if (kind == EDGE_REUSE) {
        space = &walk->spaces[EDGE_REUSE][storage->device->index * SLABS_PER_DEVICE + storage->slab];
        begin += storage->address;
    }
    size_t first = cut_segment(space, begin);
    size_t end = cut_segment(space, begin + access->tensor->bytes);
    for (struct segment *segment = space->segments + first; segment < space->segments + end; segment++) {
        int *latest = writes ? &segment->writer : &segment->reader;
        add_edges(walk, segment->writer, node, kind);
        if (writes)
            add_edges(walk, segment->reader, node, kind);
        GROW(walk->touches, walk->cap_touches, walk->n_touches + 1);
        walk->touches[walk->n_touches++] = (struct touch){.node = node, .previous = hides ? NONE : *latest};
        *latest = (int)walk->n_touches - 1;
        if (hides)
            segment->reader = NONE;
    }
}

/* A task reads before it writes. */
static void note_touches(struct walk *walk, int node, enum edge_kind kind)
{
    const struct task *task = walk->list->tasks[node % walk->n];
    for (int i = 0; i < task->n_accesses; i++)
        if (!(task->accesses[i].mode & ACCESS_WRITE) && connects(walk, node, task->accesses[i].tensor, kind))
            note_touch(walk, node, &task->accesses[i], kind);
    for (int i = 0; i < task->n_accesses; i++)
        if ((task->accesses[i].mode & ACCESS_WRITE) && connects(walk, node, task->accesses[i].tensor, kind))
            note_touch(walk, node, &task->accesses[i], kind);
}

/* Adds the edges of a node that follow from no access: the list says that it waits. */
static void add_listed_edges(struct walk *walk, int node)
{
    while (walk->next_listed < walk->n_listed && walk->listed[walk->next_listed].consumer == node - walk->n) {
        const struct listed_wait *wait = &walk->listed[walk->next_listed];
        add_edge(walk, wait->previous ? wait->producer : wait->producer + walk->n, node, EDGE_DATA);
        walk->next_listed++;
    }
}

/* ---- the edges of a list ----------------------------------------------------------------------------------------- */

/* Frees what fill_edges() has allocated for the walk. */
static void free_walk(struct walk *walk, int n_kinds, const size_t *n_spaces)
{
    for (int kind = 0; kind < n_kinds; kind++) {
        for (size_t i = 0; i < n_spaces[kind]; i++)
            free(walk->spaces[kind][i].segments);
        free(walk->spaces[kind]);
    }
    free(walk->touches);
    free(walk->last_consumer);
    free(walk->listed);
}

/* Finds the edges of all tasks, of the first n_kinds kinds.  All edges of a task are found in the second round, so
 * in list->edges they lie side by side. */
static void fill_edges(struct list *list, int n_kinds)
{
    struct walk walk = {.list = list, .n = (int)list->n, .last_consumer = allocate(2 * list->n, sizeof(int))};
    const size_t n_spaces[EDGE_KINDS] = {list->pool->n,
                                         (size_t)(list->pool->machine->n_devices + 1) * SLABS_PER_DEVICE};
    walk.listed = collect_waits_with_gates(list, &walk.n_listed);
    for (int kind = 0; kind < n_kinds; kind++)
        walk.spaces[kind] = allocate(n_spaces[kind], sizeof *walk.spaces[kind]);
    list->n_edges = 0;
    for (int node = 0; node < 2 * walk.n; node++) {
        struct task *task = list->tasks[node % walk.n];
        size_t edges_before = list->n_edges;
        for (int kind = 0; kind < n_kinds; kind++)
            note_touches(&walk, node, (enum edge_kind)kind);
        add_listed_edges(&walk, node);
        task->n_edges = list->n_edges - edges_before;
    }
    free_walk(&walk, n_kinds, n_spaces);
}

void depend(struct list *list, enum edges_wanted wanted)
{
    int n_kinds = wanted == ALL_EDGES ? EDGE_KINDS : EDGE_DATA + 1; /* data edges are the first of enum edge_kind */
    fill_edges(list, n_kinds);
    mark_waits(list);
    for (size_t i = 0; i < list->n; i++) {
        list->tasks[i]->notify = 0;
        list->tasks[i]->flush = false;
    }
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
            struct task *producer = list->tasks[edge->producer];
            if (!edge->needs_wait)
                continue;
            producer->flush = true;
            if (!task->lane->device->is_host && event_context(producer) != event_context(task))
                producer->notify |= 1u << event_context(task);
        }
    }
}

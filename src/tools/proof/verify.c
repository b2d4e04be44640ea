/* verify.c - proves of a placed list, on its own, that it computes what the order of its tasks says, provided that
 * tasks touch what they declare (see audit.c).
 *
 *     values   Every read, in list order, finds bytes that were last written through the same tensor, and in this
 *              iteration unless the tensor persists.  This finds a lifetime that was cut short: another tensor has
 *              overwritten the bytes.
 *     order    A read starts after the last write of its bytes has ended; a write starts after that write and all
 *              reads since have ended.  So any two accesses of which one writes are ordered.  Lanes and waits order
 *              tasks, in the way that execute() waits, and nothing else does.  This finds an edge that was dropped.
 *              What a list says without a tensor, by gates and `after=`, is an order too.
 *
 * This file uses the edges that depend() has made, and nothing else of it.  A *node* is a task in one of two
 * iterations: iteration * n + task.
 */
#include "cells.h"
#include "proof.h"

struct pair { /* two nodes: the second must start after the end of the first */
    int first, second;
};
struct cell_touch {
    int node;
    int before; /* index of the touch before this one, or NONE; two parts of a cell that is cut share these touches */
    const struct tensor *storage;
};
struct proof {
    const struct step *step;
    uint32_t number;      /* the proof is of the tasks that run in that iteration; 0: of all tasks */
    struct strip *strips; /* by device; a strip has the device's slabs one after another */
    struct cell_touch *touches;
    size_t n_touches, cap_touches;
    struct pair *pairs;
    size_t n_pairs, cap_pairs;
    char *wrong;
};

/* The tensor's first byte in its device's strip, in which slabs begin at multiples of NO_LIMIT: none is larger. */
static size_t strip_begin(const struct tensor *t)
{
    return (size_t)t->storage->slab * NO_LIMIT + t->storage->address + t->offset;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* The node reads a cell whose last write was `writer`; NULL: there was none.  Returns what is wrong with that. */
static char *check_cell(const struct step *s, int node, const struct access *a, const struct cell_touch *writer)
{
    int n = (int)s->n;
    const struct tensor *storage = a->tensor->storage;
    const char *reader = s->task[node % n]->name;
    /* A choice holds for its own iteration.  Only the task that makes the next choice may read it afterwards. */
    bool kept = storage->persistent && (!a->tensor->choice || chooses(s->task[node % n]));
    if (storage->ring && writer) /* another iteration wrote another member of the ring, not this one */
        kept = false;
    if (writer && writer->storage != storage)
        return format_string("task %d %s reads tensor %s, but its bytes were overwritten as tensor %s by task %d %s",
                             node % n, reader, a->tensor->name, writer->storage->name, writer->node % n,
                             s->task[writer->node % n]->name);
    if (!kept && (!writer || writer->node / n != node / n))
        return format_string("task %d %s reads tensor %s before anything is written to it", node % n, reader,
                             a->tensor->name);
    return NULL;
}

static char *describe_conflict(const struct step *s, int first, int second)
{
    int i = first % (int)s->n, k = second % (int)s->n;
    const struct task *a = s->task[i], *b = s->task[k];
    bool together = first - i == second - k; /* in one iteration */
    if (first == second)
        return format_string("task %d %s has two tensors on the same bytes", i, a->name);
    if (b->gate == GATE_HELD && a->gate == GATE_HOLDS && together)
        return format_string("task %d %s, an update, may start before task %d %s has ended", k, b->name, i, a->name);
    if (is_after(s, b, a, together ? SAME_STEP : STEP_BEFORE))
        return format_string("task %d %s may start before task %d %s%s has ended, which after= tells it to wait for", k,
                             b->name, i, a->name, together ? "" : " of the step before");
    return format_string("task %d %s and task %d %s%s touch the same bytes and nothing orders them", i, a->name, k,
                         b->name, together ? "" : " of the next iteration");
}

/* The node must come after this touch and after those before it.  A task may read and write the same tensor, but no two
 * tensors on the same bytes. */
static void need_order(struct proof *p, int touch, int node, const struct tensor *storage)
{
    int n = (int)p->step->n;
    for (; touch != NONE; touch = p->touches[touch].before) {
        const struct cell_touch *x = &p->touches[touch];
        if (storage->ring && x->node / n != node / n)
            continue; /* another iteration uses another member: see verify_rings() */
        if (x->node == node && x->storage != storage && !p->wrong)
            p->wrong = describe_conflict(p->step, node, node);
        if (x->node != node)
            *APPEND(p->pairs, p->n_pairs, p->cap_pairs) = (struct pair){x->node, node};
    }
}

/* Adds the touch that has the index `before` as the one before it; returns the index of the new touch. */
static int add_touch(struct proof *p, int node, int before, const struct tensor *storage)
{
    struct cell_touch *added = APPEND(p->touches, p->n_touches, p->cap_touches);
    added->node = node;
    added->before = before;
    added->storage = storage;
    return (int)p->n_touches - 1;
}

static void note_read(struct proof *p, int node, const struct access *a, struct byte_cell *c)
{
    const struct tensor *storage = a->tensor->storage;
    const struct cell_touch *writer = c->writer == NONE ? NULL : &p->touches[c->writer];
    if (p->number && !p->wrong)
        p->wrong = check_cell(p->step, node, a, writer);
    need_order(p, c->writer, node, storage);
    c->reader = add_touch(p, node, c->reader, storage);
}

/* A write hides the touches before it: later nodes need to come after the write alone.  But a write that may be skipped
 * hides nothing. */
static void note_write(struct proof *p, int node, const struct access *a, struct byte_cell *c)
{
    const struct tensor *storage = a->tensor->storage;
    bool hides = p->number || !is_conditional(p->step->task[node % (int)p->step->n]);
    need_order(p, c->writer, node, storage);
    need_order(p, c->reader, node, storage);
    c->writer = add_touch(p, node, hides ? NONE : c->writer, storage);
    if (hides)
        c->reader = NONE;
}

static void touch_cells(struct proof *p, int node, const struct access *a, enum access_mode mode)
{
    size_t n, first = strip_begin(a->tensor);
    struct byte_cell *c = cells_of(&p->strips[a->tensor->device->index], first, first + a->tensor->bytes, &n);
    for (size_t k = 0; k < n; k++)
        if (mode == ACCESS_WRITE)
            note_write(p, node, a, &c[k]);
        else
            note_read(p, node, a, &c[k]);
}

/* Goes through two iterations, one after the other.  A task reads before it writes. */
static void walk_bytes(struct proof *p)
{
    int n = (int)p->step->n;
    for (int node = 0; node < 2 * n && !p->wrong; node++) {
        const struct task *t = p->step->task[node % n];
        if (p->number && !runs(t, p->number))
            continue;
        for (int i = 0; i < t->n_access; i++)
            if (t->access[i].mode & ACCESS_READ)
                touch_cells(p, node, &t->access[i], ACCESS_READ);
        for (int i = 0; i < t->n_access; i++)
            if (t->access[i].mode & ACCESS_WRITE)
                touch_cells(p, node, &t->access[i], ACCESS_WRITE);
    }
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

enum { LANES_AT_A_TIME = 32 };
struct ends {                    /* what has ended at some moment */
    int latest[LANES_AT_A_TIME]; /* by lane: its latest node that has ended; NONE: none has */
};

/* Adds what had ended when another node started: a node that waits for that one starts later. */
static void join_ends(struct ends *mine, const struct ends *other)
{
    for (int i = 0; i < LANES_AT_A_TIME; i++)
        mine->latest[i] = MAX(mine->latest[i], other->latest[i]);
}

/* Adds the other node's own end. */
static void note_end(const struct step *s, struct ends *mine, int node, int first_lane)
{
    int lane = s->task[node % (int)s->n]->lane->index - first_lane;
    if (lane >= 0 && lane < LANES_AT_A_TIME)
        mine->latest[lane] = MAX(mine->latest[lane], node);
}

/* The node that an edge of this node comes from; negative: it is in an iteration before both. */
static int source_of(const struct step *s, int node, const struct edge *e)
{
    int n = (int)s->n, iteration = node / n;
    if (e->previous)
        iteration--;
    return iteration * n + (int)e->producer;
}

/* Finds for each node what has ended when it starts: the nodes that it waits for, and all that had ended when these
 * started.  A wait for a node that may be skipped proves nothing, except that nodes of one lane end in order. */
static void find_ended_nodes(const struct step *s, int first_lane, struct ends *ends)
{
    int n = (int)s->n, n_lanes = s->pool->machine->n_lanes;
    int *last = allocate((size_t)n_lanes, sizeof *last);       /* by lane: its latest node so far */
    int *certain = allocate((size_t)n_lanes, sizeof *certain); /* by lane: its latest one that cannot be skipped */
    fill_none(last, (size_t)n_lanes);
    fill_none(certain, (size_t)n_lanes);
    for (size_t i = 0; i < 2 * s->n; i++)
        fill_none(ends[i].latest, LANES_AT_A_TIME);
    for (int node = 0; node < 2 * n; node++) {
        const struct task *t = s->task[node % n];
        int lane = t->lane->index;
        if (certain[lane] != NONE)
            join_ends(&ends[node], &ends[certain[lane]]);
        if (last[lane] != NONE)
            note_end(s, &ends[node], last[lane], first_lane);
        for (size_t k = 0; k < t->n_edges; k++) {
            const struct edge *e = &t->edges[k];
            int producer = source_of(s, node, e);
            if (!e->wait || producer < 0 || is_conditional(s->task[e->producer]))
                continue;
            join_ends(&ends[node], &ends[producer]);
            note_end(s, &ends[node], producer, first_lane);
        }
        last[lane] = node;
        if (!is_conditional(t))
            certain[lane] = node;
    }
    free(last);
    free(certain);
}

/* Does the second node itself wait for the first one, which may be skipped? */
static bool waits_for(const struct step *s, struct pair x)
{
    const struct task *t = s->task[x.second % (int)s->n];
    for (const struct edge *e = t->edges; e < t->edges + t->n_edges; e++)
        if (e->wait && source_of(s, x.second, e) == x.first)
            return true;
    return false;
}

static void verify_order(struct proof *p)
{
    const struct step *s = p->step;
    struct ends *ends = allocate(2 * s->n, sizeof *ends);
    for (int lane = 0; lane < s->pool->machine->n_lanes && !p->wrong; lane += LANES_AT_A_TIME) {
        find_ended_nodes(s, lane, ends);
        for (size_t i = 0; i < p->n_pairs && !p->wrong; i++) {
            struct pair x = p->pairs[i];
            int k = s->task[x.first % (int)s->n]->lane->index - lane;
            if (k < 0 || k >= LANES_AT_A_TIME)
                continue;
            if (ends[x.second].latest[k] < x.first && !waits_for(s, x))
                p->wrong = describe_conflict(s, x.first, x.second);
        }
    }
    free(ends);
}

/* Held tasks come after all tasks that hold them, whatever bytes they touch.  In each iteration it is
 * the same, so the second one is looked at. */
static void need_gates(struct proof *p)
{
    const struct step *s = p->step;
    int n = (int)s->n;
    for (int i = 0; i < n; i++) {
        if (s->task[i]->gate != GATE_HOLDS)
            continue;
        for (int k = 0; k < n; k++)
            if (s->task[k]->gate == GATE_HELD)
                *APPEND(p->pairs, p->n_pairs, p->cap_pairs) = (struct pair){n + i, n + k};
    }
}

/* So do tasks of which the list says that they wait (after.c). */
static void need_after(struct proof *p)
{
    size_t n_orders;
    int n = (int)p->step->n;
    struct after_pair *orders = find_after_pairs(p->step, &n_orders);
    for (const struct after_pair *o = orders; o < orders + n_orders; o++) {
        int first = o->previous ? o->first : n + o->first;
        *APPEND(p->pairs, p->n_pairs, p->cap_pairs) = (struct pair){first, n + o->second};
    }
    free(orders);
}

/* Proves values and order for the tasks that run in that iteration; 0: the order alone, for all tasks. */
static char *prove(const struct step *s, uint32_t number)
{
    size_t n = (size_t)s->pool->machine->n_devices + 1;
    struct proof p = {.step = s, .number = number, .strips = allocate(n, sizeof *p.strips)};
    need_gates(&p);
    need_after(&p);
    walk_bytes(&p);
    if (!p.wrong)
        verify_order(&p);
    free_strips(p.strips, n);
    free(p.touches);
    free(p.pairs);
    return p.wrong;
}

enum { MOST_ITERATIONS = 10000 };

static bool has_conditional(const struct step *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (is_conditional(s->task[i]))
            return true;
    return false;
}

/* A number for the set of tasks that run in this iteration. */
static uint64_t hash_running(const struct step *s, uint32_t number)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        if (t->when.every > 1 && number % t->when.every == t->when.remainder)
            hash = hash_pair(hash, i);
    }
    return hash;
}

static bool has_item(const uint64_t *items, size_t n, uint64_t item)
{
    for (size_t i = 0; i < n; i++)
        if (items[i] == item)
            return true;
    return false;
}

/* Proves the order among all tasks, whichever of them are skipped.  Then it proves one iteration for each set of tasks
 * that run together, since a task may read only what tasks of the same iteration wrote. */
static char *verify_accesses(const struct step *s)
{
    uint32_t last = repeat_of(s, MOST_ITERATIONS);
    uint64_t *seen = allocate(last, sizeof *seen); /* the sets that were proved */
    size_t n = 0;
    char *wrong = NULL;
    if (has_conditional(s))
        wrong = prove(s, 0);
    for (uint32_t number = 1; number <= last && !wrong; number++) {
        uint64_t set = hash_running(s, number);
        if (has_item(seen, n, set))
            continue;
        seen[n++] = set;
        wrong = prove(s, number);
    }
    free(seen);
    return wrong;
}

/* An order binds tasks as they stand in the list.  So one that was moved to before all that it waits for would wait for
 * none of them, and needs a look of its own. */
static char *verify_after(const struct step *s)
{
    char *wrong = NULL;
    int *earliest = allocate(s->last_origin + 1, sizeof *earliest); /* by origin: the position of its first task */
    fill_none(earliest, s->last_origin + 1);
    for (size_t i = s->n; i-- > 0;)
        earliest[s->task[i]->origin] = (int)i;
    for (size_t i = 0; i < s->n_after && !wrong; i++) {
        int waits = earliest[s->after[i].origin], first = earliest[s->after[i].waits_for];
        if (waits != NONE && !s->after[i].previous && (first == NONE || first > waits))
            wrong = format_string("task %d %s comes before all that after= tells it to wait for", waits,
                                  s->task[waits]->name);
    }
    free(earliest);
    return wrong;
}

/* ---- rings ----------------------------------------------------------------------------------------------------- */

/* A tensor of a ring that the task touches; NULL: there is none. */
static const struct tensor *ring_of(const struct task *t)
{
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].tensor->storage->ring)
            return t->access[i].tensor;
    return NULL;
}

/* One task of an iteration returns its member.  This finds, by task, which of those that need the member have certainly
 * ended by then: those that the returning task waits for within the iteration, those before it on its lane, and those
 * that these wait for in turn.  A chain of waits counts only through tasks that run whenever the iteration has a
 * member.  Tasks are looked at from the last to the first, so a task is known before those that it waits for. */
static bool *find_returned(const struct step *s)
{
    const size_t n_lanes = (size_t)s->pool->machine->n_lanes;
    bool *ended = allocate(s->n, sizeof *ended);
    bool *on_lane = allocate(n_lanes, sizeof *on_lane); /* by lane: all tasks of it before task i have ended */
    for (size_t i = s->n; i-- > 0;) {
        const struct task *t = s->task[i];
        if (!t->condition.member)
            continue;
        ended[i] |= t->condition.returns_member || on_lane[t->lane->index];
        if (!ended[i] || t->condition.needs)
            continue;
        on_lane[t->lane->index] = true;
        for (const struct edge *e = t->edges; e < t->edges + t->n_edges; e++)
            ended[e->producer] |= e->wait && !e->previous;
    }
    free(on_lane);
    return ended;
}

/* Iterations that run at the same time use different members of a ring, since the rule of ring.c gives no member to
 * two.  So it is enough that an iteration touches a member only while it has it: from its first task that needs a
 * member until the task that returns the member has ended. */
static char *verify_rings(const struct step *s)
{
    bool *returned = find_returned(s);
    char *wrong = NULL;
    for (size_t i = 0; i < s->n && !wrong; i++) {
        const struct task *t = s->task[i];
        const struct tensor *x = ring_of(t);
        if (x && !t->condition.member)
            wrong = format_string("task %zu %s touches ring %s, and may run when its iteration has no member of it", i,
                                  t->name, x->name);
        else if (x && !returned[i])
            wrong = format_string(
                "task %zu %s touches ring %s, and may run when its iteration has returned its member of it", i, t->name,
                x->name);
    }
    free(returned);
    return wrong;
}

/* ---- devices --------------------------------------------------------------------------------------------------- */

char *verify_devices(const struct step *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        const struct device *d = t->lane->device;
        /* Has a pass moved it?  Not all its tensors have moved then. */
        bool moved = d->is_host && d->described.by_hand && t->role == ROLE_UPDATE;
        if (is_copy(t) || chooses(t) || moved)
            continue;
        for (int k = 0; k < t->n_access; k++) {
            const struct tensor *x = t->access[k].tensor;
            if (x->device != d)
                return format_string("task %zu %s of device %s touches tensor %s of device %s: only a copy may", i,
                                     t->name, d->id, x->name, x->device->id);
        }
    }
    return NULL;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* A tensor that is kept from step to step shares bytes with no other, even where the list does not touch it.  And every
 * tensor lies within its slab, once slabs have been made. */
static char *verify_storage(const struct step *s, struct strip *strip, const struct tensor *t)
{
    size_t n;
    struct byte_cell *c = cells_of(strip, strip_begin(t), strip_begin(t) + t->bytes, &n);
    if (s->running && (t->slab >= (int)t->device->n_slabs || t->address + t->bytes > t->device->slabs[t->slab].bytes))
        return format_string("tensor %s ends behind its slab on device %s", t->name, t->device->id);
    for (size_t i = 0; i < n; i++) {
        if (c[i].kept)
            return format_string("tensor %s shares bytes with %s, which is kept from step to step", t->name,
                                 c[i].kept->name);
        if (t->persistent)
            c[i].kept = t;
        c[i].used = true;
    }
    return NULL;
}

/* Persistent tensors must come first: no other tensor may have their bytes at any time. */
enum lifetime { TRANSIENT, PERSISTENT };
static char *verify_tensors(const struct step *s, struct strip *strips, enum lifetime lifetime)
{
    char *wrong = NULL;
    for (size_t i = 0; i < s->pool->n && !wrong; i++) {
        const struct tensor *t = s->pool->tensors[i];
        if (t->storage == t && t->slab >= 0 && t->persistent == (lifetime == PERSISTENT))
            wrong = verify_storage(s, &strips[t->device->index], t);
    }
    return wrong;
}

/* Adds up the bytes of a device's slabs, each as far as tensors reach in it. */
static size_t sum_slabs(const struct strip *strip)
{
    size_t sum = 0, reach = 0; /* reach: in the slab of cell i */
    for (size_t i = 0; i < strip->n; i++) {
        const struct byte_cell *c = &strip->cell[i];
        size_t slab = c->begin / NO_LIMIT;
        if (c->used)
            reach = c->end - slab * NO_LIMIT;
        if (i + 1 == strip->n || c[1].begin / NO_LIMIT > slab) {
            sum += reach;
            reach = 0;
        }
    }
    return sum;
}

static char *verify_memory(const struct step *s)
{
    const struct machine *m = s->pool->machine;
    size_t n = (size_t)m->n_devices + 1;
    struct strip *strips = allocate(n, sizeof *strips);
    char *wrong = verify_tensors(s, strips, PERSISTENT);
    if (!wrong)
        wrong = verify_tensors(s, strips, TRANSIENT);
    for (size_t d = 0; d < n && !wrong; d++) {
        const struct device *device = &m->device[d];
        size_t sum = sum_slabs(&strips[d]);
        if (sum > device->budget)
            wrong = format_string("device %s holds %zu bytes, its budget is %zu", device->id, sum, device->budget);
    }
    free_strips(strips, n);
    return wrong;
}

char *verify(const struct step *s, const struct values *expected)
{
    char *wrong = verify_accesses(s); /* it comes first, since its message names the tensor that is read */
    if (!wrong)
        wrong = verify_after(s);
    if (!wrong)
        wrong = verify_rings(s);
    if (!wrong && expected)
        wrong = compare_values(expected, s);
    if (!wrong)
        wrong = verify_memory(s);
    return wrong;
}

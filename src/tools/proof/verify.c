/* verify.c - proves of a placed list, on its own, that it computes what its order on paper says, provided that tasks
 * touch what they declare (see audit.c).
 *
 * Values: in list order, every read finds bytes that were last written through the same tensor, in this iteration
 * unless the tensor persists.  (A lifetime cut short lets another tensor overwrite it: seen here.) Order: a read starts
 * behind the last write of its bytes, a write behind that and behind all reads since; from there, so are any two
 * accesses of which one writes.  "Behind" follows from lanes and waits, the way execute() waits and no more.  (A
 * dropped edge is seen here.) It knows nothing of depend() but where its edges are.
 */
#include "cells.h"
#include "proof.h"

struct pair { /* of nodes: the second must start behind the end of the first */
    int first, second;
};
struct touch { /* of a cell; `before`: the one before it, so that cells which are cut share their past */
    int node, before;
    const struct tensor *storage;
};
struct proof {
    const struct step *step;
    uint32_t number;      /* only tasks that run in that iteration; 0: all */
    struct strip *strips; /* by device: its slabs behind each other */
    struct touch *touches;
    size_t n_touches, cap_touches;
    struct pair *pairs;
    size_t n_pairs, cap_pairs;
    char *wrong;
};

/* In its device's strip: no slab is larger than that. */
static size_t first_byte(const struct tensor *t)
{
    return (size_t)t->storage->slab * NO_LIMIT + t->storage->address + t->offset;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static char *check_cell(const struct step *s, int node, const struct access *a, const struct touch *writer)
{
    int n = (int)s->n;
    const struct tensor *storage = a->tensor->storage;
    const char *reader = s->task[node % n]->name;
    /* a choice holds for its own iteration, but for the task that makes the next one */
    bool kept = storage->persistent && (!a->tensor->choice || chooses(s->task[node % n]));
    if (storage->ring && writer) /* another iteration's value is in another member; what nobody writes stays */
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
    return format_string("task %d %s and task %d %s%s touch the same bytes and nothing orders them", i, a->name, k,
                         b->name, together ? "" : " of the next iteration");
}

/* Behind that touch and those before it.  A task may work in place, but not on the bytes of two tensors. */
static void need_order(struct proof *p, int touch, int node, const struct tensor *storage)
{
    int n = (int)p->step->n;
    for (; touch != NONE; touch = p->touches[touch].before) {
        const struct touch *x = &p->touches[touch];
        if (storage->ring && x->node / n != node / n)
            continue; /* of another iteration, and so of another member: see verify_rings() */
        if (x->node == node && x->storage != storage && !p->wrong)
            p->wrong = describe_conflict(p->step, node, node);
        if (x->node != node)
            *APPEND(p->pairs, p->n_pairs, p->cap_pairs) = (struct pair){x->node, node};
    }
}

/* A write that may be skipped does not hide who wrote before. */
static void touch_cell(struct proof *p, int node, const struct access *a, bool writing, struct cell *c)
{
    const struct tensor *storage = a->tensor->storage;
    bool hides = writing && (p->number || !is_conditional(p->step->task[node % (int)p->step->n]));
    int *latest = writing ? &c->writer : &c->reader;
    if (!writing && p->number && !p->wrong)
        p->wrong = check_cell(p->step, node, a, c->writer == NONE ? NULL : &p->touches[c->writer]);
    need_order(p, c->writer, node, storage);
    if (writing)
        need_order(p, c->reader, node, storage);
    *APPEND(p->touches, p->n_touches, p->cap_touches) = (struct touch){node, hides ? NONE : *latest, storage};
    *latest = (int)p->n_touches - 1;
    c->reader = hides ? NONE : c->reader;
}

/* Two iterations, one behind the other; of each task first what it reads. */
static void walk_bytes(struct proof *p)
{
    int n = (int)p->step->n;
    for (int node = 0; node < 2 * n && !p->wrong; node++) {
        const struct task *t = p->step->task[node % n];
        if (p->number && !runs(t, p->number))
            continue;
        for (int writing = 0; writing < 2; writing++)
            for (int i = 0; i < t->n_access; i++) {
                const struct access *a = &t->access[i];
                size_t n_cells = 0, first = first_byte(a->tensor);
                struct cell *c = NULL;
                if (a->mode & (writing ? ACCESS_WRITE : ACCESS_READ))
                    c = cells_of(&p->strips[a->tensor->device->index], first, first + a->tensor->bytes, &n_cells);
                for (size_t k = 0; k < n_cells; k++)
                    touch_cell(p, node, a, writing, &c[k]);
            }
    }
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

enum { LANES_AT_A_TIME = 32 };
struct ends { /* for lanes first .. first + LANES_AT_A_TIME - 1: the latest node that has ended */
    int latest[LANES_AT_A_TIME];
};

/* A node starts behind what had ended when that one started ... */
static void join(struct ends *mine, const struct ends *other)
{
    for (int i = 0; i < LANES_AT_A_TIME; i++)
        mine->latest[i] = MAX(mine->latest[i], other->latest[i]);
}

/* ... and behind that one's end. */
static void note_end(const struct step *s, struct ends *mine, int node, int first_lane)
{
    int lane = s->task[node % (int)s->n]->lane->index - first_lane;
    if (lane >= 0 && lane < LANES_AT_A_TIME)
        mine->latest[lane] = MAX(mine->latest[lane], node);
}

/* What has ended when each node starts: what had when those started that it waits for, and they themselves; but of
 * those that may be skipped only what stands before them on the node's own lane. */
static void find_ends(const struct step *s, int first_lane, struct ends *ends)
{
    int n = (int)s->n, n_lanes = s->pool->machine->n_lanes;
    int *last = allocate(2 * (size_t)n_lanes, sizeof *last), *certain = last + n_lanes;
    memset(last, -1, 2 * (size_t)n_lanes * sizeof *last);
    memset(ends, -1, 2 * s->n * sizeof *ends);
    for (int node = 0; node < 2 * n; node++) {
        const struct task *t = s->task[node % n];
        int lane = t->lane->index;
        if (certain[lane] >= 0)
            join(&ends[node], &ends[certain[lane]]);
        if (last[lane] >= 0)
            note_end(s, &ends[node], last[lane], first_lane);
        for (size_t k = 0; k < t->n_edges; k++) {
            const struct edge *e = &t->edges[k];
            int from = (int)e->from + (node < n ? 0 : n) - (e->previous ? n : 0);
            if (!e->wait || from < 0 || is_conditional(s->task[e->from]))
                continue;
            join(&ends[node], &ends[from]);
            note_end(s, &ends[node], from, first_lane);
        }
        last[lane] = node;
        if (!is_conditional(t))
            certain[lane] = node;
    }
    free(last);
}

/* Does the second node wait for the first one itself? */
static bool waits_for(const struct step *s, struct pair x)
{
    int n = (int)s->n;
    const struct task *t = s->task[x.second % n];
    for (const struct edge *e = t->edges; e < t->edges + t->n_edges; e++)
        if (e->wait && (int)e->from == x.first % n && e->previous == (x.first / n != x.second / n))
            return true;
    return false;
}

static void verify_order(struct proof *p)
{
    const struct step *s = p->step;
    struct ends *ends = allocate(2 * s->n, sizeof *ends);
    for (int lane = 0; lane < s->pool->machine->n_lanes && !p->wrong; lane += LANES_AT_A_TIME) {
        find_ends(s, lane, ends);
        for (size_t i = 0; i < p->n_pairs && !p->wrong; i++) {
            struct pair x = p->pairs[i];
            int of = s->task[x.first % (int)s->n]->lane->index - lane;
            if (of >= 0 && of < LANES_AT_A_TIME && ends[x.second].latest[of] < x.first && !waits_for(s, x))
                p->wrong = describe_conflict(s, x.first, x.second);
        }
    }
    free(ends);
}

/* Of the tasks that run in that iteration. */
static char *prove(const struct step *s, uint32_t number)
{
    size_t n = (size_t)s->pool->machine->n_devices + 1;
    struct proof p = {.step = s, .number = number, .strips = allocate(n, sizeof *p.strips)};
    for (size_t i = 0; i < s->n; i++) /* behind all that hold it, in the second iteration */
        for (size_t k = 0; k < s->n && s->task[i]->gate == GATE_HOLDS; k++)
            if (s->task[k]->gate == GATE_HELD)
                *APPEND(p.pairs, p.n_pairs, p.cap_pairs) = (struct pair){(int)(s->n + i), (int)(s->n + k)};
    walk_bytes(&p);
    if (!p.wrong)
        verify_order(&p);
    free_strips(p.strips, n);
    free(p.touches), free(p.pairs);
    return p.wrong;
}

enum { MOST_ITERATIONS = 10000 };

/* The order among all tasks, whichever are skipped; and what runs in an iteration may only read what others wrote that
 * run in it: one iteration is looked at of each set of tasks that run together. */
static char *verify_accesses(const struct step *s)
{
    uint32_t last = repeat_of(s, MOST_ITERATIONS);
    uint64_t *seen = allocate(last, sizeof *seen);
    size_t n = 0, i;
    bool conditional = false;
    for (i = 0; i < s->n; i++)
        conditional |= is_conditional(s->task[i]);
    char *wrong = conditional ? prove(s, 0) : NULL;
    for (uint32_t number = 1; number <= last && !wrong; number++) {
        seen[n] = 0; /* a number for the set of tasks that run in this iteration */
        for (i = 0; i < s->n; i++)
            if (s->task[i]->when.every > 1 && number % s->task[i]->when.every == s->task[i]->when.rest)
                seen[n] = hash_bytes(&(uint64_t[2]){seen[n], i}, 16, 0);
        for (i = 0; seen[i] != seen[n]; i++)
            ;
        if (i == n) {
            wrong = prove(s, number);
            n++;
        }
    }
    free(seen);
    return wrong;
}

/* ---- rings ----------------------------------------------------------------------------------------------------- */

/* What the task touches of a ring; NULL: nothing. */
static const struct tensor *ring_of(const struct task *t)
{
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].tensor->storage->ring)
            return t->access[i].tensor;
    return NULL;
}

/* Which member tasks have certainly ended when the one has that returns the member: those that it waits for within the
 * iteration, those before it on its lane, and those that these wait for.  What leads there must be tasks that run
 * whenever the iteration has a member. */
static bool *find_returned(const struct step *s)
{
    bool *ended = allocate(s->n, sizeof *ended);
    bool *on_lane = allocate((size_t)s->pool->machine->n_lanes, sizeof *on_lane); /* what is earlier on it has */
    for (size_t i = s->n; i-- > 0;) {
        const struct task *t = s->task[i];
        if (!t->condition.member)
            continue;
        ended[i] |= t->condition.ends || on_lane[t->lane->index];
        if (!ended[i] || t->condition.needs)
            continue;
        on_lane[t->lane->index] = true;
        for (const struct edge *e = t->edges; e < t->edges + t->n_edges; e++)
            ended[e->from] |= e->wait && !e->previous;
    }
    free(on_lane);
    return ended;
}

/* Iterations use different members of a ring at the same time, and the rule of ring.c gives no member to two.  So it is
 * enough that an iteration touches its member only while it has it: from when it asks, which every task does that needs
 * a member, until the task that returns the member has ended. */
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
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < s->task[i]->n_access && !s->task[i]->copy && !chooses(s->task[i]); k++) {
            const struct tensor *x = s->task[i]->access[k].tensor;
            const struct device *d = s->task[i]->lane->device;
            bool moved = d->is_host && d->by_hand && s->task[i]->role == ROLE_UPDATE; /* of it, only some tensors do */
            if (x->device != d && !moved)
                return format_string("task %zu %s of device %s touches tensor %s of device %s: only a copy may", i,
                                     s->task[i]->name, d->id, x->name, x->device->id);
        }
    return NULL;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* What is kept from step to step must be out of the way of all else, also where the list does not touch it, and every
 * tensor within its slab, once slabs have been made. */
static char *verify_storage(const struct step *s, struct strip *strip, const struct tensor *t)
{
    size_t n;
    struct cell *c = cells_of(strip, first_byte(t), first_byte(t) + t->bytes, &n);
    if (s->running && (t->slab >= (int)t->device->n_slabs || t->address + t->bytes > t->device->slabs[t->slab].bytes))
        return format_string("tensor %s ends behind its slab on device %s", t->name, t->device->id);
    for (size_t i = 0; i < n; i++) {
        if (c[i].writer != NONE)
            return format_string("tensor %s shares bytes with %s, which is kept from step to step", t->name,
                                 s->pool->tensors[c[i].writer]->name);
        c[i].writer = t->persistent ? t->id : NONE;
        c[i].reader = t->id;
    }
    return NULL;
}

static char *verify_memory(const struct step *s)
{
    const struct pool *p = s->pool;
    size_t n = (size_t)p->machine->n_devices + 1;
    struct strip *strips = allocate(n, sizeof *strips);
    char *wrong = NULL;
    for (size_t i = 0; i < 2 * p->n && !wrong; i++) { /* first all that is kept */
        const struct tensor *t = p->tensors[i % p->n];
        if (t->storage == t && t->slab >= 0 && t->persistent == (i < p->n))
            wrong = verify_storage(s, &strips[t->device->index], t);
    }
    for (size_t d = 0; d < n && !wrong; d++) { /* the slabs within the budget, as far as tensors reach in them */
        const struct device *device = &p->machine->device[d];
        const struct cell *c = strips[d].cell, *end = c + strips[d].n;
        size_t sum = 0;
        for (size_t reach = 0; c < end; c++) {
            reach = c->reader == NONE ? reach : c->end - c->begin / NO_LIMIT * NO_LIMIT;
            if (c + 1 == end || c[1].begin / NO_LIMIT > c->begin / NO_LIMIT)
                sum += reach, reach = 0;
        }
        if (sum > device->budget)
            wrong = format_string("device %s holds %zu bytes, its budget is %zu", device->id, sum, device->budget);
    }
    free_strips(strips, n);
    return wrong;
}

char *verify(const struct step *s, const struct values *expected)
{
    char *wrong = verify_accesses(s); /* first: it names what is read */
    if (!wrong)
        wrong = verify_rings(s);
    if (!wrong && expected)
        wrong = compare_values(expected, s);
    return wrong ? wrong : verify_memory(s);
}

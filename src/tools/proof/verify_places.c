/* verify_places.c - proves of a placed list where its tensors lie, and for how long.
 *
 *     rings      a task touches a member of a ring only while its iteration has one
 *     devices    a task touches tensors of its own device
 *     memory     tensors lie within their slabs and budgets, and one that persists shares its bytes with none
 */
#include "cells.h"
#include "proof.h"
#include "verify.h"

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
        if (!t->member.needed)
            continue;
        ended[i] |= t->member.returned || on_lane[t->lane->index];
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
char *verify_rings(const struct step *s)
{
    bool *returned = find_returned(s);
    char *wrong = NULL;
    for (size_t i = 0; i < s->n && !wrong; i++) {
        const struct task *t = s->task[i];
        const struct tensor *x = ring_of(t);
        if (x && !t->member.needed)
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

/* Adds up the bytes of a device's slabs, each as far as tensors reach in it.  A cell may lie across the border of two
 * slabs only where no tensor is. */
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

char *verify_memory(const struct step *s)
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

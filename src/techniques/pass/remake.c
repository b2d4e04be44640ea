/* remake.c - tensors that are made again instead of kept: what may be, and the rewrite.
 *
 * remake() walks the list in order.  The first task that needs a tensor again finds the repeated tasks right before it,
 * or before its layer's backward, and all later tasks read their output.  The repeated tasks are those that made the
 * tensor, and have the same origin: with the same values they give the same bits.  A tensor that was made from values
 * which have changed by then, in place or by an update, is kept.
 */
#include "remake.h"

/* ---- what may be made again -------------------------------------------------------------------------------------- */

bool same_block(const struct task *a, const struct task *b)
{
    return a->layer >= 0 && a->layer == b->layer && a->micro == b->micro && a->role == b->role;
}

bool may_leave(const struct uses *u, const struct tensor *x, unsigned classes)
{
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    bool is_of_class = classes >> x->class & 1;
    if (n == 0 || !is_of_class || x->storage != x || x->exclusive || x->device->is_host)
        return false;
    for (size_t i = 0; i < n; i++)
        if (is_conditional(u->task[use[i].position]))
            return false;
    return true;
}

/* May the task at that position, which writes `made`, be repeated before `reader`?  It must be kernel work, and what it
 * reads must not be written before `reader`, by itself or later. */
static bool may_repeat(const struct uses *u, int position, const struct tensor *made, int reader)
{
    const struct task *t = u->task[position];
    if (t->run || is_copy(t) || is_conditional(t) || t->lane->device != made->device)
        return false;
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor->storage;
        bool reads = t->access[i].mode & ACCESS_READ;
        bool writes = t->access[i].mode & ACCESS_WRITE;
        if (writes && x->persistent)
            return false;
        if (reads && x != made && is_written_between(u, x, position - 1, reader)) /* by the task itself, or later */
            return false;
    }
    return true;
}

bool may_remake(const struct uses *u, const struct tensor *x, int reader)
{
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    bool written = false;
    if (x->persistent || x->class != MEM_ACTIVATIONS)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!(use[i].mode & ACCESS_WRITE))
            continue;
        if (use[i].position >= reader || !may_repeat(u, use[i].position, x, reader))
            return false;
        written = true;
    }
    return written;
}

/* ---- the rewrite ------------------------------------------------------------------------------------------------- */

struct remaking {
    struct pool *pool;
    struct edit *edit;
    const struct uses *uses;
    const int *from;      /* by tensor: the tasks from this one on read its twin; NONE: none does */
    struct tensor **twin; /* by tensor: the tensor that is made again in its place; NULL: not yet, or never */
};

static bool is_new(const struct remaking *r, const struct tensor *x) { return (size_t)x->id >= r->uses->n_tensors; }

static struct tensor *twin_of(const struct remaking *r, const struct tensor *x)
{
    return is_new(r, x) ? NULL : r->twin[x->id];
}

/* What a repeat before `reader` reads in place of y, where y holds gathered parameters: the same parameters as they
 * were gathered last before `reader`.  None is updated before the last one that is gathered in a step has been read. */
static struct tensor *gathered_for(const struct uses *u, struct tensor *y, int reader)
{
    while (y->later_copy && is_whole_before(u, y->later_copy, reader))
        y = y->later_copy;
    return y;
}

/* Does the last use of y itself, and not of its twin, come before `reader`?  Then its bytes are gone by then. */
static bool is_gone(const struct remaking *r, const struct tensor *y, int reader)
{
    size_t n;
    const struct use *use = uses_of(r->uses, y, &n);
    if (n == 0)
        return false;
    size_t last = n - 1;
    while (last > 0 && r->from[y->id] != NONE && use[last].position >= r->from[y->id])
        last--;
    return use[last].position < reader;
}

/* Repeats task t before `reader`: it writes twins, and reads them where there are such. */
static void repeat_task(struct remaking *r, const struct task *t, int reader)
{
    insert_before(r->edit, r->uses->task[reader]);
    struct task *again = repeat(r->edit, t);
    for (int k = 0; k < t->n_access; k++) {
        struct tensor *y = t->access[k].tensor->storage;
        bool writes = t->access[k].mode & ACCESS_WRITE;
        if (writes && !twin_of(r, y) && !is_new(r, y))
            r->twin[y->id] = tensor_like(r->pool, y->device, y);
        struct tensor *replacement = twin_of(r, y);
        if (!replacement)
            replacement = gathered_for(r->uses, y, reader);
        if (replacement != y)
            repoint(r->edit, again, y, replacement);
    }
}

/* Repeats before `reader` the tasks that wrote x.  Before such a task, those are repeated that wrote what it reads,
 * where that is gone by then. */
static void repeat_makers(struct remaking *r, const struct tensor *x, int reader)
{
    size_t n;
    const struct use *use = uses_of(r->uses, x, &n);
    for (size_t i = 0; i < n && use[i].position < reader; i++) {
        const struct task *t = r->uses->task[use[i].position];
        if (!(use[i].mode & ACCESS_WRITE))
            continue;
        for (int k = 0; k < t->n_access; k++) {
            const struct tensor *y = t->access[k].tensor->storage;
            bool reads = t->access[k].mode & ACCESS_READ;
            if (!reads || y == x || y->persistent || twin_of(r, y))
                continue;
            if (is_gone(r, y, reader) && may_remake(r->uses, y, reader))
                repeat_makers(r, y, reader);
        }
        repeat_task(r, t, reader);
    }
}

/* The first task of the reader's block on its device. */
static int first_of_block(const struct uses *u, int reader)
{
    const struct task *t = u->task[reader];
    int first = reader;
    for (int i = reader; i >= 0; i--)
        if (u->task[i]->lane->device == t->lane->device && same_block(u->task[i], t))
            first = i;
    return first;
}

struct tensor **remake(struct edit *e, struct pool *pool, const struct uses *u, const int *first_reader,
                       enum remake_at at)
{
    struct remaking r = {.pool = pool, .edit = e, .uses = u, .from = first_reader};
    r.twin = allocate(u->n_tensors, sizeof *r.twin);
    for (int i = 0; i < (int)u->n; i++) {
        struct task *t = u->task[i];
        for (int k = 0; k < t->n_access; k++) {
            struct tensor *x = t->access[k].tensor->storage;
            if (is_new(&r, x) || first_reader[x->id] == NONE || i < first_reader[x->id])
                continue;
            if (!r.twin[x->id])
                repeat_makers(&r, x, at == REMAKE_AT_BACKWARD ? first_of_block(u, i) : i);
            repoint(e, t, x, r.twin[x->id]);
        }
    }
    return r.twin;
}

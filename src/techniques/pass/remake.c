/* remake.c - tensors that are made again instead of kept: what may be, and the rewrite.
 *
 * remake() walks the list in order, and relies on that: the first task that needs a tensor again finds its repeat right
 * before it (or before its layer's backward), and all later ones read that.  The repeat's tasks are those that made it,
 * of the same origin: on the same values they give the same bits.  What is made of values that have changed by then, in
 * place or by an update, is kept.
 */
#include "pass.h"

/* ---- what may be made again -------------------------------------------------------------------------------------- */

bool same_block(const struct task *a, const struct task *b)
{
    return a->layer >= 0 && a->layer == b->layer && a->micro == b->micro && a->role == b->role;
}

bool may_leave(const struct uses *u, const struct tensor *x, unsigned classes)
{
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    bool may = n > 0 && x->storage == x && !x->exclusive && !x->device->is_host && classes >> x->class & 1;
    for (size_t i = 0; may && i < n; i++)
        may = !is_conditional(u->task[use[i].at]);
    return may;
}

/* Kernel work; nothing it read is written, by itself or later, before `reader`. */
static bool may_repeat(const struct uses *u, const struct task *t, int at, const struct tensor *made, int reader)
{
    bool may = !t->run && !t->copy && !is_conditional(t) && t->lane->device == made->device;
    for (int i = 0; may && i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor->storage;
        bool reads = t->access[i].mode & ACCESS_READ, writes = t->access[i].mode & ACCESS_WRITE;
        may = !(writes && x->persistent) && !(reads && x != made && is_written_between(u, x, at - 1, reader));
    }
    return may;
}

bool may_remake(const struct uses *u, const struct tensor *x, int reader)
{
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    bool may = !x->persistent && x->class == MEM_ACTIVATIONS, written = false;
    for (size_t i = 0; may && i < n; i++)
        if (use[i].mode & ACCESS_WRITE) {
            may = use[i].at < reader && may_repeat(u, u->task[use[i].at], use[i].at, x, reader);
            written = true;
        }
    return may && written;
}

/* ---- the rewrite ------------------------------------------------------------------------------------------------- */

struct remaking {
    struct pool *pool;
    struct edit *edit;
    const struct uses *uses;
    const int *from;      /* by tensor: from this task on it is read as it is made again; NOWHERE: never */
    struct tensor **twin; /* by tensor: made again, or NULL */
};

static struct tensor *twin_of(const struct remaking *r, const struct tensor *x)
{
    return (size_t)x->id < r->uses->n_tensors ? r->twin[x->id] : NULL;
}

/* What a repeat before `reader` reads in place of y, which was gathered: the same, as it was gathered last by then.
 * None is updated before the last one that is gathered in a step has been read. */
static struct tensor *gathered_for(const struct uses *u, struct tensor *y, int reader)
{
    while (y->later && is_whole_before(u, y->later, reader))
        y = y->later;
    return y;
}

/* Repeats before `reader` what wrote x, and before that what wrote those that it reads and that are gone by then. */
static void repeat_makers(struct remaking *r, const struct tensor *x, int reader)
{
    size_t n, n_uses;
    const struct use *use = uses_of(r->uses, x, &n);
    for (size_t i = 0; i < n && use[i].at < reader; i++) {
        const struct task *t = r->uses->task[use[i].at];
        if (!(use[i].mode & ACCESS_WRITE))
            continue;
        for (int k = 0; k < t->n_access; k++) {
            const struct tensor *y = t->access[k].tensor->storage;
            const struct use *of = uses_of(r->uses, y, &n_uses);
            if (!(t->access[k].mode & ACCESS_READ) || n_uses == 0 || y == x || y->persistent || twin_of(r, y))
                continue;
            size_t last = n_uses - 1; /* use of the original y */
            while (last > 0 && r->from[y->id] != NOWHERE && of[last].at >= r->from[y->id])
                last--;
            if (of[last].at < reader && may_remake(r->uses, y, reader))
                repeat_makers(r, y, reader);
        }
        insert_before(r->edit, r->uses->task[reader]);
        struct task *again = repeat(r->edit, t);
        for (int k = 0; k < t->n_access; k++) {
            struct tensor *y = t->access[k].tensor->storage;
            if (t->access[k].mode & ACCESS_WRITE && !twin_of(r, y) && (size_t)y->id < r->uses->n_tensors)
                r->twin[y->id] = tensor_like(r->pool, y->device, y);
            struct tensor *now = twin_of(r, y) ? r->twin[y->id] : gathered_for(r->uses, y, reader);
            if (now != y)
                repoint(r->edit, again, y, now);
        }
    }
}

/* The first task of the reader's block on its device. */
static int first_of_block(const struct uses *u, int reader)
{
    int first = reader;
    for (int i = reader; i >= 0; i--)
        if (u->task[i]->lane->device == u->task[reader]->lane->device && same_block(u->task[i], u->task[reader]))
            first = i;
    return first;
}

struct tensor **remake(struct edit *e, struct pool *pool, const struct uses *u, const int *from, bool by_layer)
{
    struct remaking r = {pool, e, u, from, allocate(u->n_tensors, sizeof *r.twin)};
    for (int i = 0; i < (int)u->n; i++) {
        struct task *t = u->task[i];
        for (int k = 0; k < t->n_access; k++) {
            struct tensor *x = t->access[k].tensor->storage;
            if ((size_t)x->id >= u->n_tensors || from[x->id] == NOWHERE || i < from[x->id])
                continue;
            if (!r.twin[x->id])
                repeat_makers(&r, x, by_layer ? first_of_block(u, i) : i);
            repoint(e, t, x, r.twin[x->id]);
        }
    }
    return r.twin;
}

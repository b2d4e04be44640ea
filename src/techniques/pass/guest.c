/* guest.c - state that the host updates: its home can be the host, and the device then has it as a guest.
 *
 *     m, on the host, mirrors x              the home of x is the host; y is x on the device
 *
 *                                            copy       y = x       before its readers; another pass adds this copy
 *     forward, backward   read x             forward    reads y
 *     update              makes m anew       update     makes x anew
 *     copy                x = m
 *
 * So x lies on the host once, and comes up only where it is read.
 */
#include "guest.h"

/* What a copy takes from a mirror of x: the mirror, as a whole; NULL: the task is no such copy. */
static const struct tensor *mirror_read(const struct task *t, const struct tensor *x)
{
    if (!is_copy(t) || t->n_access != 2)
        return NULL;
    const struct tensor *m = t->access[1].tensor->storage;
    return m->mirror.of && m->mirror.of->storage == x ? m : NULL;
}

/* Does the task bring a part of x up, from the same part of a mirror? */
static bool brings_up(const struct task *t, const struct tensor *x)
{
    const struct tensor *m = mirror_read(t, x);
    const struct tensor *to = t->access[0].tensor;
    return m && to->storage == x && to->offset == m->mirror.of->offset + t->access[1].tensor->offset;
}

/* The first task that writes a mirror of x. */
static int first_written_mirror(const struct uses *u, const struct tensor *x)
{
    int first = (int)u->n;
    for (const struct tensor *m = x->replica.of->mirror.first; m; m = m->mirror.next) {
        size_t n;
        const struct use *use = uses_of(u, m, &n);
        for (size_t i = 0; i < n && m->mirror.of->storage == x; i++)
            if (use[i].mode & ACCESS_WRITE)
                first = MIN(first, use[i].position);
    }
    return first;
}

size_t uses_of_guest(const struct uses *u, const struct tensor *x)
{
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    size_t readers = n;
    while (readers > 0 && brings_up(u->task[use[readers - 1].position], x))
        readers--;
    if (readers == n || readers == 0 || first_written_mirror(u, x) < use[readers - 1].position)
        return 0;
    for (size_t i = 0; i < readers; i++)
        if (use[i].mode & ACCESS_WRITE)
            return 0;
    return readers;
}

void give_way(struct edit *e, struct pool *p, const struct uses *u, const struct tensor *x)
{
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    for (size_t i = 0; i < n; i++)
        if (mirror_read(u->task[use[i].position], x))
            drop(e, u->task[use[i].position]);
    for (struct tensor *m = x->replica.of->mirror.first; m; m = m->mirror.next) {
        if (m->mirror.of->storage != x)
            continue;
        use = uses_of(u, m, &n);
        for (size_t i = 0; i < n; i++)
            repoint(e, u->task[use[i].position], m, p->tensors[m->mirror.of->id]);
        make_transient(e, m);
    }
}

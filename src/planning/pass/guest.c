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

/* The first mirror of the tensor among `mirror` and those behind it in its list; NULL: none is. */
static struct tensor *mirror_from(struct tensor *mirror, const struct tensor *tensor)
{
    while (mirror && mirror->extra.mirror.of->storage != tensor)
        mirror = mirror->extra.mirror.next;
    return mirror;
}

/* The mirror of the tensor, as a whole, from which the task copies; NULL: the task is no such copy. */
static const struct tensor *mirror_read(const struct task *task, const struct tensor *tensor)
{
    if (!is_copy(task) || task->n_accesses != 2)
        return NULL;
    const struct tensor *on_host = task->accesses[1].tensor->storage;
    return on_host->extra.mirror.of && on_host->extra.mirror.of->storage == tensor ? on_host : NULL;
}

/* Does the task bring a part of the tensor up, from the same part of a mirror? */
static bool brings_up(const struct task *task, const struct tensor *tensor)
{
    const struct tensor *on_host = mirror_read(task, tensor);
    const struct tensor *to = task->accesses[0].tensor;
    return on_host && to->storage == tensor &&
           to->offset == on_host->extra.mirror.of->offset + task->accesses[1].tensor->offset;
}

/* The first task that writes a mirror of the tensor. */
static int first_mirror_write(const struct uses *uses, const struct tensor *tensor)
{
    int first = (int)uses->n;
    for (const struct tensor *on_host = mirror_from(tensor->replica.of->extra.mirror.first, tensor); on_host;
         on_host = mirror_from(on_host->extra.mirror.next, tensor)) {
        const struct use_range found = uses_of(uses, on_host);
        for (size_t i = 0; i < found.n; i++)
            if (found.uses[i].mode & ACCESS_WRITE)
                first = MIN(first, found.uses[i].position);
    }
    return first;
}

size_t count_guest_uses(const struct uses *uses, const struct tensor *tensor)
{
    const struct use_range found = uses_of(uses, tensor);
    size_t readers = found.n;
    while (readers > 0 && brings_up(found.uses[readers - 1].task, tensor))
        readers--;
    if (readers == found.n || readers == 0 || first_mirror_write(uses, tensor) < found.uses[readers - 1].position)
        return 0;
    for (size_t i = 0; i < readers; i++)
        if (found.uses[i].mode & ACCESS_WRITE)
            return 0;
    return readers;
}

void drop_mirrors(struct edit *edit, const struct uses *uses, const struct tensor *tensor)
{
    const struct use_range found = uses_of(uses, tensor);
    for (size_t i = 0; i < found.n; i++)
        if (mirror_read(found.uses[i].task, tensor))
            drop_task(edit, found.uses[i].task);
    for (struct tensor *on_host = mirror_from(tensor->replica.of->extra.mirror.first, tensor); on_host;
         on_host = mirror_from(on_host->extra.mirror.next, tensor)) {
        const struct use_range of_mirror = uses_of(uses, on_host);
        for (size_t i = 0; i < of_mirror.n; i++)
            repoint_task(edit, of_mirror.uses[i].task, on_host, on_host->extra.mirror.of);
        make_transient(edit, on_host);
    }
}

/* remake.c - tensors that are made again instead of kept: what may be, and the rewrite.
 *
 * remake_tensors() walks the list in order.  The first task that needs a tensor again finds the repeated tasks right
 * before it, or before its layer's backward, and all later tasks read their output.  The repeated tasks are those that
 * made the tensor, and have the same origin: with the same values they give the same bits.  A tensor that was made from
 * values which have changed by then, in place or by an update, is kept.
 */
#include "remake.h"

/* ---- what may be made again -------------------------------------------------------------------------------------- */

bool same_block(const struct task *a, const struct task *b)
{
    return a->layer >= 0 && a->layer == b->layer && a->micro == b->micro && a->role == b->role;
}

bool may_leave(const struct uses *uses, const struct tensor *tensor, unsigned classes)
{
    const struct use_range found = uses_of(uses, tensor);
    bool is_of_class = classes >> tensor->class & 1;
    if (found.n == 0 || !is_of_class || tensor->storage != tensor || tensor->extra.exclusive || tensor->device->is_host)
        return false;
    for (size_t i = 0; i < found.n; i++)
        if (is_conditional(found.uses[i].task))
            return false;
    return true;
}

/* May the task at that position, which writes `made`, be repeated before `reader`?  It must be kernel work, and what it
 * reads must not be written before `reader`, by itself or later. */
static bool may_repeat(const struct uses *uses, int position, const struct tensor *made, int reader)
{
    const struct task *task = uses->tasks[position];
    if (task->function || is_copy(task) || is_conditional(task) || task->lane->device != made->device)
        return false;
    for (int i = 0; i < task->n_accesses; i++) {
        const struct tensor *tensor = task->accesses[i].tensor->storage;
        bool reads = task->accesses[i].mode & ACCESS_READ;
        bool writes = task->accesses[i].mode & ACCESS_WRITE;
        if (writes && tensor->persistent)
            return false;
        /* The task itself may write the tensor, or a later one. */
        if (reads && tensor != made && is_written_between(uses, tensor, position - 1, reader))
            return false;
    }
    return true;
}

bool may_remake(const struct uses *uses, const struct tensor *tensor, int reader)
{
    const struct use_range found = uses_of(uses, tensor);
    bool written = false;
    if (tensor->persistent || tensor->class != MEM_ACTIVATIONS)
        return false;
    for (size_t i = 0; i < found.n; i++) {
        const struct use *use = &found.uses[i];
        if (!(use->mode & ACCESS_WRITE))
            continue;
        if (use->position >= reader || !may_repeat(uses, use->position, tensor, reader))
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
    const int *from;       /* by tensor: the tasks from this one on read its twin; NONE: none does */
    struct tensor **twins; /* by tensor: the tensor that is made again in its place; NULL: not yet, or never */
};

static bool is_new(const struct remaking *remaking, const struct tensor *tensor)
{
    return tensor->id >= remaking->uses->n_tensors;
}

static struct tensor *twin_of(const struct remaking *remaking, const struct tensor *tensor)
{
    return is_new(remaking, tensor) ? NULL : remaking->twins[tensor->id];
}

/* The tensor that a repeat before `reader` reads in place of one that holds gathered parameters: the same parameters as
 * they were gathered last before `reader`.  All gathered copies of a step have the same values: parameters are updated
 * only after the last of these copies has been read. */
static struct tensor *gathered_for(const struct uses *uses, struct tensor *tensor, int reader)
{
    while (tensor->extra.later_copy && is_whole_before(uses, tensor->extra.later_copy, reader))
        tensor = tensor->extra.later_copy;
    return tensor;
}

/* Does the last use of the tensor, and not of its twin, come before `reader`?  Then its bytes are gone by then. */
static bool is_gone(const struct remaking *remaking, const struct tensor *tensor, int reader)
{
    const struct use_range found = uses_of(remaking->uses, tensor);
    if (found.n == 0)
        return false;
    size_t last = found.n - 1;
    while (last > 0 && remaking->from[tensor->id] != NONE && found.uses[last].position >= remaking->from[tensor->id])
        last--;
    return found.uses[last].position < reader;
}

/* Repeats the task before `reader`: it writes twins, and reads them where there are such. */
static void repeat_with_twins(struct remaking *remaking, const struct task *task, int reader)
{
    insert_before(remaking->edit, remaking->uses->tasks[reader]);
    struct task *again = repeat_task(remaking->edit, task);
    for (int k = 0; k < task->n_accesses; k++) {
        struct tensor *touched = task->accesses[k].tensor->storage;
        bool writes = task->accesses[k].mode & ACCESS_WRITE;
        if (writes && !twin_of(remaking, touched) && !is_new(remaking, touched))
            remaking->twins[touched->id] = tensor_like(remaking->pool, touched->device, touched);
        struct tensor *replacement = twin_of(remaking, touched);
        if (!replacement)
            replacement = gathered_for(remaking->uses, touched, reader);
        if (replacement != touched)
            repoint_task(remaking->edit, again, touched, replacement);
    }
}

/* Repeats before `reader` the tasks that wrote the tensor.  Before such a task, those are repeated that wrote what it
 * reads, where that is gone by then. */
static void repeat_makers(struct remaking *remaking, const struct tensor *tensor, int reader)
{
    const struct use_range found = uses_of(remaking->uses, tensor);
    for (size_t i = 0; i < found.n && found.uses[i].position < reader; i++) {
        const struct task *task = found.uses[i].task;
        if (!(found.uses[i].mode & ACCESS_WRITE))
            continue;
        for (int k = 0; k < task->n_accesses; k++) {
            const struct tensor *touched = task->accesses[k].tensor->storage;
            bool reads = task->accesses[k].mode & ACCESS_READ;
            if (!reads || touched == tensor || touched->persistent || twin_of(remaking, touched))
                continue;
            if (is_gone(remaking, touched, reader) && may_remake(remaking->uses, touched, reader))
                repeat_makers(remaking, touched, reader);
        }
        repeat_with_twins(remaking, task, reader);
    }
}

/* The first task of the reader's block on its device. */
static int first_of_block(const struct uses *uses, int reader)
{
    const struct task *task = uses->tasks[reader];
    int first = reader;
    for (int i = reader; i >= 0; i--)
        if (uses->tasks[i]->lane->device == task->lane->device && same_block(uses->tasks[i], task))
            first = i;
    return first;
}

struct tensor **remake_tensors(struct edit *edit, struct pool *pool, const struct uses *uses, const int *first_reader,
                               enum remake_at at)
{
    struct remaking remaking = {.pool = pool, .edit = edit, .uses = uses, .from = first_reader};
    remaking.twins = allocate(uses->n_tensors, sizeof *remaking.twins);
    for (int i = 0; i < (int)uses->n; i++) {
        struct task *task = uses->tasks[i];
        for (int k = 0; k < task->n_accesses; k++) {
            struct tensor *tensor = task->accesses[k].tensor->storage;
            if (is_new(&remaking, tensor) || first_reader[tensor->id] == NONE || i < first_reader[tensor->id])
                continue;
            if (!remaking.twins[tensor->id])
                repeat_makers(&remaking, tensor, at == REMAKE_AT_BACKWARD ? first_of_block(uses, i) : i);
            repoint_task(edit, task, tensor, remaking.twins[tensor->id]);
        }
    }
    return remaking.twins;
}

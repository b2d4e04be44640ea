/* parts.c - small functions for passes and step files: the tasks of a list in their order, a task once more, and
 * tensors that are ranges of others.
 */
#include "edit.h"

struct task **tasks_in_order(const struct list *list, size_t *n)
{
    *n = list->n;
    if (!list->head)
        return copy_bytes(list->tasks, list->n * sizeof(struct task *));
    struct task **task = allocate(list->n, sizeof *task);
    *n = 0; /* dropped tasks are in list->tasks still, but not in the ring */
    for (struct task *t = list->head->next; t != list->head; t = t->next) {
        task[*n] = t;
        (*n)++;
    }
    return task;
}

struct task *add_again(struct list *list, const struct task *task)
{
    struct task *again = append_task(list);
    struct task links = *again;
    *again = *task;
    again->index = links.index;
    again->prev = links.prev;
    again->next = links.next;
    again->args = copy_bytes(task->args, (size_t)task->n_args * sizeof *task->args);
    again->accesses = copy_bytes(task->accesses, (size_t)task->n_accesses * sizeof *task->accesses);
    if (task->context_bytes)
        again->context = copy_bytes(task->context, task->context_bytes);
    again->edges = NULL;
    again->n_edges = 0;
    return again;
}

bool touches_bytes(const struct task *task, const struct tensor *tensor, enum access_mode mode)
{
    for (int i = 0; i < task->n_accesses; i++)
        if ((task->accesses[i].mode & mode) && share_bytes(task->accesses[i].tensor, tensor))
            return true;
    return false;
}

struct tensor *new_bytes_tensor(struct pool *pool, struct device *device, enum memory_class class, const char *name,
                                size_t bytes)
{
    const struct shape shape = SHAPE((int64_t)ceil_div(bytes, ELEMENT_BYTES));
    const struct tensor_form form = {.device = device, .class = class, .name = name, .shape = shape};
    struct tensor *tensor = new_tensor(pool, &form);
    tensor->bytes = bytes;
    return tensor;
}

struct tensor *new_range(struct pool *pool, struct tensor *base, const char *name, size_t begin, size_t end)
{
    const struct shape shape = SHAPE((int64_t)ceil_div(end - begin, ELEMENT_BYTES));
    return new_view_of_bytes(pool, base, name, (struct range){begin, end}, shape);
}

struct tensor *same_part(struct pool *pool, struct tensor *base, const struct tensor *view)
{
    CHECK(base->bytes == view->storage->bytes, "%s of %s is no part of %s", view->name, view->storage->name,
          base->name);
    const struct range bytes = {view->offset, view->offset + view->bytes};
    return new_view_of_bytes(pool, base, view->name, bytes, view->shape);
}

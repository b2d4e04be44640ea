/* parts.c - what passes and step files need of lists and tensors beside what builds a list. */
#include "edit.h"

struct task **tasks_in_order(const struct step *s, size_t *n)
{
    *n = s->n;
    if (!s->head)
        return copy_bytes(s->task, s->n * sizeof(struct task *));
    struct task **task = allocate(s->n, sizeof *task);
    *n = 0; /* dropped tasks are in s->task still, but not in the ring */
    for (struct task *t = s->head->next; t != s->head; t = t->next) {
        task[*n] = t;
        (*n)++;
    }
    return task;
}

struct task *add_again(struct step *s, const struct task *t)
{
    struct task *again = append_task(s);
    struct task links = *again;
    *again = *t;
    again->index = links.index;
    again->prev = links.prev;
    again->next = links.next;
    again->args = copy_bytes(t->args, (size_t)t->n_args * sizeof *t->args);
    again->access = copy_bytes(t->access, (size_t)t->n_access * sizeof *t->access);
    if (t->context_bytes)
        again->context = copy_bytes(t->context, t->context_bytes);
    again->edges = NULL;
    again->n_edges = 0;
    return again;
}

bool touches_bytes(const struct task *t, const struct tensor *x, enum access_mode mode)
{
    for (int i = 0; i < t->n_access; i++)
        if ((t->access[i].mode & mode) && share_bytes(t->access[i].tensor, x))
            return true;
    return false;
}

struct tensor *new_bytes_tensor(struct pool *p, struct device *d, enum memory_class class, const char *name,
                                size_t bytes)
{
    const struct shape shape = SHAPE((int64_t)ceil_div(bytes, ELEMENT_BYTES));
    const struct tensor_form form = {.device = d, .class = class, .name = name, .shape = shape};
    struct tensor *t = new_tensor(p, &form);
    t->bytes = bytes;
    return t;
}

struct tensor *new_range(struct pool *p, struct tensor *base, const char *name, size_t begin, size_t end)
{
    const struct shape shape = SHAPE((int64_t)ceil_div(end - begin, ELEMENT_BYTES));
    return new_view_of_bytes(p, base, name, (struct byte_range){begin, end}, shape);
}

struct tensor *same_part(struct pool *p, struct tensor *base, const struct tensor *view)
{
    CHECK(base->bytes == view->storage->bytes, "%s of %s is no part of %s", view->name, view->storage->name,
          base->name);
    const struct byte_range bytes = {view->offset, view->offset + view->bytes};
    return new_view_of_bytes(p, base, view->name, bytes, view->shape);
}

/* list.c - a list as an array of tasks: a new list, and room for one more task. */
#include "list.h"

/* ---- lists ------------------------------------------------------------------------------------------------------- */

void tag_tasks(struct list *list, int layer, int micro, enum role role)
{
    list->tags = (struct tags){.layer = layer, .micro = micro, .role = role};
}

void tag_role(struct list *list, enum role role) { tag_tasks(list, NONE, NONE, role); }

struct list *new_list(struct pool *pool, const char *name)
{
    struct list *list = allocate(1, sizeof *list);
    snprintf(list->name, sizeof list->name, "%s", name);
    list->pool = pool;
    tag_role(list, ROLE_OTHER);
    list->extra.peak = allocate_each(pool->machine->n_devices + 1, sizeof *list->extra.peak);
    list->extra.peak_total = allocate_each(pool->machine->n_devices + 1, sizeof *list->extra.peak_total);
    return list;
}

/* ---- their tasks ------------------------------------------------------------------------------------------------- */

void link_behind(struct task *task, struct task *where)
{
    task->prev = where;
    task->next = where->next;
    task->prev->next = task;
    task->next->prev = task;
}

struct task *append_task(struct list *list)
{
    if (list->n == MOST_TASKS)
        fail(EXIT_USAGE,
             "the list %s has more than the %d tasks that can be planned: take fewer devices (each sends what it "
             "updates to all others), layers or micro-batches",
             list->name, MOST_TASKS);
    struct task *task = allocate(1, sizeof *task);
    GROW(list->tasks, list->cap, list->n + 1);
    list->tasks[list->n++] = task;
    task->index = list->n - 1;
    if (list->extra.cursor) {
        link_behind(task, list->extra.cursor);
        list->extra.cursor = task;
    }
    return task;
}

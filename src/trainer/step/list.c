/* list.c - a list as an array of tasks: making and freeing both, room for one more task, another order. */
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
    list->peak = allocate_each(pool->machine->n_devices + 1, sizeof *list->peak);
    list->peak_total = allocate_each(pool->machine->n_devices + 1, sizeof *list->peak_total);
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
    if (list->cursor) {
        link_behind(task, list->cursor);
        list->cursor = task;
    }
    return task;
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

void free_task(struct task *task)
{
    if (task->extra.argument_bytes)
        free(task->argument);
    free(task->args);
    free(task->accesses);
    free(task);
}

void free_list(struct list *list)
{
    if (list->free_running)
        list->free_running(list);
    for (size_t i = 0; i < list->n; i++)
        free_task(list->tasks[i]);
    free(list->tasks);
    free(list->peak);
    free(list->peak_total);
    free(list->levels);
    free(list->origin_waits);
    free(list->edges);
    free(list);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

void permute_tasks(struct list *list, size_t first, const size_t *positions, size_t n)
{
    struct task **before = copy_bytes(list->tasks + first, n * sizeof *before);
    for (size_t i = 0; i < n; i++) {
        struct task *task = before[positions[i] - first];
        task->index = first + i;
        list->tasks[first + i] = task;
    }
    free(before);
}

uint32_t repeat_of(const struct list *list, uint32_t most)
{
    uint64_t repeat = 1;
    for (size_t i = 0; i < list->n && repeat < most; i++)
        repeat = common_multiple(repeat, list->tasks[i]->extra.when.every);
    return (uint32_t)MIN(repeat, most);
}

const char *iteration_noun(const struct list *list) { return strcmp(list->name, "train") == 0 ? "step" : "iteration"; }

/* list_changes.c - lists and tasks are freed, tasks change places, and what is asked of a list. */
#include "list.h"

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
    free(list->extra.peak);
    free(list->extra.peak_total);
    free(list->extra.levels);
    free(list->extra.origin_waits);
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

/* ---- what is asked of a list ------------------------------------------------------------------------------------- */

uint32_t repeat_of(const struct list *list, uint32_t most)
{
    uint64_t repeat = 1;
    for (size_t i = 0; i < list->n && repeat < most; i++)
        repeat = common_multiple(repeat, list->tasks[i]->extra.when.every);
    return (uint32_t)MIN(repeat, most);
}

const char *iteration_noun(const struct list *list) { return strcmp(list->name, "train") == 0 ? "step" : "iteration"; }

/* observe.c - observers of running lists.  Each observer in the chain is told of each task before the task is issued,
 * when it is issued, and when it has ended.  So other folders can record tasks, time them, or hold execute() between
 * two of them, and no folder is named here.
 */
#include "run_parts.h"

/* ---- the chain --------------------------------------------------------------------------------------------------- */

void add_observer(struct observer *observer)
{
    struct observer **end = &execution.observers;
    while (*end)
        end = &(*end)->next;
    observer->next = NULL;
    *end = observer;
}

void remove_observer(struct observer *observer)
{
    struct observer **at = &execution.observers;
    while (*at && *at != observer)
        at = &(*at)->next;
    CHECK(*at, "an observer is removed that is not there");
    *at = observer->next;
}

/* ---- telling them ------------------------------------------------------------------------------------------------ */

void tell_issuing(struct list *list, const struct task *task, uint32_t iteration)
{
    execution.now = (struct list_position){.list = list, .iteration = iteration, .task = task};
    for (const struct observer *observer = execution.observers; observer; observer = observer->next)
        if (observer->issuing)
            observer->issuing(observer->context, list, task, iteration);
}

void tell_issued(const struct list *list, const struct task *task, struct task_flight *flight)
{
    for (const struct observer *observer = execution.observers; observer; observer = observer->next)
        if (observer->issued)
            observer->issued(observer->context, list, task, flight);
}

void tell_ended(const struct list *list, const struct task *task, const struct task_flight *flight)
{
    for (const struct observer *observer = execution.observers; observer; observer = observer->next)
        if (observer->ended)
            observer->ended(observer->context, list, task, flight);
}

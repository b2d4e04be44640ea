/* observe.c - observers of running lists.  Each observer in the chain is told of each task before the task is issued,
 * when it is issued, and when it has ended.  So other folders can record a run, time it or hold it between two tasks,
 * and no folder is named here.
 */
#include "flights.h"

/* ---- the chain --------------------------------------------------------------------------------------------------- */

void add_observer(struct observer *o)
{
    struct observer **end = &execution.observers;
    while (*end)
        end = &(*end)->next;
    o->next = NULL;
    *end = o;
}

void remove_observer(struct observer *o)
{
    struct observer **at = &execution.observers;
    while (*at && *at != o)
        at = &(*at)->next;
    CHECK(*at, "an observer is removed that is not there");
    *at = o->next;
}

/* ---- telling them ------------------------------------------------------------------------------------------------ */

void tell_issuing(struct step *s, uint32_t iteration, size_t i)
{
    for (const struct observer *o = execution.observers; o; o = o->next)
        if (o->issuing)
            o->issuing(o->context, s, iteration, i);
}

void tell_issued(const struct step *s, const struct task *t, struct task_flight *flight)
{
    for (const struct observer *o = execution.observers; o; o = o->next)
        if (o->issued)
            o->issued(o->context, s, t, flight);
}

void tell_ended(const struct step *s, const struct task *t, const struct task_flight *flight)
{
    for (const struct observer *o = execution.observers; o; o = o->next)
        if (o->ended)
            o->ended(o->context, s, t, flight);
}

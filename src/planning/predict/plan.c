/* plan.c - from settings to lists that are looked at: built, placed on paper, and with their edges. */
#include "plan.h"

struct draft_attempt { /* the argument of make_attempt(), for attempt() */
    const struct settings *settings;
    unsigned wanted;
    struct trainer *trainer;
};

static void make_attempt(void *argument)
{
    struct draft_attempt *attempt = argument;
    attempt->trainer = new_draft(attempt->settings, attempt->wanted);
}

struct trainer *try_new_draft(const struct settings *settings, unsigned wanted, struct problem **problem)
{
    struct draft_attempt draft = {.settings = settings, .wanted = wanted};
    *problem = attempt(make_attempt, &draft);
    return *problem ? NULL : draft.trainer;
}

struct problem *place_draft(struct trainer *trainer)
{
    struct list *all[MOST_LISTS];
    const size_t n = lists_of(trainer, all);
    return place(trainer->pool, all, n, PLACE_TO_CHECK);
}

void depend_draft(struct trainer *trainer)
{
    struct list *all[MOST_LISTS];
    const size_t n = lists_of(trainer, all);
    for (size_t i = 0; i < n; i++)
        depend(all[i], ALL_EDGES);
}

struct trainer *plan_training(const struct settings *settings, unsigned wanted)
{
    struct trainer *trainer = new_draft(settings, wanted);
    must(place_draft(trainer));
    depend_draft(trainer);
    return trainer;
}

struct trainer *try_to_plan(const struct settings *settings, unsigned wanted, struct problem **problem)
{
    struct trainer *trainer = try_new_draft(settings, wanted, problem);
    if (!trainer)
        return NULL;
    *problem = place_draft(trainer);
    if (*problem) {
        free_trainer(trainer);
        return NULL;
    }
    depend_draft(trainer);
    return trainer;
}

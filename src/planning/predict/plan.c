/* plan.c - from settings to lists that are looked at: built, placed on paper, and with their edges. */
#include "plan.h"

struct draft_call { /* a call of new_draft() */
    const struct settings *settings;
    unsigned wanted;
    struct trainer *result;
};

/* A function such as attempt() takes. */
static void call_new_draft(void *argument)
{
    struct draft_call *draft_call = argument;
    draft_call->result = new_draft(draft_call->settings, draft_call->wanted);
}

struct trainer *try_new_draft(const struct settings *settings, unsigned wanted, struct problem **problem)
{
    struct draft_call draft_call = {.settings = settings, .wanted = wanted};
    *problem = attempt(call_new_draft, &draft_call);
    return *problem ? NULL : draft_call.result;
}

struct problem *place_draft(struct trainer *trainer)
{
    struct list *all[MOST_LISTS];
    size_t n = lists_of(trainer, all);
    return place(trainer->pool, all, n, PLACE_TO_CHECK);
}

void depend_draft(struct trainer *trainer)
{
    struct list *all[MOST_LISTS];
    size_t n = lists_of(trainer, all);
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

/* overlap_try.c - trying plans of --overlap: a plan's moves are made in the list, simulated, and undone. */
#include "overlap_pass.h"
#include "techniques/pass/remake.h"
#include "techniques/pass/traits.h"

/* ---- the mode ---------------------------------------------------------------------------------------------------- */

enum overlap mode_of(const struct run_facts *facts)
{
    bool later = overlap_options.mode == OVERLAP_LOCAL && facts->trial;
    return later ? OVERLAP_PLAN : overlap_options.mode;
}

/* ---- carrying a choice out --------------------------------------------------------------------------------------- */

void carry_out(struct overlapper *overlapper, struct edit *edit, const unsigned char *side, enum sharing sharing)
{
    const struct planner *planner = &overlapper->planner;
    struct mover mover = begin_moves(edit, planner->list, planner->uses, planner->cores, sharing);
    if (overlapper->rule.n_fixed < planner->buckets.n)
        offer_updates(&mover, &overlapper->rule, side);
    else
        move_updates(&mover, &planner->buckets, side);
    end_moves(&mover);
}

/* carry_out() for a list that is scored, and undone: with what recompute will make again, and with room for snapshots,
 * which depends on where updates are. */
static void carry_out_to_try(void *context, struct edit *edit, const unsigned char *choice)
{
    struct overlapper *overlapper = context;
    struct list *list = overlapper->planner.list;
    carry_out(overlapper, edit, choice, choice[overlapper->planner.buckets.n]); /* the last decision is the sharing */
    if (overlapper->remade)
        free(remake(edit, list->pool, overlapper->planner.uses, overlapper->remade, REMAKE_AT_BACKWARD));
    reserve_room(list, overlapper->facts);
}

/* ---- trying plans ------------------------------------------------------------------------------------------------ */

struct question question_of(struct overlapper *overlapper, double work)
{
    const struct planner *planner = &overlapper->planner;
    return (struct question){.list = planner->list,
                             .costs = planner->costs,
                             .activity = "looking for the updates to give to the CPU",
                             .decision = planner->decision,
                             .n = planner->buckets.n + 1,
                             .apply = carry_out_to_try,
                             .context = overlapper,
                             .least_period = planner->least_period,
                             .work = work};
}

struct plans try_all(struct overlapper *overlapper, double work)
{
    const struct question question = question_of(overlapper, work);
    struct plans plans = find_plans(&overlapper->planner, &question);
    if (overlapper->planner.timed)
        expect_rule(&overlapper->rule, &question, &plans.by_mode[OVERLAP_LOCAL]);
    else
        plans.by_mode[OVERLAP_LOCAL] = plans.by_mode[OVERLAP_PLAN];
    return plans;
}

/* overlap_try.c - trying plans of --overlap: a plan's moves are made in the list, simulated, and undone. */
#include "overlap_parts.h"
#include "planning/pass/remake.h"
#include "planning/pass/traits.h"

/* ---- carrying a plan out ----------------------------------------------------------------------------------------- */

void carry_out_plan(struct update_planner *planner, struct edit *edit, const unsigned char *side, enum sharing sharing)
{
    const struct update_survey *survey = &planner->survey;
    struct update_mover mover = begin_moves(edit, survey->list, survey->uses, survey->cores, sharing);
    if (planner->rule.n_fixed < survey->buckets.n)
        move_fixed_and_list_others(&mover, &planner->rule, side);
    else
        move_updates(&mover, &survey->buckets, side);
    end_moves(&mover);
}

/* carry_out_plan() for a list that is scored, and undone: with what recompute will make again, and with room for
 * snapshots, which depends on where updates are. */
static void carry_out_to_score(void *context, struct edit *edit, const unsigned char *choice)
{
    struct update_planner *planner = context;
    struct list *list = planner->survey.list;
    carry_out_plan(planner, edit, choice, choice[planner->survey.buckets.n]); /* the last decision is the sharing */
    if (planner->remade)
        free(remake(edit, list->pool, planner->survey.uses, planner->remade, REMAKE_AT_BACKWARD));
    reserve_room(list, planner->facts);
}

/* ---- trying plans ------------------------------------------------------------------------------------------------ */

struct question question_of(struct update_planner *planner, double work)
{
    const struct update_survey *survey = &planner->survey;
    return (struct question){.list = survey->list,
                             .costs = survey->costs,
                             .activity = "looking for the updates to give to the CPU",
                             .decisions = survey->decisions,
                             .n = survey->buckets.n + 1,
                             .apply = carry_out_to_score,
                             .context = planner,
                             .least_period = survey->least_period,
                             .work = work};
}

struct update_plans plans_within_budgets(struct update_planner *planner, double work)
{
    const struct question question = question_of(planner, work);
    struct update_plans plans = find_plans(&planner->survey, &question);
    if (planner->survey.timed)
        expect_sides(&planner->rule, &question, &plans.by_mode[OVERLAP_LOCAL]);
    else
        plans.by_mode[OVERLAP_LOCAL] = plans.by_mode[OVERLAP_PLAN];
    return plans;
}

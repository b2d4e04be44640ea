/* overlap_try.c - trying plans of --overlap: a plan's moves are made in the list, simulated, and undone. */
#include "overlap_pass.h"
#include "planning/pass/remake.h"
#include "planning/pass/traits.h"

/* ---- the mode ---------------------------------------------------------------------------------------------------- */

enum overlap mode_of(const struct run_facts *facts)
{
    if (overlap_options.mode == OVERLAP_LOCAL && facts->trial)
        return OVERLAP_PLAN;
    return overlap_options.mode;
}

/* ---- carrying a choice out --------------------------------------------------------------------------------------- */

void carry_out_plan(struct planning *planning, struct edit *edit, const unsigned char *side, enum sharing sharing)
{
    const struct update_survey *survey = &planning->survey;
    struct update_mover mover = begin_moves(edit, survey->list, survey->uses, survey->cores, sharing);
    if (planning->rule.n_fixed < survey->buckets.n)
        move_fixed_and_list_others(&mover, &planning->rule, side);
    else
        move_updates(&mover, &survey->buckets, side);
    end_moves(&mover);
}

/* carry_out_plan() for a list that is scored, and undone: with what recompute will make again, and with room for
 * snapshots, which depends on where updates are. */
static void carry_out_to_score(void *context, struct edit *edit, const unsigned char *choice)
{
    struct planning *planning = context;
    struct list *list = planning->survey.list;
    carry_out_plan(planning, edit, choice, choice[planning->survey.buckets.n]); /* the last decision is the sharing */
    if (planning->remade)
        free(remake(edit, list->pool, planning->survey.uses, planning->remade, REMAKE_AT_BACKWARD));
    reserve_room(list, planning->facts);
}

/* ---- trying plans ------------------------------------------------------------------------------------------------ */

struct question question_of(struct planning *planning, double work)
{
    const struct update_survey *survey = &planning->survey;
    return (struct question){.list = survey->list,
                             .costs = survey->costs,
                             .activity = "looking for the updates to give to the CPU",
                             .decisions = survey->decisions,
                             .n = survey->buckets.n + 1,
                             .apply = carry_out_to_score,
                             .context = planning,
                             .least_period = survey->least_period,
                             .work = work};
}

struct plans plans_within_budgets(struct planning *planning, double work)
{
    const struct question question = question_of(planning, work);
    struct plans plans = find_plans(&planning->survey, &question);
    if (planning->survey.timed)
        expect_choices(&planning->rule, &question, &plans.by_mode[OVERLAP_LOCAL]);
    else
        plans.by_mode[OVERLAP_LOCAL] = plans.by_mode[OVERLAP_PLAN];
    return plans;
}

/* overlap_try.c - trying plans of --overlap: a plan's moves are made in the list, simulated, and undone.  And for
 * --overlap local: about how many buckets the running step can decide.
 */
#include "overlap_plan.h"
#include "planning/pass/remake.h"
#include "planning/pass/traits.h"

/* ---- carrying a plan out ----------------------------------------------------------------------------------------- */

void carry_out_plan(struct update_planner *planner, struct edit *edit, const struct update_plan *plan)
{
    const struct update_survey *survey = &planner->survey;
    struct update_mover mover = begin_moves(edit, survey->list, survey->uses, survey->cores, plan->sharing);
    if (plan->n_left_to_step > 0)
        move_fixed_and_list_others(&mover, &planner->rule, survey->buckets.n - plan->n_left_to_step, plan->side);
    else
        move_updates(&mover, &survey->buckets, plan->side);
    end_moves(&mover);
}

/* carry_out_plan() for a list that is scored, and undone: with what recompute will make again, and with room for
 * snapshots, which depends on where updates are. */
static void carry_out_to_score(void *context, struct edit *edit, const option_byte *choice)
{
    const struct scoring *scoring = context;
    struct update_planner *planner = scoring->planner;
    struct list *list = planner->survey.list;
    struct update_plan plan = {.n_left_to_step = scoring->n_left_to_step};
    choice_to_plan(choice, planner->survey.n_decisions, &plan);
    carry_out_plan(planner, edit, &plan);
    if (scoring->remade)
        free(remake_tensors(edit, list->pool, planner->survey.uses, scoring->remade, REMAKE_AT_BACKWARD));
    reserve_room(list, planner->facts); /* what it returns is not needed: the caller undoes the edit, and so this */
}

/* ---- trying plans ------------------------------------------------------------------------------------------------ */

struct question question_of(struct scoring *scoring, double work)
{
    const struct update_survey *survey = &scoring->planner->survey;
    return (struct question){.list = survey->list,
                             .costs = survey->costs,
                             .activity = "looking for the updates to give to the CPU",
                             .decisions = survey->decisions,
                             .n = survey->n_decisions,
                             .apply = carry_out_to_score,
                             .context = scoring,
                             .least_period = survey->least_period,
                             .work = work};
}

void try_with(struct update_planner *planner, const int *remade, struct update_plan *plan)
{
    struct scoring scoring = {.planner = planner, .remade = remade};
    const struct question question = question_of(&scoring, 0);
    try_plan(&question, plan);
}

struct update_plans plans_within_budgets(struct update_planner *planner, const int *remade)
{
    struct scoring scoring = {.planner = planner, .remade = remade};
    const struct question question = question_of(&scoring, OVERLAP_WORK);
    struct update_plans plans = choose_plans(&planner->survey, &question);
    if (planner->survey.timed)
        plan_expected_sides(&planner->rule, &question, &plans.by_mode[OVERLAP_LOCAL]);
    else
        plans.by_mode[OVERLAP_LOCAL] = plans.by_mode[OVERLAP_PLAN];
    return plans;
}

/* ---- --overlap local: what is left to the running step ----------------------------------------------------------- */

/* Why all updates are chosen before the step runs; NULL: they need not be.  The caller frees the text. */
static char *reason_to_choose_now(const struct task *update, const struct run_facts *facts,
                                  const struct pass *room_maker)
{
    const struct pass *mover_of_state = find_wanted(MOVES_STATE, facts);
    if (is_of_step_file(update))
        return copy_string("a step file only says how long tasks take");
    if (facts->paced)
        return copy_string("a paced step runs as predicted");
    if (mover_of_state)
        return format_string("%s moves the same state", mover_of_state->name);
    if (room_maker)
        return format_string("%s then makes room for them", room_maker->name);
    return NULL;
}

/* Says that all updates are chosen before the step runs, and why. */
static char *describe_chosen_now(const char *reason)
{
    return format_string("the updates are chosen before the step runs, because %s: ", reason);
}

/* Tries the list with the first n_fixed buckets on the CPU and all other updates on both sides.  Returns what the step
 * is then expected to do.  remade: see struct scoring. */
static struct update_plan try_fixed(struct update_planner *planner, const int *remade, const struct forecast *forecast,
                                    size_t n_fixed)
{
    const struct update_survey *survey = &planner->survey;
    struct update_plan plan = {.n_left_to_step = survey->buckets.n - n_fixed};
    struct scoring scoring = {.planner = planner, .remade = remade, .n_left_to_step = plan.n_left_to_step};
    const struct question question = question_of(&scoring, 0);
    predict_sides(survey, forecast, n_fixed, plan.side);
    try_plan(&question, &plan);
    return plan;
}

/* Fixes the fewest buckets to the CPU with which all other updates have room on both sides; only some numbers are
 * tried.  The plan of --overlap local becomes what the step is then expected to do; if no number is enough, it stays as
 * it is. */
static void fix_as_few_as_fit(struct update_planner *planner, struct update_plans *plans)
{
    const struct update_survey *survey = &planner->survey;
    size_t n = survey->buckets.n;
    struct forecast forecast = forecast_list(survey->list, survey->costs);
    bool fits = false;
    for (size_t n_fixed = 0; n_fixed < n && !fits; n_fixed += ceil_div(n, MOST_STARTS)) {
        const struct update_plan both = try_fixed(planner, plans->remade, &forecast, n_fixed);
        fits = score_fits(&both.score);
        if (fits)
            plans->by_mode[OVERLAP_LOCAL] = both;
    }
    free_forecast(&forecast);
}

/* How updates are chosen, of which the first n_fixed buckets are on the CPU.  The caller frees the text. */
static char *describe_fixed(const struct local_rule *rule, size_t n_fixed)
{
    if (n_fixed == rule->survey->buckets.n)
        return describe_chosen_now("there is no room for their state on both sides");
    if (n_fixed == 0 && rule->drawn)
        return copy_string("the updates are drawn at random in every step; expected: ");
    if (n_fixed == 0)
        return copy_string("the updates are chosen in every step; expected: ");
    return format_string(
        "the updates are %s in every step, but %zu of them stay on the CPU, because there is no room for the "
        "state of all on both sides; expected: ",
        rule->drawn ? "drawn at random" : "chosen", n_fixed);
}

void leave_to_step(struct update_planner *planner, struct update_plans *plans, struct pass_report *report)
{
    const struct update_survey *survey = &planner->survey;
    const struct task *first_update = survey->list->tasks[survey->buckets.items[0].first_update];
    char *reason = reason_to_choose_now(first_update, planner->facts, plans->room_maker);
    if (reason) {
        report->reason = describe_chosen_now(reason);
        free(reason);
        return;
    }
    fix_as_few_as_fit(planner, plans);
    report->reason = describe_fixed(&planner->rule, survey->buckets.n - plans->by_mode[OVERLAP_LOCAL].n_left_to_step);
}

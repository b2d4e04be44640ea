/* overlap_room.c - which plans --overlap takes where a pass that runs later makes room.
 *
 * After such a pass the list needs fewer bytes than now.  So a plan that does not fit now may fit then, and it may make
 * a shorter step than the plans that do fit now.  Three searches give three sets of plans:
 *
 *     plain       with the budgets as they are
 *     endless     as if every device had all the bytes that a plan wants
 *     foretold    with the budgets as they are, but as if what recompute makes again were made again already
 *
 * If no plain plan fits, plans_if_none_fits() takes another set:
 *
 *     recompute does not run        endless.  The later pass has to make its plans fit.
 *     recompute runs                endless, if its plan for the --overlap that is asked for fits once recompute has
 *                                   run, or if a further pass makes room too; else foretold.
 *
 * If one does fit, plans_if_one_fits() takes plain or endless:
 *
 *     recompute runs, or no pass    plain.
 *     can say what it makes fit
 *     swap auto can say it          endless, if its plan for the --overlap that is asked for makes the step shorter,
 *                                   and swap says that it can make this plan fit with a step that is still shorter;
 *                                   else plain.
 */
#include "overlap_room.h"
#include "planning/pass/traits.h"

#include <math.h>

/* ---- the endless set -------------------------------------------------------------------------------------------- */

/* Tasks know their devices by address, so the limits are lifted there, and are as before when this returns. */
static struct update_plans plans_without_budgets(struct update_planner *planner, double work)
{
    struct machine *machine = planner->survey.list->pool->machine;
    struct device *limits = lift_limits(machine, machine->n_devices);
    struct update_plans plans = plans_within_budgets(planner, work);
    restore_limits(machine, limits, machine->n_devices);
    free(limits);
    return plans;
}

/* ---- no plan fits ------------------------------------------------------------------------------------------------ */

static bool plan_fits(struct update_planner *planner, struct update_plan plan)
{
    const struct question question = question_of(planner, 0);
    try_plan(&question, &plan);
    return plan.score.excess_bytes <= 0;
}

static struct update_plans plans_if_none_fits(struct update_planner *planner)
{
    const struct update_survey *survey = &planner->survey;
    const enum overlap mode = planner->mode;
    const struct pass *remaking = find_wanted(FORETELLS_REMADE, planner->facts);
    const struct pass *room_maker = find_wanted(MAKES_UNFORESEEN_ROOM, planner->facts);
    const struct update_plans endless = plans_without_budgets(planner, OVERLAP_WORK);
    if (!remaking) {
        planner->room_maker = room_maker;
        return endless;
    }
    planner->remade = traits_of(remaking)->foretell_remade(survey->uses, survey->list->pool);
    if (room_maker || plan_fits(planner, endless.by_mode[mode]))
        return endless;
    return plans_within_budgets(planner, OVERLAP_WORK); /* the foretold set, by planner->remade */
}

/* ---- a plan fits ------------------------------------------------------------------------------------------------- */

/* No look at other plans is worth its work: the step is within 1 % of the shortest that there could be.  Or all updates
 * on the device fit, and all on the CPU do, with gradients that have bytes of their own: then budgets hardly keep any
 * plan away. */
static bool is_good_enough(const struct update_survey *survey, const struct update_plans *plans, double period)
{
    const struct update_plan *all = &plans->by_mode[OVERLAP_ALL_CPU];
    if (period <= 1.01 * survey->least_period)
        return true;
    return plans->by_mode[OVERLAP_ALL_DEVICE].score.excess_bytes == 0 && all->score.excess_bytes == 0 &&
           all->sharing == GRADIENTS_ALONE;
}

/* A quick look, at the starts of the search alone: would the mode's step be at most so long with endless budgets? */
static bool is_shorter_without_budgets(struct update_planner *planner, enum overlap mode, double seconds)
{
    struct update_plans quick = plans_without_budgets(planner, 0);
    return quick.by_mode[mode].score.period <= seconds;
}

/* Can `room_maker` make the list fit with this plan, and a step of at most `seconds`? */
static bool can_be_made_to_fit(struct update_planner *planner, const struct update_plan *plan,
                               const struct pass *room_maker, double seconds)
{
    const struct update_survey *survey = &planner->survey;
    const struct question question = question_of(planner, 0);
    struct update_plan within = *plan;
    score_plan(&question, &within);
    if (!isfinite(within.score.excess_bytes)) /* no address can be found for a tensor, which no pass mends */
        return false;
    struct edit *edit = open_edit(survey->list);
    carry_out_plan(planner, edit, plan->side, plan->sharing);
    reserve_room(survey->list, planner->facts);
    preview(edit);
    bool fits = traits_of(room_maker)->foretells_fit(survey->list, survey->costs, seconds);
    undo_edit(edit);
    return fits;
}

/* `local` is asked nothing, since the step decides. */
static struct update_plans plans_if_one_fits(struct update_planner *planner, const struct update_plans *plain)
{
    const enum overlap mode = planner->mode;
    const struct pass *room_maker = find_wanted(FORETELLS_FIT, planner->facts);
    const struct score fits = plain->by_mode[mode].score;
    bool is_asked = mode == OVERLAP_PLAN || mode == OVERLAP_ALL_CPU;
    if (!is_asked || !room_maker || find_wanted(FORETELLS_REMADE, planner->facts))
        return *plain;
    if (fits.excess_bytes > 0 || is_good_enough(&planner->survey, plain, fits.period))
        return *plain;
    const double shorter = fits.period * (1 - 1e-6); /* by more than rounding */
    if (!is_shorter_without_budgets(planner, mode, shorter))
        return *plain;
    const struct update_plans endless = plans_without_budgets(planner, OVERLAP_WORK);
    if (!can_be_made_to_fit(planner, &endless.by_mode[mode], room_maker, shorter))
        return *plain;
    planner->room_maker = room_maker;
    return endless;
}

/* ---- which plans ------------------------------------------------------------------------------------------------- */

struct update_plans plans_for_later_room(struct update_planner *planner, const struct update_plans *plain)
{
    if (plain->by_mode[OVERLAP_PLAN].score.excess_bytes <= 0)
        return plans_if_one_fits(planner, plain);
    return plans_if_none_fits(planner);
}

/* overlap_room.c - which plans --overlap takes where a pass that runs later makes room.
 *
 * After such a pass the list needs fewer bytes than now.  So a plan that does not fit now may fit then, and it may make
 * a shorter step than the plans that do fit now.  A *set* has a plan for each --overlap.  Three searches give three
 * sets:
 *
 *     plain        with the budgets as they are
 *     unlimited    as if every device had all the bytes that a plan wants
 *     recomputed   with the budgets as they are, but as if what recompute makes again were made again already
 *
 * Of these rules the first one that applies says which set is taken.  The *asked* plan of a set is the one for the
 * --overlap that is asked for.
 *
 *     if the best plain plan does not fit: plans_if_none_fits()
 *
 *         1. Recompute does not run: unlimited.  The later pass has to make these plans fit.
 *         2. A further pass makes room too: unlimited.
 *         3. The asked plan of `unlimited` fits once recompute has run: unlimited.
 *         4. Else: recomputed.
 *
 *     if it fits: plans_if_one_fits()
 *
 *         5. The asked --overlap is neither `plan` nor `all-cpu`: plain.
 *         6. Recompute runs, or no pass can say what it makes fit (swap auto can): plain.
 *         7. The asked plain plan does not fit, or is good enough: plain.
 *         8. The asked plan of `unlimited` makes no shorter step: plain.
 *         9. Swap cannot make that plan fit with a step that is shorter still: plain.
 *        10. Else: unlimited.
 */
#include "overlap_parts.h"
#include "planning/pass/traits.h"

#include <math.h>

/* ---- the unlimited set ------------------------------------------------------------------------------------------ */

/* Tasks point to the machine's own devices: so the limits of these are lifted, and restored in the end. */
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
    struct scoring scoring = {.planner = planner};
    const struct question question = question_of(&scoring, 0);
    try_plan(&question, &plan);
    return plan.score.excess_bytes <= 0;
}

static struct update_plans plans_if_none_fits(struct update_planner *planner)
{
    const struct update_survey *survey = &planner->survey;
    const enum overlap mode = planner->mode;
    const struct pass *remaking = find_wanted(KNOWS_REMADE_TENSORS, planner->facts);
    const struct pass *room_maker = find_wanted(MAKES_UNKNOWN_ROOM, planner->facts);
    const struct update_plans unlimited = plans_without_budgets(planner, OVERLAP_WORK);
    if (!remaking) {
        planner->room_maker = room_maker;
        return unlimited; /* rule 1 */
    }
    planner->remade = traits_of(remaking)->remade_tensors(survey->uses, survey->list->pool);
    if (room_maker || plan_fits(planner, unlimited.by_mode[mode]))
        return unlimited;                               /* rules 2 and 3 */
    return plans_within_budgets(planner, OVERLAP_WORK); /* rule 4: the recomputed set, by planner->remade */
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

/* Would a step with the mode's unlimited plan take at most so many seconds?  This is a quick look, at the starts of the
 * search alone. */
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
    struct scoring scoring = {.planner = planner};
    const struct question question = question_of(&scoring, 0);
    struct update_plan within = *plan;
    score_plan(&question, &within);
    if (!isfinite(within.score.excess_bytes)) /* no address can be found for a tensor, which no pass mends */
        return false;
    struct edit *edit = open_edit(survey->list);
    carry_out_plan(planner, edit, plan);
    reserve_room(survey->list, planner->facts);
    preview(edit);
    bool fits = traits_of(room_maker)->can_make_fit(survey->list, survey->costs, seconds);
    undo_edit(edit);
    return fits;
}

/* With --overlap local the step decides, and with all-device no plan takes the room. */
static struct update_plans plans_if_one_fits(struct update_planner *planner, const struct update_plans *plain)
{
    const enum overlap mode = planner->mode;
    const struct pass *room_maker = find_wanted(KNOWS_WHAT_WILL_FIT, planner->facts);
    const struct score asked = plain->by_mode[mode].score;
    if (mode != OVERLAP_PLAN && mode != OVERLAP_ALL_CPU)
        return *plain; /* rule 5 */
    if (!room_maker || find_wanted(KNOWS_REMADE_TENSORS, planner->facts))
        return *plain; /* rule 6 */
    if (asked.excess_bytes > 0 || is_good_enough(&planner->survey, plain, asked.period))
        return *plain;                                /* rule 7 */
    const double shorter = asked.period * (1 - 1e-6); /* by more than rounding */
    if (!is_shorter_without_budgets(planner, mode, shorter))
        return *plain; /* rule 8 */
    const struct update_plans unlimited = plans_without_budgets(planner, OVERLAP_WORK);
    if (!can_be_made_to_fit(planner, &unlimited.by_mode[mode], room_maker, shorter))
        return *plain; /* rule 9 */
    planner->room_maker = room_maker;
    return unlimited; /* rule 10 */
}

/* ---- which plans ------------------------------------------------------------------------------------------------- */

struct update_plans plans_for_later_room(struct update_planner *planner, const struct update_plans *plain)
{
    if (plain->by_mode[OVERLAP_PLAN].score.excess_bytes <= 0)
        return plans_if_one_fits(planner, plain);
    return plans_if_none_fits(planner);
}

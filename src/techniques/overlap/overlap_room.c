/* overlap_room.c - which plans --overlap takes where a pass that runs later makes room.
 *
 * After such a pass the list needs fewer bytes than now.  So a plan that does not fit now may fit then, and it may make
 * a shorter step than the plans that do fit now.  Three searches make plans, each a plan for each --overlap:
 *
 *     plain        the budgets are as they are
 *     unlimited    every device has all the bytes that a plan wants
 *     recomputed   the budgets are as they are, and what recompute will make again is made again already
 *
 * Which of the three is taken follows from the best plain plan, and from the passes that run later:
 *
 *     row  best plain plan  passes that run later                                             plans taken
 *
 *     1    does not fit     swap, without or with recompute                                   unlimited
 *     2    does not fit     recompute without swap, and the unlimited plan then fits          unlimited
 *     3    does not fit     recompute without swap, and the unlimited plan does not fit then  recomputed
 *     4    fits             --swap auto without recompute, if it can make the unlimited       unlimited
 *                           plan fit, with a shorter step; only for --overlap plan and
 *                           all-cpu
 *     5    fits             any others                                                        plain
 *
 * Here *the* unlimited plan is the one for the --overlap that is asked for.  The reasons, by row:
 *
 *     1      swap has to make room whichever plan is taken, and the unlimited plan may have the shortest step
 *     2, 3   recompute says before it runs what it will make again, so both plans can be tried with that
 *     4      swap says before it runs whether it can make a plan fit, and in how short a step, so it is asked
 *     5      nothing says that a later pass can make a shorter step fit
 *
 * An example of row 4, whose step takes 36.5 ms with the unlimited plan and 47.3 ms with the plain one:
 *
 *     yard plan --list data/gallery/megatrain-options.txt --clip 0 --device-mem 256M \
 *         --overlap plan --swap auto --swap-what activations,optimizer,parameters,gradients
 */
#include "overlap_plan.h"
#include "planning/pass/traits.h"

#include <math.h>

/* A step must be shorter by more than this share.  The search of swap ends at a step as short as is asked for, so it is
 * asked for a gain that is worth the name: with SAME_TIME, page 28 has a step that is 2 % longer. */
static const double LEAST_GAIN = 1e-6;

/* ---- the unlimited plans ----------------------------------------------------------------------------------------- */

/* Tasks point to the machine's own devices: so the limits of these are lifted, and restored in the end. */
static struct update_plans plans_without_budgets(struct update_planner *planner)
{
    struct machine *machine = planner->survey.list->pool->machine;
    struct device *limits = lift_limits(machine, machine->n_devices);
    struct update_plans plans = plans_within_budgets(planner, NULL);
    restore_limits(machine, limits, machine->n_devices);
    free(limits);
    return plans;
}

/* ---- no plan fits ------------------------------------------------------------------------------------------------ */

/* Does the plan fit if these tensors are made again? */
static bool plan_fits(struct update_planner *planner, const int *remade, struct update_plan plan)
{
    try_with(planner, remade, &plan);
    return score_fits(&plan.score);
}

static struct update_plans plans_if_none_fits(struct update_planner *planner)
{
    const struct update_survey *survey = &planner->survey;
    const struct pass *remaking = find_wanted(KNOWS_REMADE_TENSORS, planner->facts);
    const struct pass *room_maker = find_wanted(MAKES_UNKNOWN_ROOM, planner->facts);
    struct update_plans unlimited = plans_without_budgets(planner);
    if (!remaking) {
        unlimited.room_maker = room_maker;
        return unlimited;
    }
    int *remade = traits_of(remaking)->remade_tensors(survey->uses, survey->list->pool);
    unlimited.remade = remade;
    if (room_maker || plan_fits(planner, remade, unlimited.by_mode[planner->mode]))
        return unlimited;
    struct update_plans recomputed = plans_within_budgets(planner, remade);
    recomputed.remade = remade;
    return recomputed;
}

/* ---- a plan fits ------------------------------------------------------------------------------------------------- */

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
    reserve_room(survey->list, planner->facts); /* what it returns is not needed: undo_edit() takes the tensors away */
    preview_edit(edit);
    bool fits = traits_of(room_maker)->can_make_fit(survey->list, survey->costs, seconds);
    undo_edit(edit);
    return fits;
}

/* With --overlap local the step decides, and with all-device no plan takes the room.  What swap says is about the list
 * as it is now, so it does not hold where recompute runs in between. */
static struct update_plans plans_if_one_fits(struct update_planner *planner, const struct update_plans *plain)
{
    enum overlap mode = planner->mode;
    const struct pass *room_maker = find_wanted(KNOWS_WHAT_FITS, planner->facts);
    if (!room_maker || find_wanted(KNOWS_REMADE_TENSORS, planner->facts))
        return *plain;
    if (mode != OVERLAP_PLAN && mode != OVERLAP_ALL_CPU)
        return *plain;
    double shorter = plain->by_mode[mode].score.period * (1 - LEAST_GAIN);
    struct update_plans unlimited = plans_without_budgets(planner);
    if (unlimited.by_mode[mode].score.period > shorter) /* more memory would make no shorter step */
        return *plain;
    bool made_to_fit = can_be_made_to_fit(planner, &unlimited.by_mode[mode], room_maker, shorter);
    return made_to_fit ? unlimited : *plain;
}

/* ---- which plans ------------------------------------------------------------------------------------------------- */

struct update_plans plans_for_later_room(struct update_planner *planner, const struct update_plans *plain)
{
    if (score_fits(&plain->by_mode[OVERLAP_PLAN].score))
        return plans_if_one_fits(planner, plain);
    return plans_if_none_fits(planner);
}

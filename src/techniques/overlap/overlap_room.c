/* overlap_room.c - which plans --overlap takes where a pass that runs later makes room.
 *
 * After such a pass the list needs fewer bytes than now.  So a plan that does not fit now may fit then, and it may make
 * a shorter step than the plans that do fit now.  Three searches give three sets of plans:
 *
 *     plain       with the budgets as they are
 *     endless     as if every device had all the bytes that a plan wants
 *     foretold    with the budgets as they are, but as if what recompute makes again were made again already
 *
 * If no plain plan fits, try_again() takes another set:
 *
 *     recompute does not run        endless.  The later pass has to make its plans fit.
 *     recompute runs                endless, if its plan for the --overlap that is asked for fits once recompute has
 *                                   run, or if a further pass makes room too; else foretold.
 *
 * If one does fit, weigh_room() takes plain or endless:
 *
 *     recompute runs, or no pass    plain.
 *     can say what it makes fit
 *     swap auto can say it          endless, if its plan for the --overlap that is asked for makes the step shorter,
 *                                   and swap says that it can make this plan fit with a step that is still shorter;
 *                                   else plain.
 */
#include "overlap_pass.h"
#include "techniques/pass/traits.h"

#include <math.h>

/* ---- the endless set -------------------------------------------------------------------------------------------- */

/* Tasks know their devices by address, so the limits are lifted there, and are as before when this returns. */
static struct plans try_all_without_limits(struct overlapper *overlapper, double work)
{
    struct machine *machine = overlapper->planner.list->pool->machine;
    struct device *limits = lift_limits(machine, machine->n_devices);
    struct plans plans = try_all(overlapper, work);
    restore_limits(machine, limits, machine->n_devices);
    free(limits);
    return plans;
}

/* ---- no plan fits ------------------------------------------------------------------------------------------------ */

static bool candidate_fits(struct overlapper *overlapper, struct candidate candidate)
{
    const struct question question = question_of(overlapper, 0);
    try_candidate(&question, &candidate);
    return candidate.score.excess_bytes <= 0;
}

static struct plans try_again(struct overlapper *overlapper)
{
    const struct planner *planner = &overlapper->planner;
    const enum overlap mode = mode_of(overlapper->facts);
    const struct pass *remaking = find_wanted(FORETELLS_REMADE, overlapper->facts);
    const struct pass *room_maker = find_wanted(MAKES_UNFORESEEN_ROOM, overlapper->facts);
    const struct plans endless = try_all_without_limits(overlapper, OVERLAP_WORK);
    if (!remaking) {
        overlapper->room_maker = room_maker;
        return endless;
    }
    overlapper->remade = traits_of(remaking)->foretell_remade(planner->uses, planner->list->pool);
    if (room_maker || candidate_fits(overlapper, endless.by_mode[mode]))
        return endless;
    return try_all(overlapper, OVERLAP_WORK);
}

/* ---- a plan fits ------------------------------------------------------------------------------------------------- */

/* No look at other plans is worth its work: the step is within 1 % of the shortest that there could be.  Or all updates
 * on the device fit, and all on the CPU do, with gradients that have bytes of their own: then budgets hardly keep any
 * plan away. */
static bool is_good_enough(const struct planner *planner, const struct plans *plans, double period)
{
    const struct candidate *all = &plans->by_mode[OVERLAP_ALL_CPU];
    if (period <= 1.01 * planner->least_period)
        return true;
    return plans->by_mode[OVERLAP_ALL_DEVICE].score.excess_bytes == 0 && all->score.excess_bytes == 0 &&
           all->sharing == GRADIENTS_ALONE;
}

/* A quick look, at the starts of the search alone: would the mode's step be at most so long with endless budgets? */
static bool is_shorter_without_limits(struct overlapper *overlapper, enum overlap mode, double seconds)
{
    struct plans quick = try_all_without_limits(overlapper, 0);
    return quick.by_mode[mode].score.period <= seconds;
}

/* Can `room_maker` make the list fit with this candidate, and a step of at most so many seconds? */
static bool can_be_made_to_fit(struct overlapper *overlapper, const struct candidate *candidate,
                               const struct pass *room_maker, double seconds)
{
    const struct planner *planner = &overlapper->planner;
    const struct question question = question_of(overlapper, 0);
    struct candidate within = *candidate;
    score_candidate(&question, &within);
    if (!isfinite(within.score.excess_bytes)) /* no address can be found for a tensor, which no pass mends */
        return false;
    struct edit *edit = open_edit(planner->list);
    carry_out(overlapper, edit, candidate->side, candidate->sharing);
    reserve_room(planner->list, overlapper->facts);
    preview(edit);
    bool fits = traits_of(room_maker)->foretells_fit(planner->list, planner->costs, seconds);
    undo_edit(edit);
    return fits;
}

/* Of `local` nothing is asked, since the step decides. */
static struct plans weigh_room(struct overlapper *overlapper, const struct plans *plain)
{
    const enum overlap mode = mode_of(overlapper->facts);
    const struct pass *room_maker = find_wanted(FORETELLS_FIT, overlapper->facts);
    const struct score fits = plain->by_mode[mode].score;
    bool is_asked = mode == OVERLAP_PLAN || mode == OVERLAP_ALL_CPU;
    if (!is_asked || !room_maker || find_wanted(FORETELLS_REMADE, overlapper->facts))
        return *plain;
    if (fits.excess_bytes > 0 || is_good_enough(&overlapper->planner, plain, fits.period))
        return *plain;
    const double shorter = fits.period * (1 - 1e-6); /* by more than rounding */
    if (!is_shorter_without_limits(overlapper, mode, shorter))
        return *plain;
    const struct plans endless = try_all_without_limits(overlapper, OVERLAP_WORK);
    if (!can_be_made_to_fit(overlapper, &endless.by_mode[mode], room_maker, shorter))
        return *plain;
    overlapper->room_maker = room_maker;
    return endless;
}

/* ---- which plans ------------------------------------------------------------------------------------------------- */

struct plans plans_with_room(struct overlapper *overlapper, const struct plans *plans)
{
    bool fits = plans->by_mode[OVERLAP_PLAN].score.excess_bytes <= 0;
    return fits ? weigh_room(overlapper, plans) : try_again(overlapper);
}

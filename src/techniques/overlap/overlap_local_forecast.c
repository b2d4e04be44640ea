/* overlap_local_forecast.c - before the step of --overlap local runs: what the rule of overlap_local.c will
 * choose, and about which updates the step can decide.
 *
 *     predict_sides()     follows the rule through the forecast of the list with all updates on the device
 *     expect_sides()      the same, as a plan that is scored, and that fits as well as it can
 *     leave_to_step()     fixes updates to the CPU until the others have room on both sides
 */
#include "overlap_parts.h"
#include "planning/pass/traits.h"

#include <math.h>

/* ---- what the rule will choose ----------------------------------------------------------------------------------- */

/* When bucket b is released.  In the forecast the device does all updates; the time of those that the CPU does instead
 * is subtracted. */
static double released_at(const struct update_survey *survey, const struct forecast *forecast,
                          const unsigned char *side, size_t b)
{
    const struct update_bucket *buckets = survey->buckets.buckets;
    const struct lane *lane = forecast->tasks[buckets[b].update]->lane;
    if (buckets[b].released == NONE)
        return 0;
    double at = forecast->spans[buckets[b].released].end;
    for (size_t k = 0; k < b; k++) {
        bool before = (int)buckets[k].update < buckets[b].released;
        if (side[k] == ON_CPU && before && forecast->tasks[buckets[k].update]->lane == lane)
            at -= survey->seconds[k].on_device;
    }
    return at;
}

/* Seconds that the CPU will still need, at the time `now`, for those of the first b buckets that it was given.  The
 * updates of bucket k end at ends[k]. */
static double predict_backlog(const struct update_survey *survey, const unsigned char *side, const double *ends,
                              size_t b, double now)
{
    double left = 0;
    for (size_t k = 0; k < b; k++)
        if (side[k] == ON_CPU)
            left += fmin(fmax(ends[k] - now, 0), survey->seconds[k].on_cpu);
    return left;
}

/* Fills in side[], by bucket, with what the rule will choose; the first n_fixed buckets go to the CPU, whatever it
 * says. */
static void follow_rule(const struct update_survey *survey, const struct forecast *forecast, size_t n_fixed,
                        unsigned char *side)
{
    const size_t n = survey->buckets.n;
    double *ends = allocate(n + 1, sizeof *ends); /* by bucket: when the CPU ends its update */
    double cpu_ends = 0, ready = INFINITY;        /* ready: with clipping, the norm */
    for (size_t b = 0; b < n; b++)
        ready = fmin(ready, forecast->spans[survey->buckets.buckets[b].update].start);
    for (size_t b = 0; b < n; b++) {
        const struct bucket_seconds *takes = &survey->seconds[b];
        const double now = released_at(survey, forecast, side, b);
        const double backlog = predict_backlog(survey, side, ends, b, now);
        bool to_cpu = b < n_fixed || goes_to_cpu(backlog, takes->on_device);
        side[b] = to_cpu ? ON_CPU : ON_DEVICE;
        if (!to_cpu)
            continue;
        cpu_ends = fmax(fmax(cpu_ends, now + takes->down), ready) + takes->on_cpu;
        ends[b] = cpu_ends;
    }
    free(ends);
}

/* follow_rule(), or, where the list with all updates on the device could not be simulated, the CPU for all. */
static void predict_sides(const struct update_survey *survey, const struct forecast *forecast, size_t n_fixed,
                          unsigned char *side)
{
    memset(side, ON_CPU, survey->buckets.n);
    if (forecast->spans)
        follow_rule(survey, forecast, n_fixed, side);
}

void expect_sides(const struct local_rule *rule, const struct question *question, struct update_plan *expected)
{
    struct forecast forecast = forecast_list(rule->survey->list, rule->survey->costs);
    predict_sides(rule->survey, &forecast, 0, expected->side);
    free_forecast(&forecast);
    try_plan(question, expected);
    for (size_t k = rule->survey->buckets.n; k > 0 && expected->score.excess_bytes > 0; k--) {
        struct update_plan other = *expected;
        other.side[k - 1] = expected->side[k - 1] == ON_CPU ? ON_DEVICE : ON_CPU;
        try_plan(question, &other);
        if (other.score.excess_bytes < expected->score.excess_bytes)
            *expected = other;
    }
}

/* Why all updates are decided about before the step runs; NULL: they need not be.  The caller frees the text. */
static char *reason_to_decide_now(const struct task *update, const struct run_facts *facts,
                                  const struct pass *room_maker)
{
    const struct pass *mover_of_state = find_wanted(MOVES_STATE, facts);
    if (!update->on_host.run)
        return copy_string("chosen before the step runs, since nothing of a step file runs: ");
    if (facts->paced)
        return copy_string("chosen before the step runs, since the step runs as predicted: ");
    if (mover_of_state)
        return format_string("chosen before the step runs, since %s moves the same state: ", mover_of_state->name);
    if (room_maker)
        return format_string("chosen before the step runs, since %s then makes room for them: ", room_maker->name);
    return NULL;
}

/* Fixes n_fixed buckets to the CPU, and tries the list: does it fit, with all other updates on both sides?  *plan
 * becomes what the step is then expected to do. */
static bool fits_with(struct local_rule *rule, const struct question *question, const struct forecast *forecast,
                      size_t n_fixed, struct update_plan *plan)
{
    rule->n_fixed = n_fixed; /* by which try_plan() carries the plan out */
    predict_sides(rule->survey, forecast, n_fixed, plan->side);
    try_plan(question, plan);
    return plan->score.excess_bytes == 0;
}

/* Fixes the fewest buckets to the CPU with which all other updates have room on both sides; only some numbers are
 * tried.  *expected is what the step is then expected to do.  If no number is enough, fixes all buckets, and leaves
 * *expected as it is. */
static void fix_as_few_as_fit(struct local_rule *rule, const struct question *question, struct update_plan *expected)
{
    const struct update_survey *survey = rule->survey;
    const size_t n = survey->buckets.n;
    struct forecast forecast = forecast_list(survey->list, survey->costs);
    struct update_plan both = {0};
    bool fits = false;
    for (size_t n_fixed = 0; n_fixed < n && !fits; n_fixed += ceil_div(n, MOST_STARTS))
        fits = fits_with(rule, question, &forecast, n_fixed, &both);
    free_forecast(&forecast);
    if (fits)
        *expected = both;
    else
        rule->n_fixed = n;
}

/* How updates are chosen, when `n_fixed` is known.  The caller frees the text. */
static char *describe_fixed(const struct local_rule *rule)
{
    if (rule->n_fixed == rule->survey->buckets.n)
        return copy_string("chosen before the step runs, since state on both sides does not fit: ");
    if (rule->n_fixed == 0 && rule->random)
        return copy_string("drawn at random in every step, expected: ");
    if (rule->n_fixed == 0)
        return copy_string("chosen in every step, expected: ");
    if (rule->random)
        return format_string("drawn at random in every step but for %zu, on the CPU since not all state fits on both "
                             "sides, expected: ",
                             rule->n_fixed);
    return format_string("chosen in every step but for %zu, on the CPU since not all state fits on both sides, "
                         "expected: ",
                         rule->n_fixed);
}

void leave_to_step(struct local_rule *rule, const struct question *question, const struct run_facts *facts,
                   const struct pass *room_maker, struct update_plan *expected, struct pass_report *report)
{
    const struct update_buckets *buckets = &rule->survey->buckets;
    const struct task *first_update = rule->survey->list->tasks[buckets->buckets[0].update];
    report->reason = reason_to_decide_now(first_update, facts, room_maker);
    if (report->reason) {
        rule->n_fixed = buckets->n;
        return;
    }
    fix_as_few_as_fit(rule, question, expected);
    report->reason = describe_fixed(rule);
}

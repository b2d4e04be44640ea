/* overlap_local_plan.c - before the step of --overlap local runs: what the rule of overlap_local.c will choose.
 *
 *     predict_sides()          follows the rule through the forecast of the list with all updates on the device
 *     plan_expected_sides()    makes a plan of these sides, scores it, and changes it where it does not fit
 */
#include "overlap_plan.h"

#include <math.h>

/* ---- what the rule will choose ----------------------------------------------------------------------------------- */

/* When the bucket is released.  In the forecast the device does all updates; the time of those that the CPU does
 * instead is subtracted. */
static double released_at(const struct update_survey *survey, const struct forecast *forecast, const side_byte *side,
                          size_t bucket)
{
    const struct update_bucket *buckets = survey->buckets.items;
    const struct lane *lane = forecast->tasks[buckets[bucket].first_update]->lane;
    if (buckets[bucket].released == NONE)
        return 0;
    double at = forecast->spans[buckets[bucket].released].end;
    for (size_t k = 0; k < bucket; k++) {
        bool before = (int)buckets[k].first_update < buckets[bucket].released;
        if (side[k] == ON_CPU && before && forecast->tasks[buckets[k].first_update]->lane == lane)
            at -= survey->seconds[k].on_device;
    }
    return at;
}

/* Seconds that the CPU will still need, at the time `now`, for those buckets before this one that it was given.  The
 * updates of bucket k end at ends[k]. */
static double predict_backlog(const struct update_survey *survey, const side_byte *side, const double *ends,
                              size_t bucket, double now)
{
    double left = 0;
    for (size_t k = 0; k < bucket; k++)
        if (side[k] == ON_CPU)
            left += fmin(fmax(ends[k] - now, 0), survey->seconds[k].on_cpu);
    return left;
}

/* predict_sides() where the list could be simulated. */
static void follow_rule(const struct update_survey *survey, const struct forecast *forecast, size_t n_fixed,
                        side_byte *side)
{
    size_t n = survey->buckets.n;
    double *ends = allocate(n + 1, sizeof *ends); /* by bucket: when the CPU ends its update */
    double cpu_ends = 0, ready = INFINITY;        /* ready: with clipping, the norm */
    for (size_t bucket = 0; bucket < n; bucket++)
        ready = fmin(ready, forecast->spans[survey->buckets.items[bucket].first_update].start);
    for (size_t bucket = 0; bucket < n; bucket++) {
        const struct bucket_seconds *takes = &survey->seconds[bucket];
        double now = released_at(survey, forecast, side, bucket);
        double backlog = predict_backlog(survey, side, ends, bucket, now);
        bool to_cpu = bucket < n_fixed || goes_to_cpu(backlog, takes->on_device);
        side[bucket] = to_cpu ? ON_CPU : ON_DEVICE;
        if (!to_cpu)
            continue;
        cpu_ends = fmax(fmax(cpu_ends, now + takes->down), ready) + takes->on_cpu;
        ends[bucket] = cpu_ends;
    }
    free(ends);
}

void predict_sides(const struct update_survey *survey, const struct forecast *forecast, size_t n_fixed, side_byte *side)
{
    memset(side, ON_CPU, survey->buckets.n);
    if (forecast->spans)
        follow_rule(survey, forecast, n_fixed, side);
}

void plan_expected_sides(const struct local_rule *rule, const struct question *question, struct update_plan *expected)
{
    struct forecast forecast = forecast_list(rule->survey->list, rule->survey->costs);
    predict_sides(rule->survey, &forecast, 0, expected->side);
    free_forecast(&forecast);
    try_plan(question, expected);
    for (size_t k = rule->survey->buckets.n; k > 0 && !score_fits(&expected->score); k--) {
        struct update_plan other = *expected;
        other.side[k - 1] = expected->side[k - 1] == ON_CPU ? ON_DEVICE : ON_CPU;
        try_plan(question, &other);
        if (other.score.excess_bytes < expected->score.excess_bytes)
            *expected = other;
    }
}

/* simulate_pattern.c - from which iteration on does a simulated list repeat, and what is its period?
 *
 * Iterations are run until their times repeat: then each of the last iterations has the times of the one that was
 * `pattern` iterations before it, all later by the same amount.
 *
 *     iteration     0     1     2     3     4     5
 *     seconds       9     5     7     5     7     5        pattern 2, period 6: the mean of 7 and 5
 *
 * `pattern` is 1 unless tasks skip iterations or the list itself alternates.  MOST_IN_FLIGHT iterations are compared,
 * as many as may be in flight, or as many as it takes until conditional tasks come round.  What follows depends on
 * nothing older, so from there on everything repeats.  An iteration ends when all iterations up to it have ended.  A
 * list that does not settle is stopped, and its later half counts.
 */
#include "simulator.h"

#include <math.h>

/* Has the later iteration the times of the earlier one, moved by `shift`? */
static bool repeats(const struct simulator *simulator, int earlier, int later, double shift, double tolerance)
{
    const struct moment *before = &simulator->result->moments[node_of(simulator, earlier, 0)];
    const struct moment *after = &simulator->result->moments[node_of(simulator, later, 0)];
    for (int i = 0; i < simulator->n; i++) {
        if (before[i].skipped != after[i].skipped)
            return false;
        if (before[i].skipped)
            continue;
        if (fabs(after[i].start - before[i].start - shift) > tolerance ||
            fabs(after[i].end - before[i].end - shift) > tolerance)
            return false;
    }
    if (simulator->issue_seconds == 0)
        return true;
    return fabs(simulator->iterations[later].issue_begin - simulator->iterations[earlier].issue_begin - shift) <=
           tolerance;
}

/* Does the pattern that ends with iteration `last` repeat?  Snapshots may be in flight for long: with them the whole
 * pattern must have repeated, and one of its iterations must have got a slot. */
static bool repeats_for(const struct simulator *simulator, int last, int pattern, double shift, double tolerance)
{
    int compared = MAX(simulator->returning_task ? pattern : simulator->repeat, MOST_IN_FLIGHT);
    bool stored = simulator->returning_task == NULL;
    for (int i = 0; i < pattern && !stored; i++)
        stored = simulator->iterations[last - i].has_slot;
    if (!stored || last - pattern - (compared - 1) < 0)
        return false;
    for (int i = 0; i < compared; i++)
        if (!repeats(simulator, last - pattern - i, last - i, shift, tolerance))
            return false;
    return true;
}

/* The mean time of an iteration where no pattern was found.  It is measured at a task that runs in every iteration and
 * stores nothing.  The ends of iterations would tell little: one that is stored as a snapshot ends long after its
 * neighbours. */
static double mean_seconds(const struct simulator *simulator, int first, int last)
{
    for (int i = 0; i < simulator->n; i++) {
        const struct moment *begin = &simulator->result->moments[node_of(simulator, first, i)];
        const struct moment *end = &simulator->result->moments[node_of(simulator, last, i)];
        if (!begin->skipped && !end->skipped && !task_of(simulator, i)->extra.slot.needed)
            return (end->end - begin->end) / (last - first);
    }
    return (simulator->iterations[last].end - simulator->iterations[first].end) / (last - first);
}

void look_for_pattern(struct simulator *simulator, int last)
{
    struct simulation *result = simulator->result;
    double end = simulator->iterations[last].end;
    double rounded = 1e-14 * end; /* the error of adding up times */
    double alike = 1e-9;          /* the part of an iteration by which times that repeat may differ */
    for (int length = simulator->repeat; length < last && !result->settled; length += simulator->repeat) {
        double shift = end - simulator->iterations[last - length].end;
        result->pattern = length;
        result->settled = repeats_for(simulator, last, length, shift, alike * shift / length + rounded);
    }
    simulator->stop = result->settled || last == simulator->limit - 1;
    result->steps = last + 1;
    if (result->settled) {
        result->period = (end - simulator->iterations[last - result->pattern].end) / result->pattern;
    } else {
        result->pattern = MIN(MAX(simulator->limit / 2 / simulator->repeat, 1) * simulator->repeat, last);
        result->period = mean_seconds(simulator, last - result->pattern, last);
    }
    result->first = result->steps - result->pattern;
}

/* The mean time of task i in the steady pattern; where it never runs there, its time alone. */
static double mean_of_task(const struct simulator *simulator, int i)
{
    const struct simulation *result = simulator->result;
    double seconds = 0;
    int n = 0;
    for (int iteration = result->first; iteration < result->steps; iteration++) {
        const struct moment *moment = &result->moments[node_of(simulator, iteration, i)];
        seconds += moment->end - moment->start;
        if (!moment->skipped)
            n++;
    }
    return n ? seconds / n : result->seconds[i];
}

void sum_up_pattern(const struct simulator *simulator)
{
    struct simulation *result = simulator->result;
    double begin = simulator->now - result->pattern * result->period;
    result->end = simulator->now;
    result->begun = simulator->opened;
    for (int i = 0; i < simulator->n; i++)
        result->steady[i] = mean_of_task(simulator, i);
    for (int i = 0; i < simulator->n_lanes; i++)
        if (simulator->lanes[i].node != NONE) /* what is in flight counts up to now */
            result->moments[simulator->lanes[i].node].end = simulator->now;
    for (int node = 0; node < simulator->opened * simulator->n; node++) {
        const struct moment *moment = &result->moments[node]; /* from 0 to 0 if the task has not run */
        double seconds = fmax(moment->end - fmax(moment->start, begin), 0);
        result->busy[task_of(simulator, node)->lane->index] += seconds / result->pattern;
    }
}

/* look.c - which part of the axis is in sight. */
#include "geometry.h"
#include "planning/console/numbers.h"

#include <math.h>

#define AIR 0.015        /* the part of what is in sight that is free on a side */
#define FARTHEST_NS 1e16 /* four months: whole nanoseconds can still be told apart */

void look_at(struct view *view, double from, double to)
{
    double length = fmin(fmax(to - from, NARROWEST_NS), FARTHEST_NS);
    double middle = fmin(fmax((from + to) / 2, -FARTHEST_NS), FARTHEST_NS);
    view->sight.from = middle - length / 2;
    view->sight.to = middle + length / 2;
}

/* The same, with a little air on both sides. */
static void look_around(struct view *view, double from, double to)
{
    double air = AIR * (to - from);
    look_at(view, from - air, to + air);
}

/* Puts 0 of the axis where the step starts in each trace; if a trace lacks it, the last step before it.  What is marked
 * and selected stays at its time in the first trace. */
static void set_anchor(struct view *view, uint32_t number)
{
    uint64_t zero = view->tracks[0]->zero;
    view->sight.anchor = number;
    for (int i = 0; i < view->n_tracks; i++) {
        const struct trace_step *step = find_step(view->tracks[i], number);
        if (step)
            view->tracks[i]->zero = step->work;
    }
    double moved = axis_of(view->tracks[0], zero);
    for (int i = 0; i < 2; i++)
        view->selection.region.at[i] += moved;
    for (int i = 0; i < view->selection.n_marks; i++)
        view->selection.mark[i] += moved;
}

/* The length is that of the longest of the traces' steps. */
void look_at_step(struct view *view, uint32_t number)
{
    double length = 0;
    set_anchor(view, number);
    for (int i = 0; i < view->n_tracks; i++) {
        const struct trace_step *step = find_step(view->tracks[i], number);
        if (step)
            length = fmax(length, step_ns(view->tracks[i], step));
    }
    look_around(view, 0, length);
}

void look_at_all(struct view *view)
{
    double from = 0, to = 0;
    set_anchor(view, view->tracks[0]->steps->n ? view->tracks[0]->steps->items[0].step : 0);
    for (int i = 0; i < view->n_tracks; i++) {
        const struct track *track = view->tracks[i];
        if (track->trace->n_records) {
            from = fmin(from, axis_of(track, track->trace->records[0].start));
            to = fmax(to, axis_of(track, track->last));
        }
    }
    look_around(view, from, to);
}

void look_at_steps(struct view *view)
{
    const struct trace_step_list *steps = view->tracks[0]->steps;
    if (steps->n == 0)
        return;
    const struct trace_step *last = &steps->items[steps->n - 1];
    set_anchor(view, steps->items[0].step);
    look_around(view, 0, axis_of(view->tracks[0], last->work) + step_ns(view->tracks[0], last));
}

/* How long a time is to be in sight when the run is followed: three of the latest steps. */
static double wanted_length(const struct track *track, const struct trace_step *newest)
{
    enum { LATEST = 9 };
    double second = 1e9;
    double ns[LATEST];
    size_t n = 0;
    if (!newest)
        return second;
    for (const struct trace_step *step = newest; step > track->steps->items && n < LATEST; step--)
        ns[n++] = step_ns(track, step - 1);
    return n > 0 ? 3 * median(ns, n) : 3 * step_ns(track, newest);
}

/* While one to nine steps are in sight, nothing but time moves. */
void look_at_end(struct view *view)
{
    enum { SLACK = 3 };
    const struct track *track = view->tracks[0];
    const struct trace_step *newest = newest_step(track);
    double wanted = wanted_length(track, newest);
    double length = view->sight.to - view->sight.from;
    set_anchor(view, newest ? newest->step : 0);
    if (!view->sight.zoomed && (length > SLACK * wanted || length < wanted / SLACK))
        length = wanted;
    double end = axis_of(track, track->now);
    double free = is_living(track) ? 0.13 : AIR; /* the share at the right: room for what comes */
    look_at(view, end - (1 - free) * length, end + free * length);
}

/* layout.c - where each row is; times to pixels and back.
 *
 * Lengths are counted in dots of the font: a view of scale 2 has two pixels per dot, for screens with small pixels and
 * for the last row of a classroom.
 */
#include "tools/command/numbers.h"
#include "view.h"

#include <math.h>

enum { GUTTER = 168, HEADER = 28, OVERVIEW = 60, RULER = 38, LEGEND = 44, DETAILS = 70 };
enum { DEVICE_ROW = 20, MEMORY_ROW = 44, LANE_ROW = 22, THIN_ROW = 4, TALLEST = 2 };

struct places places_of(const struct view *v)
{
    const int dot = v->scale;
    const int top = (HEADER + OVERVIEW + RULER) * dot, left = GUTTER * dot;
    const int wide = v->width - left - 12 * dot;
    const int legend = LEGEND * dot, bottom = v->height - legend - DETAILS * dot;
    return (struct places){.header = {0, 0, v->width, HEADER * dot},
                           .overview = {left, (HEADER + 4) * dot, wide, (OVERVIEW - 8) * dot},
                           .ruler = {left, (HEADER + OVERVIEW) * dot, wide, RULER * dot},
                           .rows = {left, top, wide, MAX(bottom - top, dot)},
                           .legend = {0, bottom, v->width, legend},
                           .details = {0, bottom + legend, v->width, DETAILS * dot}};
}

double x_of(const struct view *v, double axis)
{
    struct box rows = places_of(v).rows;
    return rows.x + (axis - v->from) / (v->to - v->from) * rows.w;
}

double axis_at(const struct view *v, double x)
{
    struct box rows = places_of(v).rows;
    return v->from + (x - rows.x) / rows.w * (v->to - v->from);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static void add_view_row(struct view *v, enum row_kind kind, int track, uint32_t index, int height)
{
    *APPEND(v->row, v->n_rows, v->cap_rows) =
        (struct view_row){.kind = kind, .track = track, .index = index, .height = height * v->scale};
}

/* Adds the rows of a device, if any of its lanes has a task.  A lane without tasks is left out too, unless a task can
 * be moved there.  If the device is folded, its lanes are thin, and its memory is left out. */
static void add_device(struct view *v, int track_index, uint32_t device)
{
    const struct track *track = v->track[track_index];
    const struct trace *t = track->trace;
    const size_t before = v->n_rows;
    const bool folded = track->folded[device];
    const bool little = track->peak[device] < fmax(0.01 * track->highest_peak, 1);
    bool runs = false;
    add_view_row(v, ROW_DEVICE, track_index, device, DEVICE_ROW);
    for (uint32_t i = 0; i < t->header.n_lanes; i++) {
        struct trace_running now;
        if (t->lanes[i].device_index != device)
            continue;
        bool lane_runs = t->bars[i].n > 0 || trace_running(t, i, &now);
        runs |= lane_runs;
        if (lane_runs || (track->board && t->lanes[i].kind < LANE_CPU))
            add_view_row(v, ROW_LANE, track_index, i, folded ? THIN_ROW : LANE_ROW);
    }
    if (!runs)
        v->n_rows = before;
    else if (!v->hide_memory && !folded && !little)
        add_view_row(v, ROW_MEMORY, track_index, device, MEMORY_ROW);
}

/* Makes the rows fit into `high` pixels.  Rows with content share the height that is left, until they are TALLEST times
 * as high as they need to be.  Two traces must fit together: all their rows shrink, down to a dot. */
static void fit_rows(struct view *v, int high)
{
    int fixed = 0, elastic = 0;
    double grow = 1, shrink = 1;
    for (size_t i = 0; i < v->n_rows; i++) {
        const struct view_row *r = &v->row[i];
        if (has_content(r))
            elastic += r->height;
        else
            fixed += r->height;
    }
    const double room = high - fixed;
    if (elastic > 0)
        grow = fmin(fmax(room / elastic, 1), TALLEST);
    if (v->n_tracks > 1)
        shrink = fmin(high / (fixed + grow * elastic), 1);
    for (size_t i = 0; i < v->n_rows; i++) {
        struct view_row *r = &v->row[i];
        double factor = shrink * (has_content(r) ? grow : 1);
        r->height = MAX((int)(factor * r->height), v->scale);
    }
}

void lay_out(struct view *v)
{
    struct box rows = places_of(v).rows;
    v->n_rows = 0;
    for (int track = 0; track < v->n_tracks; track++)
        for (uint32_t device = 0; device < v->track[track]->trace->header.n_devices; device++)
            add_device(v, track, device);
    fit_rows(v, rows.h);
    v->rows_height = 0;
    for (size_t i = 0; i < v->n_rows; i++)
        v->rows_height += v->row[i].height;
    v->scroll = MAX(MIN(v->scroll, v->rows_height - rows.h), 0);
    int y = rows.y - v->scroll;
    for (size_t i = 0; i < v->n_rows; i++) {
        v->row[i].y = y;
        y += v->row[i].height;
    }
}

/* Beside the rows there are only names; those of devices count as their rows. */
const struct view_row *row_at(const struct view *v, int x, int y)
{
    struct box rows = places_of(v).rows;
    if (y < rows.y || y >= rows.y + rows.h || x >= rows.x + rows.w)
        return NULL;
    for (size_t i = 0; i < v->n_rows; i++) {
        const struct view_row *r = &v->row[i];
        if (y >= r->y && y < r->y + r->height && (x >= rows.x || !has_content(r)))
            return r;
    }
    return NULL;
}

const struct view_row *row_of_lane(const struct view *v, int track, uint32_t lane)
{
    for (size_t i = 0; i < v->n_rows; i++)
        if (v->row[i].kind == ROW_LANE && v->row[i].track == track && v->row[i].index == lane)
            return &v->row[i];
    return NULL;
}

/* ---- where to look --------------------------------------------------------------------------------------------- */

#define NARROWEST_NS 100.0
#define FARTHEST_NS 1e16 /* four months: whole nanoseconds can still be told apart */

void look_at(struct view *v, double from, double to)
{
    double length = fmin(fmax(to - from, NARROWEST_NS), FARTHEST_NS);
    double middle = fmin(fmax((from + to) / 2, -FARTHEST_NS), FARTHEST_NS);
    v->from = middle - length / 2;
    v->to = middle + length / 2;
}

/* Puts 0 of the axis where the step starts in each trace; if a trace lacks it, the last step before it. */
static void set_anchor(struct view *v, uint32_t step)
{
    v->anchor = step;
    for (int i = 0; i < v->n_tracks; i++) {
        const struct trace_step *s = find_step(v->track[i], step);
        if (s)
            v->track[i]->zero = s->work;
    }
}

/* Shows the longest of the traces' steps, with a little air around it. */
void look_at_step(struct view *v, uint32_t step)
{
    double length = 0;
    set_anchor(v, step);
    for (int i = 0; i < v->n_tracks; i++) {
        const struct trace_step *s = find_step(v->track[i], step);
        if (s)
            length = fmax(length, step_ns(v->track[i], s));
    }
    look_at(v, -0.015 * length, 1.015 * length);
}

void look_at_all(struct view *v)
{
    double from = 0, to = 0;
    set_anchor(v, v->track[0]->steps->n ? v->track[0]->steps->step[0].step : 0);
    for (int i = 0; i < v->n_tracks; i++) {
        const struct track *track = v->track[i];
        if (track->trace->n_records) {
            from = fmin(from, axis_of(track, track->trace->records[0].start));
            to = fmax(to, axis_of(track, track->last));
        }
    }
    look_at(v, from - 0.015 * (to - from), to + 0.015 * (to - from));
}

/* How long a time is to be in sight when the run is followed: three of the latest steps. */
static double wanted_length(const struct track *track, const struct trace_step *newest)
{
    enum { LATEST = 9 };
    const double second = 1e9;
    double ns[LATEST];
    size_t n = 0;
    if (!newest)
        return second;
    for (const struct trace_step *s = newest; s > track->steps->step && n < LATEST; s--)
        ns[n++] = step_ns(track, s - 1);
    return n > 0 ? 3 * median(ns, n) : 3 * step_ns(track, newest);
}

/* Shows what happens now at the right, with the newest step as the anchor, and about three steps, until the user zooms.
 * While one to nine steps are in sight, nothing but time moves. */
void look_at_end(struct view *v)
{
    enum { SLACK = 3 };
    const struct track *track = v->track[0];
    const struct trace_step *newest = newest_step(track);
    const double wanted = wanted_length(track, newest);
    double length = v->to - v->from;
    set_anchor(v, newest ? newest->step : 0);
    if (!v->zoomed && (length > SLACK * wanted || length < wanted / SLACK))
        length = wanted;
    double end = axis_of(track, track->now);
    look_at(v, end - 0.87 * length, end + 0.13 * length);
}

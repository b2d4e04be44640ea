/* layout.c - where each row is; times to pixels and back.
 *
 * Lengths are counted in dots of the font: a view of scale 2 has two pixels per dot, for screens with small pixels and
 * for the last row of a classroom.
 */
#include "tools/command/numbers.h"
#include "view.h"

#include <math.h>

enum { GUTTER = 168, HEADER = 28, OVERVIEW = 56, QUIET = 24, RULER = 36, LINE = 18 };

/* Heights of rows: as they read best, the least at which they can be read, and the most.  A lane above memory is not
 * higher than TALL: the curve of memory gains more. */
static const struct limits {
    int good, least, most;
} limits[] = {[ROW_DEVICE] = {20, 14, 20}, [ROW_LANE] = {22, 9, 220}, [ROW_MEMORY] = {44, 16, MOST_PIXELS}},
  thin = {4, 4, 4};
enum { TALL = 88 };

/* All steps of a simulation are alike: their strip is low. */
static int overview_height(const struct view *v)
{
    return v->track[0]->trace->header.kind == TRACE_SIMULATED ? QUIET : OVERVIEW;
}

struct places places_of(const struct view *v)
{
    const int dot = v->scale, overview = overview_height(v);
    const int top = (HEADER + overview + RULER) * dot, left = GUTTER * dot;
    const int wide = v->width - left - 12 * dot;
    const int legend = (v->legend_lines * LINE + 8) * dot;
    const int details = (v->details_lines * LINE + 12) * dot, bottom = v->height - legend - details;
    return (struct places){.header = {0, 0, v->width, HEADER * dot},
                           .overview = {left, (HEADER + 6) * dot, wide, (overview - 10) * dot},
                           .ruler = {left, (HEADER + overview) * dot, wide, RULER * dot},
                           .rows = {left, top, wide, MAX(bottom - top, dot)},
                           .legend = {0, bottom, v->width, legend},
                           .details = {0, bottom + legend, v->width, details}};
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

static struct limits limits_of(const struct view *v, const struct view_row *r)
{
    const struct trace *t = v->track[r->track]->trace;
    if (r->kind == ROW_LANE && v->track[r->track]->folded[t->lanes[r->index].device_index])
        return thin;
    return limits[r->kind];
}

static void add_view_row(struct view *v, enum row_kind kind, int track, uint32_t index)
{
    *APPEND(v->row, v->n_rows, v->cap_rows) = (struct view_row){.kind = kind, .track = track, .index = index};
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
    add_view_row(v, ROW_DEVICE, track_index, device);
    for (uint32_t i = 0; i < t->header.n_lanes; i++) {
        struct trace_running now;
        if (t->lanes[i].device_index != device)
            continue;
        bool lane_runs = t->bars[i].n > 0 || trace_running(t, i, &now);
        runs |= lane_runs;
        if (lane_runs || (track->board && t->lanes[i].kind < LANE_CPU))
            add_view_row(v, ROW_LANE, track_index, i);
    }
    if (!runs)
        v->n_rows = before;
    else if (!v->hide_memory && !folded && !little)
        add_view_row(v, ROW_MEMORY, track_index, device);
}

/* Sums of heights in dots, of rows of one kind. */
struct sums {
    int good, least;
};

static struct sums sum_rows(const struct view *v, enum row_kind kind)
{
    struct sums sum = {0};
    for (size_t i = 0; i < v->n_rows; i++) {
        if (v->row[i].kind != kind)
            continue;
        struct limits l = limits_of(v, &v->row[i]);
        sum.good += l.good;
        sum.least += l.least;
    }
    return sum;
}

/* Rows have their good height times `grow`, up to the most.  What lanes leave because of that goes to memory. */
static void grow_rows(struct view *v, double room)
{
    const struct sums device = sum_rows(v, ROW_DEVICE);
    const struct sums lane = sum_rows(v, ROW_LANE), memory = sum_rows(v, ROW_MEMORY);
    const double all = lane.good + memory.good;
    double grow[] = {[ROW_DEVICE] = 1, [ROW_LANE] = 1, [ROW_MEMORY] = 1};
    const double most = memory.good > 0 ? TALL : limits[ROW_LANE].most;
    if (all > 0)
        grow[ROW_LANE] = fmin((room - device.good) / all, most / limits[ROW_LANE].good);
    if (memory.good > 0)
        grow[ROW_MEMORY] = (room - device.good - grow[ROW_LANE] * lane.good) / memory.good;
    for (size_t i = 0; i < v->n_rows; i++) {
        struct view_row *r = &v->row[i];
        struct limits l = limits_of(v, r);
        r->height = (int)(v->scale * fmin(grow[r->kind] * l.good, l.most));
    }
}

/* Makes the rows fit into `room` dots.  Rows of one trace that would have to be less than their least height keep the
 * good one: then not all are in sight.  Two traces must fit together: all their rows shrink, down to a dot. */
static void fit_rows(struct view *v, double room)
{
    struct sums sum = {0};
    for (enum row_kind kind = ROW_DEVICE; kind <= ROW_MEMORY; kind++) {
        sum.good += sum_rows(v, kind).good;
        sum.least += sum_rows(v, kind).least;
    }
    v->good_height = sum.good * v->scale;
    if (room >= sum.good) {
        grow_rows(v, room);
        return;
    }
    double part = 1, shrink = 1; /* part: 0 where rows have their least height, 1 where they have the good one */
    if (room >= sum.least)
        part = (room - sum.least) / (sum.good - sum.least);
    else if (v->n_tracks > 1) {
        part = 0;
        shrink = room / sum.least;
    }
    for (size_t i = 0; i < v->n_rows; i++) {
        struct limits l = limits_of(v, &v->row[i]);
        v->row[i].height = MAX((int)(v->scale * shrink * (l.least + part * (l.good - l.least))), v->scale);
    }
}

/* Puts rows one below the other.  The topmost one in sight is in sight as a whole. */
static void stack_rows(struct view *v)
{
    const struct box rows = places_of(v).rows;
    int y = 0, first = 0;
    v->rows_height = 0;
    for (size_t i = 0; i < v->n_rows; i++)
        v->rows_height += v->row[i].height;
    v->scroll = MAX(MIN(v->scroll, v->rows_height - rows.h), 0);
    for (size_t i = 0; i < v->n_rows && first < v->scroll; i++)
        first += v->row[i].height;
    for (size_t i = 0; i < v->n_rows; i++) {
        v->row[i].y = rows.y + y - first;
        y += v->row[i].height;
    }
}

void lay_out(struct view *v)
{
    v->n_rows = 0;
    for (int track = 0; track < v->n_tracks; track++)
        for (uint32_t device = 0; device < v->track[track]->trace->header.n_devices; device++)
            add_device(v, track, device);
    v->legend_lines = count_legend_lines(v);
    v->details_lines = count_details_lines(v);
    fit_rows(v, (double)places_of(v).rows.h / v->scale);
    stack_rows(v);
}

void choose_height(struct view *v)
{
    v->height = LEAST_HEIGHT;
    lay_out(v);
    const struct places p = places_of(v);
    v->height = MIN(p.rows.y + v->good_height + p.legend.h + p.details.h, MOST_PIXELS);
    lay_out(v);
}

bool is_in_sight(const struct view *v, const struct view_row *r)
{
    const struct box rows = places_of(v).rows;
    return r->y >= rows.y && r->y + r->height <= rows.y + rows.h;
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
            return is_in_sight(v, r) ? r : NULL;
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

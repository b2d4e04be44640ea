/* layout.c - the rows: which there are, and how high they are. */
#include "draw.h"

#include <math.h>

/* Heights of rows: as they read best, the least at which they can be read, and the most.  A lane above memory is not
 * higher than TALL: the curve of memory gains more. */
static const struct limits {
    int good, least, most;
} limits[] = {[ROW_DEVICE] = {20, 14, 20}, [ROW_LANE] = {22, 9, 220}, [ROW_MEMORY] = {44, 16, MOST_PIXELS}},
  thin = {4, 4, 4};
enum { TALL = 56 };

static struct limits limits_of(const struct view *v, const struct view_row *r)
{
    const struct trace *t = v->track[r->track]->trace;
    if (r->kind == ROW_LANE && v->track[r->track]->folded[t->lanes[r->index].device_index])
        return thin;
    return limits[r->kind];
}

static void add_view_row(struct view *v, enum row_kind kind, int track, uint32_t index)
{
    *APPEND(v->layout.row, v->layout.n_rows, v->layout.cap_rows) =
        (struct view_row){.kind = kind, .track = track, .index = index};
}

/* Adds the rows of a device, if any of its lanes has a task.  A lane without tasks is left out too, unless a task can
 * be moved there.  If the device is folded, its lanes are thin, and its memory is left out. */
static void add_device(struct view *v, int track_index, uint32_t device)
{
    const struct track *track = v->track[track_index];
    const struct trace *t = track->trace;
    const size_t before = v->layout.n_rows;
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
        v->layout.n_rows = before;
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
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        if (v->layout.row[i].kind != kind)
            continue;
        struct limits l = limits_of(v, &v->layout.row[i]);
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
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        struct view_row *r = &v->layout.row[i];
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
    v->layout.good_height = sum.good * v->scale;
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
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        struct limits l = limits_of(v, &v->layout.row[i]);
        v->layout.row[i].height = MAX((int)(v->scale * shrink * (l.least + part * (l.good - l.least))), v->scale);
    }
}

/* Puts rows one below the other.  The topmost one in sight is in sight as a whole. */
static void stack_rows(struct view *v)
{
    const struct box rows = places_of(v).rows;
    int y = 0, first = 0;
    v->layout.rows_height = 0;
    for (size_t i = 0; i < v->layout.n_rows; i++)
        v->layout.rows_height += v->layout.row[i].height;
    v->sight.scroll = MAX(MIN(v->sight.scroll, v->layout.rows_height - rows.h), 0);
    for (size_t i = 0; i < v->layout.n_rows && first < v->sight.scroll; i++)
        first += v->layout.row[i].height;
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        v->layout.row[i].y = rows.y + y - first;
        y += v->layout.row[i].height;
    }
}

void lay_out(struct view *v)
{
    v->layout.n_rows = 0;
    for (int track = 0; track < v->n_tracks; track++)
        for (uint32_t device = 0; device < v->track[track]->trace->header.n_devices; device++)
            add_device(v, track, device);
    v->layout.legend_lines = count_legend_lines(v);
    v->layout.details_lines = count_details_lines(v);
    fit_rows(v, (double)places_of(v).rows.h / v->scale);
    stack_rows(v);
}

void choose_height(struct view *v)
{
    v->height = LEAST_HEIGHT;
    lay_out(v);
    const struct places p = places_of(v);
    v->height = MIN(p.rows.y + v->layout.good_height + p.legend.h + p.details.h, MOST_PIXELS);
    lay_out(v);
}

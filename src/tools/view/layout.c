/* layout.c - the rows: which there are, and how high they are. */
#include "draw.h"

#include <math.h>

/* Heights of rows: as they read best, the least at which they can be read, and the most.  A lane above memory is not
 * higher than TALL: the curve of memory gains more. */
static const struct limits {
    int good, least, most;
} limits_of_kind[] = {[ROW_DEVICE] = {20, 14, 20}, [ROW_LANE] = {22, 9, 220}, [ROW_MEMORY] = {44, 16, MOST_PIXELS}},
  thin = {4, 4, 4};
enum { TALL = 56 };

static struct limits limits_of(const struct view *view, const struct view_row *row)
{
    const struct trace *trace = view->track[row->track]->trace;
    if (row->kind == ROW_LANE && view->track[row->track]->folded[trace->lanes[row->index].device_index])
        return thin;
    return limits_of_kind[row->kind];
}

static void add_view_row(struct view *view, enum row_kind kind, int track, uint32_t index)
{
    *APPEND(view->layout.row, view->layout.n_rows, view->layout.cap_rows) =
        (struct view_row){.kind = kind, .track = track, .index = index};
}

/* Adds the rows of a device, if any of its lanes has a task.  A lane without tasks is left out too, unless a task can
 * be moved there.  If the device is folded, its lanes are thin, and its memory is left out. */
static void add_device(struct view *view, int track_index, uint32_t device)
{
    const struct track *track = view->track[track_index];
    const struct trace *trace = track->trace;
    const size_t before = view->layout.n_rows;
    const bool folded = track->folded[device];
    const bool little = track->peak[device] < fmax(0.01 * track->highest_peak, 1);
    bool runs = false;
    add_view_row(view, ROW_DEVICE, track_index, device);
    for (uint32_t i = 0; i < trace->header.n_lanes; i++) {
        struct trace_running now;
        if (trace->lanes[i].device_index != device)
            continue;
        bool lane_runs = trace->bars[i].n > 0 || trace_running(trace, i, &now);
        runs |= lane_runs;
        if (lane_runs || (track->board && trace->lanes[i].kind < LANE_CPU))
            add_view_row(view, ROW_LANE, track_index, i);
    }
    if (!runs)
        view->layout.n_rows = before;
    else if (!view->hide_memory && !folded && !little)
        add_view_row(view, ROW_MEMORY, track_index, device);
}

/* Sums of heights in dots, of rows of one kind. */
struct sums {
    int good, least;
};

static struct sums sum_rows(const struct view *view, enum row_kind kind)
{
    struct sums sum = {0};
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        if (view->layout.row[i].kind != kind)
            continue;
        struct limits limits = limits_of(view, &view->layout.row[i]);
        sum.good += limits.good;
        sum.least += limits.least;
    }
    return sum;
}

/* Rows have their good height times `grow`, up to the most.  What lanes leave because of that goes to memory. */
static void grow_rows(struct view *view, double room)
{
    const struct sums device = sum_rows(view, ROW_DEVICE);
    const struct sums lane = sum_rows(view, ROW_LANE), memory = sum_rows(view, ROW_MEMORY);
    const double all = lane.good + memory.good;
    double grow[] = {[ROW_DEVICE] = 1, [ROW_LANE] = 1, [ROW_MEMORY] = 1};
    const double most = memory.good > 0 ? TALL : limits_of_kind[ROW_LANE].most;
    if (all > 0)
        grow[ROW_LANE] = fmin((room - device.good) / all, most / limits_of_kind[ROW_LANE].good);
    if (memory.good > 0)
        grow[ROW_MEMORY] = (room - device.good - grow[ROW_LANE] * lane.good) / memory.good;
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        struct view_row *row = &view->layout.row[i];
        struct limits limits = limits_of(view, row);
        row->height = (int)(view->scale * fmin(grow[row->kind] * limits.good, limits.most));
    }
}

/* Makes the rows fit into `room` dots.  Rows of one trace that would have to be less than their least height keep the
 * good one: then not all are in sight.  Two traces must fit together: all their rows shrink, down to a dot. */
static void fit_rows(struct view *view, double room)
{
    struct sums sum = {0};
    for (enum row_kind kind = ROW_DEVICE; kind <= ROW_MEMORY; kind++) {
        sum.good += sum_rows(view, kind).good;
        sum.least += sum_rows(view, kind).least;
    }
    view->layout.good_height = sum.good * view->scale;
    if (room >= sum.good) {
        grow_rows(view, room);
        return;
    }
    double part = 1, shrink = 1; /* part: 0 where rows have their least height, 1 where they have the good one */
    if (room >= sum.least)
        part = (room - sum.least) / (sum.good - sum.least);
    else if (view->n_tracks > 1) {
        part = 0;
        shrink = room / sum.least;
    }
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        struct limits limits = limits_of(view, &view->layout.row[i]);
        view->layout.row[i].height =
            MAX((int)(view->scale * shrink * (limits.least + part * (limits.good - limits.least))), view->scale);
    }
}

/* Puts rows one below the other.  The topmost one in sight is in sight as a whole. */
static void stack_rows(struct view *view)
{
    const struct box rows = places_of(view).rows;
    int y = 0, first = 0;
    view->layout.rows_height = 0;
    for (size_t i = 0; i < view->layout.n_rows; i++)
        view->layout.rows_height += view->layout.row[i].height;
    view->sight.scroll = MAX(MIN(view->sight.scroll, view->layout.rows_height - rows.h), 0);
    for (size_t i = 0; i < view->layout.n_rows && first < view->sight.scroll; i++)
        first += view->layout.row[i].height;
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        view->layout.row[i].y = rows.y + y - first;
        y += view->layout.row[i].height;
    }
}

void lay_out(struct view *view)
{
    view->layout.n_rows = 0;
    for (int track = 0; track < view->n_tracks; track++)
        for (uint32_t device = 0; device < view->track[track]->trace->header.n_devices; device++)
            add_device(view, track, device);
    view->layout.legend_lines = count_legend_lines(view);
    view->layout.details_lines = count_details_lines(view);
    fit_rows(view, (double)places_of(view).rows.h / view->scale);
    stack_rows(view);
}

void choose_height(struct view *view)
{
    view->height = LEAST_HEIGHT;
    lay_out(view);
    const struct places places = places_of(view);
    view->height = MIN(places.rows.y + view->layout.good_height + places.legend.h + places.details.h, MOST_PIXELS);
    lay_out(view);
}

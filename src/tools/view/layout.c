/* layout.c - the rows: which there are, and how high they are. */
#include "draw.h"

#include <math.h>

/* Heights of rows, in dots: the one at which they read best, the least at which they can be read, and the most.  Rows
 * of a kind have the same height.  Where there are rows of memory, a lane is not higher than TALL. */
struct limits {
    int good, least, most;
};
static const struct limits limits_of_kind[] = {
    [ROW_DEVICE] = {20, 14, 20}, [ROW_LANE] = {22, 12, 220}, [ROW_MEMORY] = {44, 28, MOST_PIXELS}};
static const struct limits of_folded = {4, 4, 8};   /* a lane of a folded device */
static const struct limits of_empty = {12, 11, 12}; /* a lane without a task */
enum { TALL = 56, LOW_WINDOW = 500 };

/* Has a lane a task?  While a task is dragged, the answer stays as it was before, so that no row moves away from the
 * mouse. */
static bool has_task(const struct view *view, int track_index, uint32_t lane)
{
    const struct trace *trace = view->tracks[track_index]->trace;
    const struct gesture *gesture = &view->mouse.gesture;
    bool dragged = view->mouse.drag == DRAG_TASK && gesture->track == track_index;
    struct trace_running_task now;
    if (!dragged)
        return trace->bars[lane].n > 0 || find_running_task(trace, lane, &now);
    for (uint32_t i = 0; i < trace->header.n_tasks; i++)
        if (gesture->spots[i].lane == lane)
            return true;
    return false;
}

static struct limits limits_of(const struct view *view, const struct view_row *row)
{
    const struct trace *trace = view->tracks[row->track]->trace;
    if (row->kind == ROW_LANE && view->tracks[row->track]->folded[trace->lanes[row->index].device_index])
        return of_folded;
    if (row->kind == ROW_LANE && row->empty)
        return of_empty;
    return limits_of_kind[row->kind];
}

static struct view_row *add_view_row(struct view *view, enum row_kind kind, int track, uint32_t index)
{
    GROW(view->layout.rows, view->layout.cap_rows, view->layout.n_rows + 1);
    struct view_row *row = &view->layout.rows[view->layout.n_rows++];
    *row = (struct view_row){.kind = kind, .track = track, .index = index};
    return row;
}

/* Adds the rows of a device, if any of its lanes has a task.  A lane without tasks is left out too, unless a task can
 * be moved there: then its row is low.  If the device is folded, its lanes are thin, and its memory is left out. */
static void add_rows_of_device(struct view *view, int track_index, uint32_t device)
{
    const struct track *track = view->tracks[track_index];
    const struct trace *trace = track->trace;
    size_t before = view->layout.n_rows;
    bool folded = track->folded[device];
    bool little = track->peak[device] < fmax(0.01 * track->highest_peak, 1);
    bool runs = false;
    add_view_row(view, ROW_DEVICE, track_index, device);
    for (uint32_t i = 0; i < trace->header.n_lanes; i++) {
        if (trace->lanes[i].device_index != device)
            continue;
        bool lane_runs = has_task(view, track_index, i);
        runs |= lane_runs;
        if (!lane_runs && !(track->board && trace->lanes[i].kind < LANE_CPU))
            continue;
        struct view_row *row = add_view_row(view, ROW_LANE, track_index, i);
        row->empty = !lane_runs;
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
        if (view->layout.rows[i].kind != kind)
            continue;
        struct limits limits = limits_of(view, &view->layout.rows[i]);
        sum.good += limits.good;
        sum.least += limits.least;
    }
    return sum;
}

static struct sums sum_all_rows(const struct view *view)
{
    struct sums all = {0};
    for (enum row_kind kind = ROW_DEVICE; kind <= ROW_MEMORY; kind++) {
        const struct sums sum = sum_rows(view, kind);
        all.good += sum.good;
        all.least += sum.least;
    }
    return all;
}

/* The dots of rows that do not grow: those of devices, and of lanes without tasks. */
static int sum_fixed_rows(const struct view *view)
{
    int sum = 0;
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct limits limits = limits_of(view, &view->layout.rows[i]);
        sum += limits.most == limits.good ? limits.good : 0;
    }
    return sum;
}

/* Each row gets its good height times `grow`.  Lanes grow to their most; the room that is left then goes to memory, up
 * to half of all; and what is left after that goes to lanes again. */
static void grow_rows(struct view *view, double room)
{
    int fixed = sum_fixed_rows(view), memory = sum_rows(view, ROW_MEMORY).good;
    int lane = sum_all_rows(view).good - fixed - memory;
    double all = lane + memory;
    double grow[] = {[ROW_DEVICE] = 1, [ROW_LANE] = 1, [ROW_MEMORY] = 1};
    double most = memory > 0 ? TALL : limits_of_kind[ROW_LANE].most;
    if (all > 0)
        grow[ROW_LANE] = fmin((room - fixed) / all, most / limits_of_kind[ROW_LANE].good);
    if (memory > 0)
        grow[ROW_MEMORY] = (room - fixed - grow[ROW_LANE] * lane) / memory;
    if (memory > 0 && lane > 0 && grow[ROW_MEMORY] * memory > room / 2) {
        grow[ROW_MEMORY] = fmax(room / 2 / memory, grow[ROW_LANE]);
        grow[ROW_LANE] = (room - fixed - grow[ROW_MEMORY] * memory) / lane;
    }
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        struct view_row *row = &view->layout.rows[i];
        struct limits limits = limits_of(view, row);
        row->height = (int)(view->scale * fmin(grow[row->kind] * limits.good, limits.most));
    }
}

/* Rows shrink between their good and their least height, by `missing` dots in all.  Memory gives two thirds of them as
 * long as it has them, so that lanes keep room for names. */
static void shrink_rows(struct view *view, int missing)
{
    const struct sums device = sum_rows(view, ROW_DEVICE);
    const struct sums lane = sum_rows(view, ROW_LANE), memory = sum_rows(view, ROW_MEMORY);
    int spare = device.good - device.least + lane.good - lane.least; /* what rows that are not memory can give */
    int from_memory = MIN(MAX(missing * 2 / 3, missing - spare), memory.good - memory.least);
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        struct view_row *row = &view->layout.rows[i];
        struct limits limits = limits_of(view, row);
        double share = 0; /* the part that the row gives of what it can give */
        if (row->kind == ROW_MEMORY)
            share = (double)from_memory / MAX(memory.good - memory.least, 1);
        else
            share = (double)(missing - from_memory) / MAX(spare, 1);
        row->height = (int)(view->scale * (limits.good - share * (limits.good - limits.least)));
    }
}

/* Rows of devices have their least height, which has room for their names, as long as they leave half of the room;
 * lanes shrink as far as they must, down to a dot. */
static void squeeze_rows(struct view *view, double room)
{
    int device = sum_rows(view, ROW_DEVICE).least, lane = sum_rows(view, ROW_LANE).least;
    double left = fmax(room - device, room / 2); /* for lanes */
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        struct view_row *row = &view->layout.rows[i];
        double share = row->kind == ROW_DEVICE ? (room - left) / device : left / lane;
        row->height = (int)(view->scale * fmin(share, 1) * limits_of(view, row).least);
        row->height = MAX(row->height, view->scale);
    }
}

static double room_for_rows(const struct view *view) { return (double)places_of(view).rows.h / view->scale; }

/* Makes the rows fit.  Rows of one trace that would have to be less than their least height are halfway between that
 * and the good one: then not all are in sight.  Two traces must fit together. */
static void fit_rows(struct view *view)
{
    double room = room_for_rows(view);
    const struct sums sum = sum_all_rows(view);
    view->layout.good_height = sum.good * view->scale;
    if (room >= sum.good)
        grow_rows(view, room);
    else if (room >= sum.least)
        shrink_rows(view, sum.good - (int)room);
    else if (view->n_tracks > 1)
        squeeze_rows(view, room);
    else
        shrink_rows(view, (sum.good - sum.least) / 2);
}

/* Puts rows one below the other.  The topmost one in sight is in sight as a whole. */
static void stack_rows(struct view *view)
{
    const struct box rows = places_of(view).rows;
    int y = 0, first = 0;
    view->layout.rows_height = 0;
    for (size_t i = 0; i < view->layout.n_rows; i++)
        view->layout.rows_height += view->layout.rows[i].height;
    view->sight.scroll = MAX(MIN(view->sight.scroll, view->layout.rows_height - rows.h), 0);
    for (size_t i = 0; i < view->layout.n_rows && first < view->sight.scroll; i++)
        first += view->layout.rows[i].height;
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        view->layout.rows[i].y = rows.y + y - first;
        y += view->layout.rows[i].height;
    }
}

static bool is_empty_lane(const struct view_row *row) { return row->empty; }
static bool is_memory(const struct view_row *row) { return row->kind == ROW_MEMORY; }

static void drop_rows(struct view *view, bool (*is_dropped)(const struct view_row *row))
{
    size_t n = 0;
    for (size_t i = 0; i < view->layout.n_rows; i++)
        if (!is_dropped(&view->layout.rows[i]))
            view->layout.rows[n++] = view->layout.rows[i];
    view->layout.n_rows = n;
}

/* Removes the rows of memory, which the legend tells. */
static void drop_memory(struct view *view)
{
    view->layout.no_room_for_memory = true;
    drop_rows(view, is_memory);
}

static bool rows_fit(const struct view *view) { return room_for_rows(view) >= sum_all_rows(view).least; }

/* A low window whose rows want more room has no overview, and a legend of two lines at most. */
static void fit_legend(struct view *view)
{
    view->layout.low = false;
    view->layout.legend_lines = count_legend_lines(view);
    view->layout.low = view->height < LOW_WINDOW * view->scale && room_for_rows(view) < sum_all_rows(view).good;
    if (view->layout.low)
        view->layout.legend_lines = count_legend_lines(view);
}

static void add_rows(struct view *view)
{
    view->layout.n_rows = 0;
    view->layout.no_room_for_memory = false;
    for (int track = 0; track < view->n_tracks; track++)
        for (uint32_t device = 0; device < view->tracks[track]->trace->header.n_devices; device++)
            add_rows_of_device(view, track, device);
}

/* Two traces are compared, so all their rows must be in sight.  Where they do not fit, lanes without tasks go first,
 * then memory: a curve lower than the least height of its row cannot be read. */
static void drop_rows_of_two_traces(struct view *view)
{
    if (!rows_fit(view)) {
        drop_rows(view, is_empty_lane);
        fit_legend(view);
    }
    if (!rows_fit(view) && sum_rows(view, ROW_MEMORY).good > 0) {
        drop_memory(view);
        fit_legend(view);
    }
}

void lay_out(struct view *view)
{
    add_rows(view);
    view->layout.details_lines = count_details_lines(view);
    fit_legend(view);
    if (view->n_tracks > 1)
        drop_rows_of_two_traces(view);
    fit_rows(view);
    stack_rows(view);
}

void choose_height(struct view *view)
{
    view->height = MOST_PIXELS; /* no row is left out */
    lay_out(view);
    const struct places places = places_of(view);
    view->height = MIN(places.rows.y + view->layout.good_height + places.legend.h + places.details.h, MOST_PIXELS);
    lay_out(view);
}

/* select.c - the text about a stretch of time, or about a place on a memory row: a table, shown in a panel over the
 * rows and as JSON.
 *
 * The table is made when the selection changes, not when the view is drawn: a stretch may hold a million records.
 */
#include "pick.h"
#include "planning/console/numbers.h"
#include "planning/console/table.h"

#include <math.h>

/* ---- a stretch --------------------------------------------------------------------------------------------------- */

struct stretch_work { /* the tasks of one kind on a lane, as far as they lie in the stretch */
    double tasks, ns, flops, bytes;
};

/* Adds up the work of a lane between two clocks, by kind. */
static void fill_work(const struct trace *trace, uint32_t lane, uint64_t from, uint64_t to,
                      struct stretch_work by_kind[KINDS])
{
    const struct bars *bars = &trace->bars[lane];
    for (size_t i = first_bar_in(bars, from); i < bars->n && bars->items[i].start < to; i++) {
        const struct bar *bar = &bars->items[i];
        const struct trace_task *task = &trace->tasks[bar->task];
        struct stretch_work *work = &by_kind[kind_of_task(trace, task)];
        double ns = (double)(MIN(bar->end, to) - MAX(bar->start, from));
        double part = 1;
        if (bar->end > bar->start)
            part = ns / (double)(bar->end - bar->start);
        work->tasks += 1;
        work->ns += ns * trace->header.pace_scale;
        work->flops += part * task->flops;
        work->bytes += part * (double)task->bytes;
    }
}

/* The rate of the work, as a share of the highest rate of its lane; NAN: not known. */
static double share_of_peak(const struct stretch_work *work, const struct trace_lane *lane)
{
    bool computes = work->flops > 0;
    double peak = computes ? lane->flops_per_s : lane->bytes_per_s;
    double seconds = fmax(work->ns, 1) / 1e9;
    if (peak <= 0 || work->ns <= 0)
        return NAN;
    return (computes ? work->flops : work->bytes) / seconds / peak;
}

/* Adds a lane's rows for the stretch of the axis from `left` to `right`. */
static void add_lane_rows(struct view *view, int track_index, uint32_t number, double left, double right)
{
    const struct track *track = view->tracks[track_index];
    const struct trace *trace = track->trace;
    const struct trace_lane *lane = &trace->lanes[number];
    bool is_link = lane->kind == LANE_UPLOAD || lane->kind == LANE_DOWNLOAD;
    struct stretch_work by_kind[KINDS] = {{0}};
    char name[64];
    snprintf(name, sizeof name, "%s%s", name_of_track(view, track_index), track->purpose[number]);
    fill_work(trace, number, clock_of(track, left), clock_of(track, right), by_kind);
    for (size_t i = 0; i < KINDS; i++) {
        const struct stretch_work *work = &by_kind[i];
        if (work->tasks == 0)
            continue;
        if (is_link)
            view->selection.panel.bytes += work->bytes;
        ROW(view->selection.panel.table, text_cell(track_index ? "B" : "A"), text_cell(name), text_cell(lane->name),
            text_cell(kind_name(trace, i)), number_cell(work->tasks), number_cell(work->ns / 1e6),
            number_cell(work->ns / (right - left)), number_cell(work->bytes / (1 << 20)), number_cell(work->bytes),
            number_cell(share_of_peak(work, lane)));
    }
}

/* Adds the rows of a track's lanes, device by device. */
static void add_track_rows(struct view *view, int track, double from, double to)
{
    const struct trace *trace = view->tracks[track]->trace;
    for (uint32_t device = 0; device < trace->header.n_devices; device++)
        for (uint32_t lane = 0; lane < trace->header.n_lanes; lane++)
            if (trace->lanes[lane].device_index == device)
                add_lane_rows(view, track, lane, from, to);
}

enum { MS = 5, SHARE }; /* columns of the table below */

/* Counts the first rows of a table whose share would not read 0.0 %. */
static size_t count_shown_rows(const struct table *table)
{
    size_t n = 0;
    while (n < table->n && table->cells[n * table->n_columns + SHARE].number >= 0.0005)
        n++;
    return n;
}

static void fill_stretch_panel(struct view *view)
{
    static const struct column columns[] = {
        {NULL, "trace", CELL_TEXT, 0, 0},       {"lane", "purpose", CELL_TEXT, 24, 0},
        {NULL, "lane", CELL_TEXT, 0, 0},        {"kind", "kind", CELL_TEXT, 19, 0},
        {"tasks", "tasks", CELL_COUNT, 7, 0},   {"ms", "ms", CELL_FIXED, 10, 3},
        {"of time", "share", CELL_SHARE, 7, 0}, {"MiB", NULL, CELL_RATE, 9, 1},
        {NULL, "bytes", CELL_COUNT, 0, 0},      {"of peak", "share_of_peak", CELL_SHARE, 7, 0}};
    double from = fmin(view->selection.region.at[0], view->selection.region.at[1]);
    double to = fmax(view->selection.region.at[0], view->selection.region.at[1]);
    struct panel *panel = &view->selection.panel;
    char text[NUMBER_TEXT], bytes[NUMBER_TEXT], begin[AXIS_TEXT];
    panel->table = new_table(columns, COUNT(columns));
    for (int i = 0; i < view->n_tracks; i++)
        add_track_rows(view, i, from, to);
    sort_table(panel->table, MS);
    panel->n = count_shown_rows(panel->table);
    format_axis(view, begin, from, (to - from) / 1000);
    append_text(&panel->title, "%s from %s on: links move %s", format_ns(text, to - from), begin,
                format_bytes(bytes, panel->bytes));
}

/* ---- a place on a memory row ------------------------------------------------------------------------------------- */

enum { USE_SIZE = 72 };

/* "forward L2", or where there are several micro-batches "forward L2, micro-batch 3": the task of one of the tensor's
 * uses; or "kept" */
static char *name_use(char out[USE_SIZE], const struct view *view, const struct trace *trace,
                      const struct trace_tensor *tensor, uint32_t use)
{
    if (tensor->n_uses == 0) {
        snprintf(out, USE_SIZE, "kept");
        return out;
    }
    const struct trace_task *task = &trace->tasks[trace->uses[tensor->first_use + use]];
    int n = snprintf(out, USE_SIZE, "%s", task->name);
    if (task->layer >= 0)
        n += snprintf(out + n, USE_SIZE - (size_t)n, " L%d", task->layer);
    if (task->micro >= 0 && view->n_micros > 1)
        snprintf(out + n, USE_SIZE - (size_t)n, ", micro-batch %d", task->micro);
    return out;
}

static void add_tensor_row(struct table *table, const struct view *view, const struct trace *trace,
                           const struct trace_tensor *tensor)
{
    char first[USE_SIZE], last[USE_SIZE];
    ROW(table, text_cell(tensor->name), number_cell((double)tensor->bytes / (1 << 20)),
        number_cell((double)tensor->bytes), text_cell(trace->header.memory[tensor->class]),
        text_cell(name_use(first, view, trace, tensor, 0)),
        text_cell(name_use(last, view, trace, tensor, tensor->n_uses - 1)));
}

/* Adds a row for the kept tensors of a class, if there are any.  One has its name. */
static void add_kept_row(struct table *table, const struct trace *trace, const struct trace_tensor *const *alive,
                         size_t n, uint32_t class)
{
    const struct trace_tensor *last = NULL;
    size_t kept = 0;
    double bytes = 0;
    char name[32];
    for (size_t i = 0; i < n; i++)
        if (alive[i]->class == class && alive[i]->n_uses == 0) {
            last = alive[i];
            kept++;
            bytes += (double)alive[i]->bytes;
        }
    if (kept == 0)
        return;
    snprintf(name, sizeof name, "%zu tensors", kept);
    ROW(table, text_cell(kept == 1 ? last->name : name), number_cell(bytes / (1 << 20)), number_cell(bytes),
        text_cell(trace->header.memory[class]), text_cell("kept"), text_cell(""));
}

static void fill_place_panel(struct view *view)
{
    static const struct column columns[] = {
        {"tensor", "tensor", CELL_TEXT, 28, 0},   {"MiB", NULL, CELL_FIXED, 9, 3},
        {NULL, "bytes", CELL_COUNT, 0, 0},        {"class", "class", CELL_TEXT, 11, 0},
        {"made by", "made_by", CELL_TEXT, 18, 0}, {"last used by", "last_used_by", CELL_TEXT, 18, 0}};
    const struct region *place = &view->selection.region;
    const struct track *track = view->tracks[place->track];
    const struct trace *trace = track->trace;
    const struct trace_tensor **alive;
    size_t n = tensors_alive_at(trace, place->device, clock_of(track, place->at[0]), &alive);
    char text[NUMBER_TEXT], time[AXIS_TEXT];
    struct panel *panel = &view->selection.panel;
    panel->table = new_table(columns, COUNT(columns));
    panel->brief = new_table(columns, COUNT(columns));
    for (uint32_t i = 0; i < trace->header.n_classes; i++)
        add_kept_row(panel->brief, trace, alive, n, i);
    for (size_t i = 0; i < n; i++) {
        panel->bytes += (double)alive[i]->bytes;
        add_tensor_row(panel->table, view, trace, alive[i]);
        if (alive[i]->n_uses > 0)
            add_tensor_row(panel->brief, view, trace, alive[i]);
    }
    panel->n = panel->brief->n;
    format_axis(view, time, place->at[0], (view->sight.to - view->sight.from) / 1000);
    append_text(&panel->title, "%s at %s holds %s in %zu tensors", trace->devices[place->device].id, time,
                format_bytes(text, panel->bytes), n);
    free(alive);
}

/* ---- the panel --------------------------------------------------------------------------------------------------- */

void select_again(struct view *view)
{
    if (view->selection.panel.table)
        free_table(view->selection.panel.table);
    if (view->selection.panel.brief)
        free_table(view->selection.panel.brief);
    free(view->selection.panel.title);
    view->selection.panel = (struct panel){0};
    if (view->selection.region.kind == PLACE)
        fill_place_panel(view);
    if (view->selection.region.kind == STRETCH)
        fill_stretch_panel(view);
}

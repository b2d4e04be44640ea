/* select.c - the text about a stretch of time, or about a place on a memory row: a table, shown in a panel over the
 * rows and as JSON.
 *
 * The table is made when the selection changes, not when the view is drawn: a stretch may hold a million records.
 */
#include "tools/command/table.h"
#include "view.h"

#include <math.h>

/* ---- a stretch ------------------------------------------------------------------------------------------------- */

struct stretch_work { /* the tasks of one role on a lane, as far as they lie in the stretch */
    double tasks, ns, flops, bytes;
};

/* Adds up the work of a lane between two clocks, by role. */
static void find_work(const struct trace *t, uint32_t lane, uint64_t from, uint64_t to,
                      struct stretch_work by_role[TRACE_ROLES])
{
    const struct bars *b = &t->bars[lane];
    for (size_t i = first_bar_in(b, from); i < b->n && b->bar[i].start < to; i++) {
        const struct bar *bar = &b->bar[i];
        const struct trace_task *task = &t->tasks[bar->task];
        struct stretch_work *work = &by_role[task->role];
        double ns = (double)(MIN(bar->end, to) - MAX(bar->start, from));
        double part = 1;
        if (bar->end > bar->start)
            part = ns / (double)(bar->end - bar->start);
        work->tasks += 1;
        work->ns += ns * t->header.pace_scale;
        work->flops += part * task->flops;
        work->bytes += part * (double)task->bytes;
    }
}

/* How much of what its lane reaches at most the work did; NAN: not known. */
static double share_of_peak(const struct stretch_work *work, const struct trace_lane *lane)
{
    const bool computes = work->flops > 0;
    const double peak = computes ? lane->flops_per_s : lane->bytes_per_s;
    const double seconds = fmax(work->ns, 1) / 1e9;
    if (peak <= 0 || work->ns <= 0)
        return NAN;
    return (computes ? work->flops : work->bytes) / seconds / peak;
}

/* Adds a lane's rows for the stretch of the axis from `left` to `right`. */
static void add_lane_rows(struct view *v, int track_index, uint32_t lane, double left, double right)
{
    const struct track *track = v->track[track_index];
    const struct trace *t = track->trace;
    const struct trace_lane *l = &t->lanes[lane];
    const bool is_link = l->kind == LANE_UPLOAD || l->kind == LANE_DOWNLOAD;
    struct stretch_work by_role[TRACE_ROLES] = {{0}};
    char name[64];
    snprintf(name, sizeof name, "%s%s", name_of_track(v, track_index), track->purpose[lane]);
    find_work(t, lane, clock_of(track, left), clock_of(track, right), by_role);
    for (size_t i = 0; i < TRACE_ROLES; i++) {
        const struct stretch_work *work = &by_role[i];
        if (work->tasks == 0)
            continue;
        if (is_link)
            v->panel.bytes += work->bytes;
        ROW(v->panel.table, text_cell(track_index ? "B" : "A"), text_cell(name), text_cell(l->name),
            text_cell(t->header.role[i]), number_cell(work->tasks), number_cell(work->ns / 1e6),
            number_cell(work->ns / (right - left)), number_cell(work->bytes / (1 << 20)), number_cell(work->bytes),
            number_cell(share_of_peak(work, l)));
    }
}

static void describe_stretch(struct view *v)
{
    static const struct column columns[] = {
        {NULL, "trace", CELL_TEXT, 0, 0},       {"lane", "purpose", CELL_TEXT, 24, 0},
        {NULL, "lane", CELL_TEXT, 0, 0},        {"kind", "kind", CELL_TEXT, 10, 0},
        {"tasks", "tasks", CELL_COUNT, 7, 0},   {"ms", "ms", CELL_FIXED, 10, 3},
        {"of time", "share", CELL_SHARE, 7, 0}, {"MiB", NULL, CELL_RATE, 9, 1},
        {NULL, "bytes", CELL_COUNT, 0, 0},      {"of peak", "share_of_peak", CELL_SHARE, 7, 0}};
    const double from = fmin(v->region.at[0], v->region.at[1]);
    const double to = fmax(v->region.at[0], v->region.at[1]);
    char text[32], bytes[32];
    v->panel.table = new_table(columns, COUNT(columns));
    for (int i = 0; i < v->n_tracks; i++)
        for (uint32_t lane = 0; lane < v->track[i]->trace->header.n_lanes; lane++)
            add_lane_rows(v, i, lane, from, to);
    append_text(&v->panel.title, "%s from %.3f ms on: links move %s", format_ns(text, to - from), from / 1e6,
                format_bytes(bytes, v->panel.bytes));
}

/* ---- a place on a memory row ----------------------------------------------------------------------------------- */

/* "forward L2": the task of one of the tensor's uses; or "kept" */
static char *name_use(char out[56], const struct trace *t, const struct trace_tensor *x, uint32_t use)
{
    if (x->n_uses == 0) {
        snprintf(out, 56, "kept");
        return out;
    }
    const struct trace_task *task = &t->tasks[t->uses[x->first_use + use]];
    if (task->layer >= 0)
        snprintf(out, 56, "%s L%d", task->name, task->layer);
    else
        snprintf(out, 56, "%s", task->name);
    return out;
}

static void describe_memory(struct view *v)
{
    static const struct column columns[] = {
        {"tensor", "tensor", CELL_TEXT, 28, 0},   {"MiB", NULL, CELL_FIXED, 9, 3},
        {NULL, "bytes", CELL_COUNT, 0, 0},        {"class", "class", CELL_TEXT, 11, 0},
        {"made by", "made_by", CELL_TEXT, 18, 0}, {"last used by", "last_used_by", CELL_TEXT, 18, 0}};
    const struct region *place = &v->region;
    const struct track *track = v->track[place->track];
    const struct trace *t = track->trace;
    const struct trace_tensor **alive;
    size_t n = trace_alive_at(t, place->device, clock_of(track, place->at[0]), &alive);
    char text[32], first[56], last[56];
    v->panel.table = new_table(columns, COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        const struct trace_tensor *x = alive[i];
        v->panel.bytes += (double)x->bytes;
        ROW(v->panel.table, text_cell(x->name), number_cell((double)x->bytes / (1 << 20)),
            number_cell((double)x->bytes), text_cell(t->header.memory[x->class]), text_cell(name_use(first, t, x, 0)),
            text_cell(name_use(last, t, x, x->n_uses - 1)));
    }
    append_text(&v->panel.title, "%s at %.3f ms holds %s in %zu tensors", t->devices[place->device].id,
                place->at[0] / 1e6, format_bytes(text, v->panel.bytes), n);
    free(alive);
}

/* ---- the panel ------------------------------------------------------------------------------------------------- */

void select_again(struct view *v)
{
    if (v->panel.table)
        free_table(v->panel.table);
    free(v->panel.title);
    v->panel = (struct panel){0};
    if (v->region.kind == PLACE)
        describe_memory(v);
    if (v->region.kind == STRETCH)
        describe_stretch(v);
}

/* Draws the panel beside the selected place, below its row or above it; or in that half of the rows in which the
 * stretch is not. */
static void place_panel(const struct view *v, const char *text)
{
    const struct box rows = places_of(v).rows, size = measure_panel(v, text);
    const int gap = 6 * v->scale, x = (int)x_of(v, (v->region.at[0] + v->region.at[1]) / 2);
    const bool right = x < rows.x + rows.w / 2;
    int y = rows.y + gap;
    for (size_t i = 0; i < v->n_rows; i++) {
        const struct view_row *r = &v->row[i];
        const bool is_it = r->kind == ROW_MEMORY && r->track == v->region.track && r->index == v->region.device;
        if (v->region.kind != PLACE || !is_it)
            continue;
        y = r->y + r->height + gap;
        if (y + size.h > rows.y + rows.h)
            y = MAX(r->y - gap - size.h, rows.y);
    }
    if (v->region.kind == PLACE)
        put_panel(v, right ? x + 2 * gap : x - size.w - 2 * gap, y, text);
    else
        put_panel(v, right ? rows.x + rows.w - size.w - gap : rows.x + gap, y, text);
}

void draw_panel(const struct view *v)
{
    const struct box rows = places_of(v).rows;
    const struct table *t = v->panel.table;
    const size_t most = (size_t)MAX(rows.h / (18 * v->scale) - 4, 1);
    char *text = NULL;
    size_t size;
    if (!t)
        return;
    FILE *out = open_memstream(&text, &size);
    CHECK(out, "%zu rows", t->n);
    fprintf(out, "%s", v->panel.title);
    print_cells(out, t, most);
    if (t->n > most)
        fprintf(out, "\n%zu more: --json shows them", t->n - most);
    fclose(out);
    place_panel(v, text);
    free(text);
}

/* select.c - what is said of a stretch of time, and of a place on a memory row: a table, shown in a panel over the rows
 * and as JSON.
 *
 * The table is made when the selection changes, not when the view is drawn: a stretch may hold a million records.
 */
#include "tools/command/table.h"
#include "view.h"

#include <inttypes.h>
#include <math.h>

/* ---- a stretch ------------------------------------------------------------------------------------------------- */

struct share { /* of the tasks of a kind on a lane, that part which lies in the stretch */
    double tasks, ns, flops, bytes;
};

static void add_lane(struct view *v, int track, uint32_t lane, double left, double right)
{
    const struct track *k = v->track[track];
    const struct trace *t = k->trace;
    const struct trace_lane *l = &t->lanes[lane];
    const struct bars *b = &t->bars[lane];
    struct share of[TRACE_ROLES] = {{0}};
    char name[64];
    snprintf(name, sizeof name, "%s%s", name_of_track(v, track), k->purpose[lane]);
    uint64_t from = clock_of(k, left), to = clock_of(k, right);
    for (size_t i = first_bar_in(b, from); i < b->n && b->bar[i].start < to; i++) {
        const struct bar *bar = &b->bar[i];
        const struct trace_task *task = &t->tasks[bar->task];
        double ns = (double)(MIN(bar->end, to) - MAX(bar->start, from));
        double part = bar->end > bar->start ? ns / (double)(bar->end - bar->start) : 1;
        struct share *s = &of[task->role];
        *s = (struct share){s->tasks + 1, s->ns + ns * t->header.pace_scale, s->flops + part * task->flops,
                            s->bytes + part * (double)task->bytes};
    }
    for (size_t i = 0; i < TRACE_ROLES; i++) {
        const struct share *s = &of[i];
        double least = fmax(s->ns, 1) / 1e9, peak = s->flops > 0 ? l->flops_per_s : l->bytes_per_s;
        double share = (s->flops > 0 ? s->flops : s->bytes) / least / peak;
        v->panel.bytes += l->kind == LANE_UPLOAD || l->kind == LANE_DOWNLOAD ? s->bytes : 0;
        if (s->tasks > 0)
            ROW(v->panel.table, text_cell(track ? "B" : "A"), text_cell(name), text_cell(l->name),
                text_cell(t->header.role[i]), number_cell(s->tasks), number_cell(s->ns / 1e6),
                number_cell(s->ns / (right - left)), number_cell(s->bytes / (1 << 20)), number_cell(s->bytes),
                number_cell(peak > 0 && s->ns > 0 ? share : NAN));
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
    double from = fmin(v->region.at[0], v->region.at[1]), to = fmax(v->region.at[0], v->region.at[1]);
    char text[32], bytes[32];
    v->panel.table = new_table(columns, COUNT(columns));
    for (int i = 0; i < v->n_tracks; i++)
        for (uint32_t lane = 0; lane < v->track[i]->trace->header.n_lanes; lane++)
            add_lane(v, i, lane, from, to);
    append_text(&v->panel.title, "%s from %.3f ms on: links move %s", format_ns(text, to - from), from / 1e6,
                format_bytes(bytes, v->panel.bytes));
}

/* ---- a place on a memory row ----------------------------------------------------------------------------------- */

/* "forward L2", or "kept" */
static char *name_use(char out[56], const struct trace *t, const struct trace_tensor *x, uint32_t use)
{
    const struct trace_task *task = x->n_uses ? &t->tasks[t->uses[x->first_use + use]] : NULL;
    snprintf(out, 56, task && task->layer >= 0 ? "%s L%d" : "%s", task ? task->name : "kept", task ? task->layer : 0);
    return out;
}

static void describe_place(struct view *v)
{
    static const struct column columns[] = {
        {"tensor", "tensor", CELL_TEXT, 28, 0},   {"MiB", NULL, CELL_FIXED, 9, 3},
        {NULL, "bytes", CELL_COUNT, 0, 0},        {"class", "class", CELL_TEXT, 11, 0},
        {"made by", "made_by", CELL_TEXT, 18, 0}, {"last used by", "last_used_by", CELL_TEXT, 18, 0}};
    const struct region *place = &v->region;
    const struct track *k = v->track[place->track];
    const struct trace *t = k->trace;
    const struct trace_tensor **alive;
    size_t n = trace_alive_at(t, place->device, clock_of(k, place->at[0]), &alive);
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
        describe_place(v);
    if (v->region.kind == STRETCH)
        describe_stretch(v);
}

/* On the half of the rows where what it is about is not. */
void draw_panel(const struct view *v)
{
    struct box rows = places_of(v).rows;
    const struct table *t = v->panel.table;
    size_t size, most = (size_t)MAX(rows.h / (18 * v->scale) - 4, 1);
    char *text = NULL;
    if (!t)
        return;
    FILE *out = open_memstream(&text, &size);
    CHECK(out, "%zu rows", t->n);
    fprintf(out, "%s", v->panel.title);
    print_heading(out, t);
    print_rows(out, t, 0, most);
    if (t->n > most)
        fprintf(out, "%zu more: --json shows them\n", t->n - most);
    fclose(out);
    put_panel(v, x_of(v, (v->region.at[0] + v->region.at[1]) / 2) < rows.x + rows.w / 2, text);
    free(text);
}

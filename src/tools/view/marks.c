/* marks.c - what is drawn over the rows: outlines, edges to producers and consumers, what is selected. */
#include "view.h"

#include <math.h>

/* The pixel of a time; times far outside of the largest window all have the same one. */
static int mark_x(const struct view *v, const struct track *track, uint64_t clock)
{
    return (int)fmin(fmax(x_of(v, axis_of(track, clock)), -4e4), 4e4);
}

static const struct view_row *row_of_record(const struct view *v, int track, size_t record)
{
    const struct trace *t = v->track[track]->trace;
    return row_of_lane(v, track, t->tasks[t->records[record].task].lane);
}

void draw_outline(const struct view *v, const struct pick *p, uint32_t colour)
{
    const struct track *track = v->track[p->track];
    const struct view_row *row = row_of_record(v, p->track, (size_t)p->record);
    const int dot = v->scale;
    if (!row)
        return;
    int from = mark_x(v, track, p->copy.start) - 2 * dot;
    int to = mark_x(v, track, p->copy.end) + 2 * dot;
    int wide = MAX(to - from, 5 * dot);
    int y = row->y, high = row->height;
    fill(v, from, y, wide, 2 * dot, colour);
    fill(v, from, y + high - 2 * dot, wide, 2 * dot, colour);
    fill(v, from, y, 2 * dot, high, colour);
    fill(v, from + wide - 2 * dot, y, 2 * dot, high, colour);
}

/* ---- edges ----------------------------------------------------------------------------------------------------- */

/* An edge goes from the producer's end to the consumer's start.  Within a lane it runs along the row's lower edge,
 * where it hides no name. */
static void draw_link(const struct view *v, int track_index, const struct link_drawn *l, uint32_t colour)
{
    const struct track *track = v->track[track_index];
    const struct trace_record *records = track->trace->records;
    const struct view_row *from = row_of_record(v, track_index, l->producer),
                          *to = row_of_record(v, track_index, l->consumer);
    const int dot = v->scale;
    if (!from || !to)
        return;
    int x0 = mark_x(v, track, records[l->producer].end), y0 = from->y + from->height / 2;
    int x1 = mark_x(v, track, records[l->consumer].start), y1 = to->y + to->height / 2;
    if (from == to) {
        y0 = from->y + from->height - 2 * dot;
        y1 = y0 + dot;
        fill(v, MIN(x0, x1), y0, abs(x1 - x0), 2 * dot, colour);
        fill(v, x0 - dot, y0 - 4 * dot, 2 * dot, 6 * dot, colour);
    } else {
        for (int i = 0; i < 2 * dot; i++)
            draw_line(v->canvas, x0, y0 + i, x1, y1 + i, colour);
    }
    for (int i = 0; i <= 6 * dot; i++) /* the head of the arrow */
        fill(v, x1 - i, y1 - i / 2, 1, i + 1, colour);
}

void draw_links(const struct view *v)
{
    const struct links l = links_of_pick(v, &v->selected);
    for (size_t i = 0; i < l.n; i++) {
        bool arrives = (int64_t)l.link[i].consumer == v->selected.record;
        draw_link(v, v->selected.track, &l.link[i], arrives ? ACCENT : INK);
    }
    free(l.link);
}

/* ---- the stretch or the place that is selected ------------------------------------------------------------------- */

void draw_region(const struct view *v)
{
    struct box b = places_of(v).rows;
    int x[2];
    for (int i = 0; i < 2; i++) {
        x[i] = (int)fmin(fmax(x_of(v, v->region.at[i]), b.x), b.x + b.w);
        fill(v, x[i], b.y, v->scale, b.h, ACCENT);
    }
    shade(v, MIN(x[0], x[1]), b.y, abs(x[1] - x[0]), b.h, ACCENT, 0.12);
}

/* ---- the mouse --------------------------------------------------------------------------------------------------- */

/* A time on a ground of its own, over the numbers of the ruler. */
static void draw_time(const struct view *v, double at, uint32_t colour)
{
    const struct box ruler = places_of(v).ruler;
    const int dot = v->scale, x = (int)x_of(v, at);
    const int decimals = (int)fmin(fmax(ceil(8 - log10(v->to - v->from)), 0), 6);
    char text[48];
    snprintf(text, sizeof text, "%.*f ms", decimals, at / 1e6);
    const int wide = small_width(v, text) + 8 * dot;
    const int left = MAX(MIN(x - wide / 2, ruler.x + ruler.w - wide), ruler.x);
    fill(v, left, ruler.y + ruler.h - 18 * dot, wide, 17 * dot, colour);
    put_small(v, left + 4 * dot, ruler.y + ruler.h - 17 * dot, left + wide, PAPER, "%s", text);
}

/* A tooltip says what is under the mouse, unless that moves something. */
static void draw_tooltip(const struct view *v)
{
    const struct pick behind_gap = pick_after_gap(v);
    const struct pick *p = is_picked(&v->hover) ? &v->hover : &behind_gap;
    const int dot = v->scale;
    const int x = v->mouse_x + 16 * dot, y = v->mouse_y + 18 * dot;
    if (!is_picked(p) || v->drag != DRAG_NOTHING)
        return;
    char *task = describe_briefly(v, p);
    char *text = format_string("%s%s", p == &v->hover ? "" : "idle, then ", task);
    const struct box size = measure_panel(v, text);
    put_panel(v, x + size.w < v->width ? x : v->mouse_x - size.w - 8 * dot,
              y + size.h < v->height ? y : v->mouse_y - size.h - 8 * dot, text);
    free(text);
    free(task);
}

void draw_cursor(const struct view *v)
{
    const struct box rows = places_of(v).rows;
    if (v->region.kind == STRETCH)
        for (int i = 0; i < 2; i++)
            if (v->region.at[i] >= v->from && v->region.at[i] <= v->to)
                draw_time(v, v->region.at[i], ACCENT);
    if (!is_inside(&rows, v->mouse_x, v->mouse_y))
        return;
    fill(v, v->mouse_x, rows.y, v->scale, rows.h, SOFT);
    draw_time(v, axis_at(v, v->mouse_x), SOFT);
    draw_tooltip(v);
}

/* marks.c - what is drawn over the rows: outlines, edges to producers and consumers, what is selected. */
#include "draw.h"

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
    const struct links l = links_of_pick(v, &v->selection.task);
    for (size_t i = 0; i < l.n; i++) {
        bool arrives = (int64_t)l.link[i].consumer == v->selection.task.record;
        draw_link(v, v->selection.task.track, &l.link[i], arrives ? ACCENT : INK);
    }
    free(l.link);
}

/* ---- the stretch or the place that is selected ------------------------------------------------------------------- */

void draw_region(const struct view *v)
{
    struct box b = places_of(v).rows;
    int x[2];
    for (int i = 0; i < 2; i++) {
        x[i] = (int)fmin(fmax(x_of(v, v->selection.region.at[i]), b.x), b.x + b.w);
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
    const int decimals = (int)fmin(fmax(ceil(8 - log10(v->sight.to - v->sight.from)), 0), 6);
    char text[48];
    snprintf(text, sizeof text, "%.*f ms", decimals, at / 1e6);
    const int wide = small_width(v, text) + 8 * dot;
    const int left = MAX(MIN(x - wide / 2, ruler.x + ruler.w - wide), ruler.x);
    fill(v, left, ruler.y + ruler.h - 18 * dot, wide, 17 * dot, colour);
    put_small(v, left + 4 * dot, ruler.y + ruler.h - 17 * dot, left + wide, PAPER, "%s", text);
}

void draw_cursor(const struct view *v)
{
    const struct box rows = places_of(v).rows;
    if (v->selection.region.kind == STRETCH)
        for (int i = 0; i < 2; i++)
            if (v->selection.region.at[i] >= v->sight.from && v->selection.region.at[i] <= v->sight.to)
                draw_time(v, v->selection.region.at[i], ACCENT);
    if (!is_inside(&rows, v->mouse.x, v->mouse.y))
        return;
    fill(v, v->mouse.x, rows.y, v->scale, rows.h, SOFT);
    draw_time(v, axis_at(v, v->mouse.x), SOFT);
}

/* ---- moving a task ----------------------------------------------------------------------------------------------- */

/* Marks the task that is in the way of the dragged one, and says why. */
void draw_blocker(const struct view *v)
{
    const struct gesture *g = &v->mouse.gesture;
    const struct track *track = v->track[g->track];
    const struct pick *in_way = &g->blocker;
    const struct box rows = places_of(v).rows;
    const int dot = v->scale;
    if (!is_picked(in_way) || !v->message[0])
        return;
    const struct view_row *row = row_of_lane(v, g->track, track->trace->tasks[in_way->copy.task].lane);
    if (!row)
        return;
    int wide = width_of(v, v->message) + 12 * dot, y = row->y + row->height;
    int x = MAX(MIN((int)x_of(v, axis_of(track, in_way->copy.start)), rows.x + rows.w - wide), rows.x);
    draw_outline(v, in_way, ACCENT);
    fill(v, x, y, wide, 20 * dot, ACCENT);
    put_text(v, x + 6 * dot, y + 2 * dot, v->width, PAPER, "%s", v->message);
}

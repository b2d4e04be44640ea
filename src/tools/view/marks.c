/* marks.c - what is drawn over the rows: outlines, edges to producers and consumers, what is selected. */
#include "view.h"

#include <math.h>

/* Pixels of a time; far outside of the largest window all are the same. */
static int mark_x(const struct view *v, const struct track *k, uint64_t clock)
{
    return (int)fmin(fmax(x_of(v, axis_of(k, clock)), -4e4), 4e4);
}

static const struct row *row_of(const struct view *v, int track, size_t record)
{
    const struct trace *t = v->track[track]->trace;
    return row_of_lane(v, track, t->tasks[t->records[record].task].lane);
}

void draw_outline(const struct view *v, const struct pick *p, uint32_t colour)
{
    const struct track *k = v->track[p->track];
    const struct row *row = row_of(v, p->track, (size_t)p->record);
    int u = v->scale, from = mark_x(v, k, p->copy.start) - 2 * u, to = mark_x(v, k, p->copy.end) + 2 * u;
    if (!row)
        return;
    int y = row->y, wide = MAX(to - from, 5 * u), high = row->height;
    fill(v, from, y, wide, 2 * u, colour);
    fill(v, from, y + high - 2 * u, wide, 2 * u, colour);
    fill(v, from, y, 2 * u, high, colour);
    fill(v, from + wide - 2 * u, y, 2 * u, high, colour);
}

/* ---- edges ----------------------------------------------------------------------------------------------------- */

/* From the producer's end to the consumer's start.  Within a lane it runs along the row's lower edge, where it hides no
 * name. */
static void draw_link(const struct view *v, int track, const struct link_drawn *l, uint32_t colour)
{
    const struct track *k = v->track[track];
    const struct row *from = row_of(v, track, l->from), *to = row_of(v, track, l->to);
    int x0 = mark_x(v, k, k->trace->records[l->from].end), x1 = mark_x(v, k, k->trace->records[l->to].start);
    int u = v->scale;
    if (!from || !to)
        return;
    int y0 = from->y + from->height / 2, y1 = to->y + to->height / 2;
    if (from == to) {
        y0 = from->y + from->height - 2 * u, y1 = y0 + u;
        fill(v, MIN(x0, x1), y0, abs(x1 - x0), 2 * u, colour);
        fill(v, x0 - u, y0 - 4 * u, 2 * u, 6 * u, colour);
    }
    for (int i = 0; i < 2 * u && from != to; i++)
        draw_line(v->canvas, x0, y0 + i, x1, y1 + i, colour);
    for (int i = 0; i <= 6 * u; i++) /* its head */
        fill(v, x1 - i, y1 - i / 2, 1, i + 1, colour);
}

void draw_links(const struct view *v)
{
    struct links l = links_of_pick(v, &v->selected);
    for (size_t i = 0; i < l.n; i++)
        draw_link(v, v->selected.track, &l.link[i], (int64_t)l.link[i].to == v->selected.record ? ACCENT : INK);
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

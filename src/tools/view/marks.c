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

/* An edge goes from the producer's end to the consumer's start.  Within a lane it runs along the row's lower edge, and
 * between two lanes from one row to the other: so it hides no name in either. */
static void draw_link(const struct view *v, int track_index, const struct link_drawn *l, uint32_t colour)
{
    const struct track *track = v->track[track_index];
    const struct trace_record *records = track->trace->records;
    const struct view_row *from = row_of_record(v, track_index, l->producer),
                          *to = row_of_record(v, track_index, l->consumer);
    const int dot = v->scale;
    if (!from || !to)
        return;
    const bool down = from->y < to->y;
    int x0 = mark_x(v, track, records[l->producer].end), y0 = down ? from->y + from->height - 2 * dot : from->y;
    int x1 = mark_x(v, track, records[l->consumer].start), y1 = down ? to->y : to->y + to->height - 2 * dot;
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

/* ---- times: a stretch or a place, marks, the mouse --------------------------------------------------------------- */

static bool is_time_in_sight(const struct view *v, double at) { return at >= v->sight.from && at <= v->sight.to; }

/* The pixel of an end of the stretch, or of the place, or the edge of the rows. */
static int region_x(const struct view *v, int end)
{
    const struct box b = places_of(v).rows;
    return (int)fmin(fmax(x_of(v, v->selection.region.at[end]), b.x), b.x + b.w);
}

void draw_region(const struct view *v)
{
    const struct box b = places_of(v).rows;
    for (int i = 0; i < 2; i++)
        fill(v, region_x(v, i), b.y, v->scale, b.h, ACCENT);
}

void shade_region(const struct view *v)
{
    const struct box b = places_of(v).rows;
    const int x[] = {region_x(v, 0), region_x(v, 1)};
    shade(v, MIN(x[0], x[1]), b.y, abs(x[1] - x[0]), b.h, ACCENT, 0.12);
}

bool shows_mark(const struct view *v)
{
    for (int i = 0; i < v->selection.n_marks; i++)
        if (is_time_in_sight(v, v->selection.mark[i]))
            return true;
    return false;
}

void draw_marks(const struct view *v)
{
    const struct box rows = places_of(v).rows;
    const int dot = v->scale;
    for (int i = 0; i < v->selection.n_marks; i++) {
        const int x = (int)x_of(v, v->selection.mark[i]);
        if (!is_time_in_sight(v, v->selection.mark[i]))
            continue;
        for (int y = rows.y; y < rows.y + rows.h; y += 6 * dot)
            fill(v, x, y, dot, 4 * dot, INK);
    }
}

void draw_cursor(const struct view *v)
{
    const struct box rows = places_of(v).rows;
    if (is_inside(&rows, v->mouse.x, v->mouse.y))
        fill(v, v->mouse.x, rows.y, v->scale, rows.h, SOFT);
}

/* The side of its line on which a time stands. */
enum side { LEFT_OF_LINE, AT_LINE, RIGHT_OF_LINE };

bool is_covered(const struct times *times, int x, int wide)
{
    bool any = false;
    for (size_t i = 0; i < times->n; i++)
        any |= x < times->time[i].x + times->time[i].wide && x + wide > times->time[i].x;
    return any;
}

/* Adds the text of a time, if that is in sight, and no other one is there. */
static void add_time(const struct view *v, struct times *times, double at, enum side side, uint32_t colour)
{
    const struct box ruler = places_of(v).ruler;
    const int dot = v->scale;
    struct shown_time *t = &times->time[times->n];
    if (!is_time_in_sight(v, at))
        return;
    format_axis(v, t->text, at, (v->sight.to - v->sight.from) / 1000);
    t->wide = small_width(v, t->text) + 8 * dot;
    t->colour = colour;
    const int begin = (int)x_of(v, at) - t->wide * (RIGHT_OF_LINE - (int)side) / 2;
    t->x = MAX(MIN(begin, ruler.x + ruler.w - t->wide), ruler.x);
    if (!is_covered(times, t->x, t->wide))
        times->n++;
}

/* Two times stand on the outer sides of their lines, so that neither covers the other. */
static void add_two_times(const struct view *v, struct times *times, const double at[2], uint32_t colour)
{
    const int later = at[1] > at[0];
    add_time(v, times, at[!later], LEFT_OF_LINE, colour);
    add_time(v, times, at[later], RIGHT_OF_LINE, colour);
}

struct times find_times(const struct view *v)
{
    const struct box rows = places_of(v).rows;
    const struct view_selection *s = &v->selection;
    struct times times = {.n = 0};
    if (s->region.kind == STRETCH)
        add_two_times(v, &times, s->region.at, ACCENT);
    if (s->n_marks == 1)
        add_time(v, &times, s->mark[0], AT_LINE, INK);
    if (s->n_marks == MOST_MARKS)
        add_two_times(v, &times, s->mark, INK);
    if (is_inside(&rows, v->mouse.x, v->mouse.y))
        add_time(v, &times, axis_at(v, v->mouse.x), AT_LINE, SOFT);
    return times;
}

bool is_between_marks(const struct view *v, int x, int wide)
{
    const double *mark = v->selection.mark;
    if (v->selection.n_marks < MOST_MARKS)
        return false;
    return x < x_of(v, fmax(mark[0], mark[1])) && x + wide > x_of(v, fmin(mark[0], mark[1]));
}

/* Draws a line from mark to mark, above the times, with the time between them. */
static void draw_between(const struct view *v, const double mark[2])
{
    const struct box ruler = places_of(v).ruler;
    const int dot = v->scale, y = ruler.y + dot;
    const double from = fmax(fmin(mark[0], mark[1]), v->sight.from), to = fmin(fmax(mark[0], mark[1]), v->sight.to);
    char text[32];
    if (from > to)
        return;
    format_ns(text, fabs(mark[1] - mark[0]));
    const int left = (int)x_of(v, from);
    const int right = (int)x_of(v, to);
    const int wide = small_width(v, text) + 8 * dot;
    const int at = MAX(MIN((left + right - wide) / 2, ruler.x + ruler.w - wide), ruler.x);
    fill(v, left, y + 8 * dot, right - left, dot, INK);
    fill(v, at, y, wide, 16 * dot, INK);
    put_small(v, at + 4 * dot, y, at + wide, PAPER, "%s", text);
}

void draw_times(const struct view *v)
{
    const struct box ruler = places_of(v).ruler;
    const int dot = v->scale, y = ruler.y + ruler.h - 18 * dot;
    const struct times times = find_times(v);
    for (size_t i = 0; i < times.n; i++) {
        const struct shown_time *t = &times.time[i];
        fill(v, t->x, y, t->wide, 17 * dot, t->colour);
        put_small(v, t->x + 4 * dot, y + dot, t->x + t->wide, PAPER, "%s", t->text);
    }
    if (v->selection.n_marks == MOST_MARKS)
        draw_between(v, v->selection.mark);
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

/* bars.c - the rows of lanes.
 *
 * A bar wide enough to be seen is drawn as one.  Narrower ones are merged: a column of pixels takes the colour of the
 * longest bar in it, the paler the less of its time the lane was busy.  Which bars those are is found by binary search,
 * so a picture costs a few steps per column however many records there are.  These steps wait for memory: a million
 * bars take 32 MB, more than most caches hold.
 */
#include "view.h"

#include <math.h>

enum { SEEN_WIDTH = 3, SAMPLES = 4, AIR = 2 };

/* What one lane's bars are drawn with. */
struct brush {
    const struct view *v;
    const struct track *track;
    const struct bars *bars;
    int index; /* of the track */
    int left, right, y, height;
    uint64_t seen; /* ns of the clock: bars as long as that are seen */
};

static double bar_x(const struct brush *b, uint64_t clock) { return x_of(b->v, axis_of(b->track, clock)); }

/* Its pixel, or the edge of the rows. */
static int edge_x(const struct brush *b, uint64_t clock)
{
    return (int)floor(fmin(fmax(bar_x(b, clock) + 0.5, b->left), b->right));
}

static uint32_t colour_of_bar(const struct brush *b, const struct bar *bar)
{
    uint32_t colour = task_colour(b->v, b->track, bar->task);
    return is_lit(b->v, b->index, bar->record) ? colour : blend(colour, PAPER, 0.85);
}

/* ---- merged columns -------------------------------------------------------------------------------------------- */

/* The longest of bars [i, end), or of some of them when they are many; what is lit comes before what is not. */
static const struct bar *spokesman(const struct brush *b, size_t i, size_t end)
{
    const struct bar *longest = &b->bars->bar[i];
    uint64_t most = 0;
    size_t stride = (end - i + SAMPLES - 1) / SAMPLES;
    for (; i < end; i += stride) {
        const struct bar *bar = &b->bars->bar[i];
        uint64_t weight = (bar->end - bar->start) / 2 + (is_lit(b->v, b->index, bar->record) ? UINT64_MAX / 2 : 0);
        if (weight > most) {
            longest = bar;
            most = weight;
        }
    }
    return longest;
}

/* Bar i and those behind it that start in [from, to) of the clock, one pixel high.  Returns the first bar that reaches
 * beyond it. */
static size_t draw_column(const struct brush *b, int x, int width, size_t i, uint64_t from, uint64_t to)
{
    const struct bar *bar = b->bars->bar;
    size_t end = i, first = i && bar[i - 1].end > from ? i - 1 : i; /* the one before may reach into the column */
    FIND_NEXT(end, b->bars->n, bar[end].start < to);
    end = MAX(end, i + 1);
    double busy = to > from ? (double)busy_from_to(&bar[first], &bar[end - 1], from, to) / (double)(to - from) : 1;
    uint32_t colour = colour_of_bar(b, spokesman(b, i, end));
    fill(b->v, x, b->y, width, 1, blend(PAPER, colour, 0.4 + 0.6 * busy));
    return bar[end - 1].end > to ? end - 1 : end;
}

/* The columns from x on, up to a bar that is seen or a column without one; where that is.  They are drawn one pixel
 * high, then copied downwards line by line: memory is written in its order. */
static int draw_columns(const struct brush *b, int x, size_t *i)
{
    const struct bar *bar;
    int first = x, width = 1;
    uint64_t from = clock_of(b->track, axis_at(b->v, x)), to = clock_of(b->track, axis_at(b->v, x + 1));
    do {
        size_t before = *i;
        *i = draw_column(b, x, width, *i, from, to);
        x += width;
        width = MIN(column_width(b->v, (*i - before) / (size_t)width), b->right - x);
        from = to, to = clock_of(b->track, axis_at(b->v, x + width));
        bar = &b->bars->bar[*i];
    } while (*i < b->bars->n && x < b->right && bar->start < to && bar->end - bar->start < b->seen);
    copy_down(b->v->canvas, first, b->y, x - first, b->height);
    return x;
}

/* ---- single bars ----------------------------------------------------------------------------------------------- */

/* "mlp.fc L3", or nothing: a name that does not fit is not cut. */
static void draw_label(const struct brush *b, const struct trace_task *task, int x, int width, uint32_t colour)
{
    char text[64];
    int room = width - 6 * b->v->scale, high = GLYPH_HEIGHT * b->v->scale;
    snprintf(text, sizeof text, "%s L%d", task->name, task->layer);
    if (task->layer < 0 || width_of(b->v, text) > room)
        snprintf(text, sizeof text, "%s", task->name);
    int wide = width_of(b->v, text);
    if (wide <= room && high <= b->height)
        put_text(b->v, x + (width - wide) / 2, b->y + (b->height - high) / 2, x + width, readable_on(colour), "%s",
                 text);
}

/* Neighbours are kept apart by a pixel of paper.  Returns the first column that is free. */
static int draw_bar(const struct brush *b, const struct bar *bar, int x)
{
    int from = MAX(edge_x(b, bar->start), x), to = edge_x(b, bar->end);
    int width = MAX(to - from - (to - from > 4), 1);
    uint32_t colour = colour_of_bar(b, bar);
    fill(b->v, from, b->y, width, b->height, colour);
    draw_label(b, &b->track->trace->tasks[bar->task], from, width, colour);
    return MAX(to, x + 1);
}

/* Up to bar i, half as high as a bar: what it waited for. */
static void draw_gap(const struct brush *b, size_t i)
{
    struct trace_gap gap = trace_gap_of_bar(b->track->trace, b->bars, i);
    for (int k = 0; k < GAP_PARTS; k++) {
        int left = edge_x(b, gap.at[k]), width = edge_x(b, gap.at[k + 1]) - left;
        fill(b->v, left, b->y + b->height / 4, width, b->height / 2, cause_colour(gap.cause[k]));
    }
}

/* What runs on the lane now, or ran when the trainer stopped, is perforated like a film.  What waits for another lane
 * is pale.  Where time does not go on, it has the width of its name, not of its time. */
static void draw_running(const struct brush *b, uint32_t lane)
{
    struct trace_running now;
    if (!trace_running(b->track->trace, lane, &now))
        return;
    int u = b->v->scale, least = b->track->stands ? 120 * u : 0;
    int from = edge_x(b, MAX(now.since, b->bars->n ? b->bars->bar[b->bars->n - 1].end : 0)),
        to = MIN(MAX(edge_x(b, b->track->now), from + least), b->right);
    uint32_t colour = task_colour(b->v, b->track, now.record->task);
    colour = now.waits ? blend(colour, PAPER, 0.8) : colour;
    fill(b->v, from, b->y, to - from, b->height, colour);
    for (int x = from + 2 * u; x + 4 * u <= to && !now.waits; x += 8 * u) {
        fill(b->v, x, b->y + u, 4 * u, 3 * u, PAPER);
        fill(b->v, x, b->y + b->height - 4 * u, 4 * u, 3 * u, PAPER);
    }
    draw_label(b, &b->track->trace->tasks[now.record->task], from, to - from, colour);
}

void draw_lane(const struct view *v, const struct row *row)
{
    struct box rows = places_of(v).rows;
    const struct track *k = v->track[row->track];
    struct brush b = {.v = v, .track = k, .index = row->track};
    b.bars = &k->trace->bars[row->index];
    b.left = rows.x, b.right = rows.x + rows.w;
    int air = row->height > 4 * AIR * v->scale ? AIR * v->scale : 0;
    b.y = row->y + air, b.height = row->height - 2 * air;
    double seen = SEEN_WIDTH * v->scale * (v->to - v->from) / rows.w / k->trace->header.pace_scale;
    b.seen = (uint64_t)fmin(ceil(seen), 0x1p62); /* at least 1: a bar without length is never seen */
    size_t i = first_bar_in(b.bars, clock_of(k, v->from));
    for (int x = b.left; i < b.bars->n && x < b.right;) {
        const struct bar *bar = &b.bars->bar[i];
        double from = bar_x(&b, bar->start);
        if (from >= x + 1 && v->show_causes)
            draw_gap(&b, i);
        else if (from >= x + 1) { /* queued, and behind what ran before: a thin bar, up to the start */
            uint64_t since = MAX(k->trace->records[bar->record].queued, i ? bar[-1].end : 0);
            int left = edge_x(&b, MIN(since, bar->start)), right = edge_x(&b, bar->start), thick = 2 * v->scale;
            if (right - left > 1)
                fill(v, left, b.y + (b.height - thick) / 2, right - left, thick,
                     blend(colour_of_bar(&b, bar), PAPER, 0.55));
        }
        if (from >= b.right)
            break;
        x = (int)fmax(from, x);
        x = bar->end - bar->start < b.seen ? draw_columns(&b, x, &i) : draw_bar(&b, &b.bars->bar[i++], x);
    }
    draw_running(&b, row->index);
}

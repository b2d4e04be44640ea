/* view_memory.c - what tensors hold on a device over time, by class, and its budget. */
#include "view.h"

#include <math.h>

/* The bytes of each class, one above the other; `top`: the bytes at the upper edge of b. */
static void draw_amount(const struct view *v, const struct trace *t, const struct amount *held, const struct box *b,
                        int x, int width, double top)
{
    double sum = 0;
    int y = b->y + b->h;
    for (size_t i = 0; i < t->header.n_classes; i++) {
        sum += (double)held->bytes[i];
        int to = b->y + b->h - (int)fmin(sum / top * b->h + 0.5, b->h);
        fill(v, x, to, width, y - to, class_colour(i));
        y = to;
    }
}

/* Draws lines at powers of two, so far apart that each has room for its number. */
static void draw_axis(const struct view *v, const struct box *b, double top)
{
    int dot = v->scale;
    char bytes[32];
    double tick = exp2(ceil(log2(top * 24 * dot / b->h)));
    for (double at = tick; at < top; at += tick) {
        int y = b->y + b->h - (int)(at / top * b->h);
        format_bytes(bytes, at);
        shade(v, b->x, y, b->w, dot, INK, 0.25);
        shade(v, b->x, y + dot, small_width(v, bytes) + 4 * dot, GLYPH_HEIGHT * dot, PAPER, 0.75);
        put_small(v, b->x + 2 * dot, y, b->x + b->w, INK, "%s", bytes);
    }
}

/* The bytes at the upper edge: the same in all rows of a trace.  Budgets far above what is held are left out, since
 * they would make the areas flat. */
static double upper_edge(const struct track *track)
{
    const struct trace *t = track->trace;
    double top = track->highest_peak;
    for (size_t i = 0; i < t->header.n_devices; i++) {
        const double budget = (double)t->devices[i].budget;
        if (budget < 2 * track->highest_peak)
            top = fmax(top, budget);
    }
    return 1.1 * top;
}

static void draw_areas(const struct view *v, const struct track *track, const struct memory_use *use,
                       const struct box *b, double top)
{
    size_t next = (size_t)(amount_at(use, clock_of(track, v->from)) - use->amount); /* the first after the column */
    int x = b->x, width = 1;
    while (x < b->x + b->w) {
        const size_t before = next;
        const uint64_t clock = clock_of(track, axis_at(v, x + width));
        if (clock > track->now)
            break;
        FIND_NEXT(next, use->n, use->amount[next].clock <= clock);
        draw_amount(v, track->trace, &use->amount[next - 1], b, x, width, top);
        x += width;
        width = column_width(v, (next - before) / (size_t)width);
    }
}

/* A broken line, and its words. */
static void draw_budget(const struct view *v, const struct box *b, double budget, double top)
{
    const int dot = v->scale;
    const int y = b->y + b->h - (int)(budget / top * b->h);
    char text[32];
    for (int x = b->x; x < b->x + b->w; x += 8 * dot)
        fill(v, x, y, 5 * dot, dot, ACCENT);
    put_small(v, AT_RIGHT, y + dot, b->x + b->w, ACCENT, "budget %s", format_bytes(text, budget));
}

void draw_memory(const struct view *v, const struct view_row *row)
{
    const struct track *track = v->track[row->track];
    const struct trace *t = track->trace;
    const struct box rows = places_of(v).rows;
    const struct box b = {rows.x, row->y + 4 * v->scale, rows.w, row->height - 8 * v->scale};
    const double top = upper_edge(track);
    const double budget = (double)t->devices[row->index].budget;
    draw_areas(v, track, &t->memory_use[row->index], &b, top);
    draw_axis(v, &b, top);
    fill(v, b.x, b.y + b.h, b.w, v->scale, RULE);
    if (budget > 0 && budget <= top)
        draw_budget(v, &b, budget, top);
}

/* memory.c - what tensors hold on a device over time, by class, and its budget. */
#include "view.h"

#include <math.h>

static void draw_areas(const struct view *v, const struct trace *t, const struct amount *held, const struct box *b,
                       double top)
{
    double sum = 0;
    int y = b->y + b->h;
    for (size_t i = 0; held && i < t->header.n_classes; i++) {
        sum += (double)held->bytes[i];
        int to = b->y + b->h - (int)fmin(sum / top * b->h + 0.5, b->h);
        fill(v, b->x, to, b->w, y - to, class_colour(i));
        y = to;
    }
}

/* Powers of two, so far apart that each has room for its number. */
static void draw_axis(const struct view *v, const struct box *b, double top)
{
    int u = v->scale;
    char bytes[32];
    double tick = exp2(ceil(log2(top * 24 * u / b->h)));
    for (double at = tick; at < top; at += tick) {
        int y = b->y + b->h - (int)(at / top * b->h);
        format_bytes(bytes, at);
        shade(v, b->x, y, b->w, u, theme_of(v)->ink, 0.25);
        shade(v, b->x, y + u, width_of(v, bytes) + 4 * u, GLYPH_HEIGHT * u, theme_of(v)->paper, 0.75);
        put_text(v, b->x + 2 * u, y, b->x + b->w, theme_of(v)->ink, "%s", bytes);
    }
}

void draw_memory(const struct view *v, const struct row *row)
{
    const struct track *k = v->track[row->track];
    const struct trace *t = k->trace;
    struct box rows = places_of(v).rows;
    struct box b = {rows.x, row->y + 4 * v->scale, 0, row->height - 8 * v->scale};
    double top = k->highest_peak, budget = (double)t->devices[row->index].budget;
    const struct amount *held = NULL;
    /* The upper edge is alike in all rows of a trace.  Budgets far above what is held would make the areas flat. */
    for (const struct trace_device *d = t->devices; d < t->devices + t->header.n_devices; d++)
        top = (double)d->budget < 2 * k->highest_peak ? fmax(top, (double)d->budget) : top;
    top *= 1.1;
    for (int x = rows.x; x <= rows.x + rows.w; x++) { /* columns of one amount are drawn together */
        uint64_t clock = clock_of(k, axis_at(v, x + 1));
        const struct amount *now = clock <= k->now ? amount_at(&t->held[row->index], clock) : NULL;
        if (now == held && x < rows.x + rows.w)
            continue;
        b.w = x - b.x;
        draw_areas(v, t, held, &b, top);
        b.x = x;
        held = now;
    }
    b.x = rows.x;
    b.w = rows.w;
    draw_axis(v, &b, top);
    fill(v, b.x, b.y + b.h, b.w, v->scale, theme_of(v)->rule);
    if (budget > 0 && budget <= top) {
        char text[32];
        int u = v->scale, y = b.y + b.h - (int)(budget / top * b.h);
        for (int x = b.x; x < b.x + b.w; x += 8 * u)
            fill(v, x, y, 5 * u, u, theme_of(v)->accent);
        put_text(v, AT_RIGHT, y + u, b.x + b.w, theme_of(v)->accent, "budget %s", format_bytes(text, budget));
    }
}

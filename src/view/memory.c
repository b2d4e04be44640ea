/* memory.c - what tensors hold on a device over time, by class, and its budget. */
#include "view.h"

#include <math.h>

/* ---- amounts --------------------------------------------------------------------------------------------------- */

/* What a device held as of `clock`: at the task that started last.  A device's compute lane says how far its list is:
 * copies may run far ahead or behind of it.  The host has none, and what it holds comes and goes with copies of all
 * devices and with its own tasks.  NULL: not known. */
static const struct trace_memory *memory_at(const struct trace *t, uint32_t device, uint64_t clock)
{
    const struct bar *latest = NULL;
    uint32_t own = 0;
    while (own < t->header.n_lanes && (t->lanes[own].device_index != device || t->lanes[own].kind != LANE_COMPUTE))
        own++;
    for (uint32_t i = 0; i < t->header.n_lanes; i++) {
        bool counts = own < t->header.n_lanes ? i == own : t->lanes[i].kind != LANE_COMPUTE;
        size_t n = counts ? first_bar_from(&t->bars[i], clock) : 0;
        const struct bar *bar = n ? &t->bars[i].bar[n - 1] : NULL;
        if (bar && (!latest || bar->start > latest->start))
            latest = bar;
    }
    return latest ? trace_memory_at(t, t->records[latest->record].task, device) : NULL;
}

/* ---- drawing --------------------------------------------------------------------------------------------------- */

static void draw_areas(const struct view *v, const struct trace *t, const struct trace_memory *m, const struct box *b,
                       double top)
{
    double sum = 0;
    int y = b->y + b->h;
    for (size_t i = 0; m && i < t->header.n_classes; i++) {
        sum += (double)m->bytes[i];
        int to = b->y + b->h - (int)fmin(sum / top * b->h + 0.5, b->h);
        fill(v, b->x, to, b->w, y - to, class_colour(i));
        y = to;
    }
}

void draw_memory(const struct view *v, const struct row *row)
{
    const struct track *k = v->track[row->track];
    struct box rows = places_of(v).rows;
    struct box b = {rows.x, row->y + 4 * v->scale, 0, row->height - 8 * v->scale};
    double top = k->highest_peak, budget = (double)k->trace->devices[row->index].budget;
    const struct trace_memory *held = NULL;
    /* The upper edge is alike in all rows of a trace.  Budgets far above what is held would make the areas flat. */
    for (const struct trace_device *d = k->trace->devices; d < k->trace->devices + k->trace->header.n_devices; d++)
        top = (double)d->budget < 2 * k->highest_peak ? fmax(top, (double)d->budget) : top;
    top *= 1.1;
    for (int x = rows.x; x <= rows.x + rows.w; x++) { /* columns of one amount are drawn together */
        uint64_t clock = clock_of(k, axis_at(v, x + 1));
        const struct trace_memory *now = clock <= k->now ? memory_at(k->trace, row->index, clock) : NULL;
        if (now == held && x < rows.x + rows.w)
            continue;
        b.w = x - b.x;
        draw_areas(v, k->trace, held, &b, top);
        b.x = x;
        held = now;
    }
    b.x = rows.x;
    b.w = rows.w;
    fill(v, b.x, b.y + b.h, b.w, v->scale, theme_of(v)->rule);
    if (budget > 0 && budget <= top) {
        char bytes[32];
        int u = v->scale, y = b.y + b.h - (int)(budget / top * b.h);
        for (int x = b.x; x < b.x + b.w; x += 8 * u)
            fill(v, x, y, 5 * u, u, theme_of(v)->accent);
        put_text(v, AT_RIGHT, y + u, b.x + b.w, theme_of(v)->accent, "budget %s", format_bytes(bytes, budget));
    }
}

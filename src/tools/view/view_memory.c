/* view_memory.c - what tensors hold on a device over time, by class, and its budget. */
#include "draw.h"

#include <math.h>

struct memory_column { /* columns of pixels that show one amount */
    int x, width;
    const struct amount *held;
};

/* Draws the bytes of each class, one above the other; top: the bytes at the upper edge of the box. */
static void draw_amount(const struct view *view, const struct memory_column *column, const struct box *box, double top,
                        struct contents *contents)
{
    double sum = 0;
    int y = box->y + box->h;
    for (size_t i = 0; i < TRACE_CLASSES; i++) {
        sum += (double)column->held->bytes[i];
        int to = box->y + box->h - (int)fmin(sum / top * box->h + 0.5, box->h);
        fill(view, column->x, to, column->width, y - to, class_colour(i));
        contents->class[i] |= to < y;
        y = to;
    }
}

/* The bytes at the upper edge: the same in all rows.  Budgets far above what is held are left out, since they would
 * make the areas flat. */
static double upper_edge(const struct view *view)
{
    double peak = 0;
    for (int k = 0; k < view->n_tracks; k++)
        peak = fmax(peak, view->tracks[k]->highest_peak);
    double top = peak;
    for (int k = 0; k < view->n_tracks; k++) {
        const struct trace *trace = view->tracks[k]->trace;
        for (size_t i = 0; i < trace->header.n_devices; i++)
            if ((double)trace->devices[i].budget < 2 * peak)
                top = fmax(top, (double)trace->devices[i].budget);
    }
    return 1.1 * top;
}

/* Each column of pixels shows the most that is held in its time; far out a span is a column.  As with bars, all is
 * found before it is drawn. */
static void draw_areas(const struct view *view, const struct view_row *row, const struct box *box, double top,
                       struct contents *contents)
{
    const struct track *track = view->tracks[row->track];
    const struct memory_use *use = &track->trace->memory_use[row->index];
    const struct amount *first = amount_at(use, clock_of(track, view->sight.from));
    size_t next = (size_t)(first - use->amounts) + 1; /* the first amount after the column */
    struct memory_column columns[MOST_PIXELS];
    int n = 0;
    bool spans = is_far_out(view, track);
    int x = box->x, width = 1;
    while (x < box->x + box->w) {
        size_t before = next;
        if (spans)
            width = span_end(view, row->track, x) - x;
        uint64_t clock = view->clocks[row->track][x + width - box->x];
        if (clock > track->now)
            break;
        next = next_amount(use, next, clock);
        columns[n] = (struct memory_column){x, width, most_held(use, before - 1, next)};
        fetch_ahead(columns[n].held);
        fetch_ahead(columns[n].held + 1); /* it may reach into another line of the cache */
        n++;
        x += width;
        width = column_width(view, (next - before) / (size_t)width);
    }
    for (int i = 0; i < n; i++)
        draw_amount(view, &columns[i], box, top, contents);
}

/* ---- the axis ---------------------------------------------------------------------------------------------------- */

static struct box box_of(const struct view *view, const struct view_row *row)
{
    const struct box rows = places_of(view).rows;
    return (struct box){rows.x, row->y + 4 * view->scale, rows.w, row->height - 8 * view->scale};
}

static int y_of(const struct box *box, double bytes, double top)
{
    return box->y + box->h - (int)(bytes / top * box->h);
}

/* The bytes from line to line: a power of two.  Each line has room for its number, and there are one to four lines. */
static double tick_of(const struct view *view, const struct box *box, double top)
{
    double with_room = exp2(ceil(log2(top * fmax(24.0 * view->scale / MAX(box->h, 1), 0.2))));
    return fmin(with_room, exp2(floor(log2(top / 1.02))));
}

/* The budget, where it is on the axis; else 0. */
static double shown_budget(const struct track *track, uint32_t device, double top)
{
    double budget = (double)track->trace->devices[device].budget;
    return budget <= top ? budget : 0;
}

double budget_in_sight(const struct view *view, const struct view_row *row)
{
    const struct track *track = view->tracks[row->track];
    return shown_budget(track, row->index, upper_edge(view));
}

/* Writes bytes beside their line, but within the row. */
static void label_line(const struct view *view, const struct view_row *row, int line, double bytes, uint32_t colour)
{
    int dot = view->scale, right = places_of(view).rows.x - 6 * dot;
    int y = MAX(MIN(line - 8 * dot, row->y + row->height - 15 * dot), row->y - 2 * dot);
    char text[NUMBER_TEXT];
    put_small(view, AT_RIGHT, y, right, colour, "%s", format_bytes(text, bytes));
}

struct memory_axis { /* the axis of bytes of a row */
    struct box box;
    double top;    /* the bytes at the upper edge of the box */
    double tick;   /* from line to line */
    double budget; /* 0: it is not on the axis */
};

static struct memory_axis axis_of_row(const struct view *view, const struct view_row *row)
{
    struct memory_axis axis = {.box = box_of(view, row), .top = upper_edge(view)};
    axis.tick = tick_of(view, &axis.box, axis.top);
    axis.budget = shown_budget(view->tracks[row->track], row->index, axis.top);
    return axis;
}

/* Numbers stand beside the areas, not on them; a line that is too close to the line of the budget has none. */
void draw_axis_labels(const struct view *view, const struct view_row *row)
{
    const struct memory_axis axis = axis_of_row(view, row);
    int dot = view->scale;
    int budget_y = y_of(&axis.box, axis.budget, axis.top);
    for (double at = axis.tick; at < axis.top; at += axis.tick) {
        int y = y_of(&axis.box, at, axis.top);
        if (axis.budget == 0 || (abs(y - budget_y) >= 12 * dot && axis.box.h >= 24 * dot))
            label_line(view, row, y, at, SOFT);
    }
    if (axis.budget > 0)
        label_line(view, row, budget_y, axis.budget, ACCENT);
}

void draw_memory(const struct view *view, const struct view_row *row, struct contents *contents)
{
    const struct memory_axis axis = axis_of_row(view, row);
    const struct box *box = &axis.box;
    int dot = view->scale;
    draw_areas(view, row, box, axis.top, contents);
    for (double at = axis.tick; at < axis.top; at += axis.tick)
        shade_box(view, &(struct box){box->x, y_of(box, at, axis.top), box->w, dot}, INK, 0.25);
    fill(view, box->x, box->y + box->h, box->w, dot, RULE);
    for (int x = box->x; x < box->x + box->w && axis.budget > 0; x += 8 * dot)
        fill(view, x, y_of(box, axis.budget, axis.top), 5 * dot, dot, ACCENT);
}

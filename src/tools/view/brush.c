/* brush.c - between the clock and pixels, and what colour a bar has. */
#include "brush.h"

#include <math.h>

double bar_x(const struct brush *brush, uint64_t clock) { return x_of(brush->view, axis_of(brush->track, clock)); }

uint64_t clock_at(const struct brush *brush, int x) { return brush->view->clocks[brush->index][x - brush->left]; }

int edge_x(const struct brush *brush, uint64_t clock)
{
    return (int)floor(fmin(fmax(bar_x(brush, clock) + 0.5, brush->left), brush->right));
}

void note_colour(const struct brush *brush, uint32_t task)
{
    if (!brush->contents)
        return;
    brush->contents->kind[brush->track->kind[task]] = true;
    brush->contents->plain |= is_plain(brush->view, brush->track, task);
}

uint32_t colour_of_bar(const struct brush *brush, const struct bar *bar)
{
    uint32_t colour = task_colour(brush->view, brush->track, bar->task);
    note_colour(brush, bar->task);
    return is_lit(brush->view, brush->index, bar->record) ? colour : blend_colours(colour, PAPER, DIMMED);
}

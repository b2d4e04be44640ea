/* brush.h - what bars.c and columns.c know of one another: the lane that is drawn. */
#ifndef BRUSH_H
#define BRUSH_H

#include "draw.h"

struct brush { /* the lane whose bars are drawn, and where they go */
    const struct view *view;
    const struct track *track;
    const struct bars *bars;
    const struct lit_bars *lit; /* those of its bars that are lit; NULL: all are */
    int index;                  /* the track's index */
    int left, right, y, height;
    const uint32_t *firsts;    /* [right - left + 1] the first bar that starts at each pixel or after it; or NULL */
    uint64_t visible_ns;       /* by the clock: bars that last as long are wide enough to be seen */
    struct contents *contents; /* what has been drawn is added to it; NULL: nothing new is drawn */
};

/* ---- brush.c ----------------------------------------------------------------------------------------------------- */

double bar_x(const struct brush *brush, uint64_t clock); /* in pixels, also outside of the rows */
uint64_t clock_at(const struct brush *brush, int x);     /* of a pixel in left .. right */
int edge_x(const struct brush *brush, uint64_t clock);   /* the pixel of a clock, or the edge of the rows */

/* Notes that the legend must have the colour of this task's bar. */
void note_colour(const struct brush *brush, uint32_t task);

/* The bar's colour, paler if it is not lit; it is noted as note_colour() does. */
uint32_t colour_of_bar(const struct brush *brush, const struct bar *bar);

/* ---- columns.c --------------------------------------------------------------------------------------------------- */

/* Finds the first bar that starts at each pixel or after it.  Unless spans are drawn, it asks for those that will be
 * looked at if a pixel is a column. */
void fill_firsts(const struct brush *brush, bool spans, uint32_t firsts[MOST_PIXELS + 1]);

/* Draws columns from x on, up to a bar that is wide enough to be seen or to a column without a bar, and returns where
 * that is.  *i: the first bar; then the first one after the columns. */
int draw_columns(const struct brush *brush, int x, size_t *i);

/* Is bar i too narrow to be seen, but has nothing beside it with which it could be merged? */
bool stands_alone(const struct brush *brush, size_t i);

/* Draws a short bar that stands alone from column x on, two dots wide.  Its height is the share of its
 * columns' time in which the lane was busy.  A small share also makes it pale.  Returns the first free column. */
int draw_short_bar(const struct brush *brush, const struct bar *bar, int x);

/* Draws whole steps, each as the shares of its time that colours have. */
void draw_spans(const struct brush *brush, uint32_t lane);

#endif

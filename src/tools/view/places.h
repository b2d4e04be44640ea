/* places.h - where everything is in the picture: boxes, rows, times. */
#ifndef PLACES_H
#define PLACES_H

#include "view.h"

/* ---- places.c -------------------------------------------------------------------------------------------------- */

struct box {
    int x, y, w, h;
};
static inline bool is_inside(const struct box *b, int x, int y)
{
    return x >= b->x && x < b->x + b->w && y >= b->y && y < b->y + b->h;
}
struct places {
    struct box header, overview, ruler, rows, legend, details;
};
struct places places_of(const struct view *v);
double x_of(const struct view *v, double axis);
double axis_at(const struct view *v, double x);
bool is_in_sight(const struct view *v, const struct view_row *r);  /* from top to bottom: rows are not cut */
const struct view_row *row_at(const struct view *v, int x, int y); /* NULL outside of the rows */
const struct view_row *row_of_lane(const struct view *v, int track, uint32_t lane);

/* ---- look.c ---------------------------------------------------------------------------------------------------- */

void look_at(struct view *v, double from, double to);
void look_at_step(struct view *v, uint32_t step); /* makes it the anchor */
void look_at_all(struct view *v);
void look_at_end(struct view *v);

/* ---- layout.c -------------------------------------------------------------------------------------------------- */

void lay_out(struct view *v);       /* fills v->layout */
void choose_height(struct view *v); /* such that all rows have the height at which they read best */

#endif

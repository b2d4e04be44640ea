/* geometry.h - where everything is in the picture: boxes, rows, times. */
#ifndef GEOMETRY_H
#define GEOMETRY_H

#include "view.h"

/* ---- geometry.c -------------------------------------------------------------------------------------------------- */

/* Dots: how high a line of text is; how far text stays away from the window's edge. */
enum { LINE = 18, MARGIN = 10 };

struct box {
    int x, y, w, h;
};

static inline bool is_inside(const struct box *box, int x, int y)
{
    return x >= box->x && x < box->x + box->w && y >= box->y && y < box->y + box->h;
}

struct places {
    struct box header, overview, ruler, rows, legend, details;
};
struct places places_of(const struct view *view);
double x_of(const struct view *view, double axis);

/* The pixel of a time.  pixel_of(): times far outside of the largest window all have the same one.  x_in_rows(): times
 * that are out of sight have that of the rows' edge. */
int pixel_of(const struct view *view, double axis);
int x_in_rows(const struct view *view, double axis);
double axis_at(const struct view *view, double x);

bool is_in_sight(const struct view *view, const struct view_row *row); /* from top to bottom: rows are not cut */
const struct view_row *row_at(const struct view *view, int x, int y);  /* NULL outside of the rows */
const struct view_row *row_of_lane(const struct view *view, int track, uint32_t lane);

/* Fills view->clocks, so that times of pixels are not worked out anew for each lane.  The last column of memory may
 * reach beyond the rows. */
enum { WIDEST_COLUMN = 8 };
void fill_clocks(struct view *view);
void free_clocks(struct view *view);

/* ---- look.c ---------------------------------------------------------------------------------------------------- */

void look_at(struct view *view, double from, double to);
void look_at_step(struct view *view, uint32_t number); /* makes it the anchor */
void look_at_all(struct view *view);
void look_at_steps(struct view *view);
void look_at_end(struct view *view);

/* ---- layout.c -------------------------------------------------------------------------------------------------- */

void lay_out(struct view *view);       /* fills view->layout */
void choose_height(struct view *view); /* such that all rows have the height at which they read best */

#endif

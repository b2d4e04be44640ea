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

struct places { /* pixels */
    struct box header, overview, ruler, rows, legend, details;
};
struct places places_of(const struct view *view);

/* The pixel of a time on the axis, in nanoseconds, and the time at a pixel.
 *
 *     x_of()         also between pixels, and as far outside of the rows as the time is
 *     pixel_of()     in whole pixels, at most so far outside that an int has room for it
 *     x_in_rows()    that of the rows' edge for times that are out of sight
 *     axis_at()      the inverse of x_of() */
double x_of(const struct view *view, double axis);
int pixel_of(const struct view *view, double axis);
int x_in_rows(const struct view *view, double axis);
double axis_at(const struct view *view, double x);

bool is_in_sight(const struct view *view, const struct view_row *row); /* from top to bottom: rows are not cut */

/* The row at (x, y).  NULL: none is there, or it is a lane's or memory's and (x, y) is beside it, on its name. */
const struct view_row *row_at(const struct view *view, int x, int y);

/* The row of a track's lane; NULL: it has none. */
const struct view_row *row_of_lane(const struct view *view, int track, uint32_t lane);

/* Fills view->clocks, so that times of pixels are not worked out anew for each lane.  The last column of memory may
 * reach beyond the rows. */
enum { WIDEST_COLUMN = 8 };
void fill_clocks(struct view *view);
void free_clocks(struct view *view);

/* ---- look.c ------------------------------------------------------------------------------------------------------ */

#define NARROWEST_NS 100.0 /* the shortest time that can be in sight */

/* These set what is in sight.  All but look_at() choose the anchor, too, and leave a little air at the sides.
 *
 *     look_at()          the axis from one time to another, in nanoseconds
 *     look_at_step()     the step of that number in all traces, as the anchor
 *     look_at_all()      all records of all traces
 *     look_at_steps()    all counted steps of the first trace, without what other lists run before and after
 *     look_at_end()      what happens now at the right, with the newest step as the anchor, and about three steps,
 *                        until the user zooms */
void look_at(struct view *view, double from, double to);
void look_at_step(struct view *view, uint32_t number);
void look_at_all(struct view *view);
void look_at_steps(struct view *view);
void look_at_end(struct view *view);

/* ---- layout.c ---------------------------------------------------------------------------------------------------- */

void lay_out(struct view *view);       /* fills view->layout */
void choose_height(struct view *view); /* such that all rows have the height at which they read best */

#endif

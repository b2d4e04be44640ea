/* geometry.c - the boxes of the picture; times to pixels and back; which row is where.
 *
 * Lengths are counted in dots of the font: a view of scale 2 has two pixels per dot, for screens with small pixels and
 * for the last row of a classroom.
 */
#include "geometry.h"

#include <math.h>

enum { GUTTER = 168, HEADER = 28, OVERVIEW = 56, QUIET = 24, RULER = 36 };

/* All steps of a simulation are alike: their strip is low. */
static int overview_height(const struct view *view)
{
    if (view->layout.low)
        return 0;
    return view->tracks[0]->trace->header.kind == TRACE_SIMULATED ? QUIET : OVERVIEW;
}

struct places places_of(const struct view *view)
{
    int dot = view->scale, overview = overview_height(view);
    int top = (HEADER + overview + RULER) * dot, left = GUTTER * dot;
    int wide = view->width - left - 12 * dot;
    int legend = (view->layout.legend_lines * LINE + 8) * dot;
    int details = (view->layout.details_lines * LINE + 12) * dot, bottom = view->height - legend - details;
    return (struct places){.header = {0, 0, view->width, HEADER * dot},
                           .overview = {left, (HEADER + 6) * dot, wide, MAX(overview - 10, 0) * dot},
                           .ruler = {left, (HEADER + overview) * dot, wide, RULER * dot},
                           .rows = {left, top, wide, MAX(bottom - top, dot)},
                           .legend = {0, bottom, view->width, legend},
                           .details = {0, bottom + legend, view->width, details}};
}

double x_of(const struct view *view, double axis)
{
    struct box rows = places_of(view).rows;
    return rows.x + (axis - view->sight.from) / (view->sight.to - view->sight.from) * rows.w;
}

int pixel_of(const struct view *view, double axis)
{
    enum { FAR = 40000 };
    return (int)fmin(fmax(x_of(view, axis), -FAR), FAR);
}

int x_in_rows(const struct view *view, double axis)
{
    struct box rows = places_of(view).rows;
    return (int)fmin(fmax(x_of(view, axis), rows.x), rows.x + rows.w);
}

double axis_at(const struct view *view, double x)
{
    struct box rows = places_of(view).rows;
    return view->sight.from + (x - rows.x) / rows.w * (view->sight.to - view->sight.from);
}

void fill_clocks(struct view *view)
{
    const struct box rows = places_of(view).rows;
    for (int k = 0; k < view->n_tracks; k++) {
        view->clocks[k] = allocate((size_t)(rows.w + WIDEST_COLUMN), sizeof *view->clocks[k]);
        for (int i = 0; i < rows.w + WIDEST_COLUMN; i++)
            view->clocks[k][i] = clock_of(view->tracks[k], axis_at(view, rows.x + i));
    }
}

void free_clocks(struct view *view)
{
    for (int k = 0; k < view->n_tracks; k++) {
        free(view->clocks[k]);
        view->clocks[k] = NULL;
    }
}

bool is_in_sight(const struct view *view, const struct view_row *row)
{
    const struct box rows = places_of(view).rows;
    return row->y >= rows.y && row->y + row->height <= rows.y + rows.h;
}

const struct view_row *row_at(const struct view *view, int x, int y)
{
    struct box rows = places_of(view).rows;
    if (y < rows.y || y >= rows.y + rows.h || x >= rows.x + rows.w)
        return NULL;
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        bool is_at_height = y >= row->y && y < row->y + row->height;
        if (is_at_height && (x >= rows.x || !has_content(row)))
            return is_in_sight(view, row) ? row : NULL;
    }
    return NULL;
}

const struct view_row *row_of_lane(const struct view *view, int track, uint32_t lane)
{
    for (size_t i = 0; i < view->layout.n_rows; i++)
        if (view->layout.rows[i].kind == ROW_LANE && view->layout.rows[i].track == track &&
            view->layout.rows[i].index == lane)
            return &view->layout.rows[i];
    return NULL;
}

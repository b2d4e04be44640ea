/* places.c - the boxes of the picture; times to pixels and back; which row is where.
 *
 * Lengths are counted in dots of the font: a view of scale 2 has two pixels per dot, for screens with small pixels and
 * for the last row of a classroom.
 */
#include "places.h"

enum { GUTTER = 168, HEADER = 28, OVERVIEW = 56, QUIET = 24, RULER = 36, LINE = 18 };

/* All steps of a simulation are alike: their strip is low. */
static int overview_height(const struct view *v)
{
    return v->track[0]->trace->header.kind == TRACE_SIMULATED ? QUIET : OVERVIEW;
}

struct places places_of(const struct view *v)
{
    const int dot = v->scale, overview = overview_height(v);
    const int top = (HEADER + overview + RULER) * dot, left = GUTTER * dot;
    const int wide = v->width - left - 12 * dot;
    const int legend = (v->layout.legend_lines * LINE + 8) * dot;
    const int details = (v->layout.details_lines * LINE + 12) * dot, bottom = v->height - legend - details;
    return (struct places){.header = {0, 0, v->width, HEADER * dot},
                           .overview = {left, (HEADER + 6) * dot, wide, (overview - 10) * dot},
                           .ruler = {left, (HEADER + overview) * dot, wide, RULER * dot},
                           .rows = {left, top, wide, MAX(bottom - top, dot)},
                           .legend = {0, bottom, v->width, legend},
                           .details = {0, bottom + legend, v->width, details}};
}

double x_of(const struct view *v, double axis)
{
    struct box rows = places_of(v).rows;
    return rows.x + (axis - v->sight.from) / (v->sight.to - v->sight.from) * rows.w;
}

double axis_at(const struct view *v, double x)
{
    struct box rows = places_of(v).rows;
    return v->sight.from + (x - rows.x) / rows.w * (v->sight.to - v->sight.from);
}

bool is_in_sight(const struct view *v, const struct view_row *r)
{
    const struct box rows = places_of(v).rows;
    return r->y >= rows.y && r->y + r->height <= rows.y + rows.h;
}

/* Beside the rows there are only names; those of devices count as their rows. */
const struct view_row *row_at(const struct view *v, int x, int y)
{
    struct box rows = places_of(v).rows;
    if (y < rows.y || y >= rows.y + rows.h || x >= rows.x + rows.w)
        return NULL;
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        const struct view_row *r = &v->layout.row[i];
        if (y >= r->y && y < r->y + r->height && (x >= rows.x || !has_content(r)))
            return is_in_sight(v, r) ? r : NULL;
    }
    return NULL;
}

const struct view_row *row_of_lane(const struct view *v, int track, uint32_t lane)
{
    for (size_t i = 0; i < v->layout.n_rows; i++)
        if (v->layout.row[i].kind == ROW_LANE && v->layout.row[i].track == track && v->layout.row[i].index == lane)
            return &v->layout.row[i];
    return NULL;
}

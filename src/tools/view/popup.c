/* popup.c - boxes of text over the rows, each beside what it is about: help, a tooltip, the table of a selection. */
#include "draw.h"
#include "tools/command/table.h"

#include <math.h>

/* A line of a panel is one text, or cells: a tab is in front of each that stands left in its column, a vertical tab in
 * front of one that stands right. */
enum { MOST_COLUMNS = 12, COLUMN_GAP = 18, LINE = 18, BESIDE = 10, ABOVE = 4 };
struct columns {
    int width[MOST_COLUMNS];
    int wide, lines; /* of the whole text */
};

static bool has_cells(const char *line) { return *line == '\t' || *line == '\v'; }

/* The next line or cell of a text: what it is, without the tab before it, and what follows it. */
static const char *next_cell(const char *at, char cell[256])
{
    if (has_cells(at))
        at++;
    size_t n = strcspn(at, "\t\v\n");
    snprintf(cell, 256, "%.*s", (int)n, at);
    return at + n;
}

static struct columns measure_columns(const struct view *v, const char *text)
{
    struct columns c = {.lines = 1};
    char cell[256];
    int i = 0, sum = 0;
    for (const char *at = text; *at; at += *at == '\n') {
        const bool in_column = has_cells(at) && i < MOST_COLUMNS;
        at = next_cell(at, cell);
        if (in_column) {
            c.width[i] = MAX(c.width[i], width_of(v, cell));
            i++;
        } else {
            c.wide = MAX(c.wide, width_of(v, cell));
        }
        if (*at == '\n') {
            c.lines++;
            i = 0;
        }
    }
    for (i = 0; i < MOST_COLUMNS && c.width[i]; i++)
        sum += c.width[i] + COLUMN_GAP * v->scale;
    c.wide = MAX(c.wide, sum - COLUMN_GAP * v->scale);
    return c;
}

/* Draws one line, of cells or without; returns what follows it. */
static const char *put_cells(const struct view *v, const struct columns *c, int x, int y, int right, uint32_t colour,
                             const char *line)
{
    char cell[256];
    for (int i = 0; *line && *line != '\n'; i++) {
        const char kind = *line;
        line = next_cell(line, cell);
        const int wide = i < MOST_COLUMNS ? c->width[i] : 0;
        if (kind == '\v')
            put_text(v, AT_RIGHT, y, x + wide, colour, "%s", cell);
        else
            put_text(v, x, y, right, colour, "%s", cell);
        x += wide + COLUMN_GAP * v->scale;
    }
    return *line ? line + 1 : line;
}

static struct box box_around(const struct view *v, const struct columns *c)
{
    return (struct box){.w = c->wide + 2 * BESIDE * v->scale, .h = (c->lines * LINE + 2 * ABOVE) * v->scale};
}

static struct box measure_popup(const struct view *v, const char *text)
{
    const struct columns c = measure_columns(v, text);
    return box_around(v, &c);
}

void draw_popup(const struct view *v, int x, int y, const char *text)
{
    const struct columns c = measure_columns(v, text);
    const struct box size = box_around(v, &c);
    const int dot = v->scale, high = LINE * dot;
    x = MAX(MIN(x, v->width - size.w - 6 * dot), dot);
    y = MAX(MIN(y, v->height - size.h - 6 * dot), dot);
    fill(v, x - dot, y - dot, size.w + 2 * dot, size.h + 2 * dot, BORDER);
    fill(v, x, y, size.w, size.h, PANEL);
    y += (ABOVE + 1) * dot; /* letters begin some dots below the top of their line */
    for (const char *line = text; *line; y += high)
        line = put_cells(v, &c, x + BESIDE * dot, y, x + size.w, line == text ? ACCENT : INK, line);
}

/* ---- what is selected -------------------------------------------------------------------------------------------- */

/* How far two lengths overlap; below 0: how far they are apart. */
static int overlap(int a, int a_end, int b, int b_end) { return MIN(a_end, b_end) - MAX(a, b); }

/* Is the table about this row: a lane of the stretch, or the memory row of the place? */
static bool tells_of(const struct view *v, const struct view_row *r)
{
    const struct region *region = &v->selection.region;
    if (region->kind == STRETCH)
        return r->kind == ROW_LANE;
    return r->kind == ROW_MEMORY && r->track == region->track && r->index == region->device;
}

/* What is bad about a place of the table: above all the pixels that it hides of what it is about, then the columns
 * [left, right) of the stretch or place, then the way there.  Of a place's row nothing is to be hidden. */
static int64_t badness(const struct view *v, const struct box *b, int left, int right)
{
    int64_t hidden = 0;
    int apart = INT32_MAX;
    const int beside = overlap(b->x, b->x + b->w, left, right);
    const int hides = v->selection.region.kind == PLACE ? b->w : MAX(beside, 0);
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        const struct view_row *r = &v->layout.row[i];
        if (!tells_of(v, r) || !is_in_sight(v, r))
            continue;
        const int high = overlap(b->y, b->y + b->h, r->y, r->y + r->height);
        hidden += (int64_t)hides * MAX(high, 0);
        apart = MIN(apart, MAX(-high, 0));
    }
    return 10000 * hidden + 10 * MAX(beside, 0) + apart + MAX(-beside, 0);
}

/* Tries both sides of the stretch or place and both edges of the rows, below and above each row. */
struct box place_panel(const struct view *v, struct box size)
{
    enum { SIDES = 4 };
    const struct box rows = places_of(v).rows;
    const double *at = v->selection.region.at;
    const int gap = 6 * v->scale;
    const int left = (int)fmax(x_of(v, fmin(at[0], at[1])), rows.x) - gap;
    const int right = (int)fmin(x_of(v, fmax(at[0], at[1])), rows.x + rows.w) + gap;
    const int side[SIDES] = {right, left - size.w, rows.x + rows.w - size.w, rows.x};
    int64_t least = INT64_MAX;
    struct box best = size;
    for (size_t i = 0; i < 2 * v->layout.n_rows * SIDES; i++) {
        const struct view_row *r = &v->layout.row[i / SIDES / 2];
        const int y = i / SIDES % 2 ? r->y - size.h - gap : r->y + r->height + gap;
        struct box b = size;
        b.x = MAX(MIN(side[i % SIDES], rows.x + rows.w - size.w), rows.x);
        b.y = MAX(MIN(y, rows.y + rows.h - size.h), rows.y);
        const int64_t bad = badness(v, &b, left, right);
        if (bad < least) {
            best = b;
            least = bad;
        }
    }
    return best;
}

void draw_panel(const struct view *v)
{
    const struct box rows = places_of(v).rows;
    const struct table *t = v->selection.panel.table;
    const size_t most = (size_t)MAX(rows.h / (LINE * v->scale) - 5, 1);
    char *text = NULL;
    size_t size;
    if (!t)
        return;
    FILE *out = open_memstream(&text, &size);
    CHECK(out, "%zu rows", t->n);
    fprintf(out, "%s", v->selection.panel.title);
    print_cells(out, t, most);
    if (t->n > most)
        fprintf(out, "\n%zu more: --json shows them", t->n - most);
    fclose(out);
    const struct box at = place_panel(v, measure_popup(v, text));
    draw_popup(v, at.x, at.y, text);
    free(text);
}

void draw_tooltip(const struct view *v)
{
    const struct pick behind_gap = pick_after_gap(v);
    const struct pick *p = is_picked(&v->mouse.hover) ? &v->mouse.hover : &behind_gap;
    const int dot = v->scale;
    if (!is_picked(p) || v->mouse.drag != DRAG_NOTHING || v->selection.panel.table)
        return; /* a table is not covered */
    const struct view_row *row = row_at(v, v->mouse.x, v->mouse.y);
    char *task = describe_briefly(v, p);
    char *text = format_string("%s%s", p == &v->mouse.hover ? "" : "idle, then ", task);
    const struct box size = measure_popup(v, text);
    const int x = v->mouse.x + 16 * dot, y = row->y + row->height + 6 * dot; /* it hides neither task nor gap */
    draw_popup(v, x + size.w < v->width ? x : v->mouse.x - size.w - 8 * dot,
               y + size.h < v->height ? y : row->y - size.h - 6 * dot, text);
    free(text);
    free(task);
}

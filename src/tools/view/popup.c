/* popup.c - boxes of text over the rows, each beside what it is about: help, a tooltip, the table of a selection. */
#include "draw.h"
#include "planning/console/table.h"

#include <math.h>

/* A line of a panel is one text, or cells: a tab is in front of a cell that stands on the left of its column, and a
 * vertical tab in front of one on the right. */
enum { MOST_COLUMNS = 12, COLUMN_GAP = 18, BESIDE = 10, ABOVE = 4, PANEL_GAP = 6, LEAST_LINES = 8 };
struct columns {
    int width[MOST_COLUMNS];
    int wide, lines; /* the whole text's */
};

static bool has_cells(const char *line) { return *line == '\t' || *line == '\v'; }

/* The next line or cell of a text: what it is, without the tab before it, and what follows it. */
static const char *take_cell(const char *at, char cell[256])
{
    if (has_cells(at))
        at++;
    size_t n = strcspn(at, "\t\v\n");
    snprintf(cell, 256, "%.*s", (int)n, at);
    return at + n;
}

static struct columns measure_columns(const struct view *view, const char *text)
{
    struct columns columns = {.lines = 1};
    char cell[256];
    const char *at = text;
    int i = 0, sum = 0;
    while (*at) {
        bool in_column = has_cells(at) && i < MOST_COLUMNS;
        at = take_cell(at, cell);
        if (in_column) {
            columns.width[i] = MAX(columns.width[i], width_of(view, cell));
            i++;
        } else {
            columns.wide = MAX(columns.wide, width_of(view, cell));
        }
        if (*at == '\n') {
            columns.lines++;
            i = 0;
            at++;
        }
    }
    for (i = 0; i < MOST_COLUMNS && columns.width[i]; i++)
        sum += columns.width[i] + COLUMN_GAP * view->scale;
    columns.wide = MAX(columns.wide, sum - COLUMN_GAP * view->scale);
    return columns;
}

/* Draws one line, of cells or without; returns what follows it. */
static const char *put_cells(const struct view *view, const struct columns *columns, int x, int y, int right,
                             uint32_t colour, const char *line)
{
    char cell[256];
    for (int i = 0; *line && *line != '\n'; i++) {
        char kind = *line;
        line = take_cell(line, cell);
        int wide = i < MOST_COLUMNS ? columns->width[i] : 0;
        if (kind == '\v')
            put_text(view, AT_RIGHT, y, x + wide, colour, "%s", cell);
        else
            put_text(view, x, y, right, colour, "%s", cell);
        x += wide + COLUMN_GAP * view->scale;
    }
    return *line ? line + 1 : line;
}

static struct box box_around(const struct view *view, const struct columns *columns)
{
    return (struct box){.w = columns->wide + 2 * BESIDE * view->scale,
                        .h = (columns->lines * LINE + 2 * ABOVE) * view->scale};
}

static struct box measure_popup(const struct view *view, const char *text)
{
    const struct columns columns = measure_columns(view, text);
    return box_around(view, &columns);
}

void draw_popup(const struct view *view, int x, int y, const char *text)
{
    const struct columns columns = measure_columns(view, text);
    const struct box size = box_around(view, &columns);
    int dot = view->scale, high = LINE * dot;
    x = MAX(MIN(x, view->width - size.w - 6 * dot), dot);
    y = MAX(MIN(y, view->height - size.h - 6 * dot), dot);
    fill(view, x - dot, y - dot, size.w + 2 * dot, size.h + 2 * dot, BORDER);
    fill(view, x, y, size.w, size.h, PANEL);
    y += (ABOVE + 1) * dot; /* letters begin some dots below the top of their line */
    for (const char *line = text; *line; y += high)
        line = put_cells(view, &columns, x + BESIDE * dot, y, x + size.w, line == text ? ACCENT : INK, line);
}

/* ---- what is selected -------------------------------------------------------------------------------------------- */

/* How far two lengths overlap; below 0: how far they are apart. */
static int overlap(int first, int first_end, int second, int second_end)
{
    return MIN(first_end, second_end) - MAX(first, second);
}

/* Is the table about this row: a lane of the stretch, or the memory row of the place? */
static bool tells_of(const struct view *view, const struct view_row *row)
{
    const struct region *region = &view->selection.region;
    if (region->kind == STRETCH)
        return row->kind == ROW_LANE;
    return row->kind == ROW_MEMORY && row->track == region->track && row->index == region->device;
}

/* How bad a place of the table is.  Worst are pixels that it hides of the rows which it is about: of a stretch's rows
 * those in the columns [left, right), and of a place's row all.  Then other pixels of these columns count, and then the
 * distance from them. */
static int64_t badness(const struct view *view, const struct box *box, int left, int right)
{
    int64_t hidden = 0;
    int apart = INT32_MAX;
    int beside = overlap(box->x, box->x + box->w, left, right);
    int hides = view->selection.region.kind == PLACE ? box->w : MAX(beside, 0);
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        if (!tells_of(view, row) || !is_in_sight(view, row))
            continue;
        int high = overlap(box->y, box->y + box->h, row->y, row->y + row->height);
        hidden += (int64_t)hides * MAX(high, 0);
        apart = MIN(apart, MAX(-high, 0));
    }
    return 10000 * hidden + 10 * MAX(beside, 0) + apart + MAX(-beside, 0);
}

struct best_box {
    struct box box;
    int64_t badness;
};

/* Moves the box so far that it is in the rows, and takes it if it is better than *best.  left, right: see badness(). */
static void offer_place(const struct view *view, struct best_box *best, struct box box, int left, int right)
{
    const struct box rows = places_of(view).rows;
    box.x = MAX(MIN(box.x, rows.x + rows.w - box.w), rows.x);
    box.y = MAX(MIN(box.y, rows.y + rows.h - box.h), rows.y);
    int64_t bad = badness(view, &box, left, right);
    if (bad < best->badness)
        *best = (struct best_box){box, bad};
}

/* Tries both sides of the stretch or place and both edges of the rows, below and above each row. */
struct box place_panel(const struct view *view, struct box size)
{
    enum { SIDES = 4 };
    const struct box rows = places_of(view).rows;
    const double *at = view->selection.region.at;
    int gap = PANEL_GAP * view->scale;
    int left = x_in_rows(view, fmin(at[0], at[1])) - gap;
    int right = x_in_rows(view, fmax(at[0], at[1])) + gap;
    const int side[SIDES] = {right, left - size.w, rows.x + rows.w - size.w, rows.x};
    struct best_box best = {.badness = INT64_MAX};
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        int below = row->y + row->height + gap, above = row->y - size.h - gap;
        for (int k = 0; k < SIDES; k++)
            offer_place(view, &best, (struct box){side[k], below, size.w, size.h}, left, right);
        for (int k = 0; k < SIDES; k++)
            offer_place(view, &best, (struct box){side[k], above, size.w, size.h}, left, right);
    }
    return best.box;
}

/* The height that a table may have: that of all rows.  The table of a place must not hide the place's row, so it has
 * the height of the rows above or below, if this is not too little. */
static int room_for_panel(const struct view *view)
{
    const struct box rows = places_of(view).rows;
    int least = MIN(rows.h, LEAST_LINES * LINE * view->scale);
    int most = rows.h;
    if (view->selection.region.kind != PLACE)
        return MAX(most, least);
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        if (tells_of(view, row) && is_in_sight(view, row))
            most = MAX(row->y - rows.y, rows.y + rows.h - row->y - row->height) - PANEL_GAP * view->scale;
    }
    return MAX(most, least);
}

void draw_panel(const struct view *view)
{
    const struct panel *panel = &view->selection.panel;
    const struct table *table = panel->brief ? panel->brief : panel->table;
    /* Its title, its heading and the number of what is left out take a line each, its edges less than one. */
    size_t lines = (size_t)(room_for_panel(view) / (LINE * view->scale));
    size_t most = MIN(lines > 5 ? lines - 4 : 1, panel->n);
    struct begun_text begun;
    if (!table)
        return;
    FILE *out = begin_text(&begun);
    fprintf(out, "%s", panel->title);
    print_cells(out, table, most);
    if (table->n > most)
        fprintf(out, "\nand %zu smaller", table->n - most);
    char *text = end_text(&begun);
    const struct box at = place_panel(view, measure_popup(view, text));
    draw_popup(view, at.x, at.y, text);
    free(text);
}

void draw_tooltip(const struct view *view)
{
    const struct pick *hover = &view->mouse.hover;
    const struct pick after_gap = pick_after_gap(view);
    int dot = view->scale;
    bool has_text = is_picked(hover) || is_picked(&after_gap);
    if (!has_text || view->mouse.drag != DRAG_NOTHING || view->selection.panel.table)
        return; /* a table is not covered */
    const struct view_row *row = row_at(view, view->mouse.x, view->mouse.y);
    char *text = is_picked(hover) ? describe_briefly(view, hover) : describe_gap(view, &after_gap);
    const struct box size = measure_popup(view, text);
    int x = view->mouse.x + 16 * dot, y = row->y + row->height + 6 * dot; /* it hides neither task nor gap */
    draw_popup(view, x + size.w < view->width ? x : view->mouse.x - size.w - 8 * dot,
               y + size.h < view->height ? y : row->y - size.h - 6 * dot, text);
    free(text);
}

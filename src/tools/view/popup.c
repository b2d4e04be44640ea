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

/* The columns of the selected stretch or place, with a gap at each side. */
struct selected_columns {
    int left, right;
};

static struct selected_columns find_selected_columns(const struct view *view)
{
    const double *at = view->selection.region.at;
    int gap = PANEL_GAP * view->scale;
    return (struct selected_columns){.left = x_in_rows(view, fmin(at[0], at[1])) - gap,
                                     .right = x_in_rows(view, fmax(at[0], at[1])) + gap};
}

/* What a place of the table costs: most of all each pixel that it hides of the rows which it is about (of a stretch's
 * rows only the selected columns count), then each selected column that it covers anywhere, then each pixel between the
 * table and what is selected. */
static int64_t cost_of_place(const struct view *view, const struct box *box, const struct selected_columns *selected)
{
    enum { COST_OF_HIDDEN = 10000, COST_OF_COVERED = 10 }; /* a pixel of distance costs 1 */
    int64_t hidden = 0;
    int rows_apart = INT32_MAX;
    int overlapped = overlap(box->x, box->x + box->w, selected->left, selected->right);
    int covered = MAX(overlapped, 0), columns_apart = MAX(-overlapped, 0);
    int hidden_width = view->selection.region.kind == PLACE ? box->w : covered;
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        if (!tells_of(view, row) || !is_in_sight(view, row))
            continue;
        int high = overlap(box->y, box->y + box->h, row->y, row->y + row->height);
        hidden += (int64_t)hidden_width * MAX(high, 0);
        rows_apart = MIN(rows_apart, MAX(-high, 0));
    }
    return COST_OF_HIDDEN * hidden + COST_OF_COVERED * covered + rows_apart + columns_apart;
}

/* The cheapest place that has been tried. */
struct best_place {
    struct box box;
    int64_t cost;
};

/* Moves the box so far that it is in the rows, and takes it if it costs less than *best. */
static void try_place(const struct view *view, const struct selected_columns *selected, struct box box,
                      struct best_place *best)
{
    const struct box rows = places_of(view).rows;
    box.x = MAX(MIN(box.x, rows.x + rows.w - box.w), rows.x);
    box.y = MAX(MIN(box.y, rows.y + rows.h - box.h), rows.y);
    int64_t cost = cost_of_place(view, &box, selected);
    if (cost < best->cost)
        *best = (struct best_place){box, cost};
}

/* Tries places below and above each row: at both sides of what is selected, and at both edges of the rows. */
struct box place_panel(const struct view *view, struct box size)
{
    const struct box rows = places_of(view).rows;
    const struct selected_columns selected = find_selected_columns(view);
    const int lefts[] = {selected.right, selected.left - size.w, rows.x + rows.w - size.w, rows.x};
    int gap = PANEL_GAP * view->scale;
    struct best_place best = {.cost = INT64_MAX};
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        const int tops[] = {row->y + row->height + gap, row->y - size.h - gap};
        for (size_t t = 0; t < COUNT(tops); t++)
            for (size_t l = 0; l < COUNT(lefts); l++)
                try_place(view, &selected, (struct box){lefts[l], tops[t], size.w, size.h}, &best);
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

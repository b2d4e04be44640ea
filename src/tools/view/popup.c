/* popup.c - boxes of text over the rows, each beside what it is about: help, a tooltip, the table of what is selected. */
#include "draw.h"
#include "tools/command/table.h"

/* A line of a panel is one text, or cells: a tab is in front of each that stands left in its column, a vertical tab in
 * front of one that stands right. */
enum { MOST_COLUMNS = 12, COLUMN_GAP = 18 };
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

static struct box measure_popup(const struct view *v, const char *text)
{
    const struct columns c = measure_columns(v, text);
    return (struct box){.w = c.wide + 20 * v->scale, .h = c.lines * 18 * v->scale};
}

void draw_popup(const struct view *v, int x, int y, const char *text)
{
    const struct columns c = measure_columns(v, text);
    const struct box size = measure_popup(v, text);
    const int dot = v->scale, high = 18 * dot;
    x = MAX(MIN(x, v->width - size.w - 6 * dot), dot);
    y = MAX(MIN(y, v->height - size.h - 6 * dot), dot);
    fill(v, x - dot, y - dot, size.w + 2 * dot, size.h + 2 * dot, BORDER);
    fill(v, x, y, size.w, size.h, PANEL);
    for (const char *line = text; *line; y += high)
        line = put_cells(v, &c, x + 10 * dot, y + dot, x + size.w, line == text ? ACCENT : INK, line);
}

/* Draws the panel beside the selected place, below its row or above it; or in that half of the rows in which the
 * stretch is not. */
static void place_panel(const struct view *v, const char *text)
{
    const struct box rows = places_of(v).rows, size = measure_popup(v, text);
    const int gap = 6 * v->scale, x = (int)x_of(v, (v->selection.region.at[0] + v->selection.region.at[1]) / 2);
    const bool right = x < rows.x + rows.w / 2;
    int y = rows.y + gap;
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        const struct view_row *r = &v->layout.row[i];
        const bool is_it =
            r->kind == ROW_MEMORY && r->track == v->selection.region.track && r->index == v->selection.region.device;
        if (v->selection.region.kind != PLACE || !is_it)
            continue;
        y = r->y + r->height + gap;
        if (y + size.h > rows.y + rows.h)
            y = MAX(r->y - gap - size.h, rows.y);
    }
    if (v->selection.region.kind == PLACE)
        draw_popup(v, right ? x + 2 * gap : x - size.w - 2 * gap, y, text);
    else
        draw_popup(v, right ? rows.x + rows.w - size.w - gap : rows.x + gap, y, text);
}

void draw_panel(const struct view *v)
{
    const struct box rows = places_of(v).rows;
    const struct table *t = v->selection.panel.table;
    const size_t most = (size_t)MAX(rows.h / (18 * v->scale) - 4, 1);
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
    place_panel(v, text);
    free(text);
}

void draw_tooltip(const struct view *v)
{
    const struct pick behind_gap = pick_after_gap(v);
    const struct pick *p = is_picked(&v->mouse.hover) ? &v->mouse.hover : &behind_gap;
    const int dot = v->scale;
    const int x = v->mouse.x + 16 * dot, y = v->mouse.y + 18 * dot;
    if (!is_picked(p) || v->mouse.drag != DRAG_NOTHING)
        return;
    char *task = describe_briefly(v, p);
    char *text = format_string("%s%s", p == &v->mouse.hover ? "" : "idle, then ", task);
    const struct box size = measure_popup(v, text);
    draw_popup(v, x + size.w < v->width ? x : v->mouse.x - size.w - 8 * dot,
               y + size.h < v->height ? y : v->mouse.y - size.h - 8 * dot, text);
    free(text);
    free(task);
}

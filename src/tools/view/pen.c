/* pen.c - boxes and letters on the view's canvas, in the view's scale. */
#include "view.h"

#include <stdarg.h>

static void put_arguments(const struct view *v, enum font font, int x, int y, int right, uint32_t colour,
                          const char *format, va_list arguments)
{
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    if (x < 0)
        x = right - text_width(font, text);
    draw_text_within(v->canvas, x, y, font, text, colour, right);
}

void put_text(const struct view *v, int x, int y, int right, uint32_t colour, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_arguments(v, normal_font(v), x, y, right, colour, format, arguments);
    va_end(arguments);
}

void put_small(const struct view *v, int x, int y, int right, uint32_t colour, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_arguments(v, small_font(v), x, y, right, colour, format, arguments);
    va_end(arguments);
}

void shade(const struct view *v, int x, int y, int width, int height, uint32_t colour, double share)
{
    struct canvas *c = v->canvas;
    uint32_t part = (uint32_t)(256 * share);
    for (int row = MAX(y, 0); row < MIN(y + height, c->height); row++)
        for (int i = MAX(x, 0); i < MIN(x + width, c->width); i++) {
            uint32_t *pixel = &c->pixels[row * c->width + i];
            *pixel = mix_colours(*pixel, colour, part);
        }
}

void put_lines(const struct view *v, int x, int y, int right, int high, uint32_t first, uint32_t rest, const char *text)
{
    for (const char *line = text; *line; y += high) {
        int n = (int)strcspn(line, "\n");
        put_text(v, x, y, right, line == text ? first : rest, "%.*s", n, line);
        line += n;
        if (*line)
            line++;
    }
}

/* ---- panels ------------------------------------------------------------------------------------------------------ */

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

struct box measure_panel(const struct view *v, const char *text)
{
    const struct columns c = measure_columns(v, text);
    return (struct box){.w = c.wide + 20 * v->scale, .h = c.lines * 18 * v->scale};
}

void put_panel(const struct view *v, int x, int y, const char *text)
{
    const struct columns c = measure_columns(v, text);
    const struct box size = measure_panel(v, text);
    const int dot = v->scale, high = 18 * dot;
    x = MAX(MIN(x, v->width - size.w - 6 * dot), dot);
    y = MAX(MIN(y, v->height - size.h - 6 * dot), dot);
    fill(v, x - dot, y - dot, size.w + 2 * dot, size.h + 2 * dot, BORDER);
    fill(v, x, y, size.w, size.h, PANEL);
    for (const char *line = text; *line; y += high)
        line = put_cells(v, &c, x + 10 * dot, y + dot, x + size.w, line == text ? ACCENT : INK, line);
}

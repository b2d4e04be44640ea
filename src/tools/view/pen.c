/* pen.c - the hand that draws: on the view's canvas, with letters of its size. */
#include "view.h"

#include <stdarg.h>

void put_text(const struct view *v, int x, int y, int right, uint32_t colour, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    x = x < 0 ? right - width_of(v, text) : x;
    draw_text_within(v->canvas, x, y, v->scale, text, colour, right);
}

void shade(const struct view *v, int x, int y, int width, int height, uint32_t colour, double share)
{
    struct canvas *c = v->canvas;
    uint32_t part = (uint32_t)(256 * share);
    for (int row = MAX(y, 0); row < MIN(y + height, c->height); row++)
        for (int i = MAX(x, 0); i < MIN(x + width, c->width); i++) {
            uint32_t *pixel = &c->pixels[row * c->width + i];
            *pixel = mix(*pixel, colour, part);
        }
}

void put_lines(const struct view *v, int x, int y, int right, int high, uint32_t first, uint32_t rest, const char *text)
{
    for (const char *line = text; *line; y += high) {
        int n = (int)strcspn(line, "\n");
        put_text(v, x, y, right, line == text ? first : rest, "%.*s", n, line);
        line += line[n] ? n + 1 : n;
    }
}

void put_panel(const struct view *v, bool right, const char *text)
{
    struct box rows = places_of(v).rows;
    int u = v->scale, high = 18 * u, wide = 0, n = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1, n++)
        wide = MAX(wide, (int)strcspn(line, "\n"));
    int w = (wide * GLYPH_WIDTH + 20) * u, y = rows.y + 6 * u;
    int x = right ? MAX(rows.x + rows.w - w - 6 * u, 0) : rows.x + 6 * u;
    fill(v, x - u, y - u, w + 2 * u, n * high + 2 * u, BORDER);
    fill(v, x, y, w, n * high, PANEL);
    put_lines(v, x + 10 * u, y + u, x + w, high, ACCENT, INK, text);
}

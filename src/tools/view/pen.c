/* pen.c - boxes and letters on the view's canvas, in the view's scale. */
#include "view.h"

#include <stdarg.h>

void put_text(const struct view *v, int x, int y, int right, uint32_t colour, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (x < 0)
        x = right - width_of(v, text);
    draw_text_within(v->canvas, x, y, v->scale, text, colour, right);
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

void put_panel(const struct view *v, bool right, const char *text)
{
    struct box rows = places_of(v).rows;
    const int dot = v->scale, high = 18 * dot;
    int widest = 0, n = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        widest = MAX(widest, (int)strcspn(line, "\n"));
        n++;
    }
    int width = (widest * GLYPH_WIDTH + 20) * dot;
    int x = rows.x + 6 * dot, y = rows.y + 6 * dot;
    if (right)
        x = MAX(rows.x + rows.w - width - 6 * dot, 0);
    fill(v, x - dot, y - dot, width + 2 * dot, n * high + 2 * dot, BORDER);
    fill(v, x, y, width, n * high, PANEL);
    put_lines(v, x + 10 * dot, y + dot, x + width, high, ACCENT, INK, text);
}

/* pen.c - boxes and letters on the view's canvas, in the view's scale. */
#include "draw.h"

#include <stdarg.h>

static void put_arguments(const struct view *view, enum font font, int x, int y, int right, uint32_t colour,
                          const char *format, va_list arguments)
{
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    if (x < 0)
        x = right - text_width(font, text);
    draw_text_within(view->canvas, x, y, font, text, colour, right);
}

void put_text(const struct view *view, int x, int y, int right, uint32_t colour, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_arguments(view, normal_font(view), x, y, right, colour, format, arguments);
    va_end(arguments);
}

void put_small(const struct view *view, int x, int y, int right, uint32_t colour, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_arguments(view, small_font(view), x, y, right, colour, format, arguments);
    va_end(arguments);
}

void shade(const struct view *view, int x, int y, int width, int height, uint32_t colour, double share)
{
    struct canvas *canvas = view->canvas;
    uint32_t part = (uint32_t)(256 * share);
    for (int row = MAX(y, 0); row < MIN(y + height, canvas->height); row++)
        for (int i = MAX(x, 0); i < MIN(x + width, canvas->width); i++) {
            uint32_t *pixel = &canvas->pixels[row * canvas->width + i];
            *pixel = mix_colours(*pixel, colour, part);
        }
}

void shade_paper(const struct view *view, int x, int y, int width, int height, uint32_t colour, double share)
{
    struct canvas *canvas = view->canvas;
    const uint32_t shaded = blend(PAPER, colour, share);
    for (int row = MAX(y, 0); row < MIN(y + height, canvas->height); row++)
        for (int i = MAX(x, 0); i < MIN(x + width, canvas->width); i++)
            if (canvas->pixels[row * canvas->width + i] == PAPER)
                canvas->pixels[row * canvas->width + i] = shaded;
}

void hatch(const struct view *view, int x, int y, int width, int height, uint32_t colour, int apart)
{
    struct canvas *canvas = view->canvas;
    const uint32_t ground = blend(colour, PAPER, 0.85);
    for (int row = MAX(y, 0); row < MIN(y + height, canvas->height); row++)
        for (int i = MAX(x, 0); i < MIN(x + width, canvas->width); i++) {
            const bool striped = (i + row) / view->scale % apart == 0;
            canvas->pixels[row * canvas->width + i] = striped ? colour : ground;
        }
}

void draw_dashed_frame(const struct view *view, const struct box *box, int gap, uint32_t colour)
{
    enum { DASH = 5, THICK = 2 };
    const int dot = view->scale;
    const int right = box->x + box->w, bottom = box->y + box->h;
    for (int x = box->x; x < right; x += (DASH + gap) * dot) {
        const int wide = MIN(DASH * dot, right - x);
        fill(view, x, box->y, wide, THICK * dot, colour);
        fill(view, x, bottom - THICK * dot, wide, THICK * dot, colour);
    }
    for (int y = box->y; y < bottom; y += (DASH + gap) * dot) {
        const int high = MIN(DASH * dot, bottom - y);
        fill(view, box->x, y, THICK * dot, high, colour);
        fill(view, right - THICK * dot, y, THICK * dot, high, colour);
    }
}

void put_lines(const struct view *view, int x, int y, int right, int high, uint32_t first, uint32_t rest,
               const char *text)
{
    for (const char *line = text; *line; y += high) {
        int n = (int)strcspn(line, "\n");
        put_text(view, x, y, right, line == text ? first : rest, "%.*s", n, line);
        line += n;
        if (*line)
            line++;
    }
}

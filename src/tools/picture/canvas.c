/* canvas.c - boxes and lines. */
#include "canvas.h"
#include "trainer/base/module.h"

#include <math.h>

struct canvas *new_canvas(int width, int height)
{
    struct canvas *canvas = allocate(1, sizeof *canvas);
    canvas->width = width;
    canvas->height = height;
    canvas->pixels = allocate((size_t)width * (size_t)height, sizeof *canvas->pixels);
    return canvas;
}

void free_canvas(struct canvas *canvas)
{
    free(canvas->pixels);
    free(canvas);
}

uint32_t blend_colours(uint32_t a, uint32_t b, double share)
{
    return mix_colours(a, b, (uint32_t)(256 * fmin(fmax(share, 0), 1)));
}

void copy_down(struct canvas *canvas, int x, int y, int width, int height)
{
    const uint32_t *first = canvas->pixels + (int64_t)y * canvas->width + x;
    for (int row = y + 1; row < MIN(y + height, canvas->height); row++)
        memcpy(canvas->pixels + (int64_t)row * canvas->width + x, first, (size_t)width * sizeof *first);
}

enum { NARROW = 8 }; /* pixels: so few are written faster than copied */

void fill_rect(struct canvas *canvas, int x, int y, int width, int height, uint32_t colour)
{
    int64_t right = MIN((int64_t)x + width, canvas->width);
    int64_t bottom = MIN((int64_t)y + height, canvas->height);
    x = MAX(x, 0);
    y = MAX(y, 0);
    if (x >= right || y >= bottom)
        return;
    int64_t first = right - x > NARROW ? y + 1 : bottom; /* the row from which on they are copied: far faster */
    for (int64_t row = y; row < first; row++)
        for (int64_t i = x; i < right; i++)
            canvas->pixels[row * canvas->width + i] = colour;
    if (right - x > NARROW)
        copy_down(canvas, x, y, (int)right - x, (int)bottom - y);
}

/* A pixel per column, or per row where it is steep. */
void draw_line(struct canvas *canvas, int x0, int y0, int x1, int y1, uint32_t colour)
{
    int dx = x1 - x0, dy = y1 - y0;
    int n = MAX(abs(dx), abs(dy));
    n = MAX(n, 1); /* a point is a line too */
    for (int i = 0; i <= n; i++) {
        long x = lround(x0 + (double)dx * i / n);
        long y = lround(y0 + (double)dy * i / n);
        if (x >= 0 && x < canvas->width && y >= 0 && y < canvas->height)
            canvas->pixels[y * canvas->width + x] = colour;
    }
}

double tick_length(double least)
{
    double power = pow(10, floor(log10(least)));
    double times = least / power;
    if (times <= 1)
        return power;
    if (times <= 2)
        return power * 2;
    if (times <= 5)
        return power * 5;
    return power * 10;
}

const struct module module_picture = {
    .name = "picture",
};

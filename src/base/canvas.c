/* canvas.c - boxes and lines. */
#include "canvas.h"

#include <math.h>

struct canvas *new_canvas(int width, int height)
{
    struct canvas *c = allocate(1, sizeof *c);
    *c = (struct canvas){width, height, allocate((size_t)width * (size_t)height, sizeof *c->pixels)};
    return c;
}

void free_canvas(struct canvas *c)
{
    free(c->pixels);
    free(c);
}

void fill_rect(struct canvas *c, int x, int y, int width, int height, uint32_t colour)
{
    int64_t right = MIN((int64_t)x + width, c->width), bottom = MIN((int64_t)y + height, c->height);
    x = MAX(x, 0);
    y = MAX(y, 0);
    if (x >= right)
        return;
    uint32_t *first = c->pixels + (int64_t)y * c->width + x;
    for (int64_t i = 0; i < right - x && y < bottom; i++)
        first[i] = colour;
    for (int64_t row = 1; row < bottom - y; row++) /* far faster than pixel by pixel */
        memcpy(first + row * c->width, first, (size_t)(right - x) * sizeof *first);
}

/* Keep the part of from .. to that lies in [0, limit), as shares of the whole; false: none. */
static bool clip(double from, double to, double limit, double *first, double *last)
{
    double d = to - from;
    if (d == 0)
        return from > -0.5 && from < limit - 0.5;
    double a = (-0.5 - from) / d, b = (limit - 0.5 - from) / d;
    *first = MAX(*first, MIN(a, b));
    *last = MIN(*last, MAX(a, b));
    return *first <= *last;
}

/* A pixel per column, or per row where it is steep.  Steps outside of the canvas are left out, not only their pixels:
 * a line may be very long. */
void draw_line(struct canvas *c, int x0, int y0, int x1, int y1, uint32_t colour)
{
    double dx = (double)x1 - x0, dy = (double)y1 - y0, first = 0, last = 1;
    double n = MAX(MAX(dx, -dx), MAX(MAX(dy, -dy), 1));
    if (!clip(x0, x1, c->width, &first, &last) || !clip(y0, y1, c->height, &first, &last))
        return;
    for (int64_t i = (int64_t)(first * n); (double)i <= last * n + 1 && (double)i <= n; i++) {
        int64_t x = llround(x0 + dx * (double)i / n);
        int64_t y = llround(y0 + dy * (double)i / n);
        if (x >= 0 && x < c->width && y >= 0 && y < c->height)
            c->pixels[y * c->width + x] = colour;
    }
}

double tick_length(double least)
{
    double power = pow(10, floor(log10(least))), times = least / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

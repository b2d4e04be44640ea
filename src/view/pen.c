/* pen.c - the hand that draws: on the view's canvas, with letters of its size. */
#include "view.h"

void fill(const struct view *v, int x, int y, int width, int height, uint32_t colour)
{
    fill_rect(v->canvas, x, y, width, height, colour);
}

void put_text(const struct view *v, int x, int y, const char *text, uint32_t colour)
{
    draw_text(v->canvas, x, y, v->scale, text, colour);
}

void put_text_within(const struct view *v, int x, int y, const char *text, uint32_t colour, int right)
{
    draw_text_within(v->canvas, x, y, v->scale, text, colour, right);
}

int width_of(const struct view *v, const char *text) { return text_width(v->scale, text); }

void shade(const struct view *v, int x, int y, int width, int height, uint32_t colour, double share)
{
    struct canvas *c = v->canvas;
    for (int row = MAX(y, 0); row < MIN(y + height, c->height); row++)
        for (int i = MAX(x, 0); i < MIN(x + width, c->width); i++) {
            uint32_t *pixel = &c->pixels[row * c->width + i];
            *pixel = blend(*pixel, colour, share);
        }
}

/* stroke.c - smooth lines: a line covers each pixel as far as it reaches into it, so its edges show no steps.
 *
 * All is computed in whole numbers, sixteenths of a pixel, but for a division and a root, which every machine rounds
 * alike: the picture is the same bytes everywhere.
 */
#include "canvas.h"

#include <math.h>

/* How far the middle of a pixel, (x, y), is from the piece of line from a to b. */
static double distance(const struct spot *a, const struct spot *b, int x, int y)
{
    int64_t dx = b->x - a->x, dy = b->y - a->y;
    int64_t length2 = dx * dx + dy * dy;
    int64_t along = (x - a->x) * dx + (y - a->y) * dy;
    const struct spot *end = along <= 0 ? a : b;
    if (along > 0 && along < length2)
        return fabs((double)((x - a->x) * dy - (y - a->y) * dx)) / sqrt((double)length2);
    int64_t to_x = x - end->x, to_y = y - end->y;
    return sqrt((double)(to_x * to_x + to_y * to_y));
}

/* Notes how much the piece of line covers of each pixel of the clip, 0 to 255, where it is more than was noted. */
static void cover_piece(unsigned char *cover, const struct clip *clip, const struct spot *a, const struct spot *b,
                        int thick)
{
    int reach = thick / 2 + SPOT;
    int left = MAX((MIN(a->x, b->x) - reach) / SPOT, clip->x);
    int right = MIN((MAX(a->x, b->x) + reach) / SPOT, clip->x + clip->width - 1);
    int top = MAX((MIN(a->y, b->y) - reach) / SPOT, clip->y);
    int bottom = MIN((MAX(a->y, b->y) + reach) / SPOT, clip->y + clip->height - 1);
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++) {
            double inside = (thick + SPOT) / 2.0 - distance(a, b, x * SPOT, y * SPOT);
            unsigned char *noted = &cover[(y - clip->y) * clip->width + x - clip->x];
            *noted = (unsigned char)MAX((int)*noted, (int)(255 * fmin(fmax(inside, 0), SPOT) / SPOT));
        }
}

void draw_stroke(struct canvas *canvas, const struct clip *clip, const struct spot *spots, size_t n, int thick,
                 uint32_t colour)
{
    unsigned char *cover = allocate((size_t)clip->width * (size_t)clip->height, 1);
    for (size_t i = 0; i < n; i++)
        cover_piece(cover, clip, &spots[i > 0 ? i - 1 : 0], &spots[i], thick);
    for (int y = 0; y < clip->height; y++)
        for (int x = 0; x < clip->width; x++) {
            uint32_t *pixel = &canvas->pixels[(clip->y + y) * canvas->width + clip->x + x];
            unsigned char covered = cover[y * clip->width + x];
            if (covered)
                *pixel = mix_colours(*pixel, colour, covered + 1u);
        }
    free(cover);
}

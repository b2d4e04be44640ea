/* canvas.h - drawing into a plain array of pixels: boxes, lines, text.  What is drawn depends on nothing else, so a
 * picture is the same bytes on any machine, with a display or without. */
#ifndef CANVAS_H
#define CANVAS_H

#include "trainer/base/base.h"

/* ---- canvas.c ---------------------------------------------------------------------------------------------------- */

/* Colours are 0xffRRGGBB.  All that is drawn is cut at the edges; coordinates may lie anywhere. */
struct canvas {
    int width, height;
    uint32_t *pixels; /* [height * width], rows from the top */
};
struct canvas *new_canvas(int width, int height); /* zeroed; both at least 1 */
void free_canvas(struct canvas *canvas);
void fill_rect(struct canvas *canvas, int x, int y, int width, int height, uint32_t colour);

/* Copies the first line of a box into its other ones.  The box may only go beyond the lower edge. */
void copy_down(struct canvas *canvas, int x, int y, int width, int height);

/* Both ends belong to the line.  All of it is walked along, so the ends lie within some ten thousand pixels. */
void draw_line(struct canvas *canvas, int x0, int y0, int x1, int y1, uint32_t colour);

double tick_length(double least); /* from tick to tick of an axis: 1, 2 or 5 times a power of ten, at least `least` */

uint32_t blend_colours(uint32_t a, uint32_t b, double share); /* a where share is 0, b where it is 1 */

/* blend_colours() with the share in parts of 256. */
static inline uint32_t mix_colours(uint32_t a, uint32_t b, uint32_t part)
{
    uint32_t odd = ((a & 0xff00ff) * (256 - part) + (b & 0xff00ff) * part) >> 8 & 0xff00ff;
    uint32_t even = ((a & 0x00ff00) * (256 - part) + (b & 0x00ff00) * part) >> 8 & 0x00ff00;
    return 0xff000000 | odd | even;
}

/* ---- stroke.c: smooth lines -------------------------------------------------------------------------------------- */

enum { SPOT = 16 }; /* the middle of pixel (3, 5) is the spot (48, 80) */

struct spot {
    int x, y; /* in sixteenths of a pixel, at most some ten thousand pixels */
};

struct clip {
    int x, y, width, height; /* pixels */
};

/* Draws a line through n spots, as thick as that many sixteenths of a pixel; one spot alone is a disc.  What lies
 * outside of the clip is cut off; the clip lies in the canvas. */
void draw_stroke(struct canvas *canvas, const struct clip *clip, const struct spot *spots, size_t n, int thick,
                 uint32_t colour);

/* ---- font.c: UTF-8 with Latin and Greek letters and some symbols; others as U+FFFD ------------------------------- */

/* Two sizes, for screens of 1x and 2x.  A line of text is GLYPH_HEIGHT high, times 2 on those of 2x, and both sizes
 * have its baseline 12 rows below the top: they can stand side by side.  Digits have one width. */
enum font { SMALL_1X, NORMAL_1X, SMALL_2X, NORMAL_2X };
enum { GLYPH_HEIGHT = 16 };

/* Draws one line of text, whose upper left corner is at (x, y), and which the canvas cuts off. */
void draw_text(struct canvas *canvas, int x, int y, enum font font, const char *text, uint32_t colour);

struct text_place { /* of a line of text */
    int x, y;       /* its upper left corner */
    int right;      /* the column of pixels that it does not go beyond */
};

/* Draws one line of text there.  Text that would be wider ends in an ellipsis, or is left out where fewer than two
 * letters or digits would be in front of that. */
void draw_text_within(struct canvas *canvas, const struct text_place *place, enum font font, const char *text,
                      uint32_t colour);

int text_width(enum font font, const char *text); /* pixels */

/* ---- png.c ------------------------------------------------------------------------------------------------------- */

/* Publishes a picture, rows of 0xffRRGGBB from the top, as a PNG file.  Refuses a path such as "x.jpg". */
void write_png(const char *path, const uint32_t *pixels, int width, int height);

#endif

/* canvas.h - drawing into a plain array of pixels: boxes, lines, text.  What is drawn depends on nothing else, so a
 * picture is the same bytes on any machine, with a display or without. */
#ifndef CANVAS_H
#define CANVAS_H

#include "trainer/base/base.h"

/* Colours are 0xffRRGGBB.  All that is drawn is cut at the edges; coordinates may lie anywhere. */
struct canvas {
    int width, height;
    uint32_t *pixels; /* [height * width], rows from the top */
};
struct canvas *new_canvas(int width, int height); /* zeroed; both at least 1 */
void free_canvas(struct canvas *c);
void fill_rect(struct canvas *c, int x, int y, int width, int height, uint32_t colour);
/* Copies the first line of a box into its other ones.  The box may only go beyond the lower edge. */
void copy_down(struct canvas *c, int x, int y, int width, int height);
/* Both ends belong to the line.  All of it is walked along, so the ends lie within some ten thousand pixels. */
void draw_line(struct canvas *c, int x0, int y0, int x1, int y1, uint32_t colour);

double tick_length(double least); /* from tick to tick of an axis: 1, 2 or 5 times a power of ten, at least `least` */

/* ---- font.c: printable ASCII, others as '?' -------------------------------------------------------------------- */

enum { GLYPH_WIDTH = 8, GLYPH_HEIGHT = 16 }; /* times scale; a baseline is 12 rows below the top */
void draw_text(struct canvas *c, int x, int y, int scale, const char *text, uint32_t colour);
/* The same, up to `right`: text that would be wider ends in "..". */
void draw_text_within(struct canvas *c, int x, int y, int scale, const char *text, uint32_t colour, int right);
int text_width(int scale, const char *text);

/* ---- png.c ------------------------------------------------------------------------------------------------------- */

/* Publishes a picture, rows of 0xffRRGGBB from the top, as a PNG file. */
void write_png(const char *path, const uint32_t *pixels, int width, int height);

#endif

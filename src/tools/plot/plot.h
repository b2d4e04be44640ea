/* plot.h - the curves of `yard plot`, and drawing them (plot_draw.c). */
#ifndef PLOT_H
#define PLOT_H

#include "tools/picture/canvas.h"

#include <stdio.h>

struct point {
    double step, loss; /* finite */
};
struct series { /* the losses of one kind in one file */
    const char *path;
    const char *kind;       /* "train", "val", "floor" or "rate" */
    size_t run;             /* the number of the file, from 0 */
    bool val;               /* true: its kind is "val" */
    double bytes_per_token; /* of the run; 0: not known */
    struct point *point;    /* in order of the file */
    size_t n, cap;
};
struct plot {
    const char *unit;      /* what losses are measured in, as the picture writes it */
    struct series *series; /* those with losses */
    size_t n, cap;
};
/* Draws on the terminal, in columns and rows of characters: each series has a letter. */
void draw_on_terminal(FILE *out, const struct plot *p, int columns, int rows, bool colour);
/* Draws the same as pixels; the caller frees the canvas. */
struct canvas *draw_picture(const struct plot *p, int width, int height);

#endif

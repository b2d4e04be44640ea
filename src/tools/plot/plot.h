/* plot.h - the curves of `yard plot`: reading them, changing them, and drawing them. */
#ifndef PLOT_H
#define PLOT_H

#include "tools/picture/canvas.h"

#include <stdio.h>

struct point {
    double step, loss; /* finite */
};

/* What a series holds; a later kind is drawn over an earlier one. */
enum series_kind {
    EACH_STEP, /* the training losses below their mean */
    FLOOR,     /* the lowest loss of any model that sees as many tokens, at each step */
    RATE,      /* a bound below the floor, where the floor is not known */
    TRAIN,     /* the training losses, or their mean */
    VAL,       /* the validation losses */
    SERIES_KINDS
};

struct series { /* the losses of one kind in one file */
    const char *path;
    enum series_kind kind;
    size_t run_number;      /* that of the file, from 0 */
    double bytes_per_token; /* the run's; 0: not known */
    struct point *points;   /* in order of the file */
    size_t n, cap;
};

/* Is it a floor or a rate? */
static inline bool is_bound(const struct series *series) { return series->kind == FLOOR || series->kind == RATE; }

struct plot {
    char unit[64];         /* what losses are measured in, as the picture writes it */
    char *smoothing;       /* words for what is drawn, "mean of 16 steps"; NULL: single training losses */
    bool log;              /* is the axis of losses logarithmic? */
    bool one_floor;        /* is there one series of a floor, which is that of all runs? */
    struct series *series; /* those with losses */
    size_t n, cap;
};

/* ---- plot_read.c ------------------------------------------------------------------------------------------------- */

/* Adds the series of a log.  A file without losses ends the program. */
void read_run(struct plot *plot, size_t run, const char *path);

void empty_plot(struct plot *plot); /* frees what it has */

/* ---- plot_values.c: what is drawn of what was read.  Impossible wishes end the program --------------------------- */
const char *losses_are(size_t n); /* "loss is", or "losses are" */

/* Replaces training losses by means: of `by` steps around, or, below 1, exponential ones.  Single losses are kept as a
 * series of their own. */
void smooth_losses(struct plot *plot, double by);

void begin_at(struct plot *plot, double step);  /* leaves out points before that step, and series without later ones */
void choose_unit(struct plot *plot, bool bits); /* bits per byte, if asked for or needed to compare runs */

/* Prepares a logarithmic axis: losses become those above their floors, if each run has one. */
void take_logarithms(struct plot *plot);

/* The series of an earlier run whose curve lies under this one's, since all its points are the same; NULL: none. */
const struct series *same_before(const struct plot *plot, const struct series *series);

void merge_floors(struct plot *plot); /* keeps one floor where all runs have the same */

/* ---- plot_axes.c ------------------------------------------------------------------------------------------------- */

enum { MOST_TICKS = 32 };

struct plot_axis {
    double low, high;
    bool log;
    bool whole; /* are its ticks whole numbers? */
    double tick[MOST_TICKS];
    int n; /* how many ticks there are */
};

struct frame { /* where the curves lie in the canvas, and what they show */
    int x, y, width, height;
    struct plot_axis step, loss;
};

/* Sets what the frame shows, with about as many ticks as are asked for. */
void fit_axes(struct frame *frame, const struct plot *plot, int step_ticks, int loss_ticks);

/* The place of a step or loss in the canvas, in pixels times `parts`.  What the axis does not show lies outside. */
int x_of_step(const struct frame *frame, double step, int parts);
int y_of_loss(const struct frame *frame, double loss, int parts);

/* Is it a floor or rate so far below the curves that only the legend has it? */
bool is_below_axis(const struct frame *frame, const struct series *series);

/* How many losses lie below the axis, of the kind `first` and of later kinds. */
size_t count_below(const struct frame *frame, const struct plot *plot, enum series_kind first);
const char *tick_text(char out[NUMBER_TEXT], const struct plot_axis *axis, int i);

/* ---- plot_names.c ------------------------------------------------------------------------------------------------ */

/* The file of a series' run without its folder, unless another run's file has the same name. */
const char *run_name(const struct plot *plot, const struct series *of);

/* What a series is, and its last and lowest value.  Both functions return `out`. */
const char *series_title(char out[128], const struct plot *plot, const struct series *series);
const char *series_values(char out[128], const struct frame *frame, const struct series *series);

/* ---- plot_terminal.c --------------------------------------------------------------------------------------------- */

/* Draws on the terminal, in columns and rows of characters: with dots of Braille, eight in a character, or else with
 * letters alone.  Each run has a letter, small for training and capital for validation. */
void draw_on_terminal(FILE *out, const struct plot *plot, int columns, int rows, bool colour, bool braille);

/* ---- plot_picture.c ---------------------------------------------------------------------------------------------- */

/* Draws the plot as pixels; the caller frees the canvas. */
struct canvas *draw_picture(const struct plot *plot, int width, int height);

#endif

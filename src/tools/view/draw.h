/* draw.h - what draws the parts of the picture: bars, memory, the strip above, the legend below, texts. */
#ifndef DRAW_H
#define DRAW_H

#include "pick.h"

/* ---- bar_names.c ------------------------------------------------------------------------------------------------- */

enum { BAR_NAME = 128 }; /* bytes of a name in a bar, with its end */

/* Writes the first form of a task's name that a bar so many pixels wide has room for; else the last form, and returns
 * false. */
bool fit_name(const struct view *view, const struct track *track, uint32_t task, int width, enum font font,
              char out[BAR_NAME]);

/* Is such a text more than a letter that needs a number? */
bool has_number(const struct view *view, const struct track *track, uint32_t task, const char *text);

/* ---- bars.c, view_memory.c --------------------------------------------------------------------------------------- */

/* The width in pixels of a column, when the one before it held `n` bars or amounts per pixel.  Where these are many,
 * what a single pixel shows is chance, and half as many columns cost half the time.  At most WIDEST_COLUMN. */
static inline int column_width(const struct view *view, size_t n)
{
    if (n < 16)
        return 1;
    return (n < 48 ? 2 : 4) * view->scale;
}

/* Asks the CPU to bring these bytes into its cache, while the program goes on. */
static inline void fetch_ahead(const void *bytes) { __builtin_prefetch(bytes); }

/* Draws a lane, and adds what it draws to `contents`. */
void draw_lane(const struct view *view, const struct view_row *row, struct contents *contents);
void draw_lane_names(const struct view *view, const struct view_row *row); /* once more, over what lies over the bars */
void draw_memory(const struct view *view, const struct view_row *row, struct contents *contents);

/* The budget of the row's device; 0: it is not on the axis. */
double budget_in_sight(const struct view *view, const struct view_row *row);

void draw_axis_labels(const struct view *view, const struct view_row *row); /* beside its memory */

/* ---- pen.c ------------------------------------------------------------------------------------------------------- */

static inline void fill(const struct view *view, int x, int y, int width, int height, uint32_t colour)
{
    fill_rect(view->canvas, x, y, width, height, colour);
}

/* Covers a box with a veil: `share` says how much of its colour is the veil's. */
void shade_box(const struct view *view, const struct box *box, uint32_t colour, double share);

/* The same where the box is paper: what is drawn on it keeps its colours. */
void shade_paper(const struct view *view, const struct box *box, uint32_t colour, double share);

/* Fills a box with slanted stripes of a colour, a dot thick, on a pale ground of it; apart: dots from stripe to
 * stripe. */
void hatch_box(const struct view *view, const struct box *box, uint32_t colour, int apart);

/* A frame of dashes inside the box; gap: dots from dash to dash. */
void draw_dashed_frame(const struct view *view, const struct box *box, int gap, uint32_t colour);

/* Names are normal, what stands beside them is small. */
static inline enum font small_font(const struct view *view) { return view->scale > 1 ? SMALL_2X : SMALL_1X; }
static inline enum font normal_font(const struct view *view) { return view->scale > 1 ? NORMAL_2X : NORMAL_1X; }
static inline int width_of(const struct view *view, const char *text) { return text_width(normal_font(view), text); }
static inline int small_width(const struct view *view, const char *text) { return text_width(small_font(view), text); }

/* printf at (x, y), or with x AT_RIGHT (or any below 0) up to `right`.  What would go beyond `right` ends in an
 * ellipsis.  put_small() has smaller letters on the same baseline. */
enum { AT_RIGHT = -1 };
void put_text(const struct view *view, int x, int y, int right, uint32_t colour, const char *format, ...)
    PRINTF_LIKE(6, 7);
void put_small(const struct view *view, int x, int y, int right, uint32_t colour, const char *format, ...)
    PRINTF_LIKE(6, 7);

struct line_style {
    int right;            /* what would go beyond this column of pixels ends in an ellipsis */
    int high;             /* pixels from one line to the next */
    uint32_t first, rest; /* colours of the first line and of the others */
};
void put_lines(const struct view *view, int x, int y, const struct line_style *style, const char *text);

/* ---- popup.c ----------------------------------------------------------------------------------------------------- */

/* Draws a text in a box at (x, y), which is moved so that all of it is in the window.  A line may be cut into cells: a
 * tab is in front of a cell that stands on the left of its column, a vertical tab in front of one on the right. */
void draw_popup(const struct view *view, int x, int y, const char *text);

/* Where a box of that size hides the least of what is selected, a stretch or a place. */
struct box place_panel(const struct view *view, struct box size);

void draw_panel(const struct view *view); /* the text about the selected stretch or place */

/* Draws what is under the mouse, unless that moves something or a table is shown. */
void draw_tooltip(const struct view *view);

/* ---- strip.c ----------------------------------------------------------------------------------------------------- */

void draw_strip(const struct view *view); /* overview and ruler */

/* Draws a line where each step begins, through the rows [y, y + height). */
void draw_borders(const struct view *view, const struct track *track, int y, int height);

bool shows_borders(const struct view *view); /* are any in sight? */
bool shows_loss(const struct view *view);
uint32_t step_at_overview(const struct view *view, int x);

/* ---- marks.c ----------------------------------------------------------------------------------------------------- */

void draw_outline(const struct view *view, const struct pick *pick, uint32_t colour);
void outline_gap(const struct view *view, const struct pick *after, uint32_t colour); /* the gap before a task */
void draw_edges(const struct view *view);  /* edges from the selected task to those that it needed and that needed it */
void draw_region(const struct view *view); /* the lines of the stretch or place */
void shade_region(const struct view *view);                      /* what is between them */
bool shows_mark(const struct view *view);                        /* is a marked time in sight? */
bool is_between_marks(const struct view *view, int x, int wide); /* their line has the place of text from x on */
void draw_marks(const struct view *view);                        /* their lines */
void draw_cursor(const struct view *view);                       /* the mouse's line, over all lanes */

/* The times of the stretch, the marks and the mouse, in sight: each on a ground of its own on the ruler. */
struct shown_time {
    char text[AXIS_TEXT];
    int x, wide;
    uint32_t colour;
};

struct times {
    struct shown_time items[2 + MOST_MARKS + 1];
    size_t n;
};
bool is_covered(const struct times *times, int x, int wide); /* would one of them cover text from x on? */
struct times find_times(const struct view *view);
void draw_times(const struct view *view);
bool shows_blocker(const struct view *view); /* is a task in sight that is in the way of one that is moved? */
void draw_blocker(const struct view *view);  /* frames that task, and says below it why */

/* ---- legend.c ---------------------------------------------------------------------------------------------------- */

int count_legend_lines(const struct view *view);

/* The legend's signs: what lines, pale bars and frames are, as far as the picture has any. */
enum sign_shape {
    BOX,
    HATCHED_BOX,
    SPARSE_BOX, /* its stripes are far apart */
    LAYERED_BOX,
    LOW_BOX,
    PALE_BOX,
    FRAME,
    DASHED_FRAME,
    FLAT_LINE,
    DOTTED_LINE,
    DASHES,
    UPRIGHT_LINE,
    UPRIGHT_DASHES,
    HOLES
};

struct sign {
    const char *name;
    enum sign_shape shape;
    uint32_t colour;
};

enum { MOST_SIGNS = 19 };
size_t fill_signs(const struct view *view, struct sign all[MOST_SIGNS]); /* returns how many there are */
void draw_legend(const struct view *view, struct box box);

/* ---- frame.c ----------------------------------------------------------------------------------------------------- */

extern const char *const life_name[];                     /* by enum trace_life: "live", "paused", "stopped", ... */
void draw_view(struct view *view, struct canvas *canvas); /* lays out, and draws the whole picture */
void write_view(struct view *view, const char *path);     /* writes a PNG */

#endif

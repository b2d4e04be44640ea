/* view.h - the timeline: traces drawn into a canvas, which a window or a PNG shows.
 *
 *     track      a trace made drawable, which may grow
 *     view       opens, follows and closes one or two of them
 *     layout     where each row is; times to pixels and back
 *     bars       the rows of lanes: pixels are drawn, not records, so a million records cost what a thousand do
 *     memory     bytes per device and class over time
 *     strip      above the rows: a bar per step, the ruler
 *     marks      over the rows: edges, outlines, a measured stretch
 *     frame      around the rows: state, names of rows, legend, details, help
 *     pick       what is under the mouse, what is selected, its edges, the critical path
 *     move       a task of a step file that is dragged elsewhere
 *     details    the text about a task
 *     select     the text about a stretch of time, and about a place on a memory row
 *     pen        boxes and letters
 *     colours    the palette, and what a bar's colour means
 *     actions    the table of keys, and the mouse: all that changes a view
 *     window     the only file that uses SDL
 *
 * A view is drawn anew each time, from the traces and `struct view` alone: the same view gives the same pixels on any
 * machine.  The axis counts nanoseconds of modelled time from the start of one step, the *anchor*; a paced trace is
 * shown at the speed that it models, and the time in which a viewer paused the trainer is left out.  Two traces on one
 * axis share the anchor, so their steps start together.
 */
#ifndef VIEW_H
#define VIEW_H

#include "tools/board/board.h"
#include "tools/picture/canvas.h"
#include "tools/trace/follow.h"
#include "trainer/file/file.h"

/* ---- track.c --------------------------------------------------------------------------------------------------- */

struct track {
    const char *path;
    struct trace_follow *follow;
    const struct trace *trace;           /* the follower's trace */
    uint32_t list;                       /* the index of the trace's first task list that has run */
    const struct trace_step_list *steps; /* the steps of that list */
    uint64_t zero;                       /* the clock at 0 of the axis */
    uint64_t last;                       /* the clock at the last end */
    uint64_t now;                        /* the present clock, or that at which the trainer stands */
    bool stands;                         /* true: the trainer is paused, stopped or gone in the midst of its work */
    double *peak;                        /* [devices] the most bytes that tensors hold at a time */
    double highest_peak;                 /* the largest of all devices' peaks */
    lane_purpose *purpose;               /* [lanes] what the lane is for */
    uint32_t kind_colour[TRACE_ROLES];   /* the colour of each role of its tasks */
    int64_t *receiver;                   /* [tasks] the device that a copy's bytes are for, if it is another; or NONE */
    bool *folded;                        /* [devices] true: the device's lanes are drawn thin */
    struct problem *broken;              /* what became wrong with the file while it was followed, or NULL */
    struct board *board;                 /* the step file's board, on which tasks can be moved; a trace's: NULL */
};
/* Opens a trace, or with a board the list at `path`; ends the program if anything is wrong with it. */
struct track *open_track(const char *path, struct board *board);
void renew_track(struct track *track); /* reads another trace that has the path, or that the board shows */
void close_track(struct track *track);
bool is_living(const struct track *track); /* may there be something new? */
bool poll_track(struct track *track);      /* takes what is new; returns whether anything has changed */

/* The last step up to that one, else the first; NULL: there is none. */
const struct trace_step *find_step(const struct track *track, uint32_t step);
/* The last step that computes (batches are fetched ahead, for steps that have not begun); NULL: there is none. */
const struct trace_step *newest_step(const struct track *track);
double step_ns(const struct track *track, const struct trace_step *s); /* from where its work begins to the next's */
double axis_of(const struct track *track, uint64_t clock);             /* nanoseconds on the axis */
uint64_t clock_of(const struct track *track, double axis);             /* the inverse, clamped */

/* ---- the view -------------------------------------------------------------------------------------------------- */

/* OFF_WINDOW: the mouse's place when it is not on the window. */
enum { MAX_TRACKS = 2, OFF_WINDOW = -1, LEAST_WIDTH = 800, LEAST_HEIGHT = 400, MOST_PIXELS = 16384 };
enum colour_by { BY_KIND, BY_LAYER, BY_MICRO, COLOUR_WAYS };

enum drag { DRAG_NOTHING, DRAG_ROWS, DRAG_OVERVIEW, DRAG_RULER, DRAG_TASK };
struct pick { /* a record of a track */
    int track;
    int64_t record;           /* the index in the trace, or NONE */
    struct trace_record copy; /* a copy of it, with which it is found again when the trace has grown */
};
enum region_kind { NO_REGION, STRETCH, PLACE };
struct region { /* the selected stretch of time, or the selected place on a memory row: the panel shows it */
    enum region_kind kind;
    double at[2]; /* a stretch's ends on the axis, in either order; a place has the same value twice */
    int track;    /* the place's */
    uint32_t device;
};
struct panel {           /* the text about the selected stretch or place */
    struct table *table; /* NULL: nothing is selected */
    char *title;
    double bytes; /* a stretch: bytes that links move; a place: bytes that are held */
};
enum row_kind { ROW_DEVICE, ROW_LANE, ROW_MEMORY };
struct view_row {
    enum row_kind kind;
    int track;
    uint32_t index; /* the lane, or the device */
    int y, height;
};
struct bar_spot { /* where a task's bar is in a step */
    uint32_t lane;
    double middle; /* on the axis; NAN: the task does not run in the step */
};
struct gesture { /* a task of a board is dragged */
    int track;
    uint32_t step, task;
    double grip;           /* on the axis, from the middle of the task's bar to where the mouse took it up */
    struct bar_spot *spot; /* [tasks] where the bars were when it was taken up */
    bool tries;            /* true: a move has been tried */
    bool refused;          /* true: the last move that was tried was refused */
    struct move tried;
    struct pick blocker; /* the task that is in the way */
};
static inline bool has_content(const struct view_row *r) { return r->kind == ROW_LANE || r->kind == ROW_MEMORY; }
struct view {
    struct canvas *canvas; /* NULL unless the view is being drawn */
    struct track *track[MAX_TRACKS];
    int n_tracks;
    int n_layers, n_micros; /* the numbers of layers and micro-batches in the traces */
    bool has_role[TRACE_ROLES];

    int width, height; /* pixels */
    int scale;         /* 1 or 2: pixels per dot, the unit of lengths */
    double from, to;   /* the part of the axis that is in sight */
    uint32_t anchor;   /* the step that starts at 0 */
    int scroll;        /* how many pixels the rows are moved up */
    enum colour_by colour;
    bool still; /* true: it is a picture in a file, which has no keys and no mouse */
    bool help, hide_memory;
    bool show_causes; /* true: gaps have the colours of what they waited for */
    bool follow;      /* true: what runs now stays in sight */
    bool zoomed;      /* true: the user has chosen how long a time is in sight */
    bool steps;       /* true: the trainer was asked for a task or a step, which is to be shown */

    struct pick hover, selected;
    bool critical; /* true: only the critical path of the anchor step is lit */
    size_t *path;  /* the records of that path in the first trace, ascending */
    size_t n_path, cap_path;
    char search[32]; /* only tasks with this in their names are lit; "": all */
    bool typing;     /* true: keys are added to `search` */
    struct region region;
    struct panel panel;
    int mouse_x, mouse_y; /* pixels, or OFF_WINDOW */
    enum drag drag;       /* what the held button moves */
    bool moved;           /* true: the mouse has moved since the button went down */
    struct gesture gesture;
    const char *save_as;      /* the file for a list that was changed; NULL: one beside the list's file */
    enum exit_code exit_code; /* the result of the last time that it was saved */

    struct view_row *row; /* top to bottom */
    size_t n_rows, cap_rows;
    int rows_height; /* the height of all rows, also of those out of sight */
    int good_height; /* what it would be if they had all the room that they want */
    int legend_lines, details_lines;
    char message[160]; /* shown until the next key */
    bool quit;
};
/* "A " or "B ", to stand before other words; "" with one trace. */
static inline const char *name_of_track(const struct view *v, int track)
{
    if (v->n_tracks == 1)
        return "";
    return track == 0 ? "A " : "B ";
}
#define SAY(v, ...) (void)snprintf((v)->message, sizeof(v)->message, __VA_ARGS__)
/* The caller keeps the tracks, and closes them. */
struct view *open_view(struct track *const *tracks, int n, int width, int height, int scale);
bool is_followed(const struct view *v); /* may there be something new? */
bool poll_view(struct view *v);         /* takes what is new in its traces; returns whether to draw it again */
void refresh(struct view *v);           /* updates what follows from the selection, the traces and the mouse */
/* Does the picture stand still, although it follows the run, because the mouse is on the rows? */
bool is_frozen(const struct view *v);

/* ---- layout.c -------------------------------------------------------------------------------------------------- */

struct box {
    int x, y, w, h;
};
static inline bool is_inside(const struct box *b, int x, int y)
{
    return x >= b->x && x < b->x + b->w && y >= b->y && y < b->y + b->h;
}
struct places {
    struct box header, overview, ruler, rows, legend, details;
};
struct places places_of(const struct view *v);
void lay_out(struct view *v);       /* fills v->row */
void choose_height(struct view *v); /* such that all rows have the height at which they read best */
bool is_in_sight(const struct view *v, const struct view_row *r); /* from top to bottom: rows are not cut */
double x_of(const struct view *v, double axis);
double axis_at(const struct view *v, double x);
const struct view_row *row_at(const struct view *v, int x, int y); /* NULL outside of the rows */
const struct view_row *row_of_lane(const struct view *v, int track, uint32_t lane);
void look_at(struct view *v, double from, double to);
void look_at_step(struct view *v, uint32_t step); /* makes it the anchor */
void look_at_all(struct view *v);
void look_at_end(struct view *v);

/* ---- bars.c, view_memory.c ---------------------------------------------------------------------------------------*/

/* The width in pixels of a column, when the one before it held `n` bars or amounts per pixel.  Where these are many,
 * what a single pixel shows is chance, and half as many columns cost half the time. */
static inline int column_width(const struct view *v, size_t n) { return n < 16 ? 1 : 2 * v->scale; }
/* names_only: once more the names, over what has been drawn over the bars. */
void draw_lane(const struct view *v, const struct view_row *row, bool names_only);
void draw_memory(const struct view *v, const struct view_row *row);
/* The budget of the row's device; 0: it is not on the axis. */
double budget_in_sight(const struct view *v, const struct view_row *row);
void draw_axis_labels(const struct view *v, const struct view_row *row); /* beside its memory */

/* ---- pen.c, legend.c, strip.c, marks.c, frame.c -------------------------------------------------------------- */

static inline void fill(const struct view *v, int x, int y, int width, int height, uint32_t colour)
{
    fill_rect(v->canvas, x, y, width, height, colour);
}
/* Covers a box with a veil: `share` says how much of its colour is the veil's. */
void shade(const struct view *v, int x, int y, int width, int height, uint32_t colour, double share);
/* Names are normal, what stands beside them is small. */
static inline enum font small_font(const struct view *v) { return v->scale > 1 ? SMALL_2X : SMALL_1X; }
static inline enum font normal_font(const struct view *v) { return v->scale > 1 ? NORMAL_2X : NORMAL_1X; }
static inline int width_of(const struct view *v, const char *text) { return text_width(normal_font(v), text); }
static inline int small_width(const struct view *v, const char *text) { return text_width(small_font(v), text); }
/* printf at (x, y), or with x AT_RIGHT (or any below 0) up to `right`.  What would go beyond `right` ends in an
 * ellipsis.  put_small() has smaller letters on the same baseline. */
enum { AT_RIGHT = -1 };
void put_text(const struct view *v, int x, int y, int right, uint32_t colour, const char *format, ...)
    PRINTF_LIKE(6, 7);
void put_small(const struct view *v, int x, int y, int right, uint32_t colour, const char *format, ...)
    PRINTF_LIKE(6, 7);
/* Draws a text's lines, `high` pixels each, with a colour for the first one and one for the rest. */
void put_lines(const struct view *v, int x, int y, int right, int high, uint32_t first, uint32_t rest,
               const char *text);
/* Draws whole lines in a box at (x, y), moved so far that it is inside of the window.  In a line of cells a tab is in
 * front of each that stands left in its column, and a vertical tab in front of one that stands right. */
void put_panel(const struct view *v, int x, int y, const char *text);
struct box measure_panel(const struct view *v, const char *text); /* its width and height */

int count_legend_lines(const struct view *v);
void draw_legend(const struct view *v, struct box b);
void draw_strip(const struct view *v); /* overview and ruler */
/* Draws a line where each step begins, through the rows [y, y + height). */
void draw_borders(const struct view *v, const struct track *track, int y, int height);
uint32_t step_at_overview(const struct view *v, int x);
void draw_outline(const struct view *v, const struct pick *p, uint32_t colour);
void draw_links(const struct view *v); /* edges from the selected task to those that it needed and that needed it */
void draw_region(const struct view *v);
void draw_cursor(const struct view *v);            /* the time at the mouse, over all lanes; what is under it */
extern const char *const life_name[];              /* by enum trace_life: "live", "paused", "stopped", ... */
void draw_view(struct view *v, struct canvas *c);  /* lays out, and draws the whole picture */
void write_view(struct view *v, const char *path); /* writes a PNG */

/* ---- pick.c ---------------------------------------------------------------------------------------------------- */

struct link_drawn {
    size_t producer, consumer; /* records */
};
struct links {
    struct link_drawn *link;
    size_t n, cap;
};
struct pick pick_of(const struct view *v, int track, int64_t record);
bool is_picked(const struct pick *p);
struct pick pick_at(const struct view *v, int x, int y);
struct pick pick_after_gap(const struct view *v);                       /* the bar after the gap under the mouse */
void pick_neighbour(const struct view *v, struct pick *p, int by);      /* +1 or -1 along its lane */
struct links links_of_pick(const struct view *v, const struct pick *p); /* the caller frees .link */
void find_critical_path(struct view *v);
bool is_lit(const struct view *v, int track, size_t record);

/* ---- move.c: on a track with a board ---------------------------------------------------------------------------- */

void take_up(struct view *v, const struct pick *p);
void carry_task(struct view *v); /* moves the task to the mouse; the list is simulated again if the place has changed */
void draw_blocker(const struct view *v);
void put_down(struct view *v);
void call_off(struct view *v); /* puts the task back where it was */
void undo_last_move(struct view *v);
void save_list(struct view *v);

/* ---- details.c ------------------------------------------------------------------------------------------------- */

char *format_ns(char out[32], double ns); /* "812 ns", "12.3 us", "1.016 ms", "4.52 s" */
/* At most three lines; the caller frees them. */
char *describe_record(const struct trace *t, size_t record);
char *describe_step(const struct view *v);
/* What is known of a task as lines of cells, as a panel takes them: also from where to where, and for whom. */
char *describe_briefly(const struct view *v, const struct pick *p);
/* The text about the gap under the mouse, or else about the task there or the selected one, or else about the step. */
char *find_details(const struct view *v);
int count_details_lines(const struct view *v); /* a picture has as many as it needs, a window always three */

/* ---- select.c --------------------------------------------------------------------------------------------------- */

void select_again(struct view *v); /* updates v->panel after the selection or the trace has changed */
void draw_panel(const struct view *v);

/* ---- colours.c ------------------------------------------------------------------------------------------------- */

enum {
    PAPER = 0xffffffff,
    PANEL = 0xfff1f3f6,
    INK = 0xff14181f,
    SOFT = 0xff5b6573,
    RULE = 0xffd3d9e1,
    BORDER = 0xff9aa5b4,
    ACCENT = 0xffc2185b
};
uint32_t readable_on(uint32_t colour); /* black or white */
uint32_t kind_colour(const char *role);
uint32_t task_colour(const struct view *v, const struct track *track, uint32_t task);
uint32_t class_colour(size_t class); /* a class of memory's */
uint32_t cause_colour(enum cause cause);
void count_colours(struct view *v); /* counts layers, micro-batches and roles, when a trace is new */
/* The legend of the view's way of colouring: a name for number i ("": not in use) and its colour.  colour_name()
 * returns false when there is no number i. */
extern const char *const colour_way_name[COLOUR_WAYS];
bool colour_name(const struct view *v, size_t i, char out[64]);
uint32_t colour_number(const struct view *v, int64_t i);

/* ---- actions.c ------------------------------------------------------------------------------------------------- */

struct action {
    const char *keys; /* names, with a space between: "f", "left a" */
    const char *help;
    void (*run)(struct view *v, double by); /* moves something by that amount; NULL: it does `act` */
    double by;
    void (*act)(struct view *v);
};
extern const struct action actions[];
extern const size_t n_actions;
/* Presses a key by its name: a character, or "left", "enter", ...; while a search is typed, characters go there. */
void press_key(struct view *v, const char *key);
void move_mouse(struct view *v, int x, int y);
void press_button(struct view *v, bool measure); /* at the mouse's place; `measure`: with the shift key */
void release_button(struct view *v);
void turn_wheel(struct view *v, double notches, bool scroll); /* zooms at the mouse, or moves the rows */
/* Presses keys and moves the mouse as a text says: "f k /mlp enter click:600,300". */
void run_script(struct view *v, const char *script);

/* ---- window.c -------------------------------------------------------------------------------------------------- */

/* Shows the view until it is quit, with letters of a size that suits the screen. */
void show_window(struct view *v);

#endif

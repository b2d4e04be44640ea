/* view.h - the timeline: traces drawn into a canvas, which a window or a PNG shows.
 *
 *     track      a trace made drawable, which may grow
 *     view       opens, follows and closes one or two of them
 *     layout     which row is where; the way between times and pixels
 *     bars       the rows of lanes: pixels are drawn, not records, so a million records cost what a thousand do
 *     memory     bytes per device and class over time
 *     strip      above the rows: a bar per step, the ruler
 *     marks      over the rows: edges, outlines, a measured stretch
 *     frame      around them: state, names of rows, legend, details, help
 *     pick       what is under the mouse, what is selected, its edges, the critical path
 *     move       a task of a step file that is dragged elsewhere
 *     details    what is said about a task
 *     select     what is said about a stretch of time, and about a place on a memory row
 *     pen        boxes and letters
 *     colours    the palette, and what a bar's colour means
 *     actions    the table of keys, and the mouse: all that changes a view
 *     window     the only file that knows SDL
 *
 * A view is drawn from scratch, from the traces and `struct view` alone: the same view gives the same pixels anywhere.
 * The axis counts nanoseconds of modelled time from the start of one step, the *anchor*; a paced trace is shown at the
 * speed it models, and the time in which a viewer held the trainer is left out.  Two traces on one axis share the
 * anchor, so their steps start together.
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
    const struct trace *trace;           /* the follower's */
    uint32_t list;                       /* its first task list that has run, ... */
    const struct trace_step_list *steps; /* ... and the steps of that */
    uint64_t zero;                       /* the clock at 0 of the axis */
    uint64_t last;                       /* the clock at the last end */
    uint64_t now;                        /* the clock of now, or where the trainer stands */
    bool stands;                         /* it is paused, stopped or gone in the midst of its work */
    double *peak, highest_peak;          /* [devices] bytes that tensors hold at most; of all devices */
    lane_purpose *purpose;               /* [lanes] what each is for */
    uint32_t kind_colour[TRACE_ROLES];   /* of the roles of its tasks */
    bool *folded;                        /* [devices] its lanes are thin */
    struct problem *broken;              /* the file went bad while it was followed */
    struct board *board;                 /* of a step file: its tasks can be moved; else NULL */
};
/* What is wrong with it ends the program.  The path of a trace; or, of a board, that of its list. */
struct track *open_track(const char *path, struct board *board);
void renew_track(struct track *k); /* what the board shows is another trace by now */
void close_track(struct track *k);
bool is_living(const struct track *k); /* may there be something new? */
bool poll_track(struct track *k);      /* takes what is new; has anything changed? */

const struct trace_step *find_step(const struct track *k,
                                   uint32_t step); /* the last one up to it, else the first; NULL */
/* The last that computes: batches are fetched ahead, for steps that have not begun; NULL. */
const struct trace_step *newest_step(const struct track *k);
double step_ns(const struct track *k, const struct trace_step *s); /* from where its work begins to the next's */
double axis_of(const struct track *k, uint64_t clock);             /* ns on the axis */
uint64_t clock_of(const struct track *k, double axis);             /* the inverse, clamped */

/* ---- the view -------------------------------------------------------------------------------------------------- */

enum { MAX_TRACKS = 2, NOTHING = -1, LEAST_WIDTH = 800, LEAST_HEIGHT = 400 };
enum colour_by { BY_KIND, BY_LAYER, BY_MICRO, COLOUR_WAYS };

enum drag { DRAG_NOTHING, DRAG_ROWS, DRAG_OVERVIEW, DRAG_RULER, DRAG_TASK };
struct pick { /* a record of a track */
    int track;
    int64_t record;           /* NOTHING */
    struct trace_record copy; /* of it, to find it again when the trace has grown */
};
enum region_kind { NO_REGION, STRETCH, PLACE };
struct region { /* of which the panel tells: a stretch of time, or a place on a memory row */
    enum region_kind kind;
    double at[2]; /* of the axis: the ends in either order; of a place twice the same */
    int track;    /* of a place */
    uint32_t device;
};
struct panel {           /* what is said of the selected stretch or place */
    struct table *table; /* NULL: nothing */
    char *title;
    double bytes; /* that links move; that are held */
};
enum row_kind { ROW_DEVICE, ROW_LANE, ROW_MEMORY };
struct row {
    enum row_kind kind;
    int track;
    uint32_t index; /* of the lane, or the device */
    int y, height;
};
struct spot { /* of a task in a step: its lane, and where the middle of its bar is, on the axis */
    uint32_t lane;
    double middle; /* NAN: it does not run in the step */
};
struct gesture { /* a task of a board is dragged */
    int track;
    uint32_t step, task;
    double grip;         /* from the middle of its bar to the mouse that took it up, on the axis */
    struct spot *spot;   /* [tasks] when it was taken up */
    bool tries, refused; /* has a move been tried, and was it refused? */
    struct move tried;
    struct pick blocker; /* the task that is in the way */
};
static inline bool has_content(const struct row *r) { return r->kind == ROW_LANE || r->kind == ROW_MEMORY; }
struct view {
    struct canvas *canvas; /* while it is drawn */
    struct track *track[MAX_TRACKS];
    int n_tracks;
    int n_layers, n_micros; /* of the first trace */
    bool has_role[TRACE_ROLES];

    int width, height; /* pixels */
    int scale;         /* pixels per dot of the font */
    double from, to;   /* of the axis */
    uint32_t anchor;   /* the step that starts at 0 */
    int scroll;        /* pixels that the rows are moved up */
    enum colour_by colour;
    bool help, hide_memory;
    bool show_causes; /* gaps have the colours of what they waited for */
    bool follow;      /* what runs now stays in sight */
    bool zoomed;      /* how long a time is in sight was chosen */
    bool steps;       /* the trainer was asked for a task or a step, which is to be seen */

    struct pick hover, selected;
    bool critical; /* only the critical path of the anchor step is lit: */
    size_t *path;  /* its records in the first trace, ascending */
    size_t n_path, cap_path;
    char search[32]; /* only tasks with this in their names are lit; "": all */
    bool typing;     /* keys go into `search` */
    struct region region;
    struct panel panel;
    int mouse_x, mouse_y;
    enum drag drag; /* what the held button moves */
    bool moved;     /* since it went down */
    struct gesture gesture;
    const char *save_as;      /* where a list that was changed goes; NULL: beside its file */
    enum exit_code exit_code; /* of the last time that it was saved */

    struct row *row; /* top to bottom */
    size_t n_rows, cap_rows;
    int rows_height;   /* of all, also those out of sight */
    char message[160]; /* until the next key */
    bool quit;
};
static inline const char *name_of_track(const struct view *v, int track) /* before other words */
{
    return v->n_tracks == 1 ? "" : track ? "B " : "A ";
}
#define SAY(v, ...) (void)snprintf((v)->message, sizeof(v)->message, __VA_ARGS__)
/* The tracks stay the caller's. */
struct view *open_view(struct track *const *tracks, int n, int width, int height, int scale);
bool is_followed(const struct view *v); /* may there be something new? */
bool poll_view(struct view *v);         /* takes what is new in its traces; is there anything to redraw? */
void refresh(struct view *v);           /* what depends on the selection, the traces and where the mouse is */
/* What is followed stands still under the mouse, unless it was asked for. */
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
void lay_out(struct view *v); /* fills v->row */
double x_of(const struct view *v, double axis);
double axis_at(const struct view *v, double x);
const struct row *row_at(const struct view *v, int x, int y); /* NULL outside of the rows */
const struct row *row_of_lane(const struct view *v, int track, uint32_t lane);
void look_at(struct view *v, double from, double to);
void look_at_step(struct view *v, uint32_t step); /* it becomes the anchor */
void look_at_all(struct view *v);
void look_at_end(struct view *v);

/* ---- bars.c, memory.c ------------------------------------------------------------------------------------------- */

/* Pixels of a column, when the one before it held `n` bars or amounts per pixel.  Where these are many, what a single
 * pixel shows is chance, and half as many columns cost half the time. */
static inline int column_width(const struct view *v, size_t n) { return n < 16 ? 1 : 2 * v->scale; }
void draw_lane(const struct view *v, const struct row *row);
void draw_memory(const struct view *v, const struct row *row);

/* ---- pen.c, legend.c, strip.c, marks.c, frame.c -------------------------------------------------------------- */

static inline void fill(const struct view *v, int x, int y, int width, int height, uint32_t colour)
{
    fill_rect(v->canvas, x, y, width, height, colour);
}
void shade(const struct view *v, int x, int y, int width, int height, uint32_t colour, double share); /* a veil */
static inline int width_of(const struct view *v, const char *text) { return text_width(v->scale, text); }
/* printf at (x, y), or up to `right`; what would go beyond `right` ends in "..". */
enum { AT_RIGHT = -1 };
void put_text(const struct view *v, int x, int y, int right, uint32_t colour, const char *format, ...)
    PRINTF_LIKE(6, 7);
/* Lines, `high` pixels each; the colours of the first one and of the others. */
void put_lines(const struct view *v, int x, int y, int right, int high, uint32_t first, uint32_t rest,
               const char *text);
/* Whole lines, in a box over the left or right half of the rows. */
void put_panel(const struct view *v, bool right, const char *text);

void draw_legend(const struct view *v, struct box b);
void draw_strip(const struct view *v);                                             /* overview and ruler */
void draw_borders(const struct view *v, const struct track *k, int y, int height); /* of steps, through rows */
uint32_t step_at_overview(const struct view *v, int x);
void draw_outline(const struct view *v, const struct pick *p, uint32_t colour);
void draw_links(const struct view *v); /* of the selected task: to what it needed and to what needed it */
void draw_region(const struct view *v);
extern const char *const life_name[];              /* of enum trace_life: "live", "paused", "stopped", ... */
void draw_view(struct view *v, struct canvas *c);  /* the whole picture; lays out first */
void write_view(struct view *v, const char *path); /* as a PNG */

/* ---- pick.c ---------------------------------------------------------------------------------------------------- */

struct link_drawn {
    size_t from, to; /* records */
};
struct links {
    struct link_drawn *link;
    size_t n, cap;
};
struct pick pick_of(const struct view *v, int track, int64_t record);
bool is_picked(const struct pick *p);
struct pick pick_at(const struct view *v, int x, int y);
struct pick pick_behind(const struct view *v);                          /* of the gap under the mouse */
void pick_neighbour(const struct view *v, struct pick *p, int by);      /* +1 or -1 along its lane */
struct links links_of_pick(const struct view *v, const struct pick *p); /* the caller frees .link */
void find_critical_path(struct view *v);
bool is_lit(const struct view *v, int track, size_t record);

/* ---- move.c: on a track with a board ---------------------------------------------------------------------------- */

void take_up(struct view *v, const struct pick *p);
void carry_task(struct view *v); /* to where the mouse is: the list is simulated anew where that is another place */
void draw_blocker(const struct view *v);
void put_down(struct view *v);
void call_off(struct view *v);                 /* the task is back where it was */
void change_list(struct view *v, double what); /* undoes the last move, or saves the list */
enum { UNDO, SAVE };

/* ---- details.c ------------------------------------------------------------------------------------------------- */

char *format_ns(char out[32], double ns); /* "812 ns", "12.3 us", "1.016 ms", "4.52 s" */
/* Three lines at most; the caller frees them. */
char *describe_record(const struct trace *t, size_t record);
char *describe_step(const struct view *v);

/* ---- select.c --------------------------------------------------------------------------------------------------- */

void select_again(struct view *v); /* the selection or the trace has changed: v->panel follows */
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
uint32_t blend(uint32_t a, uint32_t b, double share);             /* a where share is 0, b where it is 1 */
static inline uint32_t mix(uint32_t a, uint32_t b, uint32_t part) /* the same, in parts of 256 */
{
    uint32_t odd = ((a & 0xff00ff) * (256 - part) + (b & 0xff00ff) * part) >> 8 & 0xff00ff;
    uint32_t even = ((a & 0x00ff00) * (256 - part) + (b & 0x00ff00) * part) >> 8 & 0x00ff00;
    return 0xff000000 | odd | even;
}
uint32_t readable_on(uint32_t colour); /* black or white */
uint32_t kind_colour(const char *role);
uint32_t task_colour(const struct view *v, const struct track *k, uint32_t task);
uint32_t class_colour(size_t class); /* of memory */
uint32_t cause_colour(enum cause cause);
void count_colours(struct view *v); /* of its traces, when one is opened */
/* The legend of the view's way of colouring: a name for number i ("": not in use) and its colour; false: there is none.
 */
extern const char *const colour_way_name[COLOUR_WAYS];
bool colour_name(const struct view *v, size_t i, char out[64]);
uint32_t colour_number(const struct view *v, int64_t i);

/* ---- actions.c ------------------------------------------------------------------------------------------------- */

struct action {
    const char *keys; /* names, with a space between: "f", "left a" */
    const char *help;
    void (*run)(struct view *v, double by);
    double by;
};
extern const struct action actions[];
extern const size_t n_actions;
/* A key by its name: a character, or "left", "enter", ...; while a search is typed, characters go there. */
void press_key(struct view *v, const char *key);
void move_mouse(struct view *v, int x, int y);
void press_button(struct view *v, bool measure); /* where the mouse is; `measure`: with the shift key */
void release_button(struct view *v);
void turn_wheel(struct view *v, double notches, bool scroll); /* zooms at the mouse, or moves the rows */
/* Keys and mouse from a text: "f k /mlp enter click:600,300". */
void run_script(struct view *v, const char *script);

/* ---- window.c -------------------------------------------------------------------------------------------------- */

/* Shows the view until it is quit, with letters as they suit the screen. */
void show_window(struct view *v);

#endif

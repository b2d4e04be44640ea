/* view.h - the timeline: traces drawn into a canvas, which a window or a PNG shows.  This header is its model.
 *
 *     view.h      task_kinds   what a task is, such as a backward of weights
 *                 track        a trace made drawable, which may grow
 *                 view         opens, follows and closes one or two of them
 *     geometry.h  geometry     the boxes of the picture; times to pixels and back; which row is where
 *                 look         which part of the axis is in sight
 *                 layout       the rows, as high as the window lets them be
 *     pick.h      pick         what is under the mouse, what is selected, its edges, the critical path
 *                 details      the text about a task
 *                 select       the text about a stretch of time, and about a place on a memory row
 *     draw.h      pen          boxes and letters
 *                 colours      the palette, and what a bar's colour means
 *                 bars         the rows of lanes: pixels are drawn, not records, so a million cost what a thousand do
 *                 bar_names    the form of a task's name for which its bar has room
 *                 shares       far out: how the colours of whole steps share the time
 *                 view_memory  bytes per device and class over time
 *                 strip        above the rows: a bar per step, the loss, the ruler
 *                 marks        over the rows: edges, outlines, times that are marked
 *                 popup        over the rows: a box of text beside what it is about
 *                 legend       below the rows: what colours and lines mean
 *                 frame        the whole picture: state, names of rows, details, help
 *     brush.h     brush        the lane that is drawn: its pixels, the colours of its bars
 *                 columns      those bars that are too narrow to be drawn one by one, for bars.c
 *     act.h       actions      the table of keys, and the mouse: all that changes a view
 *                 move         a task of a step file that is dragged elsewhere
 *                 window       the only file that uses SDL
 *     (none)      command      the command `yard view`, with its options
 *
 * Who calls whom (most files also call track, geometry and pick):
 *
 *     command ──┬──▶ view                          opens the traces, and takes in what has been added to them
 *               ├──▶ window ──▶ actions, frame     each key or mouse event changes the view, which is then drawn anew
 *               ├──▶ actions ──▶ look, move        without a window, the words of --script change the view
 *               └──▶ frame                         without a window, the view is drawn once
 *
 *     frame ──┬──▶ layout                          decides where rows are, before anything is drawn
 *             ├──▶ strip
 *             ├──▶ bars ──▶ brush, columns, bar_names, shares
 *             ├──▶ view_memory
 *             ├──▶ marks, legend
 *             └──▶ details, popup                  the texts; view asks select for that of the panel
 *
 * A view is drawn anew each time, from the traces and `struct view` alone: the same view gives the same pixels on any
 * machine.  The axis counts nanoseconds of modelled time from the start of one step, the *anchor*; a paced trace is
 * shown at the speed that it models, and the time in which a viewer paused the trainer is left out.  Two traces on one
 * axis share the anchor, so their steps start together.
 */
#ifndef VIEW_H
#define VIEW_H

#include "planning/trace/follow.h"
#include "planning/trace/stats.h"
#include "tools/board/board.h"
#include "tools/picture/canvas.h"
#include "trainer/file/file.h"

/* ---- task_kinds.c ------------------------------------------------------------------------------------------------ */

/* What a task is: its role, or a backward of weights alone, or the way of a copy without a role. */
enum { KIND_WEIGHTS = TRACE_ROLES, KIND_UPLOAD, KIND_DOWNLOAD, KINDS };
size_t kind_of_task(const struct trace *trace, const struct trace_task *task);
const char *kind_name(const struct trace *trace, size_t kind);

/* ---- track.c ----------------------------------------------------------------------------------------------------- */

struct track {
    const char *path;
    struct trace_follow *follow;
    const struct trace *trace;           /* the follower's trace */
    uint32_t list;                       /* the index of the trace's first task list that has run */
    const struct trace_step_list *steps; /* the steps of that list */
    uint64_t zero;                       /* the clock at 0 of the axis */
    uint64_t last;                       /* the clock at the last end */
    uint64_t now;                        /* the present clock, or that at which the trainer stands */
    uint64_t changes;                    /* how often the trace has changed */
    bool stands;                         /* true: the trainer is paused, stopped or gone in the midst of its work */
    double *peak;                        /* [devices] the most bytes that tensors hold at a time */
    double highest_peak;                 /* the largest of all devices' peaks */
    lane_purpose *purpose;               /* [lanes] what the lane is for */
    uint32_t kind_colour[KINDS];         /* the colour of each kind of task */
    uint8_t *kind;                       /* [tasks] its kind: so many columns ask for it that it has to be in a cache */
    int64_t report;                      /* the task whose records tell the steps' losses, or NONE */
    int64_t *receiver;                   /* [tasks] the device that a copy's bytes are for, if it is another; or NONE */
    bool *folded;                        /* [devices] true: the device's lanes are drawn thin */
    struct problem *problem;             /* what became wrong with the file while it was followed, or NULL */
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

/* Has the step not ended yet?  Then it has no length to be shown: step_ns() is what has gone by. */
bool is_unfinished(const struct track *track, const struct trace_step *step);

struct interlude {    /* a run of another list, such as eval, between two steps */
    const char *name; /* the list's; NULL: there is none */
    uint64_t start;   /* the clock where it begins */
};

struct interludes {
    struct interlude before, after;
};

/* The last one that begins before the clock, and the first one that begins at it or later. */
struct interludes find_interludes(const struct track *track, uint64_t clock);

/* The one between the step and the next step; without one, `start` is where the next step begins, UINT64_MAX if there
 * is none. */
struct interlude find_interlude(const struct track *track, const struct trace_step *step);

/* The length of a step: from where its work begins to where that of the next step does.  Where another list runs in
 * between, the step ends with its own last task, or where the other list begins. */
double step_ns(const struct track *track, const struct trace_step *step);

double step_loss(const struct track *track, const struct trace_step *step); /* in nats; NAN: not told */
double last_loss(const struct track *track);                                /* the newest step's that tells it; NAN */
double axis_of(const struct track *track, uint64_t clock);                  /* nanoseconds on the axis */
uint64_t clock_of(const struct track *track, double axis);                  /* the inverse, clamped */

/* ---- what is in sight -------------------------------------------------------------------------------------------- */

enum { MOST_TRACKS = 2, LEAST_WIDTH = 800, LEAST_HEIGHT = 400, LARGE_WIDTH = 2560, MOST_PIXELS = 16384 };

struct sight {
    double from, to; /* the part of the axis that is in sight */
    uint32_t anchor; /* the step that starts at 0 */
    int scroll;      /* how many pixels the rows are moved up */
    bool follow;     /* true: what runs now stays in sight */
    bool zoomed;     /* true: the user has chosen how long a time is in sight */
    bool asked;      /* true: the trainer was asked for a task or a step, which is to be shown */
};

/* ---- what is laid out -------------------------------------------------------------------------------------------- */

enum row_kind { ROW_DEVICE, ROW_LANE, ROW_MEMORY };

struct view_row {
    enum row_kind kind;
    int track;
    uint32_t index; /* the lane, or the device */
    bool empty;     /* true: it is a lane without a task */
    int y, height;
};
static inline bool has_content(const struct view_row *row) { return row->kind == ROW_LANE || row->kind == ROW_MEMORY; }

struct contents { /* what the picture has, as far as it is drawn: kinds of the first trace's bars, causes of gaps */
    bool kind[KINDS], cause[CAUSES];
    bool class[TRACE_CLASSES]; /* classes of memory */
    bool pale;                 /* true: a lane was mostly idle where short tasks share a column */
    bool unfinished[2];        /* tasks that have not ended: [0] one runs, [1] one waits for another */
    bool plain;                /* true: a bar's task is_plain(), and so has no colour of its own */
};

struct layout {
    struct view_row *rows; /* top to bottom */
    size_t n_rows, cap_rows;
    int rows_height; /* the height of all rows, also of those out of sight */
    int good_height; /* what it would be if they had all the room that they want */
    int legend_lines, details_lines;
    bool low;                /* true: the window is so low that it has no overview, and a legend of two lines at most */
    bool no_room_for_memory; /* true: its rows would be too low to be read, so they are left out */
    struct contents contents;
};

/* ---- what is selected -------------------------------------------------------------------------------------------- */

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
    struct table *brief; /* `table` for people, with kept tensors summed by class; NULL: `table` is brief */
    size_t n;            /* how many rows people see; those after them say almost nothing */
    char *title;
    double bytes; /* a stretch: bytes that links move; a place: bytes that are held */
};

struct lit_bars { /* the indices of a lane's bars that are lit, ascending */
    uint32_t *all;
    size_t n, cap;
};

struct highlight {          /* what is lit in a track while other bars are dimmed, and for what it was found */
    struct lit_bars *lanes; /* [n_lanes] NULL: all bars are lit */
    uint32_t n_lanes;
    char search[32];
    bool critical;
    uint64_t changes; /* the track's */
};

enum { MOST_MARKS = 2 };

struct view_selection {
    struct pick task;
    struct region region;
    struct panel panel;
    double mark[MOST_MARKS]; /* the times that are marked, on the axis, the oldest mark first */
    int n_marks;
    char search[32]; /* only tasks with this in their names are lit; "": all */
    bool typing;     /* true: keys are added to `search` */
    bool critical;   /* true: only the critical path of the anchor step is lit */
    size_t *path;    /* the records of that path in the first trace, ascending */
    size_t n_path, cap_path;
    struct highlight highlights[MOST_TRACKS];
};

/* ---- what the mouse does ----------------------------------------------------------------------------------------- */

enum { OFF_WINDOW = -1 }; /* the mouse's place when it is not on the window */
enum drag { DRAG_NOTHING, DRAG_ROWS, DRAG_OVERVIEW, DRAG_RULER, DRAG_TASK };

struct bar_spot { /* where a task's bar is in a step */
    uint32_t lane;
    double middle; /* on the axis; NAN: the task does not run in the step */
};

struct gesture { /* a task of a board is dragged */
    int track;
    uint32_t step, task;
    double grip;            /* on the axis, from the middle of the task's bar to where the mouse took it up */
    struct bar_spot *spots; /* [tasks] where the bars were when it was taken up */
    bool tries;             /* true: a move has been tried */
    bool refused;           /* true: the last move that was tried was refused */
    struct move tried;
    struct pick blocker; /* the task that is in the way */
};

struct mouse {
    int x, y;          /* pixels, or OFF_WINDOW */
    struct pick hover; /* the task under it */
    enum drag drag;    /* what the held button moves */
    bool moved;        /* true: it has moved since the button went down */
    struct gesture gesture;
};

/* ---- the view ---------------------------------------------------------------------------------------------------- */

enum colour_by { BY_KIND, BY_LAYER, BY_MICRO, COLOUR_WAYS };

/* If there are many layers or micro-batches, some stand for all: as many colours as the legend names, and one for tasks
 * without a layer.  Kinds are fewer. */
enum { MOST_NAMES = 24, GROUPS = MOST_NAMES + 1, BARS_IN_BLOCK = 32, FEW_BARS = 2 * BARS_IN_BLOCK };

struct share_block {
    uint64_t ns[GROUPS]; /* how long bars of each colour have lasted up to the end of the block */
    uint64_t end, busy;  /* its last bar's */
};

struct lane_shares {
    struct share_block *blocks;
    size_t n, cap;
};

struct shares {                /* of a track, as far as they were asked for */
    struct lane_shares *lanes; /* [n_lanes] or NULL */
    uint32_t n_lanes;
    enum colour_by colour; /* the way of colouring that they are for */
    uint64_t *edges;       /* the clocks at which spans in sight begin, and where the last one ends */
    size_t n_edges, cap_edges;
};

struct view {
    /* Both are NULL unless the view is being drawn. */
    struct canvas *canvas;
    uint64_t *clocks[MOST_TRACKS]; /* the clock at each pixel of the rows' width, and WIDEST_COLUMN more */

    struct track *tracks[MOST_TRACKS];
    int n_tracks;
    int n_layers, n_micros; /* the numbers of layers and micro-batches in the traces */
    bool has_kind[KINDS], has_class[TRACE_CLASSES];
    bool has_plain[COLOUR_WAYS]; /* true: a task has no layer, or no micro-batch */

    int width, height; /* pixels */
    int scale;         /* 1 or 2: pixels per dot, the unit of lengths */
    bool still;        /* true: it is a picture in a file, which has no keys and no mouse */
    enum colour_by colour;
    bool help, hide_memory;
    bool show_causes; /* true: gaps have the colours of what they waited for */

    struct sight sight;
    struct layout layout;
    struct shares shares[MOST_TRACKS];
    struct view_selection selection;
    struct mouse mouse;
    const char *save_as;      /* the file for a list that was changed; NULL: one beside the list's file */
    enum exit_code exit_code; /* the result of the last time that it was saved */
    char message[160];        /* shown until the next key */
    bool quit;
};

/* "A " or "B ", to stand before other words; "" with one trace. */
static inline const char *name_of_track(const struct view *view, int track)
{
    if (view->n_tracks == 1)
        return "";
    return track == 0 ? "A " : "B ";
}

/* printf into the view's message. */
#define SAY(view, ...) (void)snprintf((view)->message, sizeof(view)->message, __VA_ARGS__)

/* The caller keeps the tracks, and closes them. */
struct view *open_view(struct track *const *tracks, int n, int width, int height, int scale);
void close_view(struct view *view);

bool is_followed(const struct view *view); /* may there be something new? */
bool poll_view(struct view *view);         /* takes what is new in its traces; returns whether to draw it again */
void refresh(struct view *view);           /* updates what follows from the selection, the traces and the mouse */

/* Does the picture stand still, although it follows the run, because the mouse is on the rows? */
bool is_frozen(const struct view *view);

#endif

/* view.h - the timeline: one or two traces drawn into a canvas, which a window or a PNG shows.  This header has the
 * folder's map, and `struct view`, which is all that a picture is drawn from.
 *
 *     view.h      view         opens, follows and closes the picture of one or two tracks
 *     track.h     task_kinds   what a task is, such as a backward of weights
 *                 track        a trace made drawable, which may grow
 *     colours.h   colours      the palette, and what a bar's colour means
 *                 shares       far out: how the colours of whole steps share the time
 *     rows.h      (none)       the rows of the picture: devices, lanes, memory
 *     selection.h (none)       what is selected, marked and searched for
 *     mouse.h     (none)       where the mouse is, and what it drags
 *     geometry.h  geometry     the boxes of the picture; times to pixels and back; which row is where
 *                 look         which part of the axis is in sight
 *                 layout       the rows, as high as the window lets them be
 *     pick.h      pick         what is under the mouse, what is selected, its edges, the critical path
 *                 details      the text about a task
 *                 select       the text about a stretch of time, and about a place on a memory row
 *     draw.h      pen          boxes and letters
 *                 bars         the rows of lanes: pixels are drawn, not records, so a million cost what a thousand do
 *                 bar_names    the form of a task's name for which its bar has room
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

#include "colours.h"
#include "mouse.h"
#include "rows.h"
#include "selection.h"
#include "tools/picture/canvas.h"
#include "track.h"
#include "trainer/file/file.h"

enum { LEAST_WIDTH = 800, LEAST_HEIGHT = 400, LARGE_WIDTH = 2560, MOST_PIXELS = 16384 };

struct sight {
    double from, to; /* the part of the axis that is in sight */
    uint32_t anchor; /* the step that starts at 0 */
    int scroll;      /* how many pixels the rows are moved up */
    bool follow;     /* true: what runs now stays in sight */
    bool zoomed;     /* true: the user has chosen how long a time is in sight */
    bool asked;      /* true: the trainer was asked for a task or a step, which is to be shown */
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

/* ---- view.c ------------------------------------------------------------------------------------------------------ */

/* "A " or "B ", to stand before other words; "" with one trace. */
static inline const char *name_of_track(const struct view *view, int track)
{
    if (view->n_tracks == 1)
        return "";
    return track == 0 ? "A " : "B ";
}

/* Sets the view's message, by printf rules. */
void show_message(struct view *view, const char *format, ...) PRINTF_LIKE(2, 3);

/* The caller keeps the tracks, and closes them. */
struct view *open_view(struct track *const *tracks, int n, int width, int height, int scale);
void close_view(struct view *view);

bool is_followed(const struct view *view); /* may there be something new? */
bool poll_view(struct view *view);         /* takes what is new in its traces; returns whether to draw it again */
void refresh_view(struct view *view);      /* updates what follows from the selection, the traces and the mouse */

/* Does the picture stand still, although it follows the run, because the mouse is on the rows? */
bool is_frozen(const struct view *view);

#endif

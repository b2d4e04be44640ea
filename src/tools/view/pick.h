/* pick.h - tasks, times and places that are picked, and the texts about them. */
#ifndef PICK_H
#define PICK_H

#include "geometry.h"

/* ---- pick.c ---------------------------------------------------------------------------------------------------- */

struct link_drawn {
    size_t producer, consumer; /* records */
};

struct links {
    struct link_drawn *links;
    size_t n, cap;
};
struct pick pick_of(const struct view *view, int track, int64_t record);
bool is_picked(const struct pick *pick);
struct pick pick_at(const struct view *view, int x, int y);
struct pick pick_after_gap(const struct view *view);                     /* the bar after the gap under the mouse */
void pick_neighbour(const struct view *view, struct pick *pick, int by); /* +1 or -1 along its lane */
struct links links_of_pick(const struct view *view, const struct pick *pick); /* the caller frees .links */
void fill_critical_path(struct view *view);
bool is_lit(const struct view *view, int track, size_t record);
void fill_lit(struct view *view); /* updates view->selection.lit */
void forget_lit(struct view *view);

/* ---- details.c ------------------------------------------------------------------------------------------------- */

/* A time of the axis with as many decimals as tell it from one so many nanoseconds apart: "16.2 ms", or where many
 * seconds are in sight "40 s". */
void format_axis(const struct view *view, char out[48], double at, double apart);

/* At most three lines; the caller frees them. */
char *describe_record(const struct track *track, size_t nth);
char *describe_step(const struct view *view);

/* What is known of a task, as lines of cells, such as draw_popup() takes: among them when it ran and, of a copy, for
 * which device. */
char *describe_briefly(const struct view *view, const struct pick *pick);

/* The gap before a task; and the text about that gap, in the same form. */
struct trace_gap gap_before(const struct view *view, const struct pick *pick);
char *describe_gap(const struct view *view, const struct pick *after);

bool is_hovered(const struct view *view); /* is a task under the mouse, and none dragged? */

/* The text about the gap under the mouse, or else about the task there or the selected one, or else about the step. */
char *find_details(const struct view *view);

int count_details_lines(const struct view *view); /* a picture has as many as it needs, a window always three */

/* ---- select.c --------------------------------------------------------------------------------------------------- */

/* Updates the panel of the selection after the selection or the trace has changed. */
void select_again(struct view *view);

#endif

/* pick.h - tasks, times and places that are picked, and the texts about them. */
#ifndef PICK_H
#define PICK_H

#include "geometry.h"

/* ---- pick.c ------------------------------------------------------------------------------------------------------ */

/* The record of that index, or with NONE a pick that is_picked() says no to. */
struct pick pick_of(const struct view *view, int track, int64_t record);
bool is_picked(const struct pick *pick);

/* These pick nothing where no bar is meant.
 *
 *     pick_at()           the bar at (x, y), or up to three pixels beside it: the longest of its columns
 *     pick_after_gap()    the bar after the gap under the mouse
 *     pick_neighbour()    moves the pick along its lane, by +1 or -1; at the lane's end it stays */
struct pick pick_at(const struct view *view, int x, int y);
struct pick pick_after_gap(const struct view *view);
void pick_neighbour(const struct view *view, struct pick *pick, int by);

struct drawn_edge { /* an edge of the list, between two records */
    size_t producer, consumer;
};

struct drawn_edges {
    struct drawn_edge *items;
    size_t n, cap;
};

/* The edges to the picked record and from it; the caller frees .edges. */
struct drawn_edges edges_of_pick(const struct view *view, const struct pick *pick);

void fill_critical_path(struct view *view); /* updates view->selection.path */

/* Is the record lit, by the search and the critical path? */
bool is_lit(const struct view *view, int track, size_t record);
void fill_lit(struct view *view); /* updates view->selection.highlights */
void forget_lit(struct view *view);

/* ---- details.c --------------------------------------------------------------------------------------------------- */

enum { AXIS_TEXT = 48 }; /* bytes of a time of the axis, with its end */

/* A time of the axis with as many decimals as tell it from one so many nanoseconds apart: "16.2 ms", or where many
 * seconds are in sight "40 s". */
void format_axis(const struct view *view, char out[AXIS_TEXT], double at, double apart);

/* Texts, which the caller frees.
 *
 *     describe_record()     about record `nth`: at most three lines
 *     describe_step()       about the anchor step, and what the user can do next: at most three lines
 *     describe_briefly()    about a task, as lines of cells, such as draw_popup() takes
 *     describe_gap()        about the gap before a task, in the same form */
char *describe_record(const struct track *track, size_t nth);
char *describe_step(const struct view *view);
char *describe_briefly(const struct view *view, const struct pick *pick);
char *describe_gap(const struct view *view, const struct pick *after);

struct trace_gap gap_before(const struct view *view, const struct pick *pick);

bool is_hovered(const struct view *view); /* is a task under the mouse, and none dragged? */

/* The text about the gap under the mouse, or else about the task there or the selected one, or else about the step.
 * The caller frees it. */
char *new_details(const struct view *view);

int count_details_lines(const struct view *view); /* a picture has as many as it needs, a window always three */

/* ---- select.c ---------------------------------------------------------------------------------------------------- */

/* Updates the panel of the selection after the selection or the trace has changed. */
void select_again(struct view *view);

#endif

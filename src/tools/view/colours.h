/* colours.h - what a colour stands for: the palette, the colour of a task's bar, and how long bars of each colour last.
 *
 * Bars are coloured by kind of task, by layer or by micro-batch.  If there are many layers or micro-batches, some of
 * them share a colour.  A *group* is all tasks of one colour.
 */
#ifndef COLOURS_H
#define COLOURS_H

#include "track.h"

struct view; /* view.h */

enum colour_by { BY_KIND, BY_LAYER, BY_MICRO, COLOUR_WAYS };

/* If there are many layers or micro-batches, some stand for all: as many colours as the legend names, and one for tasks
 * without a layer.  Kinds are fewer. */
enum { MOST_NAMES = 24, GROUPS = MOST_NAMES + 1 };

/* ---- colours.c --------------------------------------------------------------------------------------------------- */

enum {
    PAPER = 0xffffffff,
    PANEL = 0xfff1f3f6,
    INK = 0xff14181f,
    SOFT = 0xff5b6573,
    RULE = 0xffd3d9e1,
    STEP_BAR = 0xffc5ccd6,
    BORDER = 0xff9aa5b4,
    QUEUED = 0xffbcc4d0,
    ACCENT = 0xffc2185b,
    LOSS = 0xff6a3d9a
};
#define VEIL 0.12          /* how much of the accent's colour lies over a selected stretch */
#define DIMMED 0.85        /* how much of the paper is in the colour of a bar that is not lit */
#define WAITING 0.8        /* how much of the paper is in the colour of a queued task that waits for another */
enum { QUEUED_APART = 8 }; /* dots of the picture from one dot of what is queued to the next */
uint32_t readable_on(uint32_t colour);  /* black or white */
uint32_t kind_colour(const char *role); /* of bars that are coloured by kind: role is the kind's name */

/* The colour of the bar of task `number`, by the view's way of colouring. */
uint32_t task_colour(const struct view *view, const struct track *track, uint32_t number);

/* Do colours stand for layers, or for micro-batches, and has the task none? */
bool is_plain(const struct view *view, const struct track *track, uint32_t number);

uint32_t class_colour(size_t class); /* a class of memory's */
uint32_t cause_colour(enum cause cause);
enum { DENSE = 5, SPARSE = 10 };       /* dots from stripe to stripe */
int cause_stripes(enum cause cause);   /* one of these two, for hatch_box() */
void count_colours(struct view *view); /* counts layers, micro-batches, roles and classes, when a trace is new */

/* The legend of the view's way of colouring: a name for number i ("": not in use) and its colour.  colour_name()
 * returns false when there is no number i. */
enum { COLOUR_NAME = 64 }; /* bytes of such a name, with its end */
extern const char *const colour_way_name[COLOUR_WAYS];
bool colour_name(const struct view *view, size_t i, char out[COLOUR_NAME]);
uint32_t colour_number(const struct view *view, int64_t i);

/* The group of a task's colour, below GROUPS, and the colour that stands for a group. */
size_t colour_group(const struct view *view, const struct track *track, uint32_t number);
uint32_t group_colour(const struct view *view, const struct track *track, size_t group);

size_t colour_stride(const struct view *view); /* how many layers or micro-batches each named colour stands for */

/* ---- shares.c ---------------------------------------------------------------------------------------------------- */

enum { BARS_IN_BLOCK = 32, FEW_BARS = 2 * BARS_IN_BLOCK };

/* A block is BARS_IN_BLOCK bars of a lane, one after another.  It keeps sums from the lane's first bar on, so that the
 * difference of two blocks gives what lies between them. */
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

bool is_far_out(const struct view *view, const struct track *track); /* are steps too narrow to show what is in them? */
void fill_shares(struct view *view);                                 /* updates view->shares */
void forget_shares(struct view *view);
int span_end(const struct view *view, int track, int x); /* the pixel behind pixel x and what is left of its span */

/* How long bars [i, end) of a lane last, by the group of their colour.  If they are many, both places are rounded down
 * to the beginning of a block. */
void sum_shares(const struct view *view, int track, uint32_t lane, size_t i, size_t end, uint64_t ns[GROUPS]);

#endif

/* track.h - a track: a trace made drawable, with its steps.  The trace may grow while it is shown.
 *
 * A trace's clock counts nanoseconds.  The *axis* of a picture counts them too, from the start of one step on.
 */
#ifndef TRACK_H
#define TRACK_H

#include "planning/trace/follow.h"
#include "planning/trace/stats.h"
#include "tools/board/board.h"

/* ---- task_kinds.c ------------------------------------------------------------------------------------------------ */

/* What a task is: its role, or a backward of weights alone, or the way of a copy without a role. */
enum { KIND_WEIGHTS = TRACE_ROLES, KIND_UPLOAD, KIND_DOWNLOAD, KINDS };
size_t kind_of_task(const struct trace *trace, const struct trace_task *task);
const char *kind_name(const struct trace *trace, size_t kind);

/* ---- track.c ----------------------------------------------------------------------------------------------------- */

enum { MOST_TRACKS = 2 }; /* that one view shows */

struct track {
    const char *path;
    struct trace_follower *follower;
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

#endif

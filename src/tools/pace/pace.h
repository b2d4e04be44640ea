/* pace.h - lengthens the tasks of a list: each to a given end, or by a random delay. */
#ifndef PACE_H
#define PACE_H

#include "trainer/run/run.h"

struct pace {
    const struct list *list;
    struct pacer pacer;          /* what the list points to; its scale is used for a padded list alone */
    double *seconds;             /* padded list: modelled seconds of each task */
    uint64_t seed;               /* delayed list: of its random numbers */
    uint64_t *ended;             /* when each task last ended, ns on the padded clock */
    uint64_t *lane_end;          /* when each lane's last task ended; only the lane's own thread uses its entry */
    _Atomic size_t tasks;        /* the number that ran */
    _Atomic size_t overruns;     /* the number of these that ended later than they should have */
    _Atomic uint64_t overrun_ns; /* the sum of their delays */
};

/* From here on, execute() ends no task of the list early: (gap + seconds[i]) * scale seconds must have passed since its
 * predecessors ended, where the gap is its lane's.  The array has an entry per task, in modelled seconds; it is copied.
 *
 * scale 0: a scale is chosen that is large enough in two ways.  A step, of `period` modelled seconds, is shown in at
 * least twice the time that its real work takes.  The median task is shown in at least 5 ms. */
struct pace *start_padding(struct list *list, const double *seconds, double period, double scale);

/* Delays the end of every task at random (--delay-seed), to show that edges alone make the order. */
void start_delays(struct list *list, uint64_t seed);

void stop_pacing(struct list *list); /* ends padding or delays */

struct pace_options {
    const char *file;   /* a profile or hardware description; NULL: tasks are not padded */
    double scale;       /* the argument of start_padding(); set by tests, no option sets it */
    int64_t delay_seed; /* -1: no delays */
};
extern struct pace_options asked_pace;

#endif

/* pace.h - wrappers round a lane's issue: every task is padded to a given end, or delayed at random. */
#ifndef PACE_H
#define PACE_H

#include "trainer/train/hooks.h"

struct pace {
    struct wrapper wrapper;         /* the list's; its scale is that of a padded list */
    double *seconds;                /* of a padded list: per task, modelled */
    uint64_t seed;                  /* of a delayed one */
    uint64_t *ended;                /* when each task last ended, on the padded clock */
    uint64_t *lane_end;             /* and each lane, the lane's own thread's business */
    _Atomic size_t tasks, overruns; /* those that ended later than they should have */
    _Atomic uint64_t overrun_ns;    /* by how much in all */
};
/* From here on, execute() ends every task of `s` no sooner than its lane's gap and seconds[i], times `scale`, behind
 * its predecessors.  The array has an entry per task, in modelled seconds; it is copied.  scale 0: chosen so that real
 * work takes at most half of the cores in a step of `period` modelled seconds, and the median task 5 ms. */
struct pace *start_pacing(struct step *s, const double *seconds, double period, double scale);
/* Or: delay the end of every task at random (--delay-seed), to show that edges alone make the order. */
void start_delays(struct step *s, uint64_t seed);
void stop_pacing(struct step *s); /* of either kind */

struct pace_options {
    const char *file;   /* of times; NULL: tasks are not padded */
    double scale;       /* no option: as for start_pacing() */
    int64_t delay_seed; /* -1: no delays */
};
extern struct pace_options pace_options;

#endif

/* lane_runs.h - the runs that each lane was given, in its order, and whether they have ended: flights.c.
 *
 * The files of this folder use it, and a watchdog (tools/watch).  The watchdog's threads read what is atomic at any
 * time, and flights only while they hold flights_lock.
 */
#ifndef LANE_RUNS_H
#define LANE_RUNS_H

#include "run.h"

#include <pthread.h>

struct lane_run { /* a run that has not been retired: position of the task, iteration */
    _Atomic uint32_t task_index, iteration;
};

struct lane_runs {         /* the runs that a lane has been given, which it takes in this order */
    struct lane_run *runs; /* run k is at k % cap */
    size_t cap;
    _Atomic uint64_t given, retired; /* how many runs in all */
    _Atomic uint64_t ended;          /* how many the driver had ended when the watchdog last asked */
    uint64_t last_end;               /* ns on the host's clock: the latest end of its runs, as reported */
    uint64_t driver_end;             /* ns on the device's clock: the latest end of its runs, see event_times() */
};

extern pthread_mutex_t flights_lock; /* held while flights change, and while the driver is asked about them */

/* The nth run that the lane was given, counted from 0, if it is not retired; and its flight. */
struct lane_run *nth_run(const struct lane_runs *lane_runs, uint64_t nth);
struct task_flight *nth_flight(const struct list *list, const struct lane_runs *lane_runs, uint64_t nth);

bool has_ended(const struct task_flight *flight); /* has its work ended, well or with an error? */

#endif

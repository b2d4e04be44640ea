/* lane_instances.h - the instances that each lane was given, in its order, and whether they have ended: flights.c.
 *
 * The files of this folder use it, and a watchdog (tools/watch).  The watchdog's threads read what is atomic at any
 * time, and flights only while they hold flights_lock.
 */
#ifndef LANE_INSTANCES_H
#define LANE_INSTANCES_H

#include "run.h"

#include <pthread.h>

struct instance { /* an instance that has not been retired: position of the task, iteration */
    _Atomic uint32_t task_index, iteration;
};

struct lane_instances {         /* those that a lane has been given, which it takes in this order */
    struct instance *instances; /* instance k is at k % cap */
    size_t cap;
    _Atomic uint64_t given, retired; /* how many instances in all */
    _Atomic uint64_t ended;          /* how many the driver had ended when the watchdog last asked */
    uint64_t last_end;               /* ns on the host's clock: the latest end of its instances, as reported */
    uint64_t driver_end;             /* ns on the device's clock: the latest end of its instances, see event_times() */
};

extern pthread_mutex_t flights_lock; /* held while flights change, and while the driver is asked about them */

/* The nth instance that the lane was given, counted from 0, if it is not retired; and its flight. */
struct instance *nth_instance(const struct lane_instances *lane_instances, uint64_t nth);
struct task_flight *nth_flight(const struct list *list, const struct lane_instances *lane_instances, uint64_t nth);

bool has_ended(const struct task_flight *flight); /* has its work ended, well or with an error? */

#endif

/* flights.h - flights: the runs of tasks that have been issued and are not retired yet.  This is for the files of this
 * folder, and for a watchdog (tools/watch); all others need run.h alone, which describes struct task_flight.
 *
 *     issue     open_flight(), tell_issued()                      the run is in flight, and in its lane's queue
 *     look      queued_run(), queued_flight(), has_ended()
 *     retire    report_run(), which calls tell_ended()            its times are known, and its place is free
 *
 * Flights change on the thread that issues.  Another thread that looks at them holds flights_lock.
 */
#ifndef FLIGHTS_H
#define FLIGHTS_H

#include "run.h"

#include <pthread.h>

/* ---- retire.c -------------------------------------------------------------------------------------------------- */

extern pthread_mutex_t flights_lock; /* held while flights change, and while the driver is asked about them */
void make_room(struct list *list, uint32_t iteration); /* waits until that iteration may be issued */
void flush_lanes(const struct machine *machine);       /* submits what was issued, on every queue */
/* A flight for a run that is issued now. */
struct task_flight *open_flight(struct list *list, struct task *task, uint32_t iteration);
/* The nth run that the lane was given, if it is not retired, and its flight. */
struct issued *queued_run(const struct queue *queue, uint64_t nth);
struct task_flight *queued_flight(const struct list *list, const struct queue *queue, uint64_t nth);
bool has_ended(const struct task_flight *flight);
/* Call it when the task has run and its times are known: tells observers. */
void report_run(struct list *list, const struct task *task, const struct task_flight *flight);

/* ---- execute.c --------------------------------------------------------------------------------------------------- */

/* Gives a job of that kind to the thread of its lane, with the user events by which other tasks wait for it. */
void give_to_lane(const struct task *task, enum job_kind kind, struct job *job);

/* ---- observe.c: these call the functions of the same name that observers have ----------------------------------- */

void tell_issuing(struct list *list, uint32_t iteration, size_t i);
void tell_issued(const struct list *list, const struct task *task, struct task_flight *flight);
void tell_ended(const struct list *list, const struct task *task, const struct task_flight *flight);

#endif

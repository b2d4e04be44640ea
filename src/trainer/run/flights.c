/* flights.c - the instances of tasks that are in flight, from when they are issued until they are retired.
 *
 * An instance in flight has a place among its task's flights, and one among its lane's instances.  When it has ended,
 * it is retired: its status is checked, its times are reported, its events are released, and its place among the task's
 * flights is free for a later instance.  Lanes run in order, so the first of a lane's instances ends next.  Nothing
 * here waits for an end, except after a failure; wait.c does.
 *
 * Only the issuing thread retires instances.  A lane that has fallen behind delays no flights of other lanes, and
 * nobody waits for a whole iteration.
 */
#include "run_parts.h"

pthread_mutex_t flights_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- finding a flight -------------------------------------------------------------------------------------------- */

struct task_flight *latest_flight(const struct list *list, const struct task *task, uint32_t iteration)
{
    struct task_instances *instances = &list->running->task_instances[task->index];
    for (uint32_t k = instances->issued; k != instances->retired; k--)
        if (instances->flights[(k - 1) % MOST_IN_FLIGHT].iteration <= iteration)
            return &instances->flights[(k - 1) % MOST_IN_FLIGHT];
    return NULL;
}

struct instance *nth_instance(const struct lane_instances *lane_instances, uint64_t nth)
{
    return &lane_instances->instances[nth % lane_instances->cap];
}

struct task_flight *nth_flight(const struct list *list, const struct lane_instances *lane_instances, uint64_t nth)
{
    const struct instance *instance = nth_instance(lane_instances, nth);
    return latest_flight(list, list->tasks[instance->task_index], instance->iteration);
}

bool has_ended(const struct task_flight *flight) { return flight->done && event_status(flight->done) <= CL_COMPLETE; }

/* ---- issuing ----------------------------------------------------------------------------------------------------- */

struct task_flight *begin_flight(struct list *list, const struct task *task, uint32_t iteration)
{
    struct task_instances *instances = &list->running->task_instances[task->index];
    struct task_flight *flight = &instances->flights[instances->issued % MOST_IN_FLIGHT];
    instances->issued++;
    struct lane_instances *lane_instances = &list->running->lane_instances[task->lane->index];
    struct instance *instance = nth_instance(lane_instances, lane_instances->given);
    *flight = (struct task_flight){.iteration = iteration, .in_context = flight->in_context, .queued = now_ns()};
    instance->task_index = (uint32_t)task->index;
    instance->iteration = iteration;
    lane_instances->given++; /* comes last: the watchdog reads all that is given */
    return flight;
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

void note_end(struct list *list, const struct task *task, const struct task_flight *flight)
{
    uint64_t *last = &list->running->iteration_end[flight->iteration % KEPT_ENDS];
    tell_ended(list, task, flight);
    if (task->lane->kind == LANE_COMPUTE)
        *last = MAX(*last, flight->end);
}

void finish_flight(struct list *list, const struct task *task, struct task_flight *flight)
{
    struct lane_instances *lane_instances = &list->running->lane_instances[task->lane->index];
    if (flight->skipped)
        return;
    if (is_decided_late(task)) /* it is known only now that it was not skipped */
        tell_issued(list, task, flight);
    if (!flight->end)
        take_times(task, flight, lane_instances->last_end, &lane_instances->driver_end);
    note_end(list, task, flight);
}

/* ---- after a failure --------------------------------------------------------------------------------------------- */

void wait_lanes(struct list *list)
{
    const struct running *running = list->running;
    for (int i = 0; i < running->n_lanes; i++) {
        const struct lane_instances *lane_instances = &running->lane_instances[i];
        if (lane_instances->retired < lane_instances->given) /* an error shows in the status */
            clWaitForEvents(1, &nth_flight(list, lane_instances, lane_instances->given - 1)->done);
    }
}

static bool is_before(const struct instance *a, const struct instance *b)
{
    return BY(a->iteration, b->iteration, COMPARE(a->task_index, b->task_index)) < 0;
}

/* Ends the program with the failed instance that is the first in list order: those that wait for it fail with it. */
static _Noreturn void fail_with_first_failure(struct list *list)
{
    const struct instance *first = NULL;
    wait_lanes(list);
    for (int i = 0; i < list->running->n_lanes; i++) {
        const struct lane_instances *lane_instances = &list->running->lane_instances[i];
        for (uint64_t nth = lane_instances->retired; nth < lane_instances->given; nth++) {
            const struct instance *instance = nth_instance(lane_instances, nth);
            bool has_failed = event_status(nth_flight(list, lane_instances, nth)->done) < 0;
            if (has_failed && (!first || is_before(instance, first)))
                first = instance;
        }
    }
    const struct task *task = list->tasks[first->task_index];
    fail_task(list, task, first->iteration, event_status(latest_flight(list, task, first->iteration)->done));
}

/* ---- retiring ---------------------------------------------------------------------------------------------------- */

/* Releases the events that stand for the end in other contexts. */
static void release_events_of_contexts(cl_event *in_context, int n_contexts)
{
    for (int i = 0; i < n_contexts; i++)
        if (in_context[i]) {
            CL(clReleaseEvent(in_context[i]));
            in_context[i] = NULL;
        }
}

void retire_first(struct list *list, struct lane_instances *lane_instances)
{
    struct task *task = list->tasks[nth_instance(lane_instances, lane_instances->retired)->task_index];
    struct task_flight *flight = nth_flight(list, lane_instances, lane_instances->retired);
    clWaitForEvents(1, &flight->done); /* returns at once, and makes its work visible; an error shows in the status */
    if (event_status(flight->done) < 0)
        fail_with_first_failure(list);
    finish_flight(list, task, flight);
    pthread_mutex_lock(&flights_lock);
    lane_instances->last_end = MAX(lane_instances->last_end, flight->end);
    if (flight->in_context)
        release_events_of_contexts(flight->in_context, list->pool->machine->n_contexts);
    if (flight->work && flight->work != flight->done)
        CL(clReleaseEvent(flight->work));
    CL(clReleaseEvent(flight->done));
    list->running->task_instances[task->index].retired++;
    lane_instances->retired++;
    pthread_mutex_unlock(&flights_lock);
}

/* Reports the instances of parked jobs that have ended, and frees the jobs, which are not among the instances of any
 * lane. */
static void retire_parked(struct list *list)
{
    struct late_tasks *late_tasks = list->running->late_tasks;
    if (!late_tasks)
        return;
    pthread_mutex_lock(&late_tasks->lock);
    struct job_chain ended = late_tasks->ended;
    late_tasks->ended.first = NULL;
    pthread_mutex_unlock(&late_tasks->lock);
    for (struct job *job = take_job(&ended); job; job = take_job(&ended)) {
        finish_flight(list, job->task, job->flight);
        free(job->flight);
        free_job(job);
    }
}

void retire_ended(struct list *list)
{
    for (int i = 0; i < list->running->n_lanes; i++) {
        struct lane_instances *lane_instances = &list->running->lane_instances[i];
        while (lane_instances->retired < lane_instances->given &&
               has_ended(nth_flight(list, lane_instances, lane_instances->retired)))
            retire_first(list, lane_instances);
    }
    retire_parked(list);
}

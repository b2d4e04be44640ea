/* flights.c - the runs of tasks that are in flight, from when they are issued until they are retired.
 *
 * A run in flight has a place among its task's flights, and one among its lane's runs.  When it has ended, it is
 * retired: its status is checked, its times are reported, its events are released, and its place among the task's
 * flights is free for a later run.  Lanes run in order, so the first of a lane's runs is the one that ends next.
 * Nothing here waits for an end, except after a failure; wait.c does.
 *
 * Only the issuing thread retires runs.  A lane that has fallen behind delays no flights of other lanes, and nobody
 * waits for a whole iteration.
 */
#include "run_parts.h"

pthread_mutex_t flights_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- finding a flight -------------------------------------------------------------------------------------------- */

struct task_flight *latest_flight(const struct list *list, const struct task *task, uint32_t iteration)
{
    struct task_runs *runs = &list->running->task_runs[task->index];
    for (uint32_t run = runs->issued; run != runs->retired; run--)
        if (runs->flights[(run - 1) % MOST_RUNS].iteration <= iteration)
            return &runs->flights[(run - 1) % MOST_RUNS];
    return NULL;
}

struct lane_run *nth_run(const struct lane_runs *lane_runs, uint64_t nth)
{
    return &lane_runs->runs[nth % lane_runs->cap];
}

struct task_flight *nth_flight(const struct list *list, const struct lane_runs *lane_runs, uint64_t nth)
{
    const struct lane_run *run = nth_run(lane_runs, nth);
    return latest_flight(list, list->tasks[run->task_index], run->iteration);
}

bool has_ended(const struct task_flight *flight) { return flight->done && event_status(flight->done) <= CL_COMPLETE; }

/* ---- issuing ----------------------------------------------------------------------------------------------------- */

struct task_flight *open_flight(struct list *list, const struct task *task, uint32_t iteration)
{
    struct task_runs *runs = &list->running->task_runs[task->index];
    struct task_flight *flight = &runs->flights[runs->issued % MOST_RUNS];
    runs->issued++;
    struct lane_runs *lane_runs = &list->running->lane_runs[task->lane->index];
    struct lane_run *run = nth_run(lane_runs, lane_runs->given);
    *flight = (struct task_flight){.iteration = iteration, .foreign = flight->foreign, .queued = now_ns()};
    run->task_index = (uint32_t)task->index;
    run->iteration = iteration;
    lane_runs->given++; /* comes last: the watchdog reads all that is given */
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
    struct lane_runs *lane_runs = &list->running->lane_runs[task->lane->index];
    if (flight->skipped)
        return;
    if (is_decided_late(task)) /* it is known only now that it was not skipped */
        tell_issued(list, task, flight);
    if (!flight->end)
        take_times(task, flight, lane_runs->last_end, &lane_runs->driver_end);
    note_end(list, task, flight);
}

/* ---- Later: after a failure -------------------------------------------------------------------------------------- */

void wait_lanes(struct list *list)
{
    const struct running *running = list->running;
    for (int i = 0; i < running->n_lanes; i++) {
        const struct lane_runs *lane_runs = &running->lane_runs[i];
        if (lane_runs->retired < lane_runs->given) /* an error shows in the status */
            clWaitForEvents(1, &nth_flight(list, lane_runs, lane_runs->given - 1)->done);
    }
}

static bool is_before(const struct lane_run *a, const struct lane_run *b)
{
    return BY(a->iteration, b->iteration, COMPARE(a->task_index, b->task_index)) < 0;
}

/* Ends the program with the failed run that is the first in list order: the runs that wait for it fail with it. */
static _Noreturn void fail_with_failed_run(struct list *list)
{
    const struct lane_run *first = NULL;
    wait_lanes(list);
    for (int i = 0; i < list->running->n_lanes; i++) {
        const struct lane_runs *lane_runs = &list->running->lane_runs[i];
        for (uint64_t nth = lane_runs->retired; nth < lane_runs->given; nth++) {
            const struct lane_run *run = nth_run(lane_runs, nth);
            bool has_failed = event_status(nth_flight(list, lane_runs, nth)->done) < 0;
            if (has_failed && (!first || is_before(run, first)))
                first = run;
        }
    }
    const struct task *task = list->tasks[first->task_index];
    fail_task(list, task, first->iteration, event_status(latest_flight(list, task, first->iteration)->done));
}

/* ---- retiring ---------------------------------------------------------------------------------------------------- */

/* Later: releases the events that stand for the end in other contexts. */
static void release_foreign(cl_event *foreign, int n_contexts)
{
    for (int i = 0; i < n_contexts; i++)
        if (foreign[i]) {
            CL(clReleaseEvent(foreign[i]));
            foreign[i] = NULL;
        }
}

void retire_first(struct list *list, struct lane_runs *lane_runs)
{
    struct task *task = list->tasks[nth_run(lane_runs, lane_runs->retired)->task_index];
    struct task_flight *flight = nth_flight(list, lane_runs, lane_runs->retired);
    clWaitForEvents(1, &flight->done); /* returns at once, and makes its work visible; an error shows in the status */
    if (event_status(flight->done) < 0)
        fail_with_failed_run(list);
    finish_flight(list, task, flight);
    pthread_mutex_lock(&flights_lock);
    lane_runs->last_end = MAX(lane_runs->last_end, flight->end);
    if (flight->foreign)
        release_foreign(flight->foreign, list->pool->machine->n_contexts);
    if (flight->work && flight->work != flight->done)
        CL(clReleaseEvent(flight->work));
    CL(clReleaseEvent(flight->done));
    list->running->task_runs[task->index].retired++;
    lane_runs->retired++;
    pthread_mutex_unlock(&flights_lock);
}

/* Later: reports the runs of parked jobs that have ended, and frees the jobs, which are not among the runs of any
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
        struct lane_runs *lane_runs = &list->running->lane_runs[i];
        while (lane_runs->retired < lane_runs->given && has_ended(nth_flight(list, lane_runs, lane_runs->retired)))
            retire_first(list, lane_runs);
    }
    retire_parked(list);
}

/* retire.c - runs of tasks, from when they are issued until their end has been seen.
 *
 * A run of a task is issued, ends, and is retired: its status is checked, its times are reported, its events are
 * released, and its place among the task's flights is free for a later run.  Lanes run in order, so each lane has a
 * queue, at whose head stands the run that ends next:
 *
 *     make_room()      waits until an iteration may be issued
 *     open_flight()    a run is issued: it gets a flight, and a place in its lane's queue
 *     retire_ended()   waits for nothing.  It retires runs that have ended: those at the heads of queues, by
 *                      retire_head(), and those that stood aside, by retire_parked()
 *     retire_until()   waits for the runs up to an iteration, by retire_lanes_until() and retire_queue_until(), and
 *                      retires them; retire_all() waits for all runs
 *     wait_lanes()     waits for all runs, and retires none
 *
 * Only the issuing thread retires runs.  A lane that has fallen behind delays no flights of other lanes, and nobody
 * waits for a whole iteration.
 *
 * For observers, a long wait is cut into short ones of about a millisecond: so they are told of ends soon after these
 * happen, and the thread is not woken for each end.
 */
#include "run_parts.h"

pthread_mutex_t flights_lock = PTHREAD_MUTEX_INITIALIZER;

struct task_flight *latest_run(const struct list *list, const struct task *task, uint32_t iteration)
{
    struct task_runs *runs = &list->running->task_runs[task->index];
    for (uint32_t run = runs->issued; run != runs->retired; run--)
        if (runs->flights[(run - 1) % MOST_RUNS].iteration <= iteration)
            return &runs->flights[(run - 1) % MOST_RUNS];
    return NULL;
}

struct queued_run *queued_run(const struct queue *queue, uint64_t nth) { return &queue->runs[nth % queue->cap]; }

struct task_flight *queued_flight(const struct list *list, const struct queue *queue, uint64_t nth)
{
    const struct queued_run *run = queued_run(queue, nth);
    return latest_run(list, list->tasks[run->task_index], run->iteration);
}

bool has_ended(const struct task_flight *flight) { return flight->done && event_status(flight->done) <= CL_COMPLETE; }

struct task_flight *open_flight(struct list *list, const struct task *task, uint32_t iteration)
{
    struct task_runs *runs = &list->running->task_runs[task->index];
    struct task_flight *flight = &runs->flights[runs->issued % MOST_RUNS];
    runs->issued++;
    struct queue *queue = &list->running->queues[task->lane->index];
    struct queued_run *run = queued_run(queue, queue->given);
    *flight = (struct task_flight){.iteration = iteration, .foreign = flight->foreign, .queued = now_ns()};
    run->task_index = (uint32_t)task->index;
    run->iteration = iteration;
    queue->given++; /* comes last: the watchdog reads all that is given */
    return flight;
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

void report_run(struct list *list, const struct task *task, const struct task_flight *flight)
{
    uint64_t *last = &list->running->iteration_end[flight->iteration % KEPT_ENDS];
    tell_ended(list, task, flight);
    if (task->lane->kind == LANE_COMPUTE)
        *last = MAX(*last, flight->end);
}

void report_flight(struct list *list, const struct task *task, struct task_flight *flight)
{
    struct queue *queue = &list->running->queues[task->lane->index];
    if (flight->skipped)
        return;
    if (is_decided_late(task)) /* it is known only now that it was not skipped */
        tell_issued(list, task, flight);
    if (!flight->end)
        take_times(task, flight, queue->last_end, &queue->driver_end);
    report_run(list, task, flight);
}

/* ---- retiring ---------------------------------------------------------------------------------------------------- */

static bool is_before(const struct queued_run *a, const struct queued_run *b)
{
    if (a->iteration != b->iteration)
        return a->iteration < b->iteration;
    return a->task_index < b->task_index;
}

/* Ends the program with the failed run that is the first in list order: the runs that wait for it fail with it. */
static _Noreturn void report_failure(struct list *list)
{
    const struct queued_run *first = NULL;
    wait_lanes(list);
    for (int i = 0; i < list->running->n_queues; i++) {
        const struct queue *queue = &list->running->queues[i];
        for (uint64_t nth = queue->retired; nth < queue->given; nth++) {
            const struct queued_run *run = queued_run(queue, nth);
            bool has_failed = event_status(queued_flight(list, queue, nth)->done) < 0;
            if (has_failed && (!first || is_before(run, first)))
                first = run;
        }
    }
    const struct task *task = list->tasks[first->task_index];
    fail_task(list, task, first->iteration, event_status(latest_run(list, task, first->iteration)->done));
}

static void release_foreign(cl_event *foreign, int n_contexts)
{
    for (int i = 0; i < n_contexts; i++)
        if (foreign[i]) {
            CL(clReleaseEvent(foreign[i]));
            foreign[i] = NULL;
        }
}

/* The run at the queue's head has ended: reports its times, and frees its place. */
static void retire_head(struct list *list, struct queue *queue)
{
    struct task *task = list->tasks[queued_run(queue, queue->retired)->task_index];
    struct task_flight *flight = queued_flight(list, queue, queue->retired);
    clWaitForEvents(1, &flight->done); /* returns at once, and makes its work visible; an error shows in the status */
    if (event_status(flight->done) < 0)
        report_failure(list);
    report_flight(list, task, flight);
    pthread_mutex_lock(&flights_lock);
    queue->last_end = MAX(queue->last_end, flight->end);
    if (flight->foreign)
        release_foreign(flight->foreign, list->pool->machine->n_contexts);
    if (flight->work && flight->work != flight->done)
        CL(clReleaseEvent(flight->work));
    CL(clReleaseEvent(flight->done));
    list->running->task_runs[task->index].retired++;
    queue->retired++;
    pthread_mutex_unlock(&flights_lock);
}

/* Reports the runs of parked jobs that have ended, and frees the jobs, which are in no lane's queue. */
static void retire_parked(struct list *list)
{
    struct late_tasks *late_tasks = list->running->late_tasks;
    if (!late_tasks)
        return;
    pthread_mutex_lock(&late_tasks->lock);
    struct job_queue ended = late_tasks->ended;
    late_tasks->ended.first = NULL;
    pthread_mutex_unlock(&late_tasks->lock);
    for (struct job *job = take_job(&ended); job; job = take_job(&ended)) {
        report_flight(list, job->task, job->flight);
        free(job->flight);
        free_job(job);
    }
}

void retire_ended(struct list *list)
{
    for (int i = 0; i < list->running->n_queues; i++) {
        struct queue *queue = &list->running->queues[i];
        while (queue->retired < queue->given && has_ended(queued_flight(list, queue, queue->retired)))
            retire_head(list, queue);
    }
    retire_parked(list);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* The number of the first run of the lane that is of a later iteration. */
static uint64_t given_until(const struct queue *queue, uint32_t iteration)
{
    uint64_t nth = queue->retired;
    while (nth < queue->given && queued_run(queue, nth)->iteration <= iteration)
        nth++;
    return nth;
}

/* Waits until all of the lane's runs up to that iteration have ended, and retires them.  Meanwhile it retires runs that
 * have ended on other lanes.
 *
 * It does not wait for the last of these runs at once, because of Intel's CPU runtime.  This runtime has one thread
 * fewer than the CPU has cores: the thread that waits for a kernel is to help compute it.  But that thread helps only
 * once the kernel can start, and its core is idle until then; the last kernel of a step can start only near the step's
 * end.  So the first wait is for the next run, and each further one for twice as many runs as before.  With observers a
 * wait does not grow beyond about a millisecond (see the head of this file). */
static void retire_queue_until(struct list *list, struct queue *queue, uint32_t iteration)
{
    enum { SHORT_NS = 500000, LONG_NS = 2000000 };
    uint64_t until = given_until(queue, iteration);
    uint64_t at_once = 1; /* how many runs one wait is for */
    while (queue->retired < until) {
        uint64_t next = MIN(until, queue->retired + at_once), start = now_ns();
        clWaitForEvents(1, &queued_flight(list, queue, next - 1)->done); /* retire_head() finds an error */
        uint64_t waited = now_ns() - start;
        if (!execution.observers || waited < SHORT_NS)
            at_once *= 2;
        else if (waited > LONG_NS && at_once > 1)
            at_once /= 2;
        while (queue->retired < next)
            retire_head(list, queue);
        retire_ended(list);
    }
}

enum lanes_waited { COMPUTE_LANES, OTHER_LANES };

/* Compute lanes come first: a thread that waits for them may compute meanwhile (see above), one that waits for a host
 * task does not. */
static void retire_lanes_until(struct list *list, uint32_t iteration, enum lanes_waited lanes)
{
    for (int i = 0; i < list->running->n_queues; i++) {
        bool computes = list->pool->machine->lanes[i]->kind == LANE_COMPUTE;
        if (computes == (lanes == COMPUTE_LANES))
            retire_queue_until(list, &list->running->queues[i], iteration);
    }
}

void retire_until(struct list *list, const struct task *task, uint32_t iteration)
{
    retire_lanes_until(list, iteration, COMPUTE_LANES);
    retire_queue_until(list, &list->running->queues[task->lane->index], iteration);
}

void wait_lanes(struct list *list)
{
    const struct running *running = list->running;
    for (const struct queue *queue = running->queues; queue < running->queues + running->n_queues; queue++)
        if (queue->retired < queue->given)
            clWaitForEvents(1, &queued_flight(list, queue, queue->given - 1)->done); /* an error shows in the status */
}

bool is_computed(const struct list *list, uint32_t iteration)
{
    const struct running *running = list->running;
    for (int i = 0; i < running->n_queues; i++)
        if (list->pool->machine->lanes[i]->kind == LANE_COMPUTE &&
            given_until(&running->queues[i], iteration) > running->queues[i].retired)
            return false;
    return true;
}

void make_room(struct list *list, uint32_t iteration)
{
    if (iteration > 2)
        retire_lanes_until(list, iteration - 2, COMPUTE_LANES);
    for (size_t i = 0; i < list->n; i++) {
        const struct task_runs *runs = &list->running->task_runs[i];
        if (runs->issued - runs->retired == MOST_RUNS)
            retire_queue_until(list, &list->running->queues[list->tasks[i]->lane->index],
                               runs->flights[runs->retired % MOST_RUNS].iteration);
    }
}

void flush_lanes(const struct machine *machine)
{
    for (int i = 0; i < machine->n_lanes; i++)
        if (machine->lanes[i]->queue)
            CL(clFlush(machine->lanes[i]->queue));
}

void retire_all(struct list *list)
{
    flush_lanes(list->pool->machine);
    retire_lanes_until(list, UINT32_MAX, COMPUTE_LANES);
    retire_lanes_until(list, UINT32_MAX, OTHER_LANES);
}

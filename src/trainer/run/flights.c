/* flights.c - runs that are in flight: each has a place among its task's flights, and one in its lane's queue. */
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

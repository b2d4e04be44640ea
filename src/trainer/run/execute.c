/* execute.c - runs a list: issues its tasks.  wait.c waits until all has ended.
 *
 * Tasks are issued in list order to their lanes.  A lane runs in order, so a task waits only for the edges that
 * depend() marked: events of other lanes, of this iteration or before.  Several iterations may be in flight.  Two
 * things must hold before the host issues the next one.  The compute lanes have ended the iteration ISSUED_AHEAD before
 * it, and each task has fewer than MOST_IN_FLIGHT instances in flight.  So a slow task in the background, such as a
 * write to the disk, holds up only those tasks that wait for it by an edge.
 *
 * The rule (issue_now()).  A device's task goes to its lane's queue, with the events that it waits for.  A task of the
 * host is a job of its lane's thread, which waits for these events and then runs it.
 *
 * An event is known only to its own context.  Where a consumer is in another context, the producer also gets a user
 * event in that context, which a forwarder thread completes.  A host task's event is a user event from the start.
 */
#include "run_parts.h"

struct execution execution;

/* ---- a task ------------------------------------------------------------------------------------------------------ */

/* Finds the events that the instance must wait for, as they are known in its context. */
static void gather_waits(struct issue *issue)
{
    const struct task *task = issue->task;
    bool by_host = task->lane->device->is_host; /* the host can wait for events of all contexts */
    int context = event_context(task);
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
        if (!edge->needs_wait)
            continue;
        const struct task *producer = issue->list->tasks[edge->producer];
        uint32_t iteration = edge->previous ? issue->iteration - 1 : issue->iteration;
        const struct task_flight *flight = latest_flight(issue->list, producer, iteration);
        if (!flight)
            continue; /* it has ended */
        bool is_known = by_host || context == event_context(producer);
        issue->wait_list[issue->n_wait++] = is_known ? flight->done : flight->in_context[context];
    }
}

/* Issues a task that runs for certain. */
static void issue_now(const struct issue *issue)
{
    const struct task *task = issue->task;
    struct task_flight *flight = begin_flight(issue->list, task, issue->iteration);
    tell_issued(issue->list, task, flight);
    if (task->lane->device->is_host) {
        give_to_lane(new_job(issue, flight, run_host_task));
        return;
    }
    if (issue->list->running->pacer) {
        issue_paced(issue, flight);
        return;
    }
    enqueue(issue, &flight->work);
    flight->done = flight->work;
    if (task->flush)
        CL(clFlush(task->lane->queue)); /* otherwise a waiting lane might wait for ever */
    if (task->notify)
        forward_end(new_forwarded_job(issue, flight, end_job));
}

static void issue_task(struct list *list, const struct task *task, uint32_t iteration)
{
    struct issue issue = {.list = list, .task = task, .iteration = iteration, .wait_list = list->running->wait_list};
    pthread_mutex_lock(&flights_lock);
    gather_waits(&issue);
    if (list->running->pacer)
        wait_for_turn(&issue);
    if (task->extra.slot.aside)
        park_task(&issue);
    else if (is_decided_late(task))
        issue_late(&issue);
    else
        issue_now(&issue);
    pthread_mutex_unlock(&flights_lock);
}

/* Issues a task with nothing else in flight. */
static void issue_alone(struct list *list, const struct task *task, uint32_t iteration)
{
    retire_all(list);
    issue_task(list, task, iteration);
    retire_all(list);
}

/* ---- an iteration ------------------------------------------------------------------------------------------------ */

void execute(struct list *list, uint32_t iteration)
{
    CHECK(list->running, "list %s has not been finished", list->name);
    if (execution.serial) {
        execute_serial(list, iteration);
        return;
    }
    wait_to_issue(list, iteration);
    if (execution.watch)
        execution.watch(list);
    list->running->iteration_end[iteration % KEPT_ENDS] = 0;
    bool may_have_slot = list->running->late_tasks; /* slots are given between start_late() and stop_late() only */
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (!is_due(task, iteration) || (task->extra.slot.needed && !may_have_slot))
            continue;
        tell_issuing(list, task, iteration);
        if (needs_to_be_alone(list, task))
            issue_alone(list, task, iteration);
        else
            issue_task(list, task, iteration);
    }
    execution.now.list = NULL; /* no task is issued any more: a debugger names none */
    flush_lanes(list->pool->machine);
    retire_ended(list);
}

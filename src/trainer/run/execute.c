/* execute.c - runs a list: issues its tasks, and waits until all has ended.
 *
 * Tasks are issued in list order to their lanes.  A lane runs in order, so a task waits only for the edges that
 * depend() marked: events of other lanes, of this iteration or before.  Several iterations may be in flight.  Two
 * things must hold before the host issues the next one.  The compute lanes have ended the iteration two before it, and
 * each task has fewer than MOST_RUNS runs in flight.  So a slow task in the background, such as a write to the disk,
 * holds up only those tasks that wait for it by an edge.
 *
 * The rule (issue_now()).  A device's task goes to its lane's queue, with the events that it waits for.  A task of the
 * host is a job of its lane's thread, which waits for these events and then runs it.
 *
 * An event is known only to its own context.  Where a consumer is in another context, the producer also gets a user
 * event in that context, which a forwarder thread completes.  A host task's event is a user event from the start.
 *
 * If it is decided late whether a task runs, the task is not issued at once.  Instead a job is given to a thread, which
 * finds out later: see late.c.  With a wrapper (struct wrapper), a task's `done` is not the end of its work: it is a
 * user event, which the lane's forwarder completes when the wrapper lets it.
 */
#include "run_parts.h"

struct execution execution;

/* ---- a task ------------------------------------------------------------------------------------------------------ */

/* The events that the task must wait for, as they are known in its context. */
static cl_uint gather_waits(const struct list *list, uint32_t iteration, const struct task *task, cl_event *wait)
{
    const bool by_host = task->lane->device->is_host; /* the host can wait for events of all contexts */
    const int context = event_context(task);
    cl_uint n = 0;
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
        if (!edge->wait)
            continue;
        const struct task *producer = list->tasks[edge->producer];
        const struct task_flight *flight = latest_run(list, producer, iteration - edge->previous);
        if (!flight)
            continue; /* it has ended */
        bool is_known = by_host || context == event_context(producer);
        wait[n++] = is_known ? flight->done : flight->foreign[context];
    }
    return n;
}

/* For each other context where tasks wait for this run, the job is to complete a user event there. */
static void add_foreign_events(const struct task *task, struct job *job)
{
    for (int c = 0; c < job->list->pool->machine->n_contexts; c++)
        if (task->notify >> c & 1)
            job->flight->foreign[c] = add_user_event(job, c);
}

void give_to_lane(const struct task *task, enum job_kind kind, struct job *job)
{
    job->kind = kind;
    add_foreign_events(task, job);
    job->flight->done = add_user_event(job, event_context(task));
    give_job(&task->lane->thread, task->lane->name, copy_job(job));
}

/* Has the lane's forwarder complete user events when the task's work has ended: one in each other context where tasks
 * wait for this run, and, with a wrapper, `done`. */
static void forward_end(const struct task *task, struct job *job)
{
    job->kind = JOB_FORWARD;
    job->n_wait = 1;
    job->wait = &job->flight->work;
    add_foreign_events(task, job);
    if (job->list->running->wrapper)
        job->flight->done = add_user_event(job, event_context(task));
    give_job(&task->lane->forwarder, task->lane->name, copy_job(job));
}

static void issue_to_queue(const struct task *task, struct job *job)
{
    struct task_flight *flight = job->flight;
    const bool is_wrapped = job->list->running->wrapper != NULL;
    issue(job->list, task, job->iteration, job->n_wait, job->wait, &flight->work);
    flight->done = flight->work;
    if (task->flush || is_wrapped)
        CL(clFlush(task->lane->queue)); /* otherwise a waiting lane might wait for ever */
    if (task->notify || is_wrapped)
        forward_end(task, job);
}

static void issue_now(struct task *task, struct job *job)
{
    job->flight = open_flight(job->list, task, job->iteration);
    tell_issued(job->list, task, job->flight);
    if (task->lane->device->is_host)
        give_to_lane(task, JOB_HOST_TASK, job);
    else
        issue_to_queue(task, job);
}

/* With a wrapper, a device's task also waits until finish() has returned for the task before it on its lane.  The queue
 * does not make it wait so long: it knows only when that task's work has ended. */
static void wait_for_turn(const struct list *list, const struct task *task, struct job *job)
{
    const struct queue *queue = &list->running->queues[task->lane->index];
    if (task->lane->device->is_host || task->member.needed || queue->retired == queue->given)
        return;
    job->wait[job->n_wait++] = queued_flight(list, queue, queue->given - 1)->done;
}

/* Issues a task that is decided late, or any task of a list with a wrapper. */
static void issue_specially(struct list *list, struct task *task, struct job *job)
{
    if (list->running->wrapper)
        wait_for_turn(list, task, job);
    if (task->member.aside)
        park_task(list, task, job);
    else if (is_decided_late(task))
        give_late(task, job);
    else
        issue_now(task, job);
}

static void issue_task(struct list *list, uint32_t iteration, struct task *task)
{
    cl_event complete[MOST_DEVICES + 1];
    pthread_mutex_lock(&flights_lock);
    struct job job = {.list = list,
                      .task_index = task->index,
                      .iteration = iteration,
                      .n_wait = gather_waits(list, iteration, task, list->running->wait),
                      .wait = list->running->wait,
                      .complete = complete};
    if (!is_decided_late(task) && !list->running->wrapper)
        issue_now(task, &job);
    else
        issue_specially(list, task, &job);
    pthread_mutex_unlock(&flights_lock);
}

/* ---- an iteration ------------------------------------------------------------------------------------------------ */

/* PoCL 3.1 compiles a kernel anew when it is launched with the same work-group size and a wider grid than before.  It
 * counts the launches that use either, but takes the newer one off for both: when the two are in flight at once, the
 * count falls below 0 and the driver aborts the program ("found->ref_count > 0").  So the first launch of each kernel
 * task waits until nothing is in flight, and the others wait for it. */
static bool must_be_alone(const struct list *list, const struct task *task)
{
    bool is_first_launch = task->action == ACT_KERNEL && !list->running->task_runs[task->index].issued;
    return is_first_launch && list->pool->machine->n_devices > 1 && is_pocl(platform_of(task->lane->device));
}

static void issue_alone(struct list *list, uint32_t iteration, struct task *task)
{
    retire_all(list);
    issue_task(list, iteration, task);
    retire_all(list);
}

void execute(struct list *list, uint32_t iteration)
{
    CHECK(list->running, "list %s has not been finished", list->name);
    if (execution.serial) {
        execute_serial(list, iteration);
        return;
    }
    make_room(list, iteration);
    if (execution.watch)
        execution.watch(list);
    list->running->iteration_end[iteration % KEPT_ENDS] = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct task *task = list->tasks[i];
        if (!is_due(task, iteration) || (task->member.needed && !list->running->late))
            continue;
        tell_issuing(list, iteration, i);
        if (must_be_alone(list, task))
            issue_alone(list, iteration, task);
        else
            issue_task(list, iteration, task);
    }
    execution.now.list = NULL;
    flush_lanes(list->pool->machine);
    retire_ended(list);
}

/* ---- until all has ended ----------------------------------------------------------------------------------------- */

/* An event may end before the thread has finished the job that waited for it, so threads are waited for too.  A lane's
 * thread may give its forwarder a new job, so the forwarder is waited for second. */
static void wait_for_lane_threads(const struct machine *machine)
{
    for (int i = 0; i < machine->n_lanes; i++) {
        wait_until_idle(machine->lanes[i]->thread);
        wait_until_idle(machine->lanes[i]->forwarder);
    }
}

static void wait_for_threads_aside(const struct machine *machine)
{
    for (int i = 0; i < machine->n_lanes; i++)
        wait_until_idle(machine->lanes[i]->aside_thread);
}

void drain_but_disk(struct list *list)
{
    if (!list->running)
        return;
    retire_all(list);
    wait_for_lane_threads(list->pool->machine);
    if (list->restore_state)
        list->restore_state(list);
    if (execution.watch)
        execution.watch(NULL);
}

void drain(struct list *list)
{
    drain_but_disk(list);
    if (list->running && list->running->late) {
        wait_for_threads_aside(list->pool->machine);
        retire_ended(list);
    }
}

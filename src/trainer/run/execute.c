/* execute.c - runs a list: issues its tasks, and waits until all has ended.
 *
 * Tasks are issued in list order to their lanes.  A lane runs in order, so a task waits only for the edges that
 * depend() marked: events of other lanes, of this iteration or before.  Several iterations may be in flight.  Two
 * things must hold before the host issues the next one.  The compute lanes have ended the iteration two before it, and
 * each task has fewer than MOST_RUNS runs in flight.  So a slow task in the background, such as a write to the disk,
 * holds up only those tasks that wait for it by an edge.
 *
 * An event is known only to its own context.  Where a consumer is in another context, the producer also gets a user
 * event in that context, which a forwarder thread completes.  A host task's event is a user event from the start.
 *
 * If it is decided late whether a task runs, the task is not issued at once.  Instead a job is given to a thread, which
 * finds out later: see late.c.
 */
#include "flights.h"

/* ---- a task ------------------------------------------------------------------------------------------------------ */

/* The events that the task must wait for, as they are known in its context. */
static cl_uint gather_waits(struct step *s, uint32_t iteration, const struct task *t, cl_event *wait)
{
    const struct queue *q = &s->running->queue[t->lane->index];
    const bool by_host = t->lane->device->is_host; /* the host can wait for events of all contexts */
    const int context = event_context(t);
    cl_uint n = 0;
    /* A wrapped lane runs in order of the wrapper's ends, which its queue does not know of. */
    if (s->running->wrapper && !t->member.needed && !by_host && q->retired < q->given)
        wait[n++] = queued_flight(s, q, q->given - 1)->done;
    for (const struct edge *e = t->edges; e < t->edges + t->n_edges; e++) {
        const struct task *producer = s->task[e->producer];
        if (t->member.aside && producer->member.aside && !e->previous) /* a parked task has no flight */
            wait[n++] = s->running->task[producer->index].parked;
        if (!e->wait)
            continue;
        const struct task_flight *flight = latest_run(s, producer, iteration - e->previous);
        if (!flight)
            continue; /* it has ended */
        bool is_known = by_host || context == event_context(producer);
        wait[n++] = is_known ? flight->done : flight->foreign[context];
    }
    return n;
}

static cl_event user_event(struct step *s, int context)
{
    cl_event event;
    CL_MAKE(event = clCreateUserEvent(s->pool->machine->context[context].cl, &err));
    return event;
}

/* Gives a task that stands aside to late.c, where it waits outside of its lane.  The event `parked` says that it
 * ended. */
static void park_task(struct step *s, struct task *t, struct job *job)
{
    cl_event *parked = &s->running->task[t->index].parked;
    if (*parked)
        CL(clReleaseEvent(*parked));
    *parked = user_event(s, event_context(t));
    job->complete[job->n_complete++] = *parked;
    park_job(s, job);
}

/* Makes the user events that the job is to complete: one for each other context where tasks wait for this run, and with
 * needs_done one that is the flight's `done`, where no command's event can be. */
static void add_user_events(struct step *s, const struct task *t, struct task_flight *flight, bool needs_done,
                            struct job *job)
{
    for (int c = 0; c < s->pool->machine->n_contexts; c++)
        if (t->notify >> c & 1) {
            flight->foreign[c] = user_event(s, c);
            job->complete[job->n_complete++] = flight->foreign[c];
        }
    if (needs_done) {
        flight->done = user_event(s, event_context(t));
        job->complete[job->n_complete++] = flight->done;
    }
}

/* Issues a device's task to its queue.  The job, which is the forwarder's, then waits for the end of the task
 * itself. */
static void issue_to_queue(struct step *s, const struct task *t, struct job *job)
{
    struct task_flight *flight = job->flight;
    issue(s, t, job->iteration, job->n_wait, job->wait, &flight->work);
    if (t->flush || s->running->wrapper)
        CL(clFlush(t->lane->queue)); /* otherwise a waiting lane might wait for ever */
    flight->done = flight->work;
    job->n_wait = 1;
    job->wait = &flight->work;
}

/* A device's task is issued to its queue.  A host's is a job of its lane's thread; so is a device's copy that is
 * decided late, which the thread issues.  A wrapped task's `done` is not the end of its work: it is a user event, which
 * the lane's forwarder completes when the wrapper lets it. */
static void issue_task(struct step *s, uint32_t iteration, struct task *t)
{
    struct running *running = s->running;
    struct lane *lane = t->lane;
    const bool late = is_decided_late(t);
    const bool by_thread = lane->device->is_host || late;
    cl_event complete[MOST_DEVICES + 1];
    struct job job = {.step = s,
                      .task = t->index,
                      .iteration = iteration,
                      .is_host_task = lane->device->is_host,
                      .n_wait = gather_waits(s, iteration, t, running->wait),
                      .wait = running->wait,
                      .complete = complete};
    if (t->member.aside) {
        park_task(s, t, &job); /* late.c decides whether the task runs before a thread gets it */
        return;
    }
    if (late)
        job.should_run = decide_late;
    struct task_flight *flight = job.flight = open_flight(s, t, iteration);
    flight->queued = now_ns();
    if (!late) /* observers are told of a task that is decided late when it has run */
        tell_issued(s, t, flight);
    if (!by_thread)
        issue_to_queue(s, t, &job);
    add_user_events(s, t, flight, by_thread || running->wrapper, &job);
    if (job.n_complete)
        give_job(by_thread ? &lane->thread : &lane->forwarder, lane->name, keep_job(&job));
}

/* ---- an iteration ------------------------------------------------------------------------------------------------ */

static void execute_serial(struct step *s, uint32_t iteration)
{
    const struct serial_runner *runner = execution.serial_runner;
    void *begun = runner ? runner->begin(s) : NULL;
    for (size_t i = 0; i < s->n; i++) {
        struct task_flight flight = {.iteration = iteration};
        if (!runs(s->task[i], iteration) || !decide_late(s, s->task[i], iteration))
            continue;
        tell_issuing(s, iteration, i);
        flight.queued = now_ns();
        tell_issued(s, s->task[i], &flight);
        if (runner)
            runner->run(begun, iteration, i, &flight);
        else
            run_alone(s, iteration, i, &flight);
        report_run(s, s->task[i], &flight);
    }
    if (runner)
        runner->end(begun);
}

/* PoCL 3.1 compiles a kernel anew when it is launched with the same work-group size and a wider grid than before.  It
 * counts the launches that use either, but takes the newer one off for both: when the two are in flight at once, the
 * count falls below 0 and the driver aborts the program ("found->ref_count > 0").  So the first launch of each kernel
 * task waits until nothing is in flight, and the others wait for it. */
static bool must_be_alone(const struct step *s, const struct task *t)
{
    bool is_first_launch = t->action == ACT_KERNEL && !s->running->task[t->index].issued;
    return is_first_launch && s->pool->machine->n_devices > 1 && is_pocl(platform_of(t->lane->device));
}

void execute(struct step *s, uint32_t iteration)
{
    CHECK(s->running, "list %s has not been finished", s->name);
    if (execution.serial) {
        wait_all(s);
        s->running->iteration_end[iteration % KEPT_ENDS] = 0;
        execute_serial(s, iteration);
        return;
    }
    make_room(s, iteration);
    if (execution.watch)
        execution.watch(s);
    s->running->iteration_end[iteration % KEPT_ENDS] = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct task *t = s->task[i];
        if (!runs(t, iteration) || (t->member.needed && !s->running->late))
            continue;
        tell_issuing(s, iteration, i);
        bool alone = must_be_alone(s, t);
        if (alone)
            wait_all(s);
        pthread_mutex_lock(&flights_lock);
        issue_task(s, iteration, t);
        pthread_mutex_unlock(&flights_lock);
        if (alone)
            wait_all(s);
    }
    flush_lanes(s->pool->machine);
    retire_ended(s);
}

/* ---- until all has ended ----------------------------------------------------------------------------------------- */

/* An event may end before the thread has finished the job that waited for it, so threads are waited for too.  A lane's
 * thread may give its forwarder a new job, so the forwarder is waited for second. */
static void wait_for_lane_threads(const struct machine *m)
{
    for (int i = 0; i < m->n_lanes; i++) {
        wait_until_idle(m->lane[i]->thread);
        wait_until_idle(m->lane[i]->forwarder);
    }
}

static void wait_for_threads_aside(const struct machine *m)
{
    for (int i = 0; i < m->n_lanes; i++)
        wait_until_idle(m->lane[i]->aside_thread);
}

void drain_but_disk(struct step *s)
{
    if (!s->running)
        return;
    wait_all(s);
    wait_for_lane_threads(s->pool->machine);
    if (s->restore_state)
        s->restore_state(s);
    if (execution.watch)
        execution.watch(NULL);
}

void drain(struct step *s)
{
    drain_but_disk(s);
    if (s->running && s->running->late) {
        wait_for_threads_aside(s->pool->machine);
        retire_ended(s);
    }
}

/* execute.c - runs a list: issues its tasks, and waits until all has ended.
 *
 * Tasks are issued in list order to their lanes.  A lane runs in order, so a task waits only for the edges that
 * depend() marked: events of other lanes, of this iteration or before.  Several iterations may be in flight.  Two
 * things must hold before the host issues the next one.  The compute lanes have ended the iteration two before it, and
 * each task has fewer than MOST_RUNS runs in flight.  So a slow task in the background, such as a write to the disk,
 * holds up only those tasks that wait for it by an edge.
 *
 * The rule (issue_task()).  A device's task goes to its lane's queue, with the events that it waits for.  A task of the
 * host is a job of its lane's thread, which waits for these events and then runs it.
 *
 * An event is known only to its own context.  Where a consumer is in another context, the producer also gets a user
 * event in that context, which a forwarder thread completes.  A host task's event is a user event from the start.
 *
 * If it is decided late whether a task runs, the task is not issued at once.  Instead a job is given to a thread, which
 * finds out later: see late.c.  With a wrapper (struct wrapper), a task's `done` is not the end of its work: it is a
 * user event, which the lane's forwarder completes when the wrapper lets it.
 */
#include "flights.h"

/* ---- a task ------------------------------------------------------------------------------------------------------ */

/* The events that the task must wait for, as they are known in its context. */
static cl_uint gather_waits(const struct step *s, uint32_t iteration, const struct task *t, cl_event *wait)
{
    const bool by_host = t->lane->device->is_host; /* the host can wait for events of all contexts */
    const int context = event_context(t);
    cl_uint n = 0;
    for (const struct edge *e = t->edges; e < t->edges + t->n_edges; e++) {
        if (!e->wait)
            continue;
        const struct task *producer = s->task[e->producer];
        const struct task_flight *flight = latest_run(s, producer, iteration - e->previous);
        if (!flight)
            continue; /* it has ended */
        bool is_known = by_host || context == event_context(producer);
        wait[n++] = is_known ? flight->done : flight->foreign[context];
    }
    return n;
}

/* For each other context where tasks wait for this run, the job is to complete a user event there. */
static void add_foreign_events(const struct task *t, struct job *job)
{
    for (int c = 0; c < job->step->pool->machine->n_contexts; c++)
        if (t->notify >> c & 1)
            job->flight->foreign[c] = add_user_event(job, c);
}

void give_to_lane(const struct task *t, enum job_kind kind, struct job *job)
{
    job->kind = kind;
    add_foreign_events(t, job);
    job->flight->done = add_user_event(job, event_context(t));
    give_job(&t->lane->thread, t->lane->name, keep_job(job));
}

/* Issues a device's task to its queue.  The job then is the forwarder's, if there are user events to complete. */
static void issue_to_queue(const struct task *t, struct job *job)
{
    struct task_flight *flight = job->flight;
    const bool is_wrapped = job->step->running->wrapper != NULL;
    issue(job->step, t, job->iteration, job->n_wait, job->wait, &flight->work);
    if (t->flush || is_wrapped)
        CL(clFlush(t->lane->queue)); /* otherwise a waiting lane might wait for ever */
    job->kind = JOB_FORWARD;
    job->n_wait = 1;
    job->wait = &flight->work;
    add_foreign_events(t, job);
    flight->done = is_wrapped ? add_user_event(job, event_context(t)) : flight->work;
    if (job->n_complete)
        give_job(&t->lane->forwarder, t->lane->name, keep_job(job));
}

/* A wrapped lane of a device runs in order of the wrapper's ends, which its queue does not know of. */
static void wait_for_turn(const struct step *s, const struct task *t, struct job *job)
{
    const struct queue *q = &s->running->queue[t->lane->index];
    if (t->lane->device->is_host || t->member.needed || q->retired == q->given)
        return;
    job->wait[job->n_wait] = queued_flight(s, q, q->given - 1)->done;
    job->n_wait++;
}

/* A device's task goes to its queue, and a host's to the thread of its lane.  late.c does it for the others. */
static void issue_task(struct step *s, uint32_t iteration, struct task *t)
{
    cl_event complete[MOST_DEVICES + 1];
    struct job job = {.step = s,
                      .task = t->index,
                      .iteration = iteration,
                      .n_wait = gather_waits(s, iteration, t, s->running->wait),
                      .wait = s->running->wait,
                      .complete = complete};
    if (s->running->wrapper)
        wait_for_turn(s, t, &job);
    if (t->member.aside) {
        park_task(s, t, &job);
        return;
    }
    job.flight = open_flight(s, t, iteration);
    job.flight->queued = now_ns();
    if (is_decided_late(t)) {
        give_late(t, &job); /* observers are told of it when it has run */
        return;
    }
    tell_issued(s, t, job.flight);
    if (t->lane->device->is_host)
        give_to_lane(t, JOB_HOST_TASK, &job);
    else
        issue_to_queue(t, &job);
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

/* execute.c - runs a list: the short loop that everything else prepares.
 *
 * Tasks are issued in list order to their lanes.  A lane runs in order, so a task waits only for the edges that
 * depend() marked: events of other lanes, of this iteration or before.  Several iterations may be in flight: the host
 * issues the next one when the compute lanes are done with the one two before it, and of no task MOST_RUNS runs are
 * left.  So what goes on in the background, as a write to the disk, holds nobody up but those who wait for it by an
 * edge.
 *
 * Tasks with a slot are not issued, but jobs that find out whether they run: see late.c.
 *
 * An event is known only to its own context.  Where a consumer lives in another one, the producer also gets a user
 * event there, which a forwarder thread completes.  A host task's event is a user event from the start.
 */
#include "../../cl/shared.h" /* defines: choice_bit */
#include "run.h"

struct execution execution;

void issue(const struct step *s, const struct task *t, uint32_t number, cl_uint n_wait, const cl_event *wait,
           cl_event *done)
{
    cl_command_queue queue = t->lane->queue;
    const struct grid *g = &t->grid;
    if (t->issue) {
        t->issue(t, number, n_wait, wait, done);
        return;
    }
    if (!t->copy) {
        CL(clEnqueueNDRangeKernel(queue, s->running->task[t->index].kernel, (cl_uint)g->dims, NULL, g->global,
                                  g->local[0] ? g->local : NULL, n_wait, wait, done));
        return;
    }
    struct tensor *to = t->access[0].tensor, *from = t->access[1].tensor;
    if (from->device->is_host)
        CL(clEnqueueWriteBuffer(queue, tensor_buffer(to), CL_FALSE, 0, to->bytes, tensor_memory(from), n_wait, wait,
                                done));
    else if (to->device->is_host)
        CL(clEnqueueReadBuffer(queue, tensor_buffer(from), CL_FALSE, 0, to->bytes, tensor_memory(to), n_wait, wait,
                               done));
    else
        CL(clEnqueueCopyBuffer(queue, tensor_buffer(from), tensor_buffer(to), 0, 0, to->bytes, n_wait, wait, done));
}

static int context_of(const struct task *t) { return t->lane->device->is_host ? -1 : t->lane->device->context->index; }

/* A wrapped lane runs in order of the wrapper's ends, which its queue does not know of. */
static cl_uint wait_for_lane(struct step *s, const struct task *t, cl_event *wait)
{
    const struct queue *q = &s->running->queue[t->lane->index];
    if (q->retired == q->given || t->lane->device->is_host)
        return 0;
    *wait = queued_slot(s, q, q->given - 1)->done;
    return 1;
}

/* The events that the task must wait for, as they are known in its context. */
static cl_uint gather_waits(struct step *s, uint32_t number, const struct task *t, cl_event *wait)
{
    int context = context_of(t);
    cl_uint n = s->running->finish && !t->slot ? wait_for_lane(s, t, wait) : 0;
    for (size_t k = 0; k < t->n_edges; k++) {
        const struct task *producer = s->task[t->edges[k].from];
        struct slot *slot = t->edges[k].wait ? latest_run(s, producer, number - t->edges[k].previous) : NULL;
        if (!slot)
            continue; /* it has ended */
        int home = producer->lane->device->is_host ? 0 : context_of(producer);
        wait[n++] = context < 0 || context == home ? slot->done : slot->foreign[context];
    }
    return n;
}

static cl_event user_event(struct step *s, int context)
{
    cl_event event;
    CL_MAKE(event = clCreateUserEvent(s->pool->machine->context[context].cl, &err));
    return event;
}

/* A device's task is issued to its queue.  A host's is a job of its lane's thread; so is a device's copy that is
 * decided late, which the thread issues.  A wrapped task's `done` is not the end of its work, but what the lane's
 * forwarder completes when the wrapper lets it. */
static void issue_task(struct step *s, uint32_t number, struct task *t)
{
    struct running *r = s->running;
    struct lane *lane = t->lane;
    bool late = is_decided_late(t);
    cl_event complete[MAX_DEVICES + 1];
    struct job job = {.step = s,
                      .task = t->index,
                      .number = number,
                      .run = lane->device->is_host,
                      .goes = late ? goes_ahead : NULL,
                      .n_wait = gather_waits(s, number, t, r->wait),
                      .wait = r->wait,
                      .complete = complete};
    if (t->slot && !t->copy) {
        park_job(s, &job);
        return;
    }
    struct slot *slot = job.slot = open_slot(s, t, number);
    slot->queued = now_ns();
    if (execution.trace && !late) /* one that may not run is recorded when it has */
        slot->record = begin_record(s, t, slot);
    for (int c = 0; c < s->pool->machine->n_contexts; c++)
        if (t->notify >> c & 1)
            complete[job.n_complete++] = slot->foreign[c] = user_event(s, c);
    if (!job.run && !late) {
        issue(s, t, number, job.n_wait, job.n_wait ? job.wait : NULL, &slot->work);
        if (t->flush || r->finish)
            CL(clFlush(lane->queue)); /* or a waiting lane might wait for ever */
        job.n_wait = 1;
        job.wait = &slot->work;
        slot->done = slot->work;
    }
    if (job.run || late || r->finish)
        complete[job.n_complete++] = slot->done = user_event(s, job.run ? 0 : context_of(t));
    if (job.n_complete)
        submit_job(job.run || late ? &lane->thread : &lane->forward, lane->name, &job);
}

/* All that has been issued; other threads may use the slots meanwhile. */
static void wait_until_ended(struct step *s)
{
    pthread_mutex_unlock(&slots_lock);
    flush_lanes(s->pool->machine);
    wait_iteration(s, UINT32_MAX);
    pthread_mutex_lock(&slots_lock);
}

void execute(struct step *s, uint32_t number)
{
    CHECK(s->running, "list %s has not been finished", s->name);
    if (execution.serial) {
        wait_iteration(s, number);
        s->running->ended[number & 3] = 0;
        execute_serial(s, number);
        return;
    }
    make_room(s, number);
    watch(s);
    pthread_mutex_lock(&slots_lock);
    s->running->ended[number & 3] = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!runs(s->task[i], number) || (s->task[i]->slot && !s->running->late))
            continue;
        bool alone = must_be_alone(s, s->task[i]);
        if (is_held(s, number)) {
            pthread_mutex_unlock(&slots_lock);
            wait_for_viewer(s, number, i);
            pthread_mutex_lock(&slots_lock);
        }
        if (alone)
            wait_until_ended(s);
        issue_task(s, number, s->task[i]);
        if (alone)
            wait_until_ended(s);
    }
    pthread_mutex_unlock(&slots_lock);
    flush_lanes(s->pool->machine);
    retire_ended(s);
}

/* State that the last choices have left on the host, by the copies that bring it when the next ones are others.  It is
 * on both sides then, so the choices stay. */
static void bring_home(struct step *s)
{
    struct slot slot = {.number = 0};
    for (size_t i = 0; i < s->n; i++)
        if ((s->task[i]->needs & CHOICE_DEVICE) && (choice_bits(s->task[i]) & CHOICE_CPU))
            run_alone(s, 0, i, &slot);
}

/* An event may end before the job that waited for it.  (Jobs of a thread go on with one of the forwarder.) */
void drain_but_disk(struct step *s)
{
    const struct machine *m = s->pool->machine;
    if (!s->running)
        return;
    wait_iteration(s, UINT32_MAX);
    for (int i = 0; i < m->n_lanes; i++)
        if (m->lane[i]->kind != LANE_DISK)
            wait_until_idle(m->lane[i]->thread), wait_until_idle(m->lane[i]->forward);
    bring_home(s);
    watch(NULL);
}

void drain(struct step *s)
{
    drain_but_disk(s);
    if (s->running && s->running->late)
        wait_until_idle(s->pool->machine->host->lane[LANE_DISK]->thread), report_stored(s);
}

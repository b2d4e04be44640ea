/* execute.c - runs a list: the short loop that everything else prepares.
 *
 * Tasks are issued in list order to their lanes.  A lane runs in order, so a task waits only for the edges that
 * depend() marked: events of other lanes, of this iteration or the one before.  Two iterations may be in flight; each
 * has its own slots (by parity), which are collected when the parity comes round again.
 *
 * An event is known only to its own context.  Where a consumer lives in another one, the producer also gets a user
 * event there, which a forwarder thread completes.  A host task's event is a user event from the start.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

struct execution execution;
pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

static cl_event *foreign_of(struct step *s, uint32_t number, size_t task)
{
    return &s->foreign[number & 1][task * (size_t)s->pool->machine->n_contexts];
}

/* ---- collecting what has ended --------------------------------------------------------------------------------- */

/* Report times in list order; a task of several commands starts when its lane's last one ended. */
static void report_times(struct step *s, uint32_t number)
{
    uint64_t seen = now_ns(), lane_end[MAX_LANES] = {0};
    for (size_t i = 0; i < s->n; i++) {
        struct task *t = s->task[i];
        struct slot *slot = slot_of(s, number, i);
        bool exact = task_times(t, slot, seen);
        if (t->span && !s->finish)
            slot->start = MAX(slot->queued, MIN(lane_end[t->lane->index], slot->end));
        lane_end[t->lane->index] = slot->end;
        if (execution.trace)
            trace_end(execution.trace, slot->record, slot->start, slot->end, exact ? 0 : TRACE_APPROXIMATE);
        if (execution.observe)
            execution.observe(execution.observe_context, s, t, number, slot->start, slot->end);
    }
}

/* When the devices were done with the iteration: the last end of their lanes, each being in order. */
static uint64_t last_end(struct step *s, uint32_t number)
{
    uint64_t seen = now_ns(), last = 0;
    bool known[MAX_LANES] = {false};
    for (size_t i = s->n; i-- > 0;) {
        const struct lane *lane = s->task[i]->lane;
        if (lane->device->is_host || known[lane->index])
            continue;
        known[lane->index] = true;
        task_times(s->task[i], slot_of(s, number, i), seen);
        last = MAX(last, slot_of(s, number, i)->end);
    }
    return last;
}

static void release_slots(struct step *s, uint32_t number)
{
    pthread_mutex_lock(&slots_lock);
    for (size_t i = 0; i < s->n; i++) {
        struct slot *slot = slot_of(s, number, i);
        cl_event *foreign = foreign_of(s, number, i);
        for (int c = 0; c < s->pool->machine->n_contexts; c++)
            if (foreign[c]) {
                CL(clReleaseEvent(foreign[c]));
                foreign[c] = NULL;
            }
        if (slot->work && slot->work != slot->done)
            CL(clReleaseEvent(slot->work));
        if (slot->done)
            CL(clReleaseEvent(slot->done));
        memset(slot, 0, sizeof *slot);
    }
    s->number[number & 1] = 0;
    pthread_mutex_unlock(&slots_lock);
}

static void wait_for_lanes(struct step *s, uint32_t number, bool compute)
{
    for (size_t i = s->n; i-- > 0;) {
        cl_event done = slot_of(s, number, i)->done;
        if (done && compute == (s->task[i]->lane->kind == LANE_COMPUTE))
            clWaitForEvents(1, &done); /* an error shows in the status, where the task can be named */
    }
}

/* Every task's event is waited for: the last of each lane would do, but this also finds the one that failed.  Compute
 * lanes come first: in Intel's CPU runtime a thread that waits for a kernel computes with the others, and one core is
 * left for it; waiting for a host task instead would let that core stand still. */
static void wait_for_slots(struct step *s, uint32_t number)
{
    wait_for_lanes(s, number, true);
    wait_for_lanes(s, number, false);
    for (size_t i = 0; i < s->n; i++)
        if (slot_of(s, number, i)->done)
            check_status(s, s->task[i], number, slot_of(s, number, i)->done);
}

void wait_iteration(struct step *s, uint32_t number)
{
    if (number == 0 || s->number[number & 1] != number)
        return; /* never issued, or collected already */
    if (!execution.serial) {
        wait_for_slots(s, number);
        if (execution.trace || execution.observe)
            report_times(s, number);
    }
    s->ended[number & 3] = last_end(s, number);
    release_slots(s, number);
}

void wait_lanes(struct step *s)
{
    for (int parity = 0; parity < 2; parity++)
        for (size_t i = s->n; i-- > 0 && s->number[parity];)
            if (s->slots[parity][i].done)
                clWaitForEvents(1, &s->slots[parity][i].done);
}

void drain(struct step *s)
{
    uint32_t a = s->number[0], b = s->number[1];
    wait_iteration(s, MIN(a, b));
    wait_iteration(s, MAX(a, b));
    for (int i = 0; i < s->pool->machine->n_lanes; i++) { /* an event may end before the job that waited for it */
        wait_until_idle(s->pool->machine->lane[i].thread);
        wait_until_idle(s->pool->machine->lane[i].forward);
    }
    watch(NULL);
}

/* ---- issuing --------------------------------------------------------------------------------------------------- */

static int context_of(const struct task *t) { return t->lane->device->is_host ? -1 : t->lane->device->context->index; }

/* A wrapped lane runs in order of the wrapper's ends, which its queue does not know of. */
static cl_uint wait_for_lane(struct step *s, uint32_t number, const struct task *t, cl_event *wait)
{
    uint32_t when = number - t->lane_before_previous;
    if (when == 0 || s->number[when & 1] != when || t->lane->device->is_host)
        return 0;
    *wait = slot_of(s, when, t->lane_before)->done;
    return 1;
}

/* The events that task i must wait for, as they are known in its context. */
static cl_uint gather_waits(struct step *s, uint32_t number, size_t i, cl_event *wait)
{
    const struct task *t = s->task[i];
    int context = context_of(t);
    cl_uint n = s->finish ? wait_for_lane(s, number, t, wait) : 0;
    for (size_t k = 0; k < t->n_edges; k++) {
        const struct edge *e = &t->edges[k];
        uint32_t when = number - e->previous;
        if (!e->wait || when == 0 || s->number[when & 1] != when)
            continue; /* no iteration before the first */
        struct slot *slot = slot_of(s, when, e->from);
        const struct task *producer = s->task[e->from];
        int home = producer->lane->device->is_host ? 0 : context_of(producer);
        wait[n++] = context < 0 || context == home ? slot->done : foreign_of(s, when, e->from)[context];
    }
    return n;
}

static cl_event user_event(struct step *s, int context)
{
    cl_event event;
    CL_MAKE(event = clCreateUserEvent(s->pool->machine->context[context].cl, &err));
    return event;
}

/* User events in the other contexts that wait for task i. */
static cl_uint make_foreign(struct step *s, uint32_t number, size_t i, cl_event *made)
{
    cl_event *foreign = foreign_of(s, number, i);
    cl_uint n = 0;
    for (int c = 0; c < s->pool->machine->n_contexts; c++)
        if (s->task[i]->notify >> c & 1)
            made[n++] = foreign[c] = user_event(s, c);
    return n;
}

static void issue_host(struct step *s, uint32_t number, size_t i, cl_uint n_wait, cl_event *wait)
{
    struct task *t = s->task[i];
    struct slot *slot = slot_of(s, number, i);
    cl_event complete[MAX_DEVICES + 1];
    cl_uint n = make_foreign(s, number, i, complete);
    complete[n++] = slot->done = user_event(s, 0);
    struct job job = {s, i, number, true, n_wait, n, wait, complete};
    submit_job(&t->lane->thread, t->lane->name, &job);
}

/* A wrapped task's `done` is not the end of its work, but what the lane's thread completes when the wrapper lets it. */
static void issue_device(struct step *s, uint32_t number, size_t i, cl_uint n_wait, cl_event *wait)
{
    struct task *t = s->task[i];
    struct slot *slot = slot_of(s, number, i);
    cl_event complete[MAX_DEVICES + 1];
    cl_uint n = t->notify ? make_foreign(s, number, i, complete) : 0;
    t->issue(t, n_wait, n_wait ? wait : NULL, &slot->work);
    if (t->flush || s->finish)
        CL(clFlush(t->lane->queue)); /* or a waiting lane might wait for ever */
    slot->done = slot->work;
    if (s->finish)
        complete[n++] = slot->done = user_event(s, context_of(t));
    if (n) {
        struct job job = {s, i, number, false, 1, n, &slot->work, complete};
        submit_job(&t->lane->forward, t->lane->name, &job);
    }
}

static void issue_task(struct step *s, uint32_t number, size_t i)
{
    cl_event wait[2 * MAX_LANES + 1];
    struct slot *slot = slot_of(s, number, i);
    cl_uint n_wait = gather_waits(s, number, i, wait);
    slot->queued = now_ns();
    if (execution.trace)
        slot->record = trace_begin(execution.trace, number, s->first_trace_task + (uint32_t)i, slot->queued);
    if (s->task[i]->lane->device->is_host)
        issue_host(s, number, i, n_wait, wait);
    else
        issue_device(s, number, i, n_wait, wait);
}

void execute(struct step *s, uint32_t number)
{
    CHECK(s->ready, "list %s has not been finished", s->name);
    adopt_slowness(s);
    wait_iteration(s, s->number[number & 1]);
    pthread_mutex_lock(&slots_lock);
    s->number[number & 1] = number;
    pthread_mutex_unlock(&slots_lock);
    if (execution.serial) {
        wait_iteration(s, s->number[(number & 1) ^ 1]);
        execute_serial(s, number);
        return;
    }
    watch(s);
    pthread_mutex_lock(&slots_lock);
    for (size_t i = 0; i < s->n; i++) {
        if (is_held(s, number)) {
            pthread_mutex_unlock(&slots_lock);
            wait_for_viewer(s, number, i);
            pthread_mutex_lock(&slots_lock);
        }
        issue_task(s, number, i);
    }
    pthread_mutex_unlock(&slots_lock);
    for (int i = 0; i < s->pool->machine->n_lanes; i++)
        if (s->pool->machine->lane[i].queue)
            CL(clFlush(s->pool->machine->lane[i].queue));
}

/* execute.c - runs a list: makes what it needs to run, and issues its tasks.
 *
 * Tasks are issued in list order to their lanes.  A lane runs in order, so a task waits only for the edges that
 * depend() marked: events of other lanes, of this iteration or before.  Several iterations may be in flight: the host
 * issues the next one when the compute lanes are done with the one two before it, and of no task MOST_RUNS runs are
 * left.  So what goes on in the background, as a write to the disk, holds nobody up but those who wait for it by an
 * edge.
 *
 * An event is known only to its own context.  Where a consumer lives in another one, the producer also gets a user
 * event there, which a forwarder thread completes.  A host task's event is a user event from the start.
 *
 * Tasks with a slot are not issued, but jobs that find out whether they run: see late.c.
 */
#include "run.h"

struct execution execution;

/* ---- from lists on paper to lists that can run ------------------------------------------------------------------- */

/* A kernel object of its own, so that its arguments are set once. */
static cl_kernel prepare_kernel(const struct task *t)
{
    cl_kernel kernel = make_kernel(t->lane->device, t->file, t->function);
    for (int i = 0; i < t->n_args; i++) {
        const struct arg *a = &t->args[i];
        cl_mem buffer = a->kind == ARG_TENSOR && a->i >= 0 ? tensor_buffer(t->access[a->i].tensor) : NULL;
        const struct {
            size_t bytes;
            const void *value;
        } given[] = {[ARG_TENSOR] = {sizeof buffer, &buffer},
                     [ARG_INT] = {sizeof a->i, &a->i},
                     [ARG_ELEMENTS] = {sizeof a->i, &a->i},
                     [ARG_FLOAT] = {sizeof a->f, &a->f},
                     [ARG_LOCAL] = {(size_t)a->i, NULL}};
        cl_int code = clSetKernelArg(kernel, (cl_uint)i, given[a->kind].bytes, given[a->kind].value);
        if (code != CL_SUCCESS)
            fail(EXIT_FAILED,
                 "task %s: argument %d of kernel %s (cl/%s): %s; does the .cl file still take the same arguments?",
                 t->name, i, t->function, t->file, cl_error_name(code));
    }
    return kernel;
}

static void stop_running(struct step *s)
{
    struct running *r = s->running;
    for (int i = 0; i < r->n_queues; i++) {
        CHECK(r->queue[i].given == r->queue[i].retired, "list %s is freed while tasks of it are in flight", s->name);
        free(r->queue[i].run);
    }
    for (size_t i = 0; i < s->n; i++) {
        if (r->task[i].kernel)
            CL(clReleaseKernel(r->task[i].kernel));
        for (int run = 0; run < MOST_RUNS; run++)
            free(r->task[i].slot[run].foreign);
    }
    free(r->task), free(r->queue), free(r->wait);
    free(r);
}

static void make_running(struct step *s)
{
    const struct machine *m = s->pool->machine;
    struct running *r = s->running = allocate(1, sizeof *r);
    size_t most = 0;
    s->stop = stop_running;
    r->task = allocate(s->n, sizeof *r->task);
    r->n_queues = m->n_lanes;
    r->queue = allocate((size_t)m->n_lanes, sizeof *r->queue);
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        r->queue[t->lane->index].cap += MOST_RUNS;
        most = MAX(most, t->n_edges);
        r->task[i].kernel = t->file ? prepare_kernel(t) : NULL;
        for (size_t run = 0; t->notify && run < MOST_RUNS; run++)
            r->task[i].slot[run].foreign = allocate((size_t)m->n_contexts, sizeof(cl_event));
    }
    for (int i = 0; i < r->n_queues; i++)
        r->queue[i].run = allocate(r->queue[i].cap, sizeof *r->queue[i].run);
    r->wait = allocate(most + 1, sizeof *r->wait);
}

struct problem *finish_steps(struct pool *p, struct step *const *steps, size_t n)
{
    struct problem *wrong = place(p, steps, n, false);
    for (size_t k = 0; k < n && !wrong; k++) {
        depend(steps[k], true);
        make_running(steps[k]);
    }
    return wrong;
}

/* ---- a task --------------------------------------------------------------------------------------------------------
 */

void issue(const struct step *s, const struct task *t, uint32_t number, cl_uint n_wait, const cl_event *wait,
           cl_event *done)
{
    cl_command_queue queue = t->lane->queue;
    const struct grid *g = &t->grid;
    wait = n_wait ? wait : NULL;
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

/* The events that the task must wait for, as they are known in its context. */
static cl_uint gather_waits(struct step *s, uint32_t number, const struct task *t, cl_event *wait)
{
    const struct queue *q = &s->running->queue[t->lane->index];
    int context = context_of(t);
    cl_uint n = 0;
    /* A wrapped lane runs in order of the wrapper's ends, which its queue does not know of. */
    if (s->running->finish && !t->slot && context >= 0 && q->retired < q->given)
        wait[n++] = queued_slot(s, q, q->given - 1)->done;
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
    if (!late) /* one that may not run is recorded when it has */
        begin_record(s, t, slot);
    for (int c = 0; c < s->pool->machine->n_contexts; c++)
        if (t->notify >> c & 1)
            complete[job.n_complete++] = slot->foreign[c] = user_event(s, c);
    if (!job.run && !late) {
        issue(s, t, number, job.n_wait, job.wait, &slot->work);
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

/* ---- an iteration --------------------------------------------------------------------------------------------------
 */

static void execute_serial(struct step *s, uint32_t number)
{
    struct audit *audit = execution.audit ? open_audit(s) : NULL;
    for (size_t i = 0; i < s->n; i++) {
        struct slot slot = {.number = number, .queued = now_ns()};
        if (!runs(s->task[i], number) || !goes_ahead(s, s->task[i], number))
            continue;
        obey_viewer(s, number, i);
        begin_record(s, s->task[i], &slot);
        char *wrong = audit ? audit_task(audit, number, i, &slot) : NULL;
        if (wrong)
            fail(EXIT_FAILED, "audit: %s", wrong);
        if (!audit)
            run_alone(s, number, i, &slot);
        report_run(s, s->task[i], &slot, true);
    }
    if (audit)
        close_audit(audit);
}

/* PoCL 3.1 compiles a kernel anew when it is launched with the same work-group size and a wider grid than before.  It
 * counts the launches that use either, but takes the newer one off for both: when the two are in flight at once, the
 * count falls below 0 and the driver aborts the program (`found->ref_count > 0`).  So the first launch of each kernel
 * task waits until nothing is in flight, and the others wait for it; that is the first iteration only. */
static bool must_be_alone(const struct step *s, const struct task *t)
{
    return t->file && t->lane->device->is_cpu && !s->running->task[t->index].issued && s->pool->machine->n_devices > 1;
}

void execute(struct step *s, uint32_t number)
{
    CHECK(s->running, "list %s has not been finished", s->name);
    if (!execution.serial) {
        make_room(s, number);
        watch(s);
    }
    s->running->ended[number & 3] = 0;
    if (execution.serial) {
        wait_all(s);
        execute_serial(s, number);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (!runs(s->task[i], number) || (s->task[i]->slot && !s->running->late))
            continue;
        obey_viewer(s, number, i);
        bool alone = must_be_alone(s, s->task[i]);
        if (alone)
            wait_all(s);
        pthread_mutex_lock(&slots_lock);
        issue_task(s, number, s->task[i]);
        pthread_mutex_unlock(&slots_lock);
        if (alone)
            wait_all(s);
    }
    flush_lanes(s->pool->machine);
    retire_ended(s);
}

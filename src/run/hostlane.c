/* hostlane.c - threads that wait for events: host lanes and forwarders.
 *
 * A job waits for events, runs a host task (or nothing), and completes user events.  A host lane is a thread with a
 * first-in-first-out list of jobs that run tasks.  A forwarder is the same thread with jobs that run nothing: it
 * carries "done" from one OpenCL context to another, since an event can be waited for only in its own.  Each lane with
 * consumers in other contexts has a forwarder; its events end in order, so waiting in order delays none. Nothing is
 * done in OpenCL callbacks: setting a user event there deadlocks on some drivers.
 */
#include "run.h"

struct waiting {
    struct job job;
    struct waiting *next;
};
struct host_thread {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct waiting *first, **end; /* a queue */
    bool busy, stop;              /* busy: a job has been taken and not finished */
};

/* Wait for each event (they may be of several contexts); a failed one's status, else CL_COMPLETE. */
static cl_int wait_for(cl_uint n, cl_event *events)
{
    cl_int worst = CL_COMPLETE;
    for (cl_uint i = 0; i < n; i++) {
        clWaitForEvents(1, &events[i]); /* fails when the event did: the status says so too */
        worst = MIN(worst, event_status(events[i]));
        CL(clReleaseEvent(events[i]));
    }
    return worst;
}

/* A device's copy, issued behind what it waits for if it goes; the forwarder sees its end, or in its turn that it is
 * left out: what comes behind others on the lane ends behind them. */
static void issue_chosen(struct job *job)
{
    const struct task *t = job->step->task[job->task];
    struct job end = *job;
    end.goes = NULL;
    if (!job->slot->skipped) {
        issue(job->step, t, job->number, 0, NULL, &job->slot->work);
        CL(clFlush(t->lane->queue));
        end.n_wait = 1;
        end.wait = &job->slot->work;
    }
    submit_job(&t->lane->forward, t->lane->name, &end);
    drop_job(job);
}

static void finish_job(struct job *job, cl_int status)
{
    if (!job->slot->skipped && job->step->running->finish)
        job->step->running->finish(job->step, job->number, job->task, job->slot);
    if (job->ended)
        job->ended(job);
    for (cl_uint i = 0; i < job->n_complete; i++)
        CL(clSetUserEventStatus(job->complete[i], status));
    drop_job(job);
}

static void run_job(struct job *job)
{
    cl_int status = wait_for(job->n_wait, job->wait);
    bool ready = status == CL_COMPLETE;
    job->n_wait = 0; /* released */
    if (job->goes)
        job->slot->skipped = !(ready && job->goes(job->step, job->step->task[job->task], job->number));
    if (ready && job->goes && !job->run) {
        issue_chosen(job);
        return;
    }
    if (ready && job->run && !job->slot->skipped) {
        const struct task *task = job->step->task[job->task];
        job->slot->start = now_ns();
        task->run(task->context, task, job->number);
        job->slot->end = now_ns();
    }
    finish_job(job, status);
}

static bool next_job(struct host_thread *t, struct job *job)
{
    pthread_mutex_lock(&t->lock);
    t->busy = false;
    pthread_cond_broadcast(&t->changed);
    while (!t->first && !t->stop)
        pthread_cond_wait(&t->changed, &t->lock);
    struct waiting *got = t->first;
    t->busy = got;
    t->first = got ? got->next : NULL;
    t->end = t->first ? t->end : &t->first;
    pthread_mutex_unlock(&t->lock);
    if (got)
        *job = got->job;
    free(got);
    return got;
}

/* The thread runs when the others leave time, from here on: where devices are the host's own cores, what it does would
 * else take them from the tasks that everything waits for.  A low priority would not do: it is a share, which comes in
 * slices that the others wait for.  Whoever wakes up takes the core from an idle thread at once. */
static void give_way(bool *gives_way)
{
#ifdef __linux__
    if (!*gives_way)
        pthread_setschedparam(pthread_self(), SCHED_IDLE, &(struct sched_param){0});
#endif
    *gives_way = true;
}

static void *thread_main(void *argument)
{
    struct job job;
    bool gives_way = false;
    while (next_job(argument, &job)) {
        if (job.ended)
            give_way(&gives_way);
        run_job(&job);
    }
    return NULL;
}

static struct host_thread *start_thread(const char *name)
{
    struct host_thread *t = allocate(1, sizeof *t);
    t->end = &t->first;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    int code = pthread_create(&t->thread, NULL, thread_main, t);
    if (code)
        fail(EXIT_FAILED, "cannot start a thread for lane %s: %s", name, strerror(code));
#ifdef __linux__
    char short_name[16]; /* gdb's `info threads` then shows the lane */
    snprintf(short_name, sizeof short_name, "%.15s", name);
    pthread_setname_np(t->thread, short_name);
#endif
    return t;
}

static cl_event *retain_all(const cl_event *events, cl_uint n)
{
    cl_event *copy = allocate(n, sizeof(cl_event));
    for (cl_uint i = 0; i < n; i++) {
        copy[i] = events[i];
        CL(clRetainEvent(events[i]));
    }
    return copy;
}

struct job keep_job(const struct job *job)
{
    struct job kept = *job;
    kept.wait = retain_all(job->wait, job->n_wait);
    kept.complete = retain_all(job->complete, job->n_complete);
    return kept;
}

void drop_job(struct job *kept)
{
    for (cl_uint i = 0; i < kept->n_wait; i++)
        CL(clReleaseEvent(kept->wait[i]));
    for (cl_uint i = 0; i < kept->n_complete; i++)
        CL(clReleaseEvent(kept->complete[i]));
    free(kept->wait);
    free(kept->complete);
}

void submit_job(struct host_thread **thread, const char *name, const struct job *job)
{
    struct job kept = keep_job(job);
    give_job(thread, name, &kept);
}

void give_job(struct host_thread **thread, const char *name, const struct job *kept)
{
    struct waiting *last = allocate(1, sizeof *last);
    struct host_thread *t = *thread = *thread ? *thread : start_thread(name);
    last->job = *kept;
    pthread_mutex_lock(&t->lock);
    *t->end = last;
    t->end = &last->next;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

void wait_until_idle(struct host_thread *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    while (t->busy || t->first)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void stop_thread(struct host_thread **thread)
{
    struct host_thread *t = *thread;
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    free(t);
    *thread = NULL;
}

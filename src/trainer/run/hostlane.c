/* hostlane.c - threads that run jobs: those of host lanes, forwarders, and lanes of devices whose copies may be
 * skipped at the last moment (late.c).
 *
 * A job waits for events, and then its function (job_function) does what is left to do and completes user events.  A
 * host lane is a thread with a first-in-first-out list of jobs that run tasks.  No work is done in OpenCL callbacks:
 * setting a user event there deadlocks on some drivers.
 */
#include "run_parts.h"

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Returns CL_COMPLETE, or the error of an event. */
static cl_int wait_for_events(const struct job *job)
{
    cl_int status = CL_COMPLETE;
    for (cl_uint i = 0; i < job->n_wait; i++) { /* one by one: events may be of several contexts */
        clWaitForEvents(1, &job->wait_list[i]); /* an error shows in the status, too */
        status = MIN(status, event_status(job->wait_list[i]));
    }
    return status;
}

void do_host_task(struct job *job)
{
    const struct task *task = job->task;
    job->flight->start = now_ns();
    task->function(task->argument, task, job->iteration);
    job->flight->end = now_ns();
}

void end_job(struct job *job, cl_int status)
{
    complete_events(job, status);
    free_job(job);
}

void run_host_task(struct job *job, cl_int status)
{
    if (status == CL_COMPLETE)
        do_host_task(job);
    end_job(job, status);
}

static struct job *next_job(struct host_thread *thread)
{
    pthread_mutex_lock(&thread->lock);
    thread->busy = false;
    pthread_cond_broadcast(&thread->changed);
    while (!thread->queue.first && !thread->stop)
        pthread_cond_wait(&thread->changed, &thread->lock);
    struct job *job = take_job(&thread->queue); /* NULL: the thread is to stop */
    thread->busy = job != NULL;
    pthread_mutex_unlock(&thread->lock);
    return job;
}

void *run_jobs(void *argument)
{
    struct host_thread *thread = argument;
    for (struct job *job = next_job(thread); job; job = next_job(thread))
        job->when_ready(job, wait_for_events(job));
    return NULL;
}

/* Guards the pointers to threads, *place below, while a first job starts the thread.  Two threads may give a lane's
 * forwarder its first job: the one that issues tasks, and the lane's own, whose copy may be skipped (late.c). */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

void give_job(struct host_thread **place, const char *name, struct job *job)
{
    pthread_mutex_lock(&starting);
    if (!*place)
        *place = start_thread(name);
    struct host_thread *thread = *place;
    pthread_mutex_unlock(&starting);
    pthread_mutex_lock(&thread->lock);
    append_job(&thread->queue, job);
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->lock);
}

void give_to_lane(struct job *job)
{
    struct lane *lane = job->task->lane;
    add_foreign_events(job);
    job->flight->done = add_user_event(job, event_context(job->task));
    give_job(&lane->thread, lane->name, job);
}

/* ---- a first reading ends here: forwarders ----------------------------------------------------------------------- */

/* An event can be waited for only in its own OpenCL context.  A forwarder is a thread whose jobs run nothing: it
 * carries "done" from one context to another.  Each lane with consumers in other contexts has a forwarder.  The lane's
 * events end in order, so waiting for them in order delays none. */

struct job *new_forwarded_job(const struct issue *issue, struct task_flight *flight, job_function *when_ready)
{
    struct job *job = new_job_without_waits(issue, flight, when_ready);
    set_waits(job, &flight->work, 1);
    return job;
}

void add_foreign_events(struct job *job)
{
    for (int c = 0; c < job->list->pool->machine->n_contexts; c++)
        if (job->task->notify >> c & 1)
            job->flight->foreign[c] = add_user_event(job, c);
}

void forward_end(struct job *job)
{
    struct lane *lane = job->task->lane;
    add_foreign_events(job);
    give_job(&lane->forwarder, lane->name, job);
}

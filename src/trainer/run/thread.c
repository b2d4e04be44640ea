/* thread.c - threads that run jobs: those of host lanes, forwarders, and lanes of devices whose copies may be skipped
 * at the last moment (late.c).
 *
 * A thread runs its jobs in the order in which they were given to it.  A job waits for events, and then its function
 * (job_function) does what is left to do and completes user events.  No work is done in OpenCL callbacks: setting a
 * user event there deadlocks on some drivers.
 */
#include "run_parts.h"

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

static struct job *next_job(struct host_thread *thread)
{
    pthread_mutex_lock(&thread->lock);
    thread->busy = false;
    pthread_cond_broadcast(&thread->changed);
    while (!thread->jobs.first && !thread->stop)
        pthread_cond_wait(&thread->changed, &thread->lock);
    struct job *job = take_job(&thread->jobs); /* NULL: the thread is to stop */
    thread->busy = job != NULL;
    pthread_mutex_unlock(&thread->lock);
    return job;
}

static void *run_jobs(void *argument)
{
    struct host_thread *thread = argument;
    for (struct job *job = next_job(thread); job; job = next_job(thread))
        job->when_ready(job, wait_for_events(job));
    return NULL;
}

/* Starts the thread of a lane of that name. */
static struct host_thread *start_thread(const char *name)
{
    struct host_thread *thread = allocate(1, sizeof *thread);
    pthread_mutex_init(&thread->lock, NULL);
    pthread_cond_init(&thread->changed, NULL);
    int code = pthread_create(&thread->thread, NULL, run_jobs, thread);
    if (code)
        fail(EXIT_FAILED,
             "cannot start a thread for lane %s: %s; allow this user more processes and threads (ulimit -u), or take "
             "--serial, which needs none",
             name, strerror(code));
#ifdef __linux__
    char short_name[16]; /* gdb's `info threads` then shows the lane */
    snprintf(short_name, sizeof short_name, "%.15s", name);
    pthread_setname_np(thread->thread, short_name);
#endif
    return thread;
}

/* Guards the lanes' pointers to threads while a first job starts one.  Two threads may give a lane's forwarder its
 * first job: the one that issues tasks, and the lane's own, whose copy may be skipped (late.c). */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

void give_job(struct lane *lane, enum thread_kind kind, struct job *job)
{
    pthread_mutex_lock(&starting);
    if (!lane->threads)
        lane->threads = allocate(THREAD_KINDS, sizeof *lane->threads);
    if (!lane->threads[kind])
        lane->threads[kind] = start_thread(lane->name);
    struct host_thread *thread = lane->threads[kind];
    pthread_mutex_unlock(&starting);
    pthread_mutex_lock(&thread->lock);
    append_job(&thread->jobs, job);
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->lock);
}

/* ---- the end of threads ------------------------------------------------------------------------------------------ */

/* Waits until the lane's thread of this kind, if there is one, has finished its jobs. */
static void wait_until_idle(const struct lane *lane, enum thread_kind kind)
{
    pthread_mutex_lock(&starting); /* another thread may be giving this lane a first job */
    struct host_thread *thread = lane->threads ? lane->threads[kind] : NULL;
    pthread_mutex_unlock(&starting);
    if (!thread)
        return;
    pthread_mutex_lock(&thread->lock);
    while (thread->busy || thread->jobs.first)
        pthread_cond_wait(&thread->changed, &thread->lock);
    pthread_mutex_unlock(&thread->lock);
}

void wait_for_threads(const struct machine *machine, enum thread_kind kind)
{
    for (int i = 0; i < machine->n_lanes; i++)
        wait_until_idle(machine->lanes[i], kind);
}

/* Waits until all jobs of the thread are finished, and ends it.  Does nothing for NULL. */
static void stop_thread(struct host_thread *thread)
{
    if (!thread)
        return;
    pthread_mutex_lock(&thread->lock);
    thread->stop = true;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->lock);
    pthread_join(thread->thread, NULL);
    pthread_mutex_destroy(&thread->lock);
    pthread_cond_destroy(&thread->changed);
    free(thread);
}

void stop_lane_threads(struct machine *machine)
{
    for (int i = 0; i < machine->n_lanes; i++) {
        struct lane *lane = machine->lanes[i];
        for (int kind = 0; lane->threads && kind < THREAD_KINDS; kind++)
            stop_thread(lane->threads[kind]);
        free(lane->threads);
        lane->threads = NULL;
    }
}

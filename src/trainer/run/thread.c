/* thread.c - starts and stops the threads that run jobs, and waits until they are idle. */
#include "run_parts.h"

struct host_thread *start_thread(const char *name)
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

void wait_until_idle(struct host_thread *thread)
{
    if (!thread)
        return;
    pthread_mutex_lock(&thread->lock);
    while (thread->busy || thread->queue.first)
        pthread_cond_wait(&thread->changed, &thread->lock);
    pthread_mutex_unlock(&thread->lock);
}

/* Waits until all jobs of the thread are finished, ends it and sets *thread to NULL.  Does nothing for NULL. */
static void stop_thread(struct host_thread **thread)
{
    struct host_thread *stopped = *thread;
    if (!stopped)
        return;
    pthread_mutex_lock(&stopped->lock);
    stopped->stop = true;
    pthread_cond_broadcast(&stopped->changed);
    pthread_mutex_unlock(&stopped->lock);
    pthread_join(stopped->thread, NULL);
    pthread_mutex_destroy(&stopped->lock);
    pthread_cond_destroy(&stopped->changed);
    free(stopped);
    *thread = NULL;
}

void stop_lane_threads(struct machine *machine)
{
    for (int i = 0; i < machine->n_lanes; i++) {
        stop_thread(&machine->lanes[i]->thread);
        stop_thread(&machine->lanes[i]->forwarder);
        stop_thread(&machine->lanes[i]->aside_thread);
    }
}

/* forwarder.c - threads that carry "done" from one OpenCL context to another.
 *
 * An event can be waited for only in its own context.  So each lane with consumers in other contexts has a forwarder,
 * a thread whose jobs run nothing: a job waits for the end of an instance, and completes user events in the other
 * contexts. The lane's events end in order, so waiting for them in order delays none.
 */
#include "run_parts.h"

struct job *new_forwarded_job(const struct issue *issue, struct task_flight *flight, job_function *when_ready)
{
    struct job *job = new_job_without_waits(issue, flight, when_ready);
    set_waits(job, &flight->work, 1);
    return job;
}

void add_events_of_contexts(struct job *job)
{
    for (int c = 0; c < job->list->pool->machine->n_contexts; c++)
        if (job->task->notify >> c & 1)
            job->flight->in_context[c] = add_user_event(job, c);
}

void forward_end(struct job *job)
{
    add_events_of_contexts(job);
    give_job(job->task->lane, FORWARDER, job);
}

/* hostlane.c - the jobs of host lanes and of forwarders: their functions, and the threads that they are given to. */
#include "run_parts.h"

/* ---- host lanes -------------------------------------------------------------------------------------------------- */

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
    if (status == CL_COMPLETE) {
        do_host_task(job);
        hold_back(job);
    }
    end_job(job, status);
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

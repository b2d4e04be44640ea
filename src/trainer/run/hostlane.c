/* hostlane.c - tasks of the host run as jobs, which the threads of their lanes are given. */
#include "run_parts.h"

void do_host_task(struct job *job)
{
    const struct task *task = job->task;
    job->flight->start = now_ns();
    task->function(task->argument, task, job->iteration);
    job->flight->end = now_ns();
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
    add_events_of_contexts(job);
    job->flight->done = add_user_event(job, event_context(job->task));
    give_job(job->task->lane, TASK_THREAD, job);
}

/* job.c - jobs: what threads are given.  A job waits for events, and completes user events when its work is done. */
#include "run_parts.h"

static void release_all(const cl_event *events, cl_uint n)
{
    for (cl_uint i = 0; i < n; i++)
        CL(clReleaseEvent(events[i]));
}

void set_waits(struct job *job, const cl_event *events, cl_uint n)
{
    for (cl_uint i = 0; i < n; i++)
        CL(clRetainEvent(events[i]));
    release_all(job->wait_list, job->n_wait);
    free(job->wait_list);
    job->wait_list = copy_bytes(events, n * sizeof *events);
    job->n_wait = n;
}

struct job *new_job_without_waits(const struct issue *issue, struct task_flight *flight, job_function *when_ready)
{
    struct job *job = allocate(1, sizeof *job);
    job->when_ready = when_ready;
    job->list = issue->list;
    job->flight = flight;
    job->task = issue->task;
    job->iteration = issue->iteration;
    return job;
}

struct job *new_job(const struct issue *issue, struct task_flight *flight, job_function *when_ready)
{
    struct job *job = new_job_without_waits(issue, flight, when_ready);
    set_waits(job, issue->wait_list, issue->n_wait);
    return job;
}

cl_event add_user_event(struct job *job, int context)
{
    cl_event event;
    CHECK(job->n_complete <= MOST_DEVICES, "a job completes more than %d events", MOST_DEVICES + 1);
    CL_MAKE(err, event = clCreateUserEvent(job->list->pool->machine->contexts[context].cl, &err));
    CL(clRetainEvent(event));
    job->complete[job->n_complete++] = event;
    return event;
}

void complete_events(const struct job *job, cl_int status)
{
    for (cl_uint i = 0; i < job->n_complete; i++)
        CL(clSetUserEventStatus(job->complete[i], status));
}

void free_job(struct job *job)
{
    release_all(job->wait_list, job->n_wait);
    release_all(job->complete, job->n_complete);
    free(job->wait_list);
    free(job);
}

void end_job(struct job *job, cl_int status)
{
    complete_events(job, status);
    free_job(job);
}

/* ---- chains of jobs ---------------------------------------------------------------------------------------------- */

void append_job(struct job_chain *chain, struct job *job)
{
    job->next = NULL;
    if (chain->first)
        chain->last->next = job;
    else
        chain->first = job;
    chain->last = job;
}

struct job *take_job(struct job_chain *chain)
{
    struct job *job = chain->first;
    if (job)
        chain->first = job->next;
    return job;
}

/* special.c - issues tasks that execute.c does not issue as it does those of a plain run.
 *
 * If it is decided late whether a task runs, the task is not issued at once.  Instead a job is given to a thread, which
 * finds out later: see late.c.
 *
 * With a wrapper (struct wrapper), a task's `done` is not the end of its work: it is a user event, which a thread of
 * the lane completes when the wrapper lets it.
 */
#include "run_parts.h"

void end_specially(struct job *job, cl_int status)
{
    const struct wrapper *wrapper = job->list->running->wrapper;
    if (wrapper && !job->flight->skipped)
        wrapper->finish(job->list, job->task_index, job->flight);
    end_job(job, status);
}

void run_specially(struct job *job, cl_int status)
{
    decide_job(job, status);
    if (!job->flight->skipped)
        do_host_task(job);
    end_specially(job, status);
}

/* A device's task also waits until finish() has returned for the task before it on its lane.  The queue does not make
 * it wait so long: it knows only when that task's work has ended. */
static void wait_for_turn(const struct list *list, const struct task *task, struct job *job)
{
    const struct queue *queue = &list->running->queues[task->lane->index];
    if (task->lane->device->is_host || task->member.needed || queue->retired == queue->given)
        return;
    job->wait[job->n_wait++] = queued_flight(list, queue, queue->given - 1)->done;
}

/* Does what issue_now() does for a plain task. */
static void issue_wrapped(struct task *task, struct job *job)
{
    job->flight = open_flight(job->list, task, job->iteration);
    tell_issued(job->list, task, job->flight);
    if (task->lane->device->is_host) {
        give_to_lane(task, run_specially, job);
        return;
    }
    issue(job->list, task, job->iteration, job->n_wait, job->wait, &job->flight->work);
    CL(clFlush(task->lane->queue));
    job->flight->done = add_user_event(job, event_context(task));
    forward_end(task, end_specially, job);
}

void issue_specially(struct list *list, struct task *task, struct job *job)
{
    if (list->running->wrapper)
        wait_for_turn(list, task, job);
    if (task->member.aside)
        park_task(list, task, job);
    else if (is_decided_late(task))
        give_late(task, job);
    else
        issue_wrapped(task, job);
}

/* pacer.c - lists with a pacer (struct pacer), which holds back the ends of tasks.
 *
 * In such a list a task's `done` is not the end of its work: it is a user event, which a thread of the lane completes
 * when the pacer has released the task.
 */
#include "run_parts.h"

void hold_back(const struct job *job)
{
    const struct pacer *pacer = job->list->running->pacer;
    if (pacer)
        pacer->hold_back(pacer->context, job->task, job->flight);
}

static void end_paced(struct job *job, cl_int status)
{
    if (status == CL_COMPLETE)
        hold_back(job);
    end_job(job, status);
}

void issue_paced(const struct issue *issue, struct task_flight *flight)
{
    enqueue(issue, &flight->work);
    CL(clFlush(issue->task->lane->queue));
    struct job *job = new_forwarded_job(issue, flight, end_paced);
    flight->done = add_user_event(job, event_context(issue->task));
    forward_end(job);
}

void wait_for_turn(struct issue *issue)
{
    const struct task *task = issue->task;
    const struct lane_instances *lane_instances = &issue->list->running->lane_instances[task->lane->index];
    if (task->lane->device->is_host || task->extra.slot.needed || lane_instances->retired == lane_instances->given)
        return;
    issue->wait_list[issue->n_wait++] = nth_flight(issue->list, lane_instances, lane_instances->given - 1)->done;
}

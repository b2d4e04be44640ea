/* issue.c - issues a device's task to its queue, and asks how it has ended and when. */
#include "run_parts.h"

static void enqueue_copy(const struct issue *issue, const cl_event *wait_list, cl_event *done)
{
    const struct task *task = issue->task;
    cl_uint n_wait = issue->n_wait;
    cl_command_queue queue = task->lane->queue;
    struct tensor *to = tensor_at(copy_target(task), issue->iteration);
    struct tensor *from = tensor_at(copy_source(task), issue->iteration);
    if (copies_nothing(task))
        CL(clEnqueueMarkerWithWaitList(queue, n_wait, wait_list, done));
    else if (from->device->is_host)
        CL(clEnqueueWriteBuffer(queue, tensor_buffer(to), CL_FALSE, 0, to->bytes, tensor_memory(from), n_wait,
                                wait_list, done));
    else if (to->device->is_host)
        CL(clEnqueueReadBuffer(queue, tensor_buffer(from), CL_FALSE, 0, to->bytes, tensor_memory(to), n_wait, wait_list,
                               done));
    else
        CL(clEnqueueCopyBuffer(queue, tensor_buffer(from), tensor_buffer(to), 0, 0, to->bytes, n_wait, wait_list,
                               done));
}

void enqueue(const struct issue *issue, cl_event *done)
{
    const struct task *task = issue->task;
    const struct grid *grid = &task->grid;
    cl_uint n_wait = issue->n_wait;
    const cl_event *wait_list = n_wait ? issue->wait_list : NULL; /* OpenCL wants NULL where there are none */
    switch (task->action) {
    case ACT_HOST:
        BROKEN("task %s of the host is on lane %s", task->name, task->lane->name);
    case ACT_COPY:
        enqueue_copy(issue, wait_list, done);
        break;
    case ACT_KERNEL:
        CL(clEnqueueNDRangeKernel(task->lane->queue, issue->list->running->task_instances[task->index].kernel,
                                  (cl_uint)grid->dims, NULL, grid->global, grid->local[0] ? grid->local : NULL, n_wait,
                                  wait_list, done));
        break;
    case ACT_OWN:
        task->extra.commands.enqueue(task, issue->iteration, n_wait, wait_list, done);
        break;
    }
}

/* ---- the end of a command ---------------------------------------------------------------------------------------- */

cl_int event_status(cl_event event)
{
    cl_int status;
    CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    return status;
}

_Noreturn void fail_task(const struct list *list, const struct task *task, uint32_t iteration, cl_int status)
{
    char where[LAYER_AND_MICRO];
    fail(EXIT_FAILED, "%s %u of list %s: task %s%s on lane %s failed with %s (%d)", iteration_noun(list), iteration,
         list->name, task->name, layer_and_micro(where, task), task->lane->name, cl_error_name(status), (int)status);
}

void take_times(const struct task *task, struct task_flight *flight, uint64_t lane_free, uint64_t *driver_end)
{
    struct command_times times = {.queued = flight->queued, .seen = now_ns()};
    flight->time_source = event_times(task->lane->device, flight->work, driver_end, &times);
    flight->start = times.start;
    flight->end = times.end;
    if (task->extra.commands.only_last_event) /* the first of its commands began when the lane was free */
        flight->start = MAX(flight->queued, MIN(lane_free, flight->end));
}

/* alone.c - runs a task on this thread and waits for it.  It also says which tasks must be issued with nothing else in
 * flight.
 */
#include "run_parts.h"

void run_alone(struct list *list, const struct task *task, uint32_t iteration, struct task_flight *flight)
{
    const struct issue issue = {.list = list, .task = task, .iteration = iteration};
    uint64_t start = now_ns();
    uint64_t queued = flight->queued ? flight->queued : start;
    uint64_t driver_end = 0;
    *flight = (struct task_flight){.iteration = iteration, .queued = queued, .start = start, .mark = flight->mark};
    if (task->lane->device->is_host) {
        task->function(task->argument, task, iteration);
        flight->end = now_ns();
        return;
    }
    enqueue(&issue, &flight->work);
    clWaitForEvents(1, &flight->work); /* an error shows in the status */
    if (event_status(flight->work) < 0)
        fail_task(list, task, iteration, event_status(flight->work));
    take_times(task, flight, start, &driver_end);
    CL(clReleaseEvent(flight->work));
    flight->work = NULL;
}

/* PoCL 3.1 compiles a kernel anew when it is launched with the same work-group size and a wider grid than before.  It
 * counts the launches that use either, but takes the newer one off for both: when the two are in flight at once, the
 * count falls below 0 and the driver aborts the program ("found->ref_count > 0").  So the first launch of each kernel
 * task waits until nothing is in flight, and the others wait for it.  A single device needs none of this: its queue
 * runs one kernel after another. */
bool needs_to_be_alone(const struct list *list, const struct task *task)
{
    bool is_first_launch = task->action == ACT_KERNEL && !list->running->task_instances[task->index].issued;
    return is_first_launch && list->pool->machine->n_devices > 1 && is_pocl(platform_of(task->lane->device));
}

/* prepare.c - prepares a finished list for running: kernels with their arguments, and room for what is in flight. */
#include "run_parts.h"

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static cl_int set_arg(const struct task *task, cl_kernel kernel, cl_uint i)
{
    const struct arg *arg = &task->args[i];
    cl_mem buffer = NULL;
    switch (arg->kind) {
    case ARG_FLOAT:
        return clSetKernelArg(kernel, i, sizeof arg->real, &arg->real);
    case ARG_STRUCT:
        return clSetKernelArg(kernel, i, arg->n_bytes, arg->bytes);
    case ARG_LOCAL:
        return clSetKernelArg(kernel, i, arg->n_bytes, NULL);
    case ARG_INT:
    case ARG_ELEMENTS:
        return clSetKernelArg(kernel, i, sizeof arg->number, &arg->number);
    case ARG_TENSOR:
        break; /* below */
    }
    if (arg->access != NONE)
        buffer = tensor_buffer(task->accesses[arg->access].tensor);
    return clSetKernelArg(kernel, i, sizeof buffer, &buffer);
}

/* Each task has a kernel object of its own, so its arguments are set once. */
static cl_kernel prepare_kernel(const struct task *task)
{
    cl_kernel kernel = new_kernel(task->lane->device, task->file, task->kernel);
    for (int i = 0; i < task->n_args; i++) {
        cl_int code = set_arg(task, kernel, (cl_uint)i);
        if (code != CL_SUCCESS)
            fail(EXIT_FAILED,
                 "task %s: argument %d of kernel %s (cl/%s): %s; does the .cl file still take the same arguments?",
                 task->name, i, task->kernel, task->file, cl_error_name(code));
    }
    return kernel;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* Frees what make_running() has allocated. */
static void free_running(struct list *list)
{
    struct running *running = list->running;
    for (int i = 0; i < running->n_lanes; i++) {
        CHECK(running->lane_instances[i].given == running->lane_instances[i].retired,
              "list %s is freed while tasks of it are in flight", list->name);
        free(running->lane_instances[i].instances);
    }
    for (size_t i = 0; i < list->n; i++) {
        if (running->task_instances[i].kernel)
            CL(clReleaseKernel(running->task_instances[i].kernel));
        if (running->task_instances[i].parked)
            CL(clReleaseEvent(running->task_instances[i].parked));
        for (int k = 0; k < MOST_IN_FLIGHT; k++)
            free(running->task_instances[i].flights[k].in_context);
    }
    free(running->task_instances);
    free(running->lane_instances);
    free(running->wait_list);
    free(running);
}

/* Refuses devices that work only when somebody waits for them: lanes wait for each other, so none would begin. */
static void refuse_if_devices_need_waiters(const struct machine *machine)
{
    for (int i = 0; i < machine->n_devices; i++)
        if (machine->devices[i].extra.quirks.needs_waiter && !execution.serial)
            fail(EXIT_USAGE,
                 "device %s, %s, runs a command only when somebody waits for it, so lanes would wait for each other "
                 "for ever: add --serial, or leave POCL_DEVICES out",
                 machine->devices[i].id, machine->devices[i].name);
}

static void make_running(struct list *list)
{
    const struct machine *machine = list->pool->machine;
    struct running *running = allocate(1, sizeof *running);
    size_t most = 0;
    refuse_if_devices_need_waiters(machine);
    list->running = running;
    list->free_running = free_running;
    running->task_instances = allocate(list->n, sizeof *running->task_instances);
    running->n_lanes = machine->n_lanes;
    running->lane_instances = allocate_each(machine->n_lanes, sizeof *running->lane_instances);
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        running->lane_instances[task->lane->index].cap += MOST_IN_FLIGHT;
        most = MAX(most, task->n_edges);
        running->task_instances[i].kernel = task->action == ACT_KERNEL ? prepare_kernel(task) : NULL;
        if (task->extra.commands.compile)
            task->extra.commands.compile(task);
        if (task->notify)
            for (size_t k = 0; k < MOST_IN_FLIGHT; k++)
                running->task_instances[i].flights[k].in_context = allocate_each(machine->n_contexts, sizeof(cl_event));
    }
    for (int i = 0; i < running->n_lanes; i++)
        running->lane_instances[i].instances =
            allocate(running->lane_instances[i].cap, sizeof *running->lane_instances[i].instances);
    running->wait_list = allocate(most + 1, sizeof *running->wait_list);
}

struct problem *finish_lists(struct pool *pool, struct list *const *lists, size_t n)
{
    struct problem *problem = place(pool, lists, n, PLACE_TO_RUN);
    for (size_t k = 0; k < n && !problem; k++) {
        depend(lists[k], ALL_EDGES);
        make_running(lists[k]);
    }
    return problem;
}

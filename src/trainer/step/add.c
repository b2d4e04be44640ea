/* add.c - adds tasks to a list: kernels, work of the host, commands of their own.  copy.c adds copies. */
#include "step_parts.h"

#include <math.h>

struct grid groups_on(const struct device *device, size_t n)
{
    size_t wg = device->shape.work_group;
    return (struct grid){.dims = 1, .global = {n * wg, 1, 1}, .local = {wg, 1, 1}};
}

struct task *add_task(struct list *list, struct lane *lane, const char *name)
{
    CHECK(lane != NULL, "task %s has no lane", name);
    struct task *task = append_task(list);
    list->extra.last_origin++;
    task->extra.origin = list->extra.last_origin;
    snprintf(task->name, sizeof task->name, "%s", name); /* a name of a step file, with what a pass adds, is cut */
    task->lane = lane;
    task->layer = list->tags.layer;
    task->micro = list->tags.micro;
    task->role = list->tags.role;
    task->extra.message = list->extra.message;
    task->extra.seconds = NAN;
    task->extra.on_host.seconds = NAN;
    task->extra.when.every = 1;
    return task;
}

struct task *add_kernel(struct list *list, struct lane *lane, const char *name, const struct kernel_call *call)
{
    struct task *task = add_task(list, lane, name);
    task->action = ACT_KERNEL;
    task->file = call->file;
    task->kernel = call->kernel;
    task->grid = call->grid;
    task->args = copy_bytes(call->args, (size_t)call->n_args * sizeof *call->args);
    task->n_args = call->n_args;
    for (int k = 0; k < task->n_args; k++) { /* tensors move to the access list: what is bound is what is declared */
        struct arg *arg = &task->args[k];
        struct tensor *tensor = arg->given.tensor;
        if (arg->kind != ARG_TENSOR)
            continue;
        CHECK((tensor != NULL) == (arg->given.mode != ACCESS_NONE),
              "task %s, kernel %s, argument %d (%s): a tensor takes IN, OUT or INOUT, and only NO_TENSOR takes none",
              task->name, task->kernel, k, tensor ? tensor->name : "no tensor");
        CHECK(!tensor || tensor->device == lane->device, "task %s on %s takes tensor %s of device %s", task->name,
              lane->name, tensor->name, tensor->device->id);
        arg->access = tensor ? task->n_accesses : NONE;
        if (tensor)
            add_access(task, tensor, arg->given.mode);
        arg->given = (struct access){0};
    }
    return task;
}

struct task *add_host(struct list *list, struct lane *lane, const char *name, host_function *function, void *argument)
{
    struct task *task = add_task(list, lane, name);
    task->action = ACT_HOST;
    task->function = function;
    task->argument = argument;
    return task;
}

struct task *add_own_commands(struct list *list, struct lane *lane, const char *name, enqueue_function *function,
                              const void *description, size_t bytes)
{
    struct task *task = add_task(list, lane, name);
    task->action = ACT_OWN;
    task->extra.commands.enqueue = function;
    task->argument = copy_bytes(description, bytes);
    task->extra.argument_bytes = bytes;
    return task;
}

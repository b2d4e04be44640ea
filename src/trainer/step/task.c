/* task.c - makes tasks: kernels, copies, work of the host; and declares what they touch. */
#include "list.h"

#include <math.h>

const char *const role_name[ROLES] = {
    [ROLE_OTHER] = "other",       [ROLE_FORWARD] = "forward", [ROLE_BACKWARD] = "backward",   [ROLE_REDUCE] = "reduce",
    [ROLE_NORM] = "norm",         [ROLE_UPDATE] = "update",   [ROLE_BROADCAST] = "broadcast", [ROLE_SEND] = "send",
    [ROLE_FEED] = "feed",         [ROLE_REPORT] = "report",   [ROLE_OFFLOAD] = "offload",     [ROLE_SWAP] = "swap",
    [ROLE_SNAPSHOT] = "snapshot",
};

const char *layer_and_micro(char out[64], const struct task *task)
{
    *out = '\0';
    if (task->layer >= 0 && task->micro >= 0)
        snprintf(out, 64, " (layer %d, micro-batch %d)", task->layer, task->micro);
    else if (task->layer >= 0)
        snprintf(out, 64, " (layer %d)", task->layer);
    else if (task->micro >= 0)
        snprintf(out, 64, " (micro-batch %d)", task->micro);
    return out;
}

static struct task *add_task(struct list *list, struct lane *lane, const char *name)
{
    CHECK(lane != NULL, "task %s has no lane", name);
    struct task *task = append_task(list);
    list->last_origin++;
    task->origin = list->last_origin;
    snprintf(task->name, sizeof task->name, "%s", name);
    task->lane = lane;
    task->layer = list->tags.layer;
    task->micro = list->tags.micro;
    task->role = list->tags.role;
    task->message = list->message;
    task->seconds = NAN;
    task->on_host.seconds = NAN;
    task->when.every = 1;
    return task;
}

bool is_due(const struct task *task, uint32_t iteration)
{
    return iteration % task->when.every == task->when.remainder;
}

const struct access *find_access(const struct task *task, bool (*is_sought)(const struct access *))
{
    for (int i = 0; i < task->n_accesses; i++)
        if (is_sought(&task->accesses[i]))
            return &task->accesses[i];
    return NULL;
}

void add_access(struct task *task, struct tensor *tensor, enum access_mode mode)
{
    unsigned more = mode; /* the part of mode that it has not declared so far */
    CHECK(mode != ACCESS_NONE, "task %s does not say whether it reads or writes tensor %s", task->name, tensor->name);
    for (int i = 0; i < task->n_accesses; i++)
        if (task->accesses[i].tensor == tensor)
            more &= ~(unsigned)task->accesses[i].mode;
    if (more & ACCESS_READ)
        task->bytes += tensor->bytes;
    if (more & ACCESS_WRITE)
        task->bytes += tensor->bytes;
    task->accesses = reallocate(task->accesses, (size_t)task->n_accesses + 1, sizeof *task->accesses);
    task->accesses[task->n_accesses++] = (struct access){tensor, mode};
}

void set_elementwise(struct task *task)
{
    const size_t bytes = task->accesses[0].tensor->bytes;
    for (int i = 0; i < task->n_accesses; i++) {
        const struct tensor *tensor = task->accesses[i].tensor;
        bool read_whole = task->accesses[i].mode == ACCESS_READ && tensor->bytes <= READ_WHOLE;
        CHECK(read_whole || tensor->bytes == bytes, "task %s touches tensor %s of %zu bytes, but works on %zu bytes",
              task->name, tensor->name, tensor->bytes, bytes);
    }
    task->elementwise = true;
}

void set_traffic(struct task *task, double elements) { task->bytes = (size_t)(elements * ELEMENT_BYTES); }

/* ---- kernels --------------------------------------------------------------------------------------------------- */

struct arg struct_arg(const void *value, size_t bytes)
{
    struct arg arg = {.kind = ARG_STRUCT, .i = (int32_t)bytes};
    CHECK(bytes <= MOST_STRUCT_BYTES, "a struct of %zu bytes is given to a kernel; at most %d are kept", bytes,
          MOST_STRUCT_BYTES);
    memcpy(arg.bytes, value, bytes);
    return arg;
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
        arg->i = tensor ? task->n_accesses : NONE;
        if (tensor)
            add_access(task, tensor, arg->given.mode);
        arg->given = (struct access){0};
    }
    return task;
}

/* ---- copies ---------------------------------------------------------------------------------------------------- */

/* Copies from the host's memory to the host's memory. */
static void run_copy(void *argument, const struct task *task, uint32_t iteration)
{
    (void)argument;
    const struct tensor *to = tensor_at(copy_target(task), iteration);
    const struct tensor *from = tensor_at(copy_source(task), iteration);
    memcpy(tensor_memory(to), tensor_memory(from), to->bytes);
}

bool copies_nothing(const struct task *task)
{
    if (!is_copy(task))
        return false; /* such a task may have fewer than two accesses */
    const struct tensor *to = copy_target(task), *from = copy_source(task);
    return to->storage == from->storage && to->offset == from->offset;
}

struct task *add_copy(struct list *list, struct lane *lane, const char *name, struct tensor *to, struct tensor *from)
{
    CHECK(to->bytes == from->bytes, "copy %s: %s has %zu bytes, %s has %zu", name, to->name, to->bytes, from->name,
          from->bytes);
    struct task *task = add_task(list, lane, name);
    task->function = lane->device->is_host ? run_copy : NULL;
    task->action = ACT_COPY;
    add_access(task, to, ACCESS_WRITE);
    add_access(task, from, ACCESS_READ);
    if (copies_nothing(task)) {
        task->seconds = 0;
        task->bytes = 0;
    }
    return task;
}

struct task *add_copy_for(struct list *list, const char *name, struct tensor *to, struct tensor *from,
                          const char *purpose)
{
    bool up = from->device->is_host;
    if (strcmp(purpose, FOR_MOVES) == 0 && !up)
        purpose = FOR_ALL;
    struct device *device = up ? to->device : from->device;
    struct lane *lane = lane_for(list->pool->machine, device, up ? LANE_UPLOAD : LANE_DOWNLOAD, purpose);
    return add_copy(list, lane, name, to, from);
}

struct tensor *add_download(struct list *list, const char *name, struct tensor *from, const char *purpose)
{
    struct tensor *staged = as_buffer(tensor_like(list->pool, list->pool->machine->host, from));
    staged->class = MEM_WORK;
    staged->exclusive = EXCLUSIVE_SOME; /* else one move would wait for another */
    add_copy_for(list, name, staged, from, purpose);
    return staged;
}

/* ---- tasks that call functions --------------------------------------------------------------------------------- */

struct task *add_host(struct list *list, struct lane *lane, const char *name, host_function *function, void *argument)
{
    struct task *task = add_task(list, lane, name);
    task->action = ACT_HOST;
    task->function = function;
    task->argument = argument;
    return task;
}

struct task *add_issue(struct list *list, struct lane *lane, const char *name, issue_function *issue,
                       const void *description, size_t bytes)
{
    struct task *task = add_task(list, lane, name);
    task->action = ACT_ISSUE;
    task->commands.issue = issue;
    task->argument = copy_bytes(description, bytes);
    task->argument_bytes = bytes;
    return task;
}

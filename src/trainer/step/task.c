/* task.c - what a task says of itself: what it touches, how much work it is, when it is due. */
#include "kernel_args.h"
#include "list.h"

const char *const role_name[ROLES] = {
    [ROLE_OTHER] = "other",       [ROLE_FORWARD] = "forward", [ROLE_BACKWARD] = "backward",   [ROLE_REDUCE] = "reduce",
    [ROLE_NORM] = "norm",         [ROLE_UPDATE] = "update",   [ROLE_BROADCAST] = "broadcast", [ROLE_SEND] = "send",
    [ROLE_FEED] = "feed",         [ROLE_REPORT] = "report",   [ROLE_OFFLOAD] = "offload",     [ROLE_SWAP] = "swap",
    [ROLE_SNAPSHOT] = "snapshot",
};

const char *layer_and_micro(char out[LAYER_AND_MICRO], const struct task *task)
{
    *out = '\0';
    if (task->layer >= 0 && task->micro >= 0)
        snprintf(out, LAYER_AND_MICRO, " (layer %d, micro-batch %d)", task->layer, task->micro);
    else if (task->layer >= 0)
        snprintf(out, LAYER_AND_MICRO, " (layer %d)", task->layer);
    else if (task->micro >= 0)
        snprintf(out, LAYER_AND_MICRO, " (micro-batch %d)", task->micro);
    return out;
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
    size_t bytes = task->accesses[0].tensor->bytes;
    for (int i = 0; i < task->n_accesses; i++) {
        const struct tensor *tensor = task->accesses[i].tensor;
        bool read_whole = task->accesses[i].mode == ACCESS_READ && tensor->bytes <= READ_WHOLE;
        CHECK(read_whole || tensor->bytes == bytes, "task %s touches tensor %s of %zu bytes, but works on %zu bytes",
              task->name, tensor->name, tensor->bytes, bytes);
    }
    task->extra.elementwise = true;
}

void set_traffic(struct task *task, double elements) { task->bytes = (size_t)(elements * ELEMENT_BYTES); }

int event_context(const struct task *task)
{
    return task->lane->device->is_host ? 0 : task->lane->device->context->index;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

struct arg struct_arg(const void *value, size_t bytes)
{
    struct arg arg = {.kind = ARG_STRUCT, .n_bytes = (uint32_t)bytes};
    CHECK(bytes <= MOST_STRUCT_BYTES, "a struct of %zu bytes is given to a kernel; at most %d are kept", bytes,
          MOST_STRUCT_BYTES);
    memcpy(arg.bytes, value, bytes);
    return arg;
}

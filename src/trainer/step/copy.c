/* copy.c - adds copies to a list: uploads, downloads, and copies within a context. */
#include "step_parts.h"

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
        task->extra.seconds = 0;
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
    staged->extra.exclusive = EXCLUSIVE_SOME; /* else one move would wait for another */
    add_copy_for(list, name, staged, from, purpose);
    return staged;
}

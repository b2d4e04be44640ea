/* copy.c - copies for a purpose: which lane they take, and copies that move no bytes. */
#include "list.h"

bool copies_nothing(const struct task *task)
{
    if (!is_copy(task))
        return false; /* such a task may have fewer than two accesses */
    const struct tensor *to = copy_target(task), *from = copy_source(task);
    return to->storage == from->storage && to->offset == from->offset;
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

/* fetch.c - other lists than the one for training: they fetch state that passes have moved to the host.
 *
 * Passes move state to the host for the training list's sake.  Evaluation and sampling only read it: each layer's work
 * fetches the state that it uses, and nothing goes back.  Tasks that are of one layer, or side by side, share what was
 * fetched.
 */
#include "fetch.h"

#include "remake.h"

struct device_copy {                /* a tensor of the host, as a device has it for now */
    struct tensor *on_device;       /* NULL: no device has it yet */
    const struct task *last_reader; /* the last task that read it there */
};

/* Does the task find there what was fetched for the last user? */
static bool still_there(const struct device_copy *fetched, const struct task *task)
{
    if (!fetched->on_device || fetched->on_device->device != task->lane->device)
        return false;
    return same_block(fetched->last_reader, task) || task->index - fetched->last_reader->index == 1;
}

static void fetch(struct edit *edit, struct list *list, struct task *task, struct tensor *tensor,
                  struct device_copy *fetched)
{
    if (!still_there(fetched, task)) {
        fetched->on_device = tensor_like(list->pool, task->lane->device, tensor);
        insert_before(edit, task);
        list->tags.role = ROLE_SWAP;
        add_copy_for(list, "swap.in", fetched->on_device, tensor, FOR_SWAP);
    }
    fetched->last_reader = task;
    repoint_task(edit, task, tensor, fetched->on_device);
}

void fetch_state(struct list *list)
{
    size_t n = list->n;
    size_t n_tensors = list->pool->n;
    struct device_copy *fetched = allocate(n_tensors, sizeof *fetched); /* by tensor */
    struct edit *edit = open_edit(list);
    for (size_t i = 0; i < n; i++) {
        struct task *task = list->tasks[i];
        if (is_copy(task) || task->lane->device->is_host)
            continue;
        for (int k = 0; k < task->n_accesses; k++) {
            struct tensor *tensor = task->accesses[k].tensor->storage;
            if (tensor->id < n_tensors && tensor->device->is_host)
                fetch(edit, list, task, tensor, &fetched[tensor->id]);
        }
    }
    commit_edit(edit);
    free(fetched);
}

/* uploads.c - copies of the host's tensors to devices. */
#include "train_parts.h"

struct tensor *tensor_on_host(struct transfers *transfers, const struct device *device)
{
    int context = device->context->index;
    if (transfers->context != NONE && transfers->context != context) {
        transfers->on_host = tensor_like(transfers->list->pool, transfers->on_host->device, transfers->on_host);
        transfers->on_host->persistent = true;
        if (transfers->maker)
            add_access(transfers->maker, transfers->on_host, ACCESS_WRITE);
    }
    transfers->context = context;
    return transfers->on_host;
}

void add_upload(struct transfers *uploads, const char *name, struct tensor *target)
{
    struct tensor *source = tensor_on_host(uploads, target->device);
    add_copy(uploads->list, target->device->lanes[LANE_UPLOAD], name, target, source);
}

void copy_to_other_contexts(const struct task *maker)
{
    const struct tensor *tensor = maker->accesses[0].tensor;
    for (int k = 1; k < maker->n_accesses; k++)
        memcpy(tensor_memory(maker->accesses[k].tensor), tensor_memory(tensor), tensor->bytes);
}

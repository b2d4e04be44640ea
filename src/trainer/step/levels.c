/* levels.c - how many bytes each device holds, by class, from which position of the list on.  Reports and the viewer
 * show this.
 */
#include "step_parts.h"

struct holding { /* from this position on a tensor's device holds this number of bytes more, or fewer */
    int position;
    int64_t bytes;
    const struct tensor *tensor;
};

/* At one position, tensors that have ended go before those that begin. */
static int in_time(const void *left, const void *right)
{
    const struct holding *a = left;
    const struct holding *b = right;
    return BY(a->position, b->position, COMPARE(a->bytes > 0, b->bytes > 0));
}

/* All changes of what the list's devices hold, in their order; *n_all of them. */
static struct holding *collect_holdings(const struct list *list, size_t *n_all)
{
    const struct pool *pool = list->pool;
    struct holding *all = allocate(2 * pool->n, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < pool->n; i++) {
        const struct tensor *tensor = pool->tensors[i];
        if (tensor->storage != tensor || (!tensor->persistent && tensor->list != list))
            continue;
        struct holding begin = {
            .position = tensor->persistent ? 0 : tensor->held_from, .bytes = (int64_t)tensor->bytes, .tensor = tensor};
        struct holding end = {.position = tensor->held_until + 1, .bytes = -(int64_t)tensor->bytes, .tensor = tensor};
        all[n++] = begin;
        if (!tensor->persistent && end.position < (int)list->n)
            all[n++] = end;
    }
    SORT(all, n, in_time);
    *n_all = n;
    return all;
}

/* A device gets a new level only where a tensor begins or has ended on it.  So levels are few, however many devices
 * there are. */
void fill_levels(struct list *list)
{
    size_t n_places = (size_t)list->pool->machine->n_devices + 1; /* the devices, and the host */
    size_t n;
    size_t *last = allocate(n_places, sizeof *last); /* by device: its last level so far */
    struct holding *holdings = collect_holdings(list, &n);
    memset(list->peak, 0, n_places * sizeof *list->peak);
    memset(list->peak_total, 0, n_places * sizeof *list->peak_total);
    list->n_levels = 0;
    for (size_t d = 0; d < n_places; d++) {
        list->levels = grow(list->levels, &list->cap_levels, list->n_levels + 1, sizeof *list->levels);
        list->levels[list->n_levels++] = (struct level){.device = (int)d};
        last[d] = d;
    }
    for (const struct holding *holding = holdings; holding < holdings + n; holding++) {
        int device = holding->tensor->device->index, class = (int)counted_as(holding->tensor);
        if (list->levels[last[device]].position < holding->position) {
            list->levels = grow(list->levels, &list->cap_levels, list->n_levels + 1, sizeof *list->levels);
            struct level *next = &list->levels[list->n_levels++];
            *next = list->levels[last[device]];
            next->position = holding->position;
            last[device] = list->n_levels - 1;
        }
        struct level *level = &list->levels[last[device]];
        level->of_class[class] += (size_t)holding->bytes;
        level->bytes += (size_t)holding->bytes;
        list->peak[device][class] = MAX(list->peak[device][class], level->of_class[class]);
        list->peak_total[device] = MAX(list->peak_total[device], level->bytes);
    }
    free(holdings);
    free(last);
}

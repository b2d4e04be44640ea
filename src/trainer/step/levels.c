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

/* ---- levels ------------------------------------------------------------------------------------------------------ */

/* Returns the index of the level. */
static size_t add_level(struct list *list, struct level level)
{
    GROW(list->extra.levels, list->extra.cap_levels, list->extra.n_levels + 1);
    list->extra.levels[list->extra.n_levels] = level;
    list->extra.n_levels++;
    return list->extra.n_levels - 1;
}

/* The level of a device that begins at that position.  *last: the index of its last one so far, which may be this. */
static struct level *level_at(struct list *list, size_t *last, int position)
{
    struct level level = list->extra.levels[*last];
    if (level.position < position) {
        level.position = position;
        *last = add_level(list, level);
    }
    return &list->extra.levels[*last];
}

/* Counts the holding from this level of its device on.  Negative bytes become a size_t that wraps around, so adding
 * it subtracts them. */
static void add_holding(struct list *list, struct level *level, const struct holding *holding)
{
    size_t *peak = list->extra.peak[level->device], *peak_total = &list->extra.peak_total[level->device];
    enum memory_class class = counted_as(holding->tensor);
    level->of_class[class] += (size_t)holding->bytes;
    level->bytes += (size_t)holding->bytes;
    peak[class] = MAX(peak[class], level->of_class[class]);
    *peak_total = MAX(*peak_total, level->bytes);
}

/* A device gets a new level only where a tensor begins or has ended on it.  So levels are few, however many devices
 * there are. */
void fill_levels(struct list *list)
{
    int n_places = list->pool->machine->n_devices + 1; /* the devices, and the host */
    size_t n;
    size_t *last = allocate_each(n_places, sizeof *last); /* by device: its last level so far */
    struct holding *holdings = collect_holdings(list, &n);
    list->extra.n_levels = 0;
    for (int d = 0; d < n_places; d++) {
        memset(list->extra.peak[d], 0, sizeof list->extra.peak[d]);
        list->extra.peak_total[d] = 0;
        last[d] = add_level(list, (struct level){.device = d});
    }
    for (const struct holding *holding = holdings; holding < holdings + n; holding++)
        add_holding(list, level_at(list, &last[holding->tensor->device->index], holding->position), holding);
    free(holdings);
    free(last);
}

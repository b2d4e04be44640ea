/* snapshot_stored.c - which updates are stored.
 *
 * Every update that writes parameters or the optimizer's state is stored, with one exception.  Without ZeRO several
 * ranks update the same parameters from the same gradient.  One rank has summed that gradient, and the others were sent
 * the sum.  The rank that summed it stores the update, and the others do not.
 *
 *     rank 0    sum g .. send g ......... update      stored
 *     rank 1            receive g ....... update      not stored: its gradient has arrived by a copy of role broadcast
 *
 * Bytes that were sent to a device may go on from there to the host, and come back.  So copies are followed in list
 * order.
 */
#include "snapshot_parts.h"

/* Bytes of a storage to which copies have brought what was sent. */
struct arrival {
    size_t begin, end;
    int before; /* the arrival in the same storage before this one, or NONE */
};
struct arrivals {
    struct arrival *items;
    size_t n, cap;
    int *last; /* by storage: its last arrival, or NONE */
};

static bool has_arrived(const struct arrivals *arrivals, const struct tensor *tensor)
{
    for (int i = arrivals->last[tensor->storage->id]; i != NONE; i = arrivals->items[i].before)
        if (arrivals->items[i].begin < tensor->offset + tensor->bytes && tensor->offset < arrivals->items[i].end)
            return true;
    return false;
}

static void note_arrival(struct arrivals *arrivals, const struct tensor *storage, size_t begin, size_t end)
{
    int *last = &arrivals->last[storage->id];
    for (int i = *last; i != NONE; i = arrivals->items[i].before)
        if (arrivals->items[i].begin <= begin && end <= arrivals->items[i].end)
            return;
    GROW(arrivals->items, arrivals->cap, arrivals->n + 1);
    struct arrival *new = &arrivals->items[arrivals->n++];
    *new = (struct arrival){.begin = begin, .end = end, .before = *last};
    *last = (int)arrivals->n - 1;
}

/* Notes what arrives by a copy.  By a copy of role broadcast all bytes arrive.  By any other copy those arrive that had
 * arrived at its source: a whole gradient that comes back from the host has a part that this rank summed, and parts
 * that it was sent. */
static void follow_copy(struct arrivals *arrivals, const struct task *copy)
{
    const struct tensor *to = copy_target(copy), *from = copy_source(copy);
    if (copy->role == ROLE_BROADCAST)
        note_arrival(arrivals, to->storage, to->offset, to->offset + to->bytes);
    for (int i = arrivals->last[from->storage->id]; i != NONE; i = arrivals->items[i].before) {
        size_t begin = MAX(arrivals->items[i].begin, from->offset);
        size_t end = MIN(arrivals->items[i].end, from->offset + from->bytes);
        if (begin < end)
            note_arrival(arrivals, to->storage, to->offset + begin - from->offset, to->offset + end - from->offset);
    }
}

bool writes_state(const struct access *access)
{
    return (access->mode & ACCESS_WRITE) &&
           (access->tensor->class == MEM_PARAMETERS || access->tensor->class == MEM_OPTIMIZER);
}

/* The bytes of the state that the update writes, each tensor of it on the host's alignment, as in a payload. */
static size_t state_bytes(const struct task *update, size_t alignment)
{
    size_t bytes = 0;
    for (int i = 0; i < update->n_accesses; i++)
        if (writes_state(&update->accesses[i]))
            bytes += round_up(update->accesses[i].tensor->bytes, alignment);
    return bytes;
}

static bool reads_what_was_sent(const struct arrivals *arrivals, const struct task *update)
{
    for (int i = 0; i < update->n_accesses; i++) {
        const struct tensor *tensor = update->accesses[i].tensor;
        if (tensor->class == MEM_GRADIENTS && has_arrived(arrivals, tensor))
            return true;
    }
    return false;
}

/* An update that --overlap local lists on both sides is counted once: where it is the device's, which needs no bits of
 * the side word. */
size_t *bytes_to_store(struct task *const *tasks, size_t n, const struct pool *pool)
{
    struct arrivals arrivals = {.last = allocate(pool->n, sizeof *arrivals.last)};
    size_t *bytes = allocate(n, sizeof *bytes);
    fill_none(arrivals.last, pool->n);
    for (size_t i = 0; i < n; i++) {
        if (is_copy(tasks[i]))
            follow_copy(&arrivals, tasks[i]);
        bool is_update = tasks[i]->role == ROLE_UPDATE && !tasks[i]->extra.condition.needs;
        if (is_update && !reads_what_was_sent(&arrivals, tasks[i]))
            bytes[i] = state_bytes(tasks[i], pool->machine->host->alignment);
    }
    free(arrivals.items);
    free(arrivals.last);
    return bytes;
}

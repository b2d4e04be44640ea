/* stored.c - which updates are stored, and the special case of one that is in the list twice: skip it at first.
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
 *
 * The second part is about --overlap local: an update is then in the list on the device and on the host, and both are
 * stored.
 */
#include "cl/shared.h" /* defines: CHOICE_CPU, CHOICE_DEVICE */
#include "snapshot.h"

/* Bytes of a storage to which copies have brought what was sent. */
struct arrival {
    size_t begin, end;
    int before; /* the arrival in the same storage before this one, or NONE */
};
struct arrivals {
    struct arrival *arrivals;
    size_t n, cap;
    int *last; /* by storage: its last arrival, or NONE */
};

static bool has_arrived(const struct arrivals *arrivals, const struct tensor *tensor)
{
    for (int i = arrivals->last[tensor->storage->id]; i != NONE; i = arrivals->arrivals[i].before)
        if (arrivals->arrivals[i].begin < tensor->offset + tensor->bytes && tensor->offset < arrivals->arrivals[i].end)
            return true;
    return false;
}

static void note_arrival(struct arrivals *arrivals, const struct tensor *storage, size_t begin, size_t end)
{
    int *last = &arrivals->last[storage->id];
    for (int i = *last; i != NONE; i = arrivals->arrivals[i].before)
        if (arrivals->arrivals[i].begin <= begin && end <= arrivals->arrivals[i].end)
            return;
    struct arrival *new = APPEND(arrivals->arrivals, arrivals->n, arrivals->cap);
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
    for (int i = arrivals->last[from->storage->id]; i != NONE; i = arrivals->arrivals[i].before) {
        size_t begin = MAX(arrivals->arrivals[i].begin, from->offset);
        size_t end = MIN(arrivals->arrivals[i].end, from->offset + from->bytes);
        if (begin < end)
            note_arrival(arrivals, to->storage, to->offset + begin - from->offset, to->offset + end - from->offset);
    }
}

/* The bytes of the state that the update writes, each tensor of it on the host's alignment, as in a payload. */
static size_t state_bytes(const struct task *update, size_t alignment)
{
    size_t bytes = 0;
    for (int i = 0; i < update->n_accesses; i++)
        if (is_state(&update->accesses[i]))
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
 * the choice. */
size_t *bytes_to_store(struct task *const *tasks, size_t n, const struct pool *pool)
{
    struct arrivals arrivals = {.last = allocate(pool->n, sizeof *arrivals.last)};
    size_t *bytes = allocate(n, sizeof *bytes);
    fill_none(arrivals.last, pool->n);
    for (size_t i = 0; i < n; i++) {
        if (is_copy(tasks[i]))
            follow_copy(&arrivals, tasks[i]);
        bool is_update = tasks[i]->role == ROLE_UPDATE && !tasks[i]->condition.needs;
        if (is_update && !reads_what_was_sent(&arrivals, tasks[i]))
            bytes[i] = state_bytes(tasks[i], pool->machine->host->alignment);
    }
    free(arrivals.arrivals);
    free(arrivals.last);
    return bytes;
}

/* ---- an update that is in the list on both sides ---------------------------------------------------------------- */

struct task *last_on_host(const struct list *list, size_t n, const struct task *update)
{
    struct task *last = NULL;
    if (!choice_word(update))
        return NULL;
    for (size_t i = update->index + 1; i < n; i++)
        if (list->tasks[i]->origin == update->origin)
            last = list->tasks[i];
    return last;
}

/* The copies that were added to the list from position `from` on are those of this update.  They run if the choice has
 * these bits, and the forecast assumes of them what it assumes of the update. */
static void need_side(const struct list *list, size_t from, struct tensor *word, int bits, const struct task *update)
{
    const enum assumption assumed = update->condition.unexpected ? ASSUME_SKIPPED : ASSUME_RUNS;
    for (size_t i = from; i < list->n; i++)
        need_choice(list->tasks[i], word, bits, assumed);
}

/* The update is in the list twice, on the host perhaps in pieces.  Both sides fill the same buffers, after the last
 * task of both: the device's copies after the host's, so that no CPU lane waits for them.
 *
 *     U  h1 h2  up up | s(h1) s(h2)  s(U)  persist        U: on the device, h: on the host, up: its copies back
 *
 * All copies go straight to the host: what stands aside would look at the word of the choice too late. */
void store_either(struct snapshot_edit *snapshot_edit, struct task *update, struct task *last, size_t n, size_t bytes)
{
    struct list *list = snapshot_edit->list;
    struct tensor *buffers = new_buffers(list->pool, list->pool->machine->host, bytes);
    struct tensor *word = choice_word(last);
    while (last->next->role == ROLE_OFFLOAD && last->next->condition.needs)
        last = last->next; /* its copies back */
    insert_behind(snapshot_edit->edit, last);
    list->tags = (struct tags){.layer = update->layer, .micro = update->micro, .role = ROLE_SNAPSHOT};
    for (size_t i = update->index + 1; i < n; i++) {
        const struct task *piece = list->tasks[i];
        size_t from = list->n;
        if (piece->origin != update->origin)
            continue;
        copy_written(snapshot_edit, buffers, update, piece, IN_HOST);
        need_side(list, from, word, CHOICE_CPU, piece);
    }
    size_t from = list->n;
    copy_written(snapshot_edit, buffers, update, update, IN_HOST);
    need_side(list, from, word, CHOICE_DEVICE, update);
    add_persist(snapshot_edit, buffers, update);
}

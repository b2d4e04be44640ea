/* lives.c - when each tensor lives, and the arena to which its life belongs.  place.c says what a life is.
 */
#include "step_parts.h"

/* ---- lifetimes --------------------------------------------------------------------------------------------------- */

/* The number of tasks before and after an exclusive tensor's life in which no other tensor may have its bytes.  With
 * EXCLUSIVE_SOME it is LEAST_DISTANCE, or a sixteenth of a long list.  The next tensor on these bytes begins so much
 * later that its first task does not have to wait: the last task of the exclusive tensor has ended long ago. */
static int distance_of(const struct tensor *tensor, int n)
{
    enum { LEAST_DISTANCE = 512 };
    if (tensor->extra.exclusive == EXCLUSIVE_ALWAYS)
        return n;
    return tensor->extra.exclusive == EXCLUSIVE_SOME ? MAX(n / 16, LEAST_DISTANCE) : 0;
}

/* Notes which device copies the tensor, when a task of `device` touches it: the last one that writes it or, if none
 * does, the first one that reads it.  The same device copies the tensor of each slot. */
static void note_copier(struct tensor *tensor, const struct device *device, enum access_mode mode)
{
    bool takes_over = !tensor->copier || (mode & ACCESS_WRITE);
    if (device->is_host || !takes_over)
        return;
    for (struct tensor *in_slot = tensor; in_slot; in_slot = in_slot->extra.next_slot)
        in_slot->copier = device;
}

/* Forgets addresses of an earlier call. */
static void reset_tensors(struct pool *pool)
{
    for (size_t i = 0; i < pool->n; i++) {
        struct tensor *tensor = pool->tensors[i];
        tensor->list = NULL;
        tensor->copier = NULL;
        tensor->held_from = INT32_MAX;
        tensor->held_until = NONE;
        tensor->slab = NONE;
        tensor->address = 0;
    }
}

static void fill_lifetimes(struct list *list)
{
    int n = (int)list->n;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < list->tasks[i]->n_accesses; k++) {
            const struct access *access = &list->tasks[i]->accesses[k];
            struct tensor *tensor = access->tensor->storage;
            note_copier(tensor, list->tasks[i]->lane->device, access->mode);
            if (tensor->persistent)
                continue;
            CHECK(!tensor->list || tensor->list == list, "tensor %s lives in lists %s and %s but does not persist",
                  tensor->name, tensor->list->name, list->name);
            int distance = distance_of(tensor, n);
            tensor->list = list;
            tensor->held_from = MIN(tensor->held_from, MAX(i - distance, 0));
            tensor->held_until = MAX(tensor->held_until, MIN(i + distance, n - 1));
        }
}

/* ---- lives in arenas --------------------------------------------------------------------------------------------- */

/* Adds a tensor's life to its device's arena.  The host has an arena for each context: a tensor there goes to that of
 * the device that copies it. */
static void add_life(struct arena *arenas, struct tensor *tensor, struct list *const *lists)
{
    struct arena *arena = &arenas[tensor->device->index];
    if (tensor->device->is_host && tensor->copier)
        arena += tensor->copier->context->index;
    GROW(arena->lives, arena->cap, arena->n + 1);
    struct life *life = &arena->lives[arena->n++];
    *life =
        (struct life){.tensor = tensor, .last = SIZE_MAX, .bytes = round_up(tensor->bytes, tensor->device->alignment)};
    if (tensor->persistent)
        return;
    size_t start = 0; /* positions of the lists before the tensor's */
    for (; *lists != tensor->list; lists++)
        start += (*lists)->n;
    life->first = start + (size_t)tensor->held_from;
    life->last = start + (size_t)tensor->held_until;
}

size_t gather_lives(struct pool *pool, struct list *const *lists, size_t n, struct arena *arenas)
{
    size_t n_positions = 0;
    reset_tensors(pool);
    for (size_t i = 0; i < n; i++) {
        fill_lifetimes(lists[i]);
        n_positions += lists[i]->n;
    }
    for (size_t i = 0; i < pool->n; i++) {
        struct tensor *tensor = pool->tensors[i];
        if (tensor->storage == tensor && (tensor->persistent || tensor->list))
            add_life(arenas, tensor, lists);
    }
    return n_positions;
}

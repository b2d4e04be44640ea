/* place.c - an address for every tensor.
 *
 * List position decides how long bytes are held: a tensor lives from the first task that touches it to the last one.
 * Two tensors of one list may share bytes when these spans do not meet; tensors of different lists always may, since
 * one list runs at a time; a persistent tensor shares with none.
 *
 * On each device, persistent tensors come first, in the order in which they were made.  The others follow, each at the
 * lowest address that is free for its whole life.  Two orders of these are tried: largest first (offline "greedy by
 * size": within a few percent of the most bytes ever live at once, which is the lower bound), and in the order in which
 * their lives begin.  The one that takes fewer bytes is kept.
 *
 * The host has an arena for each context.  Its slabs are pinned for the context, and hold the tensors that the
 * context's devices copy.  A move between two contexts is two copies, down to the host and up from it, but its bytes on
 * the host can be pinned for one context only: for the one that copies down.  The reason is NVIDIA's driver.  A copy
 * into memory that is not pinned keeps the caller until the bytes are there; a copy out of such memory only until they
 * have been read.
 *
 * A device of a step file that has room for all tensors at once shares no bytes, unless the file says `share`.
 */
#include "step_parts.h"
#include "trainer/base/module.h"

static int distance_of(const struct tensor *tensor, int n);
static void note_copier(struct tensor *tensor, const struct device *device, enum access_mode mode);
static size_t gather_lives(struct pool *pool, struct list *const *lists, size_t n, struct arena *arenas);
static void raise_least_bytes(const struct machine *machine, const struct list *list, struct arena *arenas,
                              size_t n_arenas);
static struct problem *place_arenas(struct pool *pool, struct arena *arenas, size_t n, size_t n_positions, size_t *ram);
static struct problem *ram_problem(const struct machine *machine, size_t ram);
static struct problem *add_slabs(struct machine *machine, const struct arena *arena);

/* ---- lifetimes ------------------------------------------------------------------------------------------------- */

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

/* ---- addresses ------------------------------------------------------------------------------------------------- */

/* Adds a tensor's life to its device's arena.  The host has an arena for each context: that of the context that copies
 * the tensor takes it. */
static void add_life(struct arena *arenas, struct tensor *tensor, struct list *const *lists)
{
    struct arena *arena = &arenas[tensor->device->index];
    if (tensor->device->is_host && tensor->copier)
        arena += tensor->copier->context->index;
    arena->lives = grow(arena->lives, &arena->cap, arena->n + 1, sizeof *arena->lives);
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

/* Gives a life an address.  Returns NULL, or a problem if it does not fit. */
static struct problem *place_life(struct arena *arena, struct address_map *map, struct life *life)
{
    struct tensor *tensor = life->tensor;
    size_t limit = slab_limit(arena->device);
    if (tensor->bytes > limit)
        return does_not_fit(arena, tensor, LIMIT_OF_SLAB);
    hold_lowest(map, life, limit);
    size_t slab = life->arena_address / limit;
    if (slab + (size_t)arena->first_slab >= COUNT(arena->slab_bytes))
        return does_not_fit(arena, tensor, LIMIT_OF_SLAB);
    tensor->slab = arena->first_slab + (int)slab;
    tensor->address = life->arena_address % limit;
    arena->n_slabs = MAX(arena->n_slabs, (int)slab + 1);
    arena->slab_bytes[slab] = MAX(arena->slab_bytes[slab], tensor->address + tensor->bytes);
    if (arena_bytes(arena) > arena->device->budget)
        return does_not_fit(arena, tensor, LIMIT_OF_BUDGET);
    return NULL;
}

struct problem *place(struct pool *pool, struct list *const *lists, size_t n, enum place_purpose purpose)
{
    struct machine *machine = pool->machine;
    size_t n_arenas = (size_t)machine->n_devices + (size_t)MAX(machine->n_contexts, 1);
    struct arena *arenas = allocate(n_arenas, sizeof *arenas);
    size_t n_positions = gather_lives(pool, lists, n, arenas);
    for (size_t i = 0; i < n; i++) {
        fill_levels(lists[i]);
        raise_least_bytes(machine, lists[i], arenas, n_arenas);
    }
    size_t ram = 0;
    struct problem *problem = place_arenas(pool, arenas, n_arenas, n_positions, &ram);
    if (!problem && ram > machine->host->memory)
        problem = ram_problem(machine, ram);
    for (size_t i = 0; i < n_arenas; i++) {
        if (!problem && purpose == PLACE_TO_RUN)
            problem = add_slabs(machine, &arenas[i]);
        free(arenas[i].lives);
    }
    free(arenas);
    return problem;
}

/* ---- a first reading ends here ---- */

/* ---- lifetimes ------------------------------------------------------------------------------------------------- */

/* An exclusive tensor keeps others away for this number of tasks before and after its life: with EXCLUSIVE_SOME for
 * LEAST_DISTANCE, or for a sixteenth of a longer list.  Tasks that touch its bytes as another tensor's then need not
 * wait, since the tasks that they would wait for have ended long ago. */
static int distance_of(const struct tensor *tensor, int n)
{
    enum { LEAST_DISTANCE = 512 };
    if (tensor->exclusive == EXCLUSIVE_ALWAYS)
        return n;
    return tensor->exclusive == EXCLUSIVE_SOME ? MAX(n / 16, LEAST_DISTANCE) : 0;
}

/* Notes which device copies the tensor, when a task of `device` touches it: the last one that writes it or, if none
 * does, the first one that reads it.  The same device copies the tensor of each slot. */
static void note_copier(struct tensor *tensor, const struct device *device, enum access_mode mode)
{
    bool takes_over = !tensor->copier || (mode & ACCESS_WRITE);
    if (device->is_host || !takes_over)
        return;
    for (struct tensor *in_slot = tensor; in_slot; in_slot = in_slot->next_slot)
        in_slot->copier = device;
}

/* ---- addresses ------------------------------------------------------------------------------------------------- */

/* Gives the arena's lives addresses, in the order of arena->lives.  Returns NULL, or a problem if one does not fit. */
static struct problem *place_lives(struct arena *arena)
{
    struct problem *problem = NULL;
    struct address_map *map = open_address_map(arena);
    arena->n_slabs = 0;
    memset(arena->slab_bytes, 0, sizeof arena->slab_bytes);
    for (size_t i = 0; i < arena->n && !problem; i++)
        problem = place_life(arena, map, &arena->lives[i]);
    close_address_map(map);
    return problem;
}

/* Persistent tensors come first, in the order they were made; then the others, as they begin to live. */
static int compare_lives(const struct tensor *a, const struct tensor *b)
{
    if (a->persistent != b->persistent)
        return a->persistent ? -1 : 1;
    if (!a->persistent && a->held_from != b->held_from)
        return COMPARE(a->held_from, b->held_from);
    return COMPARE(a->id, b->id);
}

static int by_life(const void *left, const void *right)
{
    const struct life *a = left;
    const struct life *b = right;
    return compare_lives(a->tensor, b->tensor);
}

/* An order like by_life, but the tensors that do not persist come by size, the largest first. */
static int compare_sizes(const struct tensor *a, const struct tensor *b)
{
    if (!a->persistent && !b->persistent && a->bytes != b->bytes)
        return COMPARE(b->bytes, a->bytes);
    return compare_lives(a, b);
}

static int by_size(const void *left, const void *right)
{
    const struct life *a = left;
    const struct life *b = right;
    return compare_sizes(a->tensor, b->tensor);
}

/* None of the tensors share bytes, so that no task waits for bytes. */
static void place_apart(struct arena *arena)
{
    size_t at = 0;
    for (size_t i = 0; i < arena->n; i++) {
        struct tensor *tensor = arena->lives[i].tensor;
        tensor->slab = 0;
        tensor->address = at;
        at += arena->lives[i].bytes;
    }
}

/* Places the tensors of a device in both orders, and keeps the one that needs fewer bytes. */
static struct problem *place_in_best_order(struct arena *arena)
{
    SORT(arena->lives, arena->n, by_life);
    struct problem *problem_by_life = place_lives(arena);
    size_t bytes_by_life = arena_bytes(arena);
    SORT(arena->lives, arena->n, by_size);
    struct problem *problem_by_size = place_lives(arena);
    if (problem_by_life || (!problem_by_size && arena_bytes(arena) <= bytes_by_life)) {
        free(problem_by_life);
        return problem_by_size;
    }
    free(problem_by_size);
    SORT(arena->lives, arena->n, by_life);
    return place_lives(arena);
}

/* Is the device one of a step file that has room for all its tensors at once? */
static bool has_room_for_all(const struct arena *arena)
{
    const struct device *device = arena->device;
    size_t bytes = 0;
    if (!device->described.by_hand || device->described.shares_bytes)
        return false;
    for (size_t i = 0; i < arena->n; i++)
        bytes += arena->lives[i].bytes;
    return bytes <= MIN(device->memory, slab_limit(device));
}

static struct problem *place_device(struct arena *arena)
{
    struct problem *problem = place_in_best_order(arena);
    if (!problem && has_room_for_all(arena))
        place_apart(arena);
    return problem;
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

/* Gives addresses in all arenas, of which each device has one, and then the host one per context.  *ram becomes the
 * bytes that all devices and the host take of the host's memory. */
static struct problem *place_arenas(struct pool *pool, struct arena *arenas, size_t n, size_t n_positions, size_t *ram)
{
    struct machine *machine = pool->machine;
    size_t host = (size_t)machine->n_devices;
    *ram = 0;
    for (size_t i = 0; i < n; i++) {
        struct arena *arena = &arenas[i];
        arena->device = &machine->devices[MIN(i, host)];
        if (i > host) {
            const struct arena *before = arena - 1;
            arena->bytes_before = arena_bytes(before);
            arena->first_slab = before->first_slab + before->n_slabs;
        }
        arena->n_positions = n_positions;
        struct problem *problem = place_device(arena);
        arena->device->placed_bytes = arena_bytes(arena);
        if (problem)
            return problem;
        if (arena->device->uses_ram)
            *ram += arena->device->placed_bytes - arena->bytes_before;
    }
    return NULL;
}

static struct problem *ram_problem(const struct machine *machine, size_t ram)
{
    char have[32], need[32];
    return new_problem(EXIT_USAGE,
                       "the devices and the host share one memory of %s, and together need %s; use a smaller model, "
                       "or %s",
                       format_bytes(have, (double)machine->host->memory), format_bytes(need, (double)ram),
                       ways_to_shrink);
}

/* Takes memory for what lies in the arena.  Returns NULL, or the problem when there is no room. */
static struct problem *add_slabs(struct machine *machine, const struct arena *arena)
{
    struct problem *problem = NULL;
    for (int k = 0; k < arena->n_slabs && !problem; k++)
        problem = add_slab(machine, arena->device, arena->lives[0].tensor->copier,
                           round_up(arena->slab_bytes[k], arena->device->alignment));
    return problem;
}

/* Adds to its arena each tensor that a list or all lists hold.  Returns the number of positions of all lists. */
static size_t gather_lives(struct pool *pool, struct list *const *lists, size_t n, struct arena *arenas)
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

/* No placement of an arena takes less than the most that a list holds there. */
static void raise_least_bytes(const struct machine *machine, const struct list *list, struct arena *arenas,
                              size_t n_arenas)
{
    for (size_t k = 0; k < n_arenas; k++) {
        size_t device = MIN(k, (size_t)machine->n_devices); /* all arenas from this index on are the host's */
        arenas[k].least_bytes = MAX(arenas[k].least_bytes, list->peak_total[device]);
    }
}

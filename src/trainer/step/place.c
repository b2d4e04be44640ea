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
 * context's devices copy.  A move between two contexts is two copies, down to the host and up from it, and its bytes on
 * the host can be pinned for one of the two contexts only.  That is the context which copies down, because with
 * NVIDIA's driver a copy into memory that is not pinned returns only when the bytes are there, while a copy out of such
 * memory returns as soon as they have been read.
 *
 * A device of a step file that has room for all tensors at once shares no bytes, unless the file says `share`.
 */
#include "step_parts.h"
#include "trainer/base/additions.h"

/* The index of the device whose memory the arena is.  All arenas after those of the devices are the host's, one per
 * context. */
static int device_of_arena(const struct machine *machine, int arena) { return MIN(arena, machine->n_devices); }

/* No placement of an arena takes less than the most that a list holds there. */
static void raise_least_bytes(const struct machine *machine, const struct list *list, struct arena *arenas,
                              int n_arenas)
{
    for (int k = 0; k < n_arenas; k++) {
        int device = device_of_arena(machine, k);
        arenas[k].least_bytes = MAX(arenas[k].least_bytes, list->extra.peak_total[device]);
    }
}

/* Gives addresses in all arenas, of which each device has one, and then the host one per context.  *ram grows by
 * the bytes that all devices and the host take of the host's memory. */
static struct problem *place_arenas(struct pool *pool, struct arena *arenas, int n, size_t n_positions, size_t *ram)
{
    struct machine *machine = pool->machine;
    int host = machine->n_devices;
    for (int i = 0; i < n; i++) {
        struct arena *arena = &arenas[i];
        arena->device = &machine->devices[device_of_arena(machine, i)];
        if (i > host) {
            const struct arena *before = arena - 1;
            arena->bytes_before = arena_bytes(before);
            arena->first_slab = before->first_slab + before->n_slabs;
        }
        arena->n_positions = n_positions;
        struct problem *problem = place_arena(arena);
        arena->device->placed_bytes = arena_bytes(arena);
        if (problem)
            return problem;
        if (arena->device->uses_ram)
            *ram += arena->device->placed_bytes - arena->bytes_before;
    }
    return NULL;
}

/* Says that devices and host need more than the memory that they share. */
static struct problem *ram_problem(const struct machine *machine, size_t ram)
{
    char have[NUMBER_TEXT], need[NUMBER_TEXT];
    return new_problem(EXIT_USAGE,
                       "the devices and the host share one memory of %s, and together need %s; use a smaller model, "
                       "or %s",
                       format_bytes(have, (double)machine->host->memory), format_bytes(need, (double)ram),
                       ways_to_shrink);
}

/* Takes memory for what lies in the arena.  All copiers of an arena of the host are of one context (add_life()), so the
 * first life's stands for all.  Returns NULL, or the problem when there is no room. */
static struct problem *add_slabs(struct machine *machine, const struct arena *arena)
{
    struct problem *problem = NULL;
    for (size_t k = 0; k < arena->n_slabs && !problem; k++)
        problem = add_slab(machine, arena->device, arena->lives[0].tensor->copier,
                           round_up(arena->slab_bytes[k], arena->device->alignment));
    return problem;
}

struct problem *place(struct pool *pool, struct list *const *lists, size_t n, enum place_purpose purpose)
{
    struct machine *machine = pool->machine;
    int n_arenas = machine->n_devices + MAX(machine->n_contexts, 1);
    struct arena *arenas = allocate_each(n_arenas, sizeof *arenas);
    size_t n_positions = gather_lives(pool, lists, n, arenas);
    for (size_t i = 0; i < n; i++) {
        fill_levels(lists[i]);
        raise_least_bytes(machine, lists[i], arenas, n_arenas);
    }
    size_t ram = 0;
    struct problem *problem = place_arenas(pool, arenas, n_arenas, n_positions, &ram);
    if (!problem && ram > machine->host->memory)
        problem = ram_problem(machine, ram);
    for (int i = 0; i < n_arenas; i++) {
        if (!problem && purpose == PLACE_TO_RUN)
            problem = add_slabs(machine, &arenas[i]);
        free(arenas[i].lives);
    }
    free(arenas);
    return problem;
}

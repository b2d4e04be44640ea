/* place_order.c - gives the tensors of an arena their addresses, in the better one of two orders.  place.c has the
 * idea.
 */
#include "step_parts.h"

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* Gives a life an address.  Returns NULL, or a problem if it does not fit. */
static struct problem *place_life(struct arena *arena, struct address_map *map, struct life *life)
{
    struct tensor *tensor = life->tensor;
    size_t limit = slab_limit(arena->device);
    if (tensor->bytes > limit)
        return fit_problem(arena, tensor, LIMIT_OF_SLAB);
    hold_lowest(map, life, limit);
    size_t slab = life->arena_address / limit;
    if (arena->first_slab + slab >= COUNT(arena->slab_bytes))
        return fit_problem(arena, tensor, LIMIT_OF_SLAB);
    tensor->slab = (int)(arena->first_slab + slab);
    tensor->address = life->arena_address % limit;
    arena->n_slabs = MAX(arena->n_slabs, slab + 1);
    arena->slab_bytes[slab] = MAX(arena->slab_bytes[slab], tensor->address + tensor->bytes);
    if (arena_bytes(arena) > arena->device->budget)
        return fit_problem(arena, tensor, LIMIT_OF_BUDGET);
    return NULL;
}

/* Gives the arena's lives addresses, in the order of arena->lives.  Returns NULL, or a problem if one does not fit. */
static struct problem *place_lives(struct arena *arena)
{
    struct problem *problem = NULL;
    struct address_map *map = new_address_map(arena);
    arena->n_slabs = 0;
    memset(arena->slab_bytes, 0, sizeof arena->slab_bytes);
    for (size_t i = 0; i < arena->n && !problem; i++)
        problem = place_life(arena, map, &arena->lives[i]);
    free_address_map(map);
    return problem;
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

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

/* An order like compare_lives, but the tensors that do not persist come by size, the largest first. */
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

/* ---- tensors that share no bytes --------------------------------------------------------------------------------- */

/* Is the device one of a step file that has room for all its tensors at once? */
static bool has_room_for_all(const struct arena *arena)
{
    const struct device *device = arena->device;
    size_t bytes = 0;
    if (!device->extra.described.by_hand || device->extra.described.shares_bytes)
        return false;
    for (size_t i = 0; i < arena->n; i++)
        bytes += arena->lives[i].bytes;
    return bytes <= MIN(device->memory, slab_limit(device));
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

struct problem *place_arena(struct arena *arena)
{
    struct problem *problem = place_in_best_order(arena);
    if (!problem && has_room_for_all(arena))
        place_apart(arena);
    return problem;
}

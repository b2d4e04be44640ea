/* map_and_heap.c - a hash map from numbers to numbers, and a heap of numbers, for encoding and learning. */
#include "tokens_parts.h"

/* ---- map --------------------------------------------------------------------------------------------------------- */

/* A key is looked for from the slot that its hash says, slot by slot, up to its own slot or a free one.  At least half
 * of the slots are free, so this takes few steps. */
struct slot {
    uint64_t key;
    uint32_t number;
    bool used;
};
struct number_map {
    struct slot *slots;
    size_t n;       /* how many keys there are */
    size_t n_slots; /* how many slots, a power of two */
};

struct number_map *new_map(void)
{
    struct number_map *map = allocate(1, sizeof *map);
    map->n_slots = 64;
    map->slots = allocate(map->n_slots, sizeof *map->slots);
    return map;
}

void free_map(struct number_map *map)
{
    free(map->slots);
    free(map);
}

/* The key's slot, or the free slot that it would get. */
static struct slot *find_slot(const struct number_map *map, uint64_t key)
{
    uint64_t mixed = key * 0x9E3779B97F4A7C15u; /* its upper bits depend on all bits of the key */
    size_t i = (size_t)(mixed >> 32) & (map->n_slots - 1);
    while (map->slots[i].used && map->slots[i].key != key)
        i = (i + 1) & (map->n_slots - 1);
    return &map->slots[i];
}

int64_t map_find(const struct number_map *map, uint64_t key)
{
    const struct slot *slot = find_slot(map, key);
    if (!slot->used)
        return NO_NUMBER;
    return slot->number;
}

static void double_slots(struct number_map *map)
{
    const struct number_map old = *map;
    map->n_slots *= 2;
    map->slots = allocate(map->n_slots, sizeof *map->slots);
    for (size_t i = 0; i < old.n_slots; i++)
        if (old.slots[i].used)
            *find_slot(map, old.slots[i].key) = old.slots[i];
    free(old.slots);
}

void map_put(struct number_map *map, uint64_t key, uint32_t number)
{
    if (2 * map->n >= map->n_slots)
        double_slots(map);
    struct slot *slot = find_slot(map, key);
    if (!slot->used)
        map->n++;
    *slot = (struct slot){.key = key, .number = number, .used = true};
}

/* ---- heap -------------------------------------------------------------------------------------------------------- */

/* The heap is a binary tree: item i has the parent (i - 1) / 2, and no item is smaller than its parent. */
void heap_push(struct heap *heap, uint64_t item)
{
    GROW(heap->item, heap->cap, heap->n + 1);
    heap->item[heap->n++] = item;
    size_t i = heap->n - 1;
    while (i > 0 && item < heap->item[(i - 1) / 2]) {
        heap->item[i] = heap->item[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->item[i] = item;
}

uint64_t heap_pop(struct heap *heap)
{
    uint64_t smallest = heap->item[0];
    heap->n--;
    uint64_t last = heap->item[heap->n]; /* it moves down from the top, which is free now */
    size_t i = 0;
    for (size_t child = 1; child < heap->n; child = 2 * i + 1) {
        if (child + 1 < heap->n && heap->item[child + 1] < heap->item[child])
            child++;
        if (last <= heap->item[child])
            break;
        heap->item[i] = heap->item[child];
        i = child;
    }
    heap->item[i] = last;
    return smallest;
}

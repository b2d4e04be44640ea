/* maps.c - a hash map from numbers to numbers, and a heap. */
#include "inner.h"

/* ---- map -------------------------------------------------------------------------------------------------------- */

/* A key lies in the first slot from its place on that is free or its own; at least half of the slots are free. */
struct slot {
    uint64_t key;
    uint32_t number;
    bool used;
};
struct number_map {
    struct slot *slot;
    size_t n, slots; /* keys; slots, a power of two */
};

struct number_map *new_map(void)
{
    struct number_map *m = allocate(1, sizeof *m);
    m->slots = 64;
    m->slot = allocate(m->slots, sizeof *m->slot);
    return m;
}

void free_map(struct number_map *m)
{
    free(m->slot);
    free(m);
}

static struct slot *slot_of(const struct number_map *m, uint64_t key)
{
    const uint64_t mixed = key * 0x9E3779B97F4A7C15u; /* the upper bits depend on all of the key */
    size_t i = (size_t)(mixed >> 32) & (m->slots - 1);
    while (m->slot[i].used && m->slot[i].key != key)
        i = (i + 1) & (m->slots - 1);
    return &m->slot[i];
}

int64_t map_find(const struct number_map *m, uint64_t key)
{
    const struct slot *s = slot_of(m, key);
    if (!s->used)
        return NO_NUMBER;
    return s->number;
}

static void double_slots(struct number_map *m)
{
    const struct number_map old = *m;
    m->slots *= 2;
    m->slot = allocate(m->slots, sizeof *m->slot);
    for (size_t i = 0; i < old.slots; i++)
        if (old.slot[i].used)
            *slot_of(m, old.slot[i].key) = old.slot[i];
    free(old.slot);
}

void map_put(struct number_map *m, uint64_t key, uint32_t number)
{
    if (2 * m->n >= m->slots)
        double_slots(m);
    struct slot *s = slot_of(m, key);
    if (!s->used)
        m->n++;
    *s = (struct slot){.key = key, .number = number, .used = true};
}

/* ---- heap ------------------------------------------------------------------------------------------------------- */

/* No item is smaller than the one above it, and above item i is item (i - 1) / 2. */
void heap_push(struct heap *h, uint64_t item)
{
    *APPEND(h->item, h->n, h->cap) = item;
    size_t i = h->n - 1;
    while (i > 0 && item < h->item[(i - 1) / 2]) {
        h->item[i] = h->item[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->item[i] = item;
}

uint64_t heap_pop(struct heap *h)
{
    const uint64_t smallest = h->item[0];
    h->n--;
    const uint64_t last = h->item[h->n]; /* it moves down from the top */
    size_t i = 0;
    for (size_t below = 1; below < h->n; below = 2 * i + 1) {
        if (below + 1 < h->n && h->item[below + 1] < h->item[below])
            below++;
        if (last <= h->item[below])
            break;
        h->item[i] = h->item[below];
        i = below;
    }
    h->item[i] = last;
    return smallest;
}

/* map_and_heap.c - a hash map from numbers to numbers, and a heap of numbers, for encoding and learning. */
#include "inner.h"

/* ---- map -------------------------------------------------------------------------------------------------------- */

/* A key is looked for from the slot that its hash says, slot by slot, up to its own slot or a free one.  At least half
 * of the slots are free, so this takes few steps. */
struct slot {
    uint64_t key;
    uint32_t number;
    bool used;
};
struct number_map {
    struct slot *slot;
    size_t n;     /* how many keys there are */
    size_t slots; /* how many slots, a power of two */
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

/* The key's slot, or the free slot that it would get. */
static struct slot *slot_of(const struct number_map *m, uint64_t key)
{
    const uint64_t mixed = key * 0x9E3779B97F4A7C15u; /* its upper bits depend on all bits of the key */
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

/* The heap is a binary tree: item i has the parent (i - 1) / 2, and no item is smaller than its parent. */
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
    const uint64_t last = h->item[h->n]; /* it moves down from the top, which is free now */
    size_t i = 0;
    for (size_t child = 1; child < h->n; child = 2 * i + 1) {
        if (child + 1 < h->n && h->item[child + 1] < h->item[child])
            child++;
        if (last <= h->item[child])
            break;
        h->item[i] = h->item[child];
        i = child;
    }
    h->item[i] = last;
    return smallest;
}

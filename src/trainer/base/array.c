/* array.c - functions for arrays of any type. */
#include "base.h"

void fill_none(int *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        items[i] = NONE;
}

void *grow(void *items, size_t *cap, size_t wanted, size_t size)
{
    if (wanted <= *cap)
        return items;
    size_t doubled = MAX(*cap * 2, 8);
    size_t larger = MAX(wanted, doubled);
    items = reallocate(items, larger, size);
    memset((char *)items + *cap * size, 0, (larger - *cap) * size);
    *cap = larger;
    return items;
}

void *insert_item(void *items, size_t *n, size_t *cap, size_t at, size_t size)
{
    items = grow(items, cap, *n + 1, size);
    char *place = (char *)items + at * size;
    memmove(place + size, place, (*n - at) * size);
    (*n)++;
    return items;
}

size_t lower_bound(const void *key, const void *items, size_t n, size_t size,
                   bool (*is_before)(const void *item, const void *key))
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before((const char *)items + middle * size, key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

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

/* The index of the first of items[low] ... items[high - 1] that is not before the key; or high, if all of them are. */
static size_t search_between(size_t low, size_t high, const void *key, const void *items, size_t size,
                             bool (*is_before)(const void *item, const void *key))
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before((const char *)items + middle * size, key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t lower_bound(const void *key, const void *items, size_t n, size_t size,
                   bool (*is_before)(const void *item, const void *key))
{
    return search_between(0, n, key, items, size, is_before);
}

size_t lower_bound_near(size_t from, const void *key, const void *items, size_t n, size_t size,
                        bool (*is_before)(const void *item, const void *key))
{
    size_t low = from, i = from, step = 1;
    while (i < n && is_before((const char *)items + i * size, key)) {
        low = i + 1;
        i += step;
        step *= 2;
    }
    return search_between(low, MIN(i, n), key, items, size, is_before);
}

/* array.c - functions for arrays, which the macros of array.h use too. */
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
    const size_t doubled = MAX(*cap * 2, 8);
    const size_t larger = MAX(wanted, doubled);
    items = reallocate(items, larger, size);
    memset((char *)items + *cap * size, 0, (larger - *cap) * size);
    *cap = larger;
    return items;
}

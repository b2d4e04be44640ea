/* sorted.h - sorted integers, in which tests search: the place that a search must find. */
#ifndef SORTED_H
#define SORTED_H

#include <stdbool.h>
#include <stddef.h>

/* For lower_bound() and lower_bound_near(): is the item, an int, smaller than the key, an int? */
static inline bool is_smaller(const void *item, const void *key)
{
    const int *a = item;
    const int *b = key;
    return *a < *b;
}

/* The place of the first of the n items that is not smaller than the key, by a walk from the first item. */
static inline size_t place_by_walk(const int *items, size_t n, int key)
{
    size_t place = 0;
    while (place < n && items[place] < key)
        place++;
    return place;
}

#endif

/* near.h - a search for a place that is probably near another one: pictures look for bars and amounts from left to
 * right.
 *
 * Elements near each other are in the caches; a binary search among all of a long array would miss them at each step.
 */
#ifndef NEAR_H
#define NEAR_H

#include "trainer/base/base.h"

/* lower_bound() of array.h among items[low] ... items[high - 1].  Returns low where no such items are. */
static inline size_t lower_bound_within(const void *key, const void *items, size_t low, size_t high, size_t size,
                                        bool (*is_before)(const void *item, const void *key))
{
    if (low >= high)
        return low;
    return low + lower_bound(key, (const char *)items + low * size, high - low, size, is_before);
}

/* The same among items[from] ... items[n - 1], by growing steps from `from` on. */
static inline size_t lower_bound_near(size_t from, const void *key, const void *items, size_t n, size_t size,
                                      bool (*is_before)(const void *item, const void *key))
{
    size_t low = from, i = from, step = 1;
    while (i < n && is_before((const char *)items + i * size, key)) {
        low = i + 1;
        i += step;
        step *= 2;
    }
    return lower_bound_within(key, items, low, MIN(i, n), size, is_before);
}

#endif

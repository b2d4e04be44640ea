/* array.h - arrays of any type that grow, are sorted or are searched: array.c.
 *
 * A function of C takes arrays of one type only.  So these are macros, which are given the array and its length.
 */
#ifndef ARRAY_H
#define ARRAY_H

#include "allocate.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { NONE = -1 };                   /* the index of nothing: there is no such task, node, record ... */
void fill_none(int *items, size_t n); /* each of the n becomes NONE */

/* ---- arrays that grow -------------------------------------------------------------------------------------------- */

/* A growing array: `items` is the pointer field, `n` and `cap` are size_t fields.  APPEND(list.tasks, list.n, list.cap)
 * makes room for one more and yields a pointer to the new, zeroed element. */
#define APPEND(items, n, cap)                                                                                          \
    ((items) = grow((items), &(cap), (n) + 1, sizeof *(items)), (n)++, memset(&(items)[(n)-1], 0, sizeof *(items)),    \
     &(items)[(n)-1])
/* Makes room like APPEND(), but the new element gets index i, and those from there on move up.  It still has the value
 * of the one that it moves up. */
#define INSERT(items, n, cap, i)                                                                                       \
    ((items) = grow((items), &(cap), (n) + 1, sizeof *(items)),                                                        \
     memmove(&(items)[(i) + 1], &(items)[(i)], ((n) - (i)) * sizeof *(items)), (n)++, &(items)[(i)])
/* Makes room for `wanted` elements of `size` bytes, and zeroes what is new.  It returns the array, which may move. */
void *grow(void *items, size_t *cap, size_t wanted, size_t size);

/* ---- sorting ----------------------------------------------------------------------------------------------------- */

/* qsort() for an array that may be NULL when n is 0.  `compare` is a function that qsort() can call:
 *
 *     static int longest_first(const void *left, const void *right)
 *     {
 *         const struct kind *a = left;
 *         const struct kind *b = right;
 *         return COMPARE(b->ns, a->ns);
 *     }
 */
#define SORT(items, n, compare) ((n) ? qsort((items), (n), sizeof *(items), (compare)) : (void)0)

/* -1, 0 or 1: a goes before b, is equal to it, or goes after it. */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* COMPARE(a, b), or the comparison `then` where a and b are equal. */
#define BY(a, b, then) ((a) != (b) ? COMPARE(a, b) : (then))

/* ---- searching --------------------------------------------------------------------------------------------------- */

/* Binary search: `i` becomes the first of low .. high - 1 for which the condition `before`, which names `i`, is false;
 * high when it is true for all. */
#define FIND_BETWEEN(i, low, high, before)                                                                             \
    do {                                                                                                               \
        size_t low_ = (low);                                                                                           \
        size_t high_ = (high);                                                                                         \
        while (low_ < high_) {                                                                                         \
            (i) = low_ + (high_ - low_) / 2;                                                                           \
            if (before)                                                                                                \
                low_ = (i) + 1;                                                                                        \
            else                                                                                                       \
                high_ = (i);                                                                                           \
        }                                                                                                              \
        (i) = low_;                                                                                                    \
    } while (0)
/* FIND_BETWEEN() among 0 .. n - 1. */
#define FIND_FIRST(i, n, before) FIND_BETWEEN(i, 0, n, before)

/* FIND_FIRST(), from the value of `i` on, by growing steps.  Elements near `i` are in the caches; a binary search
 * among all of a long array would miss them at each step. */
#define FIND_NEXT(i, n, before)                                                                                        \
    do {                                                                                                               \
        size_t from_ = (i);                                                                                            \
        size_t step_ = 1;                                                                                              \
        while ((i) < (n) && (before)) {                                                                                \
            from_ = (i) + 1;                                                                                           \
            (i) += step_;                                                                                              \
            step_ *= 2;                                                                                                \
        }                                                                                                              \
        size_t end_ = MIN((i), (n));                                                                                   \
        FIND_BETWEEN(i, from_, end_, before);                                                                          \
    } while (0)

#endif

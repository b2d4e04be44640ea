/* array.h - arrays of any type that grow, are sorted or are searched: array.c.
 *
 * A function of C takes arrays of one type only.  So these functions take arrays as memory, as qsort() does, and are
 * told how many bytes an element has.
 */
#ifndef ARRAY_H
#define ARRAY_H

#include <stdbool.h>

#include "allocate.h"

/* What is counted says the type.  An int counts what options, files and hardware lay down: layers, stages, ranks,
 * devices, lanes, links, micro-batches, dimensions, tokens of a sequence, arguments of a task; and it is the index of
 * one of these, or NONE.  A size_t counts what an array that grows has (tasks of a list, tensors of a pool, edges),
 * elements and bytes, and is the position of one of these; only where it may be NONE, it is an int too. */

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { NONE = -1 };                   /* the index of nothing: there is no such task, node, record ... */
void fill_none(int *items, size_t n); /* each of the n becomes NONE */

/* ---- arrays that grow -------------------------------------------------------------------------------------------- */

/* Makes room for `wanted` elements in an array, and zeroes what is new.  Both the array, which may move, and `cap`, for
 * how many elements it has room, are variables or fields, which are set.  An element is always added by two lines:
 *
 *     GROW(list->tasks, list->cap, list->n + 1);
 *     list->tasks[list->n++] = task;
 *
 * `cap` is a size_t; `wanted` may be an int, too. */
#define GROW(items, cap, wanted) ((items) = grow((items), &(cap), (size_t)(wanted), sizeof *(items)))
void *grow(void *items, size_t *cap, size_t wanted, size_t size); /* the same for elements of `size` bytes */

/* Makes the array of *n elements longer by one, and moves items[at] and those after it up.  Returns the array; the
 * caller sets items[at], which still has its old value. */
void *insert_item(void *items, size_t *n, size_t *cap, size_t at, size_t size);

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

/* COMPARE(a, b), or the comparison `then` where a and b are equal.  It is for two keys: more are a list of `if`s. */
#define BY(a, b, then) ((a) != (b) ? COMPARE(a, b) : (then))

/* ---- searching --------------------------------------------------------------------------------------------------- */

/* Binary search, as bsearch() does it, but for a place: the index of the first of n elements of `size` bytes that is
 * not before the key; n: all are before it.  Those that are before it come first.
 *
 *     static bool ends_before(const void *item, const void *key)
 *     {
 *         const struct range *range = item;
 *         const size_t *address = key;
 *         return range->end < *address;
 *     }
 *     ...
 *     size_t i = lower_bound(&address, used->ranges, used->n, sizeof *used->ranges, ends_before);
 */
size_t lower_bound(const void *key, const void *items, size_t n, size_t size,
                   bool (*is_before)(const void *item, const void *key));

#endif

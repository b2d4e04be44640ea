/* allocate.h - memory that is never NULL, growing arrays, sorting and searching. */
#ifndef ALLOCATE_H
#define ALLOCATE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* Zeroed memory that is never NULL: out of memory ends the program with a sentence.  Free with free(). */
void *allocate(size_t count, size_t size);
void *reallocate(void *old, size_t count, size_t size);
char *copy_string(const char *text);
void *copy_bytes(const void *from, size_t n); /* NULL when n is 0 */
/* Each makes a new string by printf rules.  The caller frees it. */
char *format_string(const char *format, ...) PRINTF_LIKE(1, 2);
char *format_arguments(const char *format, va_list arguments) PRINTF_LIKE(1, 0);

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
void *grow(void *items, size_t *cap, size_t wanted, size_t size);

enum { NONE = -1 };                   /* the index of nothing: there is no such task, node, record ... */
void fill_none(int *items, size_t n); /* each of the n becomes NONE */
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
/* qsort() for an array that may be NULL when n is 0.  `compare` returns -1, 0 or 1, as COMPARE() gives. */
#define SORT(items, n, compare) ((n) ? qsort((items), (n), sizeof *(items), (compare)) : (void)0)
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
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
/* COMPARE(a, b), or the comparison `then` where a and b are equal. */
#define BY(a, b, then) ((a) != (b) ? COMPARE(a, b) : (then))
/* Defines a function for qsort(), from an expression that compares *a and *b:
 *     COMPARISON(longest_first, struct kind, COMPARE(b->ns, a->ns)) */
#define COMPARISON(name, type, comparison)                                                                             \
    static int name(const void *a_, const void *b_)                                                                    \
    {                                                                                                                  \
        type const *a = a_, *b = b_;                                                                                   \
        return comparison;                                                                                             \
    }
/* COMPARISON() for an array of pointers. */
#define COMPARISON_POINTERS(name, type, comparison)                                                                    \
    static int name(const void *a_, const void *b_)                                                                    \
    {                                                                                                                  \
        type const *a = *(type *const *)a_, *b = *(type *const *)b_;                                                   \
        return comparison;                                                                                             \
    }
static inline size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
static inline size_t ceil_div(size_t n, size_t unit) { return (n + unit - 1) / unit; }
uint64_t common_multiple(uint64_t a, uint64_t b); /* the least one of two numbers from 1 on */

#endif

/* allocate.h - memory that is never NULL: allocate.c. */
#ifndef ALLOCATE_H
#define ALLOCATE_H

#include <stddef.h>

/* Zeroed memory that is never NULL: out of memory ends the program with a sentence.  Free with free(). */
void *allocate(size_t count, size_t size);
void *allocate_each(int n, size_t size); /* the same: one of `size` bytes for each of n ranks, lanes, layers ... */
void *reallocate(void *old, size_t count, size_t size);
char *copy_string(const char *text);

void *copy_bytes(const void *from, size_t n); /* NULL when n is 0 */

#endif

/* allocate.h - memory that is never NULL, strings in it, and arithmetic with sizes: allocate.c. */
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

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
static inline size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
static inline size_t ceil_div(size_t n, size_t unit) { return (n + unit - 1) / unit; }
uint64_t common_multiple(uint64_t a, uint64_t b); /* the least one of two numbers from 1 on */

#endif

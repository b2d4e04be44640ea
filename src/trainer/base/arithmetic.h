/* arithmetic.h - the smaller, the larger, the next multiple: arithmetic.c. */
#ifndef ARITHMETIC_H
#define ARITHMETIC_H

#include <stddef.h>
#include <stdint.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
static inline size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
static inline size_t ceil_div(size_t n, size_t unit) { return (n + unit - 1) / unit; }
uint64_t common_multiple(uint64_t a, uint64_t b); /* the least one of two numbers from 1 on */

#endif

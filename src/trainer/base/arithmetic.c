/* arithmetic.c - the least common multiple. */
#include "base.h"

/* Euclid's algorithm. */
static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (a) {
        uint64_t rest = b % a;
        b = a;
        a = rest;
    }
    return b;
}

uint64_t common_multiple(uint64_t a, uint64_t b) { return a / common_divisor(a, b) * b; }

/* random.c - Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC11).
 *
 * A keyed bijection of 128-bit counters whose outputs pass every statistical test.  There is no state: the number for
 * weight 7 of a tensor is the same on one device and on eight, today and after a resume.
 *
 *     key      seed (low word, high word)
 *     counter  element (low word, high word), step, stream
 */
#include "base.h"

#include <math.h>

struct random4 random_words(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    struct random4 x = {{(uint32_t)element, (uint32_t)(element >> 32), step, stream}};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * x.word[0], p1 = (uint64_t)0xCD9E8D57u * x.word[2];
        x = (struct random4){{(uint32_t)(p1 >> 32) ^ x.word[1] ^ key[0], (uint32_t)p1,
                              (uint32_t)(p0 >> 32) ^ x.word[3] ^ key[1], (uint32_t)p0}};
        key[0] += 0x9E3779B9u; /* golden ratio */
        key[1] += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    return x;
}

/* [0, 1) in steps of 2^-53, the resolution of a double. */
static double unit_interval(uint32_t high, uint32_t low)
{
    uint64_t bits = ((uint64_t)high << 32 | low) >> 11;
    return (double)bits * 0x1p-53;
}

double random_uniform(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element)
{
    struct random4 r = random_words(seed, stream, step, element);
    return unit_interval(r.word[0], r.word[1]);
}

/* Box-Muller: a random radius and a random angle.  The radius uses 1 - u, in (0, 1], so that log() stays finite. */
double random_normal(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element)
{
    double two_pi = 6.283185307179586;
    struct random4 r = random_words(seed, stream, step, element);
    double radius = sqrt(-2 * log(1 - unit_interval(r.word[0], r.word[1])));
    return radius * cos(two_pi * unit_interval(r.word[2], r.word[3]));
}

/* random.h - random numbers that depend on nothing but their place: random.c. */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

/* Counter-based random numbers (Philox 4x32-10): a pure function of (seed, stream, step, element), so that the
 * result does not depend on the number of devices, threads or calls before. */
enum random_stream {
    STREAM_INIT = 1,   /* a new model's parameters */
    STREAM_DATA = 2,   /* the order of windows; tokens where there are no data */
    STREAM_SAMPLE = 3, /* sampled tokens */
    STREAM_DELAY = 4,  /* delays of tasks, which tests add */
    STREAM_TEST = 5,   /* values for checks of kernels */
    STREAM_DEAL = 6,   /* which queue of a broadcast gets a shard */
    STREAM_PLAN = 7,   /* what a search for a plan tries */
    STREAM_SIDE = 8,   /* on which side an update runs, where that is left to chance */
    STREAM_STORY = 9   /* the stories of the built-in grammar */
};

struct random4 {
    uint32_t word[4]; /* 128 random bits */
};

/* stream: an enumerator above.  step, element: any numbers that tell the draws of a stream apart. */
struct random4 random_words(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element);
double random_uniform(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element); /* [0, 1), 53 bits */
double random_normal(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element);  /* mean 0, deviation 1 */

#endif

/* cells.h - what a proof knows of each byte.
 *
 * A strip of bytes is cut into cells: first it is one, and wherever an access begins or ends it gets a border for good,
 * so that all bytes of a cell have one history.  depend() keeps ranges of its own, and nothing is shared with it but
 * what the tensors say: a fault of one is seen by the other.
 */
#ifndef CELLS_H
#define CELLS_H

#include "trainer/base/base.h"

struct tensor; /* trainer/step/tensor.h */

/* Three walks cut strips, each its own ones, and note in a cell what the walk needs. */
struct byte_cell {
    size_t begin, end;

    /* prove() in verify.c */
    int writer, reader; /* index of the latest touch of each kind, or NONE */

    /* hash_values() in values.c */
    uint64_t value;      /* the hash of what led to the value of these bytes; 0: they have none yet */
    int64_t value_begin; /* the byte of the strip at which this value begins */
    int iteration;       /* the iteration in which it was written, or NONE */

    /* verify_memory() in verify_places.c */
    bool used;                 /* a tensor lies here */
    const struct tensor *kept; /* the tensor that is kept here from step to step, or NULL */
};

struct strip {
    struct byte_cell *cells; /* n cells in the order of their bytes, without gaps; n is 0 before the first cut */
    size_t n, cap;
    uint64_t initial; /* hash_values(): the value of a persistent tensor before the first iteration */
};

/* The cells of bytes [begin, end), *n of them: valid until the strip is cut again. */
struct byte_cell *cells_of(struct strip *strip, size_t begin, size_t end, size_t *n);
void free_strips(struct strip *strips, size_t n);

uint64_t hash_pair(uint64_t first, uint64_t second); /* a hash of both, in this order */

#endif

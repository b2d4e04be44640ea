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

/* Three walks cut strips, each its own ones.  Each has a struct for what it notes of a cell: */

struct latest_touches { /* prove() in verify.c */
    int writer, reader; /* index of the latest touch of each kind, or NONE */
};
struct byte_value { /* hash_values() in values.c */
    uint64_t hash;  /* of what led to the value of these bytes */
    int64_t begin;  /* the byte of the strip at which this value begins */
    int iteration;  /* the iteration in which it was written, or NONE */
};
struct occupancy {             /* verify_memory() in verify_places.c */
    bool used;                 /* a tensor lies here */
    const struct tensor *kept; /* the tensor that is kept here from step to step, or NULL */
};

struct byte_cell {
    size_t begin, end;
    union {
        struct latest_touches latest;
        struct byte_value value;
        struct occupancy occupancy;
    };
};

struct strip {
    struct byte_cell *cells; /* n cells in the order of their bytes, without gaps; n is 0 before the first cut */
    size_t n, cap;
    struct byte_cell whole; /* the only cell before the first cut */
};

/* Makes n strips, whose cells begin as `whole`; its bytes need not be set.  The caller frees them with
 * free_strips(). */
struct strip *new_strips(size_t n, struct byte_cell whole);
/* The cells of bytes [begin, end), *n of them: valid until the strip is cut again. */
struct byte_cell *cells_of(struct strip *strip, size_t begin, size_t end, size_t *n);
void free_strips(struct strip *strips, size_t n);

uint64_t hash_pair(uint64_t first, uint64_t second); /* a hash of both, in this order */

#endif

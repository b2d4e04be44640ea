/* cells.h - what a proof knows of each byte.
 *
 * A strip of bytes is cut into cells: first it is one, and wherever an access begins or ends it gets a border for good,
 * so that all bytes of a cell have one history.  depend() keeps ranges of its own, and nothing is shared with it but
 * what the tensors say: a fault of one is seen by the other.
 */
#ifndef CELLS_H
#define CELLS_H

#include "trainer/base/base.h"

struct byte_cell {
    size_t begin, end;
    int writer, reader; /* verify.c: index of the latest touch of each kind, or NONE */
    uint64_t value;     /* values.c: the number of the value of these bytes, */
    int64_t origin;     /* the byte of the strip at which this value begins, */
    int iteration;      /* and the iteration in which it was written, or NONE */
};
struct strip {
    struct byte_cell *cell;
    size_t n, cap;
};
/* The cells of bytes [begin, end), *n of them: valid until the strip is cut again. */
struct byte_cell *cells_of(struct strip *s, size_t begin, size_t end, size_t *n);
void free_strips(struct strip *strips, size_t n);

uint64_t hash_pair(uint64_t a, uint64_t b);

#endif

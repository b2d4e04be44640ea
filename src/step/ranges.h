/* ranges.h - the range tracker: who last wrote and who has since read each byte of a space.
 *
 * A space is a tensor's own bytes (data edges) or a slab of a device (reuse edges).  It is a sorted list of segments; a
 * touched range is cut out of it, so that every segment has one history.
 */
#ifndef RANGES_H
#define RANGES_H

#include "step.h"

enum { NOBODY = -1, SLABS_PER_DEVICE = 256 };
struct segment {
    size_t begin, end;
    int writer;                 /* node that wrote it last, or NOBODY */
    const struct tensor *owner; /* root tensor through which it was written */
    uint64_t value;             /* values.c: number of the value, and where in the space it begins */
    int64_t origin;
    int reader;     /* the latest that has read it since, in `readers`, or NOBODY */
    bool may_write; /* among those are some that may have written it */
};
/* Who read what: each points to the one before it, so that segments which are cut share their past. */
struct reader {
    int node, before; /* before: NOBODY behind the last writer */
    bool may_write;   /* it writes, in the iterations in which it is not skipped */
    const struct tensor *root;
};
struct readers {
    struct reader *list;
    size_t n, cap;
};
struct space {
    struct segment *segments;
    size_t n, cap;
};

/* Cut the space so that [begin, end) is covered by whole segments; returns the first, *count of them. */
struct segment *cut_range(struct space *s, size_t begin, size_t end, size_t *count);
/* `node` has read the segment, or may have written it, through a tensor of that root. */
void note_reader(struct readers *r, struct segment *s, int node, const struct tensor *root, bool may_write);

/* The spaces of a list: per root tensor, or per slab. */
struct space *new_spaces(const struct pool *p, bool by_address, size_t *n);
void free_spaces(struct space *spaces, size_t n);
/* The space and range that an access touches. */
struct space *find_range(struct space *spaces, bool by_address, const struct tensor *t, size_t *begin, size_t *end);

#endif

/* order.h - in which order shards go (order.c). */
#ifndef ORDER_H
#define ORDER_H

#include "broadcast.h"

struct costs;

struct periods {
    double period, one_queue; /* seconds of a step: as asked; if one queue sent in the same order.  NAN: not known */
};
/* Sets b->by_use if that takes less.  b has no messages yet, and gets none. */
struct periods choose_order(struct broadcast *b, const struct costs *c);
/* The list with slices, in an edit that stays open. */
struct edit *slice_list(struct broadcast *b);

#endif

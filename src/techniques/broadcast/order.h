/* order.h - in which order shards go (order.c). */
#ifndef ORDER_H
#define ORDER_H

#include "broadcast.h"

struct costs;

struct periods {
    double period;    /* seconds of a step with the queues of the options; NAN: not known */
    double one_queue; /* the same with one queue that sends */
};
/* Sets broadcast->by_use if a step takes less time when shards go in the order of their first use.  Returns the times
 * in the order that is chosen.  The broadcast has no messages before and after the call. */
struct periods choose_order(struct broadcast *broadcast, const struct costs *costs);

#endif

/* order.h - the order in which messages go: order.c. */
#ifndef ORDER_H
#define ORDER_H

#include "broadcast.h"

/* Puts the messages in the order of their first use, as far as the list allows. */
void sort_messages(struct broadcast *broadcast, struct edit *edit);

#endif

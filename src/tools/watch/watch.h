/* watch.h - the watchdog. */
#ifndef WATCH_H
#define WATCH_H

#include "trainer/run/run.h"

extern double watchdog_seconds; /* 0: off */

/* For execution.watch: when no task of the list ends for watchdog_seconds, it prints the frontier; after five times as
 * long, it ends the program with EXIT_FAILED.  NULL: nothing runs. */
void watch_list(struct list *list);

/* Prints what is stuck: per lane the first task that has not ended and the edges it waits for. */
void print_frontier(FILE *out, const struct list *list);

#endif

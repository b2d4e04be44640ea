/* clock.h - the time: clock.c. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC_RAW: the clock that PoCL stamps its events with; CLOCK_MONOTONIC is 259 ppm off it. */
uint64_t now_ns(void);

#endif

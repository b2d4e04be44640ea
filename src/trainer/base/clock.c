/* clock.c - the clock that all times in traces and reports come from. */
#define _DARWIN_C_SOURCE /* CLOCK_MONOTONIC_RAW is not in POSIX */
#include "base.h"

#include <time.h>

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

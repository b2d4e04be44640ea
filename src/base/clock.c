/* clock.c - the one clock of every record, and how far long work has come. */
#define _DARWIN_C_SOURCE /* CLOCK_MONOTONIC_RAW is not in POSIX */
#include "base.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- long work ------------------------------------------------------------------------------------------------- */

static const uint64_t second = 1000000000;

/* The line is written over by the next one, and by what comes behind the work. */
void show_busy(struct busy *b, double share)
{
    uint64_t now = now_ns();
    b->begun = b->begun ? b->begun : now;
    b->shown = b->shown ? b->shown : now;
    if (now - b->shown < second || !isatty(STDERR_FILENO))
        return;
    share = fmin(share, 1);
    double left = 1e-9 * (double)(now - b->begun) * (1 / share - 1);
    b->shown = now, b->told = true;
    fprintf(stderr, share > 0 ? "\r%s: %.0f %%, %.0f s left   \r" : "\r%s\r", b->what, 100 * share, left);
}

void end_busy(struct busy *b)
{
    if (b->told)
        fprintf(stderr, "\r%*s\r", (int)strlen(b->what) + 30, "");
    *b = (struct busy){.what = b->what};
}

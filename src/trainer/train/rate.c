/* rate.c - the learning rate of a step; the formulas are in rate.h. */
#include "rate.h"
#include "trainer/base/base.h"

#include <math.h>

static const double pi = 3.141592653589793;

void fill_rate(struct rate *r)
{
    enum { MOST_WARMUP = 100 };
    if (r->lr_min < 0)
        r->lr_min = r->lr / 10;
    if (r->warmup < 0)
        r->warmup = r->schedule == RATE_CONSTANT ? 0 : MIN(r->steps / 20, MOST_WARMUP);
}

void check_rate(const struct rate *r)
{
    if (r->warmup > 0 && r->warmup >= r->steps)
        fail(EXIT_USAGE,
             "%d warm-up steps leave none of the %d steps at the full learning rate: give a smaller --warmup, or more "
             "--steps",
             r->warmup, r->steps);
    if (r->schedule != RATE_CONSTANT && r->lr_min > r->lr)
        fail(EXIT_USAGE,
             "the final learning rate %g is above the learning rate %g: give --lr-min at most that; --lr-min -1 is a "
             "tenth of --lr",
             r->lr_min, r->lr);
}

/* 0 up to step `first`, 1 at step `last`. */
static double part_done(int64_t first, int64_t last, int64_t step)
{
    if (step <= first || last <= first)
        return 0;
    return (double)(step - first) / (double)(last - first);
}

double learning_rate(const struct rate *r, int64_t step)
{
    const int64_t first = r->warmup + 1; /* at the full rate */
    if (step < first)
        return r->lr * (double)step / (double)first;
    double height = 0; /* 1: lr, 0: lr_min */
    switch (r->schedule) {
    case RATE_CONSTANT:
        return r->lr;
    case RATE_COSINE:
        height = (1 + cos(pi * part_done(first, r->steps, step))) / 2;
        break;
    case RATE_LINEAR:
        height = 1 - part_done(first, r->steps, step);
        break;
    case RATE_WSD:
        height = 1 - sqrt(part_done(MAX(r->steps - r->steps / 5, first), r->steps, step));
        break;
    }
    return r->lr_min + (r->lr - r->lr_min) * height;
}

/* rate.c - the learning rate of a step; the formulas are in rate.h. */
#include "rate.h"
#include "trainer/base/base.h"

#include <math.h>

void fill_rate(struct rate *rate)
{
    enum { MOST_WARMUP = 100 };
    if (rate->lr_min < 0)
        rate->lr_min = rate->lr / 10;
    if (rate->warmup < 0)
        rate->warmup = rate->schedule == RATE_CONSTANT ? 0 : MIN(rate->steps / 20, MOST_WARMUP);
}

void check_rate(const struct rate *rate)
{
    if (rate->warmup > 0 && rate->warmup >= rate->steps)
        fail(EXIT_USAGE,
             "--warmup %d leaves no step at the full learning rate, since --steps is %d: give a smaller --warmup, or "
             "more --steps",
             rate->warmup, rate->steps);
    if (rate->schedule != RATE_CONSTANT && rate->lr_min > rate->lr)
        fail(EXIT_USAGE,
             "the final learning rate %g is above the learning rate %g: give --lr-min at most that; --lr-min -1 is a "
             "tenth of --lr",
             rate->lr_min, rate->lr);
}

/* 0 up to step `first`, 1 at step `last`. */
static double part_done(int64_t first, int64_t last, int64_t step)
{
    if (step <= first || last <= first)
        return 0;
    return (double)(step - first) / (double)(last - first);
}

double learning_rate(const struct rate *rate, int64_t step)
{
    int64_t first = rate->warmup + 1; /* at the full rate */
    if (step < first)
        return rate->lr * (double)step / (double)first;
    double height = 0; /* 1: lr, 0: lr_min */
    switch (rate->schedule) {
    case RATE_CONSTANT:
        return rate->lr;
    case RATE_COSINE:
        height = (1 + cos(M_PI * part_done(first, rate->steps, step))) / 2;
        break;
    case RATE_LINEAR:
        height = 1 - part_done(first, rate->steps, step);
        break;
    case RATE_WSD:
        height = 1 - sqrt(part_done(MAX(rate->steps - rate->steps / 5, first), rate->steps, step));
        break;
    }
    return rate->lr_min + (rate->lr - rate->lr_min) * height;
}

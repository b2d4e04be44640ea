/* rate.c - the learning rate of a step; the formulas are in data.h. */
#include "data.h"

#include <math.h>

static const double pi = 3.141592653589793;

void check_rate(const struct rate *r)
{
    if (r->warmup > 0 && r->warmup >= r->steps)
        fail(EXIT_USAGE, "%d warm-up steps leave none of the %d steps at the full learning rate; take fewer", r->warmup,
             r->steps);
    if (r->schedule != RATE_CONSTANT && r->lr_min > r->lr)
        fail(EXIT_USAGE, "the final learning rate %g is above the learning rate %g; expected at most that", r->lr_min,
             r->lr);
}

/* Part of the way from step `first` (0) to the last step (1). */
static double progress(const struct rate *r, int64_t first, int64_t step)
{
    return r->steps > first ? (double)(step - first) / (double)(r->steps - first) : 0;
}

/* The steps before the decay; the last of them is where q is 0. */
static double wsd(const struct rate *r, int64_t step)
{
    int64_t stable = r->steps - r->steps / 5;
    stable = MAX(stable, r->warmup + 1);
    return step <= stable ? 1 : 1 - sqrt(progress(r, stable, step));
}

double learning_rate(const struct rate *r, int64_t step)
{
    if (step <= r->warmup)
        return r->lr * (double)step / (double)(r->warmup + 1);
    double p = progress(r, r->warmup + 1, step);
    double height = 1; /* 1: lr, 0: lr_min */
    switch (r->schedule) {
    case RATE_CONSTANT:
        return r->lr;
    case RATE_COSINE:
        height = (1 + cos(pi * p)) / 2;
        break;
    case RATE_LINEAR:
        height = 1 - p;
        break;
    case RATE_WSD:
        height = wsd(r, step);
        break;
    }
    return r->lr_min + (r->lr - r->lr_min) * height;
}

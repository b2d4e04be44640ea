/* rate.c - the learning rate of a step; the formulas are in data.h. */
#include "data.h"

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

double learning_rate(const struct rate *r, int64_t step)
{
    const int64_t first = r->warmup + 1, stable = MAX(r->steps - r->steps / 5, first);
    if (step < first)
        return r->lr * (double)step / (double)first;
    double p = r->steps > first ? (double)(step - first) / (double)(r->steps - first) : 0;
    double q = step > stable ? (double)(step - stable) / (double)(r->steps - stable) : 0;
    double height[] = {
        [RATE_CONSTANT] = 1, [RATE_COSINE] = (1 + cos(pi * p)) / 2, [RATE_LINEAR] = 1 - p, [RATE_WSD] = 1 - sqrt(q)};
    if (r->schedule == RATE_CONSTANT)
        return r->lr;
    return r->lr_min + (r->lr - r->lr_min) * height[r->schedule];
}

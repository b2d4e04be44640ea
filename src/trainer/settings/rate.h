/* rate.h - the learning rate of a step: rate.c.
 *
 * Step s counts from 1 to `steps`, W = warmup:
 *     s <= W    lr * s / (W + 1)                             all schedules; as nanoGPT
 *     s >  W    with p = (s - 1 - W) / (steps - 1 - W), which is 0 at step W+1 and 1 at the last step:
 *       constant    lr
 *       cosine      lr_min + (lr - lr_min) * (1 + cos(pi p)) / 2
 *       linear      lr_min + (lr - lr_min) * (1 - p)
 *       wsd         lr, then over the last fifth of all steps lr_min + (lr - lr_min) * (1 - sqrt(q)),
 *                   q rising to 1 at the last step (warm-up, stable, decay; as llm.c)
 */
#ifndef RATE_H
#define RATE_H

#include <stdint.h>

enum rate_schedule { RATE_COSINE, RATE_CONSTANT, RATE_LINEAR, RATE_WSD };

struct rate {
    enum rate_schedule schedule;
    double lr, lr_min; /* the highest rate, and the one at the end */
    int steps, warmup; /* numbers of steps: of the whole training, and of its beginning in which the rate rises */
};

/* Sets what is -1.  lr_min: a tenth of lr.  warmup: a twentieth of the steps, at most 100; none for RATE_CONSTANT. */
void fill_rate(struct rate *rate);

void check_rate(const struct rate *rate);                    /* refuses impossible combinations */
double learning_rate(const struct rate *rate, int64_t step); /* by the formulas above */

#endif

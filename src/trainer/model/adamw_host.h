/* adamw_host.h - the loop of AdamW on the host, which adamw_on_host() (model.h) and a trial of its speed call.
 */
#ifndef ADAMW_HOST_H
#define ADAMW_HOST_H

#include <stddef.h>

/* What all elements share; cl/adamw.cl has the formulas. */
struct adamw {
    float scale;                  /* by which clipping multiplies the gradient */
    float beta1, one_minus_beta1; /* for the mean m */
    float beta2, one_minus_beta2; /* for the mean square v */
    float decay;                  /* the factor of a value: 1 - lr * weight_decay */
    float eps;                    /* what is added to the root of v */
    float step_size;              /* lr / (1 - beta1^t) */
    float inv_sqrt_correction2;   /* 1 / sqrt(1 - beta2^t) */
};

/* Updates n elements: values p, Adam's m and v, gradients g. */
void update_elements(float *restrict p, float *restrict m, float *restrict v, const float *restrict g, size_t n,
                     const struct adamw *with);

#endif

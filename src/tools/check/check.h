/* check.h - yard check. */
#ifndef CHECK_H
#define CHECK_H

#include "trainer/train/train.h"

struct check_options {
    double tolerance;
    bool gradients;
};
extern struct check_options check_options;
int check_gradients(const struct settings *s); /* check --gradients: gradients.c */

#endif

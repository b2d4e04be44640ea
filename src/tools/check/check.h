/* check.h - yard check. */
#ifndef CHECK_H
#define CHECK_H

#include "trainer/train/train.h"

int check_gradients(const struct settings *s); /* check --gradients: gradients.c */

#endif

/* check.h - yard check. */
#ifndef CHECK_H
#define CHECK_H

#include "trainer/train/train.h"

struct check_options {
    double tolerance; /* the largest relative error that passes */
    bool gradients;
};
extern struct check_options asked_check;
enum exit_code check_gradients(const struct settings *settings); /* runs yard check --gradients */

#endif

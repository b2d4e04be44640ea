/* overlap_pass.h - what the options of overlap ask for: overlap_pass.c. */
#ifndef OVERLAP_PASS_H
#define OVERLAP_PASS_H

#include "choose.h"

struct overlap_options {
    enum overlap mode;
    const char *plan_file; /* it is read when it is there, else written; NULL: none */
};
extern struct overlap_options overlap_options;

#endif

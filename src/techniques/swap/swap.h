/* swap.h - what the options ask of the pass.  The technique begins with gaps.h. */
#ifndef SWAP_H
#define SWAP_H

#include "planning/pass/pass.h"

enum swap { SWAP_OFF, SWAP_AUTO, SWAP_LAYER, SWAP_MICROBATCH };
struct swap_options {
    enum swap mode;
    unsigned classes; /* the classes of tensors that may leave: a bit per enum memory_class */
};
extern struct swap_options swap_options;

#endif

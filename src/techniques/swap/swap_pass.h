/* swap_pass.h - what the options of swap ask for: swap_pass.c. */
#ifndef SWAP_PASS_H
#define SWAP_PASS_H

enum swap { SWAP_OFF, SWAP_AUTO, SWAP_LAYER, SWAP_MICROBATCH };
struct swap_options {
    enum swap mode;
    unsigned classes; /* the classes of tensors that may leave: a bit per enum memory_class */
};
extern struct swap_options swap_options;

#endif

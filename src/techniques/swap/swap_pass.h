/* swap_pass.h - what the options of swap ask for: swap_pass.c. */
#ifndef SWAP_PASS_H
#define SWAP_PASS_H

#include "swap.h"

extern struct swap_options swap_options;

#endif

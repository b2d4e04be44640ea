/* recompute_pass.h - what --recompute asks for: recompute_pass.c. */
#ifndef RECOMPUTE_PASS_H
#define RECOMPUTE_PASS_H

#include "recompute.h"

extern struct recompute_options recompute_options;

#endif

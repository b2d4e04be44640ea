/* broadcast_pass.h - what the options of broadcast ask for: broadcast_pass.c. */
#ifndef BROADCAST_PASS_H
#define BROADCAST_PASS_H

#include "broadcast.h"

extern struct broadcast_options broadcast_options;

#endif

/* recompute.h - the folder's options, as the pass reads them. */
#ifndef RECOMPUTE_H
#define RECOMPUTE_H

#include "planning/pass/pass.h"

enum recompute { RECOMPUTE_OFF, RECOMPUTE_FULL, RECOMPUTE_SELECTIVE, RECOMPUTE_AUTO };
struct recompute_options {
    enum recompute mode;
};
extern struct recompute_options recompute_options;

#endif

/* recompute_pass.h - what --recompute asks for: recompute_pass.c. */
#ifndef RECOMPUTE_PASS_H
#define RECOMPUTE_PASS_H

enum recompute { RECOMPUTE_OFF, RECOMPUTE_FULL, RECOMPUTE_SELECTIVE, RECOMPUTE_AUTO };
struct recompute_options {
    enum recompute mode;
};
extern struct recompute_options recompute_options;

#endif

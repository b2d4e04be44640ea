/* swap.h - what the options ask of the pass; and the fixed orders. */
#ifndef SWAP_H
#define SWAP_H

#include "techniques/pass/pass.h"
#include "tools/predict/predict.h"

enum swap { SWAP_OFF, SWAP_AUTO, SWAP_LAYER, SWAP_MICROBATCH };
struct swap_options {
    enum swap how;
    unsigned what; /* a bit per enum memory_class */
};
extern struct swap_options swap_options;

/* phases.c: the fixed orders of swap. */
struct phases { /* of a device, in list order */
    struct phase {
        int first, last; /* positions of its tasks */
        bool backward;
    } * phase;    /* the caller frees it */
    int n, tasks; /* of the list */
};
struct phases find_phases(const struct uses *u, const struct device *d, bool by_layer); /* else by micro-batch */
/* Of a tensor that nobody uses between two positions: its bytes are held through *out, and again from *in on.  false:
 * there is no phase between in which it could leave.  maker NULL: it is state. */
bool place_by_phases(const struct phases *t, const struct task *maker, int before, int behind, int *out, int *in);

#endif

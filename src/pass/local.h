/* local.h - the layered optimizer's updates (overlap.c), and deciding about them while the step runs (local.c). */
#ifndef LOCAL_H
#define LOCAL_H

#include "../predict/predict.h"
#include "../step/edit.h"

/* Late: behind all on the CPU that are not.  All updates on the CPU is a choice between the first two. */
enum side { ON_CPU, ON_CPU_LATE, ON_DEVICE, SIDES };
struct bucket {                /* the updates of a layer, or of parameters of no layer: all of them run on one side */
    char name[56];             /* "layer 3"; "other param.0", by the parameters */
    int layer;                 /* -1: none */
    size_t first;              /* position of its first task */
    int released;              /* and of the last one that makes a gradient of it; below 0: none does */
    double device, down, host; /* seconds: on its device; gradients down, and on the CPU */
};

/* What the rule is expected to choose for n buckets in order of release, into choice[]; f: of the list with all of them
 * on the device. */
void choose_locally(const struct forecast *f, const struct bucket *bucket, size_t n, unsigned char *choice);

struct local {  /* how the running step decides */
    bool drawn; /* at random, by this seed, to show that no bit depends on it */
    uint64_t seed;
    const struct costs *costs;
    int cores;           /* of the CPU */
    struct choice *ring; /* those that have been added */
};
/* An update has just moved: the tasks of s->task from `first` on do on the host what `update` did.  Now each step has
 * the choice between the two, and is expected to make that one.  maker: the last one of its gradients. */
void offer_both(struct edit *e, struct step *s, struct local *how, struct task *update, struct task *maker,
                size_t first, enum side expected);

#endif

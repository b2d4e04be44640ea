/* local.h - the layered optimizer's updates (overlap.c), and deciding about them while the step runs (local.c). */
#ifndef LOCAL_H
#define LOCAL_H

#include "../predict/predict.h"
#include "../step/edit.h"

/* Where an update runs.  Late: on the CPU, behind all others there. */
enum side { ON_CPU, ON_CPU_LATE, ON_DEVICE, SIDES };
struct bucket {          /* the updates of a layer, or of parameters of no layer: a plan gives them one side */
    char name[56];       /* "layer 3"; "other param.0", by the parameters */
    int layer;           /* -1: none */
    size_t update;       /* position of its first update */
    int released;        /* and of the last task that makes a gradient of it; below 0: none does */
    double on_device;    /* seconds */
    double down, on_cpu; /* seconds: of its gradients' copies, and behind them */
};

/* What the rule is expected to choose for n buckets in order of release, of which the first `fixed` are on the CPU
 * whatever it says, into choice[]; f: of the list with all of them on the device.  Where that cannot be simulated, all
 * go to the CPU. */
void apply_rule(const struct forecast *f, const struct bucket *bucket, size_t n, size_t fixed, unsigned char *choice);

struct local {  /* how the running step decides */
    bool drawn; /* at random, by this seed, to show that no bit depends on it */
    uint64_t seed;
    const struct costs *costs;
    int cores;            /* of the CPU */
    struct chooser *ring; /* those that have been added */
};
/* An update has just moved: what was added to s->task from position `from` on does on the host what `update` did, with
 * its copies (and the pieces of `update` that these stand in for, which have left the list).  Now each step has the
 * choice between the two, and is expected to make that one.  maker: the last one of its gradients. */
void offer_both(struct edit *e, struct step *s, struct local *how, struct task *update, struct task *maker, size_t from,
                enum side expected);
/* The task works when the word on the host has all of those bits, of enum choice_bit. */
void need_choice(struct task *t, struct tensor *word, int bits, bool expected);

#endif

/* local.h - the layered optimizer's updates (overlap.c), and deciding about them while the step runs (local.c). */
#ifndef LOCAL_H
#define LOCAL_H

#include "techniques/pass/pass.h"
#include "techniques/search/plan.h"

enum overlap { OVERLAP_OFF, OVERLAP_PLAN, OVERLAP_LOCAL, OVERLAP_ALL_CPU, OVERLAP_ALL_DEVICE, OVERLAPS };
struct overlap_options {
    enum overlap how;
    const char *plan; /* the file of the plan: read when it is there, else written; NULL: none */
};
extern struct overlap_options overlap_options;

enum { MOST_BUCKETS = 1024, MOST_STARTS = 16 }; /* the updates of more layers do not move */
/* Where an update runs.  Late: on the CPU, behind all others there. */
enum side { ON_CPU, ON_CPU_LATE, ON_DEVICE, SIDES };
struct updates {         /* the updates of a layer, or of parameters of no layer: a plan gives them one side */
    char name[56];       /* "layer 3"; "other param.0", by the parameters */
    int layer;           /* -1: none */
    size_t update;       /* position of its first update */
    int released;        /* and of the last task that makes a gradient of it; below 0: none does */
    double on_device;    /* seconds */
    double down, on_cpu; /* seconds: of its gradients' copies, and behind them */
};

enum memory { GRADIENTS_ALONE, GRADIENTS_SHARED }; /* do those that go down share bytes with others? */
struct candidate {
    unsigned char choice[MOST_BUCKETS + 1]; /* by bucket enum side, then enum memory */
    struct score score;
};
/* What comes of it; where it does not fit, with gradients that share bytes. */
void try_candidate(const struct question *q, struct candidate *c);

struct rule {   /* how the running step decides */
    bool drawn; /* at random, by this seed, to show that no bit depends on it */
    uint64_t seed;
    const struct question *question; /* what a choice comes to */
    const struct updates *bucket;    /* in order of release */
    int cores;                       /* of the CPU */
    size_t fixed;         /* the first so many buckets have been decided before the step runs; it may be all */
    struct chooser *ring; /* of the updates that have been offered */
};
/* What the rule is expected to choose; where that does not fit, the last ones go where there is room. */
void expect_rule(const struct rule *rule, struct candidate *expected);
/* Lets the running step decide about as many updates as may be on both sides: as few as it takes stay on the CPU, those
 * released first (rule->fixed).  Else all has been decided now, and *expected stays.  Says which, and why.
 * room: the pass that is to make room for it, in a way that nobody knows yet; NULL: none has to. */
void decide_in_step(struct rule *rule, const struct run_facts *w, const struct pass *room, struct candidate *expected,
                    struct pass_report *r);
/* An update has just moved: what was added to s->task from position `from` on does on the host what `update` did, with
 * its copies (and the pieces of `update` that these stand in for, which have left the list).  Now each step has the
 * choice between the two, and is expected to make that one.  maker: the last one of its gradients. */
void offer_both(struct edit *e, struct step *s, struct rule *rule, struct task *update, struct task *maker, size_t from,
                enum side expected);
/* How often the running step has chosen what, as a sentence that the caller frees; NULL: never. */
char *describe_choices(const struct step *s);

#endif

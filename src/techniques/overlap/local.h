/* local.h - --overlap local: the running step decides where updates run (local.c). */
#ifndef LOCAL_H
#define LOCAL_H

#include "choose.h"
#include "techniques/pass/pass.h"

struct chooser;
struct rule {    /* how the running step decides */
    bool random; /* at random, by this seed, to show that no bit depends on it */
    uint64_t seed;
    const struct planner *planner;
    size_t n_fixed;       /* the first so many buckets are decided before the step runs; it may be all */
    struct chooser *ring; /* those of the updates that the step decides about */
};
/* What the rule is expected to choose; where that does not fit, the last buckets go where there is room. */
void expect_rule(const struct rule *rule, struct candidate *expected);
/* Lets the running step decide about as many updates as may be on both sides: as few as it takes stay on the CPU, those
 * released first (rule->n_fixed).  Else all has been decided now, and *expected stays.  Says which, and why.
 * room: the pass that is to make room for it, in a way that nobody knows yet; NULL: none has to. */
void decide_in_step(struct rule *rule, const struct run_facts *facts, const struct pass *room,
                    struct candidate *expected, struct pass_report *r);
/* It is called in place of move_updates(): the fixed buckets move to the sides that the plan says, all others are
 * listed on both sides, and are expected to run where it says.  No update leaves its place in the list. */
void offer_updates(struct mover *m, struct rule *rule, const unsigned char *side);
/* How often the running step has chosen what, as a sentence that the caller frees; NULL: never. */
char *describe_choices(const struct step *s);

#endif

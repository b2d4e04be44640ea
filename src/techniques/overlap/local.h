/* local.h - --overlap local: the running step decides where updates run.
 *
 *     local.c            the rule, the tasks by which the step follows it, and what it has chosen
 *     local_forecast.c   before the step runs: what the rule will choose, and about which updates
 */
#ifndef LOCAL_H
#define LOCAL_H

#include "choose.h"
#include "planning/pass/pass.h"

struct side_chooser; /* local.c */
struct local_rule {  /* --overlap local: how the running step decides, and for which updates */
    bool random;     /* at random, by this seed, to show that no bit depends on it */
    uint64_t seed;
    const struct update_survey *survey;
    size_t n_fixed; /* how many buckets, from the first on, are decided before the step runs; perhaps all */
    /* The choosers of the updates about which the step decides: the last one that was added. */
    struct side_chooser *ring;
};

/* ---- local.c ----------------------------------------------------------------------------------------------------- */

/* The rule: does the CPU get an update?  backlog: seconds that the CPU still needs for the updates that it was given
 * before; device_takes: seconds that this update takes on the device. */
bool goes_to_cpu(double backlog, double device_takes);
/* Called in place of move_updates(): the fixed buckets move to the sides that the plan says.  The other updates are
 * listed on both sides, and are expected to run on the side that the plan says.  No update leaves its place in the
 * list. */
void move_fixed_and_list_others(struct update_mover *mover, struct local_rule *rule, const unsigned char *side);
/* How often the running step has chosen what, as a sentence that the caller frees; NULL: never. */
char *describe_choices(const struct list *list);

/* ---- local_forecast.c -------------------------------------------------------------------------------------------- */

/* Fills in what the rule is expected to choose.  Where that does not fit, the last buckets go to the other side, as far
 * as that saves bytes.  question: it scores a choice. */
void expect_choices(const struct local_rule *rule, const struct question *question, struct update_plan *expected);
/* Sets rule->n_fixed, so that the running step decides about as many updates as may be on both sides.  The buckets that
 * are released first are fixed to the CPU, as few as that takes.  *expected becomes what the step is then expected to
 * do.  If the step cannot decide about any update, all are fixed and *expected stays.  Writes to the report which it
 * is, and why.  room_maker: the pass that will make room for the list when it runs; NULL: no pass has to. */
void leave_to_step(struct local_rule *rule, const struct question *question, const struct run_facts *facts,
                   const struct pass *room_maker, struct update_plan *expected, struct pass_report *report);

#endif

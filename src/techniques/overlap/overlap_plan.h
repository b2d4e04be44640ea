/* overlap_plan.h - the plans of --overlap: making them, trying them, and choosing one.
 *
 * The files of this folder call each other in one direction:
 *
 *     overlap_pass.c -> overlap_room.c -> overlap_try.c -> overlap_local_plan.c -> overlap_choose.c
 *                                                                               -> overlap_local.c -> overlap.c
 *
 * overlap.h explains two words, bucket and side.  Two more:
 *
 *     plan       a side for each bucket, and whether gradients share bytes: all that there is to decide about a list
 *     planner    what makes the plans of a list while the pass is at work on it
 *
 * To the search a plan is a choice: each side of it is the option of a decision (planning/search/search.h).
 */
#ifndef OVERLAP_PLAN_H
#define OVERLAP_PLAN_H

#include "overlap.h"
#include "planning/pass/pass.h"
#include "planning/search/search.h"

enum overlap { OVERLAP_OFF, OVERLAP_PLAN, OVERLAP_LOCAL, OVERLAP_ALL_CPU, OVERLAP_ALL_DEVICE, OVERLAPS };

struct overlap_options {
    enum overlap mode;
    const char *plan_file; /* the file to read the plan from; if there is none, the plan is written to it; NULL: none */
};

/* ---- overlap_choose.c: a plan for each --overlap, and which is the best ------------------------------------------ */

enum { MOST_STARTS = 16 };               /* how many numbers of buckets on the CPU are tried first, beside none */
enum { OVERLAP_WORK = SEARCH_WORK / 6 }; /* simulations of tasks that the whole search may cost */
enum { MOST_DECISIONS = MOST_BUCKETS + 1 };

struct update_plan {
    side_byte side[MOST_BUCKETS]; /* by bucket */
    enum sharing sharing;
    size_t n_left_to_step; /* about how many buckets, the last ones, the running step decides (--overlap local) */
    struct score score;    /* the score of the list with this plan */
};

struct bucket_seconds {  /* what the updates of a bucket take */
    double on_device;    /* all of them */
    double down, on_cpu; /* their gradients' copies to the host; the updates there */
};

struct update_survey { /* what is known of a list's updates, for a plan to be chosen */
    struct list *list;
    const struct costs *costs;
    struct uses *uses;
    struct update_buckets buckets;
    int cores;                                 /* CPU cores that no device computes on: updates take them in turn */
    struct decision decisions[MOST_DECISIONS]; /* what there is to decide about a plan: see set_decisions() */
    size_t n_decisions;
    bool timed;                                  /* is it known how long tasks take? */
    struct bucket_seconds seconds[MOST_BUCKETS]; /* by bucket */
    double serial;       /* seconds of a step with all updates on the CPU, if tasks ran one after another */
    double least_period; /* seconds: no step can be shorter, wherever updates are; 0: not known */
};

struct update_plans {
    struct update_plan by_mode[OVERLAPS]; /* the plan of each --overlap, and its score */
    /* The following two are about passes that run later, and overlap_room.c fills them in. */
    int *remade; /* what recompute will make again (struct scoring); NULL: nothing, as far as is known */
    /* The pass that will make room when it runs, if no plan fits now; NULL: no such pass runs, or recompute runs too:
     * then room is judged by what recompute makes again.  Only --overlap local asks. */
    const struct pass *room_maker;
};

/* Fills in the survey's decisions, after its buckets. */
void set_decisions(struct update_survey *survey);

/* Fills in the sides and the sharing of the plan that is this choice of the search. */
void choice_to_plan(const option_byte *choice, size_t n_decisions, struct update_plan *plan);

/* Fills in plan->sharing and plan->score.  Gradients have bytes of their own; or, where the list does not fit
 * then, they share bytes. */
void try_plan(const struct question *question, struct update_plan *plan);

/* Fills in plan->score alone. */
void score_plan(const struct question *question, struct update_plan *plan);

/* Fills in `seconds`, `serial` and `least_period`. */
void measure_buckets(struct update_survey *survey);

/* Tries all updates on the device and all on the CPU, and looks for the best plan.  Where the times of tasks are not
 * known, the best plan has all updates on the CPU if the device has no room for their state, else none.  The plan of
 * --overlap local is left empty: plan_expected_sides() fills it in.  question: it scores a choice. */
struct update_plans choose_plans(const struct update_survey *survey, const struct question *question);

/* ---- overlap_local.c: the running step decides where updates run ------------------------------------------------- */

struct side_chooser; /* overlap_local.c */
struct local_rule {  /* --overlap local: how the running step decides, and for which updates */
    bool drawn;      /* true: sides are drawn at random, to show that no bit depends on them */
    uint64_t draw_seed;
    const struct update_survey *survey;
    /* The choosers of the updates about which the step decides: the last one that was added. */
    struct side_chooser *choosers;
};

/* The rule: does the CPU get an update?  backlog: seconds that the CPU still needs for the updates that it was given
 * before; device_takes: seconds that this update takes on the device. */
bool goes_to_cpu(double backlog, double device_takes);

/* Called in place of move_updates(): the first n_fixed buckets move to the sides that the plan says.  The other updates
 * are listed on both sides, and are expected to run on the side that the plan says.  No update leaves its position in
 * the list. */
void move_fixed_and_list_others(struct update_mover *mover, struct local_rule *rule, size_t n_fixed,
                                const side_byte *side);

/* How often the running step has chosen what, as a sentence that the caller frees; NULL: never. */
char *describe_sides(const struct list *list);

/* ---- overlap_local_plan.c: what the rule will choose ------------------------------------------------------------- */

/* Fills in side[], by bucket, with what the rule will choose; the first n_fixed buckets go to the CPU, whatever it
 * says.  forecast: that of the list with all updates on the device; where that list could not be simulated, all go to
 * the CPU. */
void predict_sides(const struct update_survey *survey, const struct forecast *forecast, size_t n_fixed,
                   side_byte *side);

/* Fills in what the rule is expected to choose.  Where that does not fit, the last buckets go to the other side, as far
 * as that saves bytes.  question: it scores a choice. */
void plan_expected_sides(const struct local_rule *rule, const struct question *question, struct update_plan *expected);

/* ---- overlap_try.c: how the updates of a list are planned, and what a plan would do ------------------------------ */

struct update_planner { /* makes the plans of a list */
    enum overlap mode;  /* the --overlap that the run has */
    struct update_survey survey;
    struct local_rule rule;
    const struct run_facts *facts;
    bool is_from_file; /* the plan was read from the file of --overlap-plan */
};

/* Moves updates to the sides of a plan, in the open edit; those about which the running step decides are listed on
 * both. */
void carry_out_plan(struct update_planner *planner, struct edit *edit, const struct update_plan *plan);

/* How a choice is scored: as a plan of this planner that leaves so many buckets to the running step. */
struct scoring {
    struct update_planner *planner;
    /* What recompute is assumed to make again, as an array that remake_tensors() takes; NULL: nothing.  All that is
     * called `remade` in this folder is such an array. */
    const int *remade;
    size_t n_left_to_step;
};

/* For the search, which scores choices by it.  work: what the search may spend after its starts. */
struct question question_of(struct scoring *scoring, double work);

/* Does what try_plan() does, for a list in which these tensors are made again, and nothing is left to the step. */
void try_with(struct update_planner *planner, const int *remade, struct update_plan *plan);

/* A plan for each --overlap, the best that is found for budgets as they are now.  remade: see struct scoring. */
struct update_plans plans_within_budgets(struct update_planner *planner, const int *remade);

/* Leaves to the running step as many buckets as may be on both sides.  The buckets that are released first are fixed to
 * the CPU, as few as that takes.  The plan of --overlap local becomes what the step is then expected to do; if nothing
 * can be left to the step, that plan stays as it is.  Writes to the report what was decided, and why. */
void leave_to_step(struct update_planner *planner, struct update_plans *plans, struct pass_report *report);

/* ---- overlap_room.c ---------------------------------------------------------------------------------------------- */

/* A plan for each --overlap where a later pass makes room.  plain: those of plans_within_budgets() with nothing made
 * again.  The caller frees `remade` of what is returned. */
struct update_plans plans_for_later_room(struct update_planner *planner, const struct update_plans *plain);

/* ---- overlap_pass.c ---------------------------------------------------------------------------------------------- */

extern struct overlap_options asked_overlap; /* what the options of the command line ask for */

#endif

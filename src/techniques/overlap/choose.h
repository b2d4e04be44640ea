/* choose.h - a plan for each --overlap, and which is the best (choose.c).
 *
 * The words of this folder:
 *
 *     bucket     the updates that move together: those of a layer (overlap.h)
 *     side       where the updates of a bucket run
 *     plan       a side for each bucket, and whether gradients share bytes: all that there is to decide about a list
 *     planner    what makes the plans of a list while the pass is at work on it (overlap_try.h)
 *
 * To the search a plan is a choice: each side of it is the option of a decision (planning/search/search.h).
 */
#ifndef CHOOSE_H
#define CHOOSE_H

#include "overlap.h"
#include "planning/search/search.h"

enum overlap { OVERLAP_OFF, OVERLAP_PLAN, OVERLAP_LOCAL, OVERLAP_ALL_CPU, OVERLAP_ALL_DEVICE, OVERLAPS };
enum { MOST_STARTS = 16 };               /* how many numbers of buckets on the CPU are tried first, beside none */
enum { OVERLAP_WORK = SEARCH_WORK / 6 }; /* what the whole search may cost */
struct update_plan {
    unsigned char side[MOST_BUCKETS]; /* by bucket, an enum side */
    enum sharing sharing;
    struct score score; /* the score of the list with this plan */
};
/* Fills in plan->sharing and plan->score.  Gradients have bytes of their own; or, where the list does not fit
 * then, they share bytes. */
void try_plan(const struct question *question, struct update_plan *plan);
/* Fills in plan->score alone. */
void score_plan(const struct question *question, struct update_plan *plan);

struct bucket_seconds {  /* what the updates of a bucket take */
    double on_device;    /* all of them */
    double down, on_cpu; /* their gradients' copies to the host; the updates there */
};

struct update_survey { /* what is known of a list's updates, for a plan to be chosen */
    struct list *list;
    const struct costs *costs;
    struct uses *uses;
    struct update_buckets buckets;
    int cores;                                   /* CPU cores that no device computes on: updates take them in turn */
    struct decision decisions[MOST_BUCKETS + 1]; /* the side of each bucket; the last one is the sharing */
    bool timed;                                  /* is it known how long tasks take? */
    struct bucket_seconds seconds[MOST_BUCKETS]; /* by bucket */
    double serial;       /* seconds of a step with all updates on the CPU, if tasks ran one after another */
    double least_period; /* seconds: no step can be shorter, wherever updates are; 0: not known */
};

struct update_plans {
    struct update_plan by_mode[OVERLAPS]; /* the plan of each --overlap, and its score */
};
/* Fills in `seconds`, `serial` and `least_period`. */
void measure_buckets(struct update_survey *survey);
/* Tries all updates on the device and all on the CPU, and looks for the best plan.  Where the times of tasks are not
 * known, the best plan has all updates on the CPU if the device has no room for their state, else none.  The plan of
 * --overlap local is left empty: expect_choices() of local.h fills it in.  question: it scores a choice. */
struct update_plans find_plans(const struct update_survey *survey, const struct question *question);

#endif

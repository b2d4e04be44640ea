/* overlap_try.h - how a list's updates are planned, and what a plan would do: overlap_try.c.
 *
 * The files of the pass call each other in one direction:
 *
 *     overlap_pass.c  ->  overlap_room.c  ->  overlap_try.c
 */
#ifndef OVERLAP_TRY_H
#define OVERLAP_TRY_H

#include "choose.h"
#include "local.h"

struct update_planner { /* makes the plans of a list */
    enum overlap mode;  /* the --overlap that the run has */
    struct update_survey survey;
    struct local_rule rule;
    const struct run_facts *facts;
    bool is_from_file; /* the plan was read from the file of --overlap-plan */
    /* What overlap_room.c finds out about passes that run later: */
    int *remade; /* plans are tried as if this, for remake(), were made again already; NULL: nothing is */
    const struct pass *room_maker; /* the pass that will make room for the plans when it runs; NULL: none has to */
};

/* Moves updates to the sides of a plan, in the open edit; those about which the running step decides are listed on
 * both. */
void carry_out_plan(struct update_planner *planner, struct edit *edit, const unsigned char *side, enum sharing sharing);
/* For the search, which scores choices by it.  work: what the search may spend after its starts. */
struct question question_of(struct update_planner *planner, double work);
/* A plan for each --overlap, the best that is found for budgets as they are now. */
struct update_plans plans_within_budgets(struct update_planner *planner, double work);

#endif

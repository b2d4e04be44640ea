/* overlap_pass.h - what the files of the pass know of each other.  They call each other one way:
 *
 *     overlap_pass.c  ->  overlap_room.c  ->  overlap_try.c
 */
#ifndef OVERLAP_PASS_H
#define OVERLAP_PASS_H

#include "choose.h"
#include "local.h"

struct overlapper { /* the pass at work on a list */
    struct planner planner;
    struct rule rule;
    const struct run_facts *facts;
    /* What overlap_room.c finds out about passes that run later: */
    int *remade; /* plans are tried as if this, for remake(), were made again already; NULL: nothing is */
    const struct pass *room_maker; /* it is to make room for the plans, nobody knows yet how; NULL: no pass has to */
};

/* ---- overlap_try.c ----------------------------------------------------------------------------------------------- */

/* The --overlap that the run has.  In a trial `local` counts as `plan`: nothing is decided in the step. */
enum overlap mode_of(const struct run_facts *facts);
/* Moves updates to these sides, in the open edit. */
void carry_out(struct overlapper *overlapper, struct edit *edit, const unsigned char *side, enum sharing sharing);
/* How good is a choice?  work: what a search may spend after its starts. */
struct question question_of(struct overlapper *overlapper, double work);
/* A plan for each --overlap, the best that was found for budgets as they are now. */
struct plans try_all(struct overlapper *overlapper, double work);

/* ---- overlap_room.c ---------------------------------------------------------------------------------------------- */

/* A plan for each --overlap where a later pass makes room.  plans: those of try_all(). */
struct plans plans_with_room(struct overlapper *overlapper, const struct plans *plans);

#endif

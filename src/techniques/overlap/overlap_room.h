/* overlap_room.h - which plans --overlap takes where a pass that runs later makes room: overlap_room.c. */
#ifndef OVERLAP_ROOM_H
#define OVERLAP_ROOM_H

#include "overlap_try.h"

/* A plan for each --overlap where a later pass makes room.  plain: those of plans_within_budgets(). */
struct update_plans plans_for_later_room(struct update_planner *planner, const struct update_plans *plain);

#endif

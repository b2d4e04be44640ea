/* snapslots.c - which slot of a snapshot's file the next iteration gets: the run and the simulator ask here.  It holds
 * two rules: the newest durable commit keeps its slot, and an iteration under way has one of its own. */
#include "trainer/step/step.h"

int take_slot(struct snap_slots *s)
{
    for (int k = 1; k <= s->n; k++)
        if (!s->taken[k] && k != s->durable) {
            s->taken[k] = true;
            return k;
        }
    return 0;
}

int most_under_way(int slots) { return slots - 1; }

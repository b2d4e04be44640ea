/* slots.c - slots that iterations take in turn: a run and whoever predicts it ask here.  It holds two rules: the slot
 * that is kept stays as it is, and an iteration under way has one of its own. */
#include "step.h"

int take_slot(struct slots *s)
{
    for (int k = 1; k <= s->n; k++)
        if (!s->taken[k] && k != s->kept) {
            s->taken[k] = true;
            return k;
        }
    return 0;
}

int most_under_way(int slots) { return slots - 1; }

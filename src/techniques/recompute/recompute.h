/* recompute.h - activations that are made again by a rule: recompute.c. */
#ifndef RECOMPUTE_H
#define RECOMPUTE_H

#include "planning/pass/pass.h"

struct uses; /* planning/pass/uses.h */

/* All that the rule makes again, by tensor, as remake() takes it.  The caller frees the array. */
int *remade_by_rule(const struct uses *uses, const struct pool *pool);
/* --recompute full and --recompute selective.  false: nothing can be made again, and the list is as it was. */
bool recompute_by_rule(struct list *list, struct pass_report *report);

#endif

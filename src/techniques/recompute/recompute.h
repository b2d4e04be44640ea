/* recompute.h - activations that the backward needs are made again, instead of being kept since the forward.
 *
 *     recompute.c        the technique: by which rule tensors are chosen                begin here
 *     recompute_pass.c   the pass: its option, and who does the work for --recompute auto
 *
 * Machinery from elsewhere: planning/pass/remake.c repeats the tasks; the search of --recompute auto is
 * techniques/swap/swap_auto.c.
 */
#ifndef RECOMPUTE_H
#define RECOMPUTE_H

#include "planning/pass/pass.h"

enum recompute { RECOMPUTE_OFF, RECOMPUTE_FULL, RECOMPUTE_SELECTIVE, RECOMPUTE_AUTO };

struct recompute_options {
    enum recompute mode;
};

/* ---- recompute.c ------------------------------------------------------------------------------------------------- */

/* All that the rule of --recompute `mode` makes again, by tensor, as remake_tensors() takes it; for RECOMPUTE_AUTO all
 * that it may make again.  The caller frees the array. */
int *remade_by_rule(const struct uses *uses, const struct pool *pool, enum recompute mode);

/* --recompute full and --recompute selective: rewrites the list so that activations are made again, and says in the
 * report which.  false: none can be made again, and the list is as it was. */
bool recompute_by_rule(struct list *list, enum recompute mode, struct pass_report *report);

/* ---- recompute_pass.c -------------------------------------------------------------------------------------------- */

extern struct recompute_options asked_recompute; /* what --recompute asks for */

#endif

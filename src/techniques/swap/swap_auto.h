/* swap_auto.h - --swap auto and --recompute auto: a search says what is done about each gap (swap_auto.c). */
#ifndef SWAP_AUTO_H
#define SWAP_AUTO_H

#include "planning/pass/pass.h"

struct swap_options; /* swap.h */

/* --swap auto and --recompute auto, the latter before the pass of swap.  false: all fits, or the other of the two
 * passes chooses; the list is as it was.  Ends the program (EXIT_USAGE) where nothing fits. */
bool swap_by_search(struct list *list, const struct costs *costs, const struct swap_options *options,
                    const struct run_facts *facts, struct pass_report *report);
bool remake_by_search(struct list *list, const struct costs *costs, const struct swap_options *options,
                      const struct run_facts *facts, struct pass_report *report);
/* Does --swap auto make the list fit, with a step of at most `seconds`?  The search for the answer is shorter than that
 * of a run, and ends as soon as one plan shows it.  The list stays as it is. */
bool can_fit_within(struct list *list, const struct costs *costs, const struct swap_options *options, double seconds);

#endif

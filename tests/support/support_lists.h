/* support_lists.h - lists that tests read from texts, finish and prove. */
#ifndef SUPPORT_LISTS_H
#define SUPPORT_LISTS_H

#include "planning/proof/proof.h"
#include "support.h"

/* Fails unless verify_list() finds nothing wrong. */
void expect_sound(const char *what, const struct list *list, const struct values *plain);

/* Fails unless a proof has found this problem, in a sentence that contains `part`.  Frees it. */
void expect_wrong(const char *what, struct problem *problem, const char *part);

/* Fails if verify_list() accepts the list without one of its waits; every nth is tried.  Returns how many waits it
 * has. */
size_t expect_waits_needed(struct list *list, size_t nth);

/* Gives addresses and edges to a list that was read or edited. */
void finish_list(struct list *list);

struct list *read_list_text(const char *format, ...) PRINTF_LIKE(1, 2); /* reads the step file with this text */

#endif

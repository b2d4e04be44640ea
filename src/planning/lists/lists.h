/* lists.h - a list as text: step files, which are read and written, and what `yard plan` prints of a list.
 *
 * Techniques may include this folder, as `search` does: a choice is a file of such lines too (line.h).  So this folder
 * includes no technique, and of planning only pass, predict, proof and trace.
 */
#ifndef LISTS_H
#define LISTS_H

#include "trainer/step/list.h"

#include <jansson.h>

/* ---- readlist.c: reading step files ------------------------------------------------------------------------------ */

/* The list that a step file, or a file of a folder's form, describes, on a machine and in a pool of its own, not yet
 * placed.  Ends the program (EXIT_USAGE) with the line and the word that are wrong. */
struct list *read_list(const char *path);

void free_list_and_machine(struct list *list); /* frees its pool and its machine too */
bool names_list(const char *path);             /* is it, by its name, such a file? */

/* Another form of such files, which a folder registers (struct planning_parts, planning/pass/pass.h). */
struct list_form {
    const char *ending;              /* the end of their names: ".csv" */
    char *(*read)(const char *path); /* the text of a step file with the list that the file has; the caller frees it */
};

/* ---- writelist.c ------------------------------------------------------------------------------------------------- */

/* The list as a step file; seconds: how long each task takes alone.  Read back, it is simulated to the same times. */
void write_list(FILE *out, const struct list *list, const double *seconds);

/* ---- print.c ----------------------------------------------------------------------------------------------------- */

const char *budget_rule(const struct machine *machine); /* how its budgets are chosen, for people */

/* yard plan shows a placed list in three ways: its tasks, with edges and accesses; where its tensors lie, and when; and
 * what lists that share a pool take on each device, in bytes.  plan_json() has all three, and the caller owns it. */
void print_step(FILE *out, const struct list *list);
void print_map(FILE *out, const struct pool *pool, const struct list *list);
void print_memory(FILE *out, const struct pool *pool, struct list *const *lists, size_t n);
json_t *plan_json(const struct pool *pool, struct list *const *lists, size_t n);

/* ---- gate.c: clipping, in lists that have no tensors for the norm ------------------------------------------------ */

/* Updates that do not follow from a norm wait at the gate, and move to after the last task that opens it (gate.c).
 * Call depend() then: the edges are no longer those of the list.  Ends the program (EXIT_USAGE) where the gradients
 * follow from an update. */
void gate_updates(struct list *list);

#endif

/* plan.h - a training whose lists are looked at, and do not run.
 *
 *     struct trainer *trainer = plan_training(settings, LIST_TRAIN);       trainer->train_list has addresses and edges
 *     free_trainer(trainer);
 */
#ifndef PLAN_H
#define PLAN_H

#include "trainer/train/train.h"

/* As new_trainer() of train.h, but nothing is allocated on devices, which --hardware may describe. */
struct trainer *plan_training(const struct settings *settings, unsigned wanted);

/* plan_training(), but where it would end the program, this returns NULL, and *problem, which the caller frees.  Else
 * *problem is NULL. */
struct trainer *try_to_plan(const struct settings *settings, unsigned wanted, struct problem **problem);

/* try_to_plan() in three calls, for a caller that wants to know something between them. */
struct trainer *try_new_draft(const struct settings *settings, unsigned wanted, struct problem **problem);

struct problem *place_draft(struct trainer *trainer); /* NULL: all lists have their addresses, but no edges yet */
void depend_draft(struct trainer *trainer);

#endif

/* fetch.h - lists beside the one for training.  Implemented in fetch.c. */
#ifndef FETCH_H
#define FETCH_H

#include "trainer/step/list.h"

#define FOR_SWAP "swap" /* the lanes of copies that take bytes from a device for a while, and bring them back */

/* Adds copies to a list other than that for training, such as that for evaluation.  Its tasks read state that passes
 * have moved to the host for the sake of the training list: the copies fetch it before each use.  Nothing goes back,
 * since the list only reads state. */
void fetch_state(struct list *list);

#endif

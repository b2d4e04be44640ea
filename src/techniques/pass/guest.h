/* guest.h - state that the host updates, and that a device has as a guest.  Implemented in guest.c. */
#ifndef GUEST_H
#define GUEST_H

#include "edit.h"
#include "uses.h"

/* x persists on a device.  If the host updates x, all that writes x is copies up of x's mirrors.  If these come after
 * all readers of x, the host can be the home of x: set_home().  Then this returns how many uses of x come before these
 * copies; else 0. */
size_t uses_of_guest(const struct uses *u, const struct tensor *x);
/* Call it where uses_of_guest() is not 0, and the host has become the home of x.  The copies up of mirrors leave the
 * list, and tasks that touch a mirror of x touch x itself. */
void give_way(struct edit *e, struct pool *p, const struct uses *u, const struct tensor *x);

#endif

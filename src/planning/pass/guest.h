/* guest.h - state that the host updates, and that a device has as a guest.  Implemented in guest.c. */
#ifndef GUEST_H
#define GUEST_H

#include "edit.h"
#include "uses.h"

/* The tensor persists on a device.  If the host updates it, all that writes it is copies up of its mirrors.  If these
 * come after all readers of the tensor, the host can be its home: set_home().  Then this returns how many uses of the
 * tensor come before these copies; else 0. */
size_t uses_of_guest(const struct uses *uses, const struct tensor *tensor);
/* Call it where uses_of_guest() is not 0, and the host has become the home of the tensor.  The copies up of mirrors
 * leave the list, and tasks that touch a mirror of the tensor touch the tensor itself. */
void give_way(struct edit *edit, struct pool *pool, const struct uses *uses, const struct tensor *tensor);

#endif

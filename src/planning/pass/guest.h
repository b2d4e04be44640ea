/* guest.h - state that the host updates, and that a device has as a guest.  Implemented in guest.c. */
#ifndef GUEST_H
#define GUEST_H

#include "edit.h"
#include "uses.h"

/* The tensor persists on a device, and the host updates it: then only copies up of its mirrors write it.  If all its
 * readers come before these copies, the host can be its home (set_home()), and the tensor a guest on the device:
 *
 *     read x    read x    update m (host)    copy m up to x        two uses of x come first
 *
 * Returns how many uses come before the copies; 0: the host cannot be its home. */
size_t count_guest_uses(const struct uses *uses, const struct tensor *tensor);

/* Call it where count_guest_uses() is not 0, and the host has become the home of the tensor.  The copies up of mirrors
 * leave the list, and tasks that touch a mirror of the tensor touch the tensor itself. */
void drop_mirrors(struct edit *edit, const struct uses *uses, const struct tensor *tensor);

#endif

/* held.h - which bytes of a device are held when: place() asks where some are free for the whole of a life.
 *
 * Time is counted in moments, from 0; a life is the moments first to last, both included.  A question costs the
 * logarithm of the number of moments, and what lies in between on the way, not the number of tensors.
 */
#ifndef HELD_H
#define HELD_H

#include <stddef.h>

struct held;
struct held *new_held(size_t n_moments);
void free_held(struct held *h);
/* The lowest address from which so many bytes are free throughout the life, not across a multiple of `limit`; they are
 * held from now on. */
size_t hold_lowest(struct held *h, size_t first, size_t last, size_t bytes, size_t limit);

#endif

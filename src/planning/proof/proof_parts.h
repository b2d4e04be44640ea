/* proof_parts.h - what the files of this folder share: the parts of verify_list().  verify.c proves values and order,
 * verify_places.c where tensors lie.  Each part returns NULL, or the first violation.
 */
#ifndef PROOF_PARTS_H
#define PROOF_PARTS_H

#include "trainer/step/list.h"

/* The tensor's first byte in its device's strip, in which slabs begin at multiples of NO_LIMIT: none is larger. */
static inline size_t strip_begin(const struct tensor *tensor)
{
    return (size_t)tensor->storage->slab * NO_LIMIT + tensor->storage->address + tensor->offset;
}

/* Tasks touch what lies in a slot only while their iteration has a slot. */
struct problem *verify_slots(const struct list *list);

/* Tensors lie within slabs and budgets, and nothing else has the bytes of one that is kept from step to step. */
struct problem *verify_memory(const struct list *list);

#endif

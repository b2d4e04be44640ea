/* remake.h - tensors that are made again instead of kept.  Recomputation makes a tensor again; the verb for that is
 * *remake*, while *recompute* is the option, its folder and its pass.  Implemented in remake.c. */
#ifndef REMAKE_H
#define REMAKE_H

#include "edit.h"
#include "uses.h"

bool same_block(const struct task *a, const struct task *b); /* have they the same layer, micro-batch and role? */

/* May the tensor be away from its device while no task uses it?  Only tensors of these classes may, a bit per enum
 * memory_class. */
bool may_leave(const struct uses *uses, const struct tensor *tensor, unsigned classes);

/* Can everything that writes the tensor be repeated right before task `reader` with the same result? */
bool may_remake(const struct uses *uses, const struct tensor *tensor, int reader);
enum remake_at { REMAKE_AT_READER, REMAKE_AT_BACKWARD };

/* Makes new tensors for the later readers, by repeating the tasks that made the old ones.  first_reader: by the id of a
 * tensor, the position from which on tasks use the new tensor; NONE: the tensor is not made again.  The repeated tasks
 * come right before that position, or before all of its layer's backward.  Returns the new tensors, by the id of the
 * old ones, NULL where there is none; the caller frees the array. */
struct tensor **remake_tensors(struct edit *edit, struct pool *pool, const struct uses *uses, const int *first_reader,
                               enum remake_at at);

#endif

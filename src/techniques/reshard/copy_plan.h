/* copy_plan.h - from the pieces of one mesh to those of another: which ranges of elements to copy, and a proof that
 * they are right.  Implemented in copy_plan.c.
 */
#ifndef COPY_PLAN_H
#define COPY_PLAN_H

#include "pieces.h"

struct copy {
    size_t n;                      /* elements */
    size_t from_piece, to_piece;   /* indices into the two tensors' pieces */
    size_t from_offset, to_offset; /* where they begin: elements from the start of each piece */
};

/* The plan for one tensor, of which `from` and `to` have different pieces.  The copies are in the tensor's order, so
 * pieces are read and written from start to end. */
struct copies {
    const struct kept_tensor *from, *to;
    struct copy *copies; /* the caller frees it */
    size_t n, cap;
};
/* Fails (EXIT_FAILED) when the pieces of either side do not cover each element once; `where` says where `from` is. */
struct copies plan_copies(const struct kept_tensor *from, const struct kept_tensor *to, const char *where);
/* Proves a plan from its copies alone (plan_copies() has checked that the pieces have each element once): every element
 * of every destination piece is written exactly once, with the same element of the tensor.  Returns NULL when the plan
 * is right, else what is wrong. */
struct problem *prove_copies(const struct copies *plan);

#endif

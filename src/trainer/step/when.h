/* when.h - when a task runs, which is in each iteration for most tasks.
 *
 * A first reading skips this header.  Implemented in when.c.
 */
#ifndef WHEN_H
#define WHEN_H

#include "tensor.h"

struct task;

/* ---- which iterations -------------------------------------------------------------------------------------------- */

/* The iterations in which a task runs: those that leave `remainder` when divided by `every`.  In all other iterations
 * nothing is issued, and a task that waits for this task waits for its last instance. */
struct when {
    uint32_t every, remainder;
};

/* Whether a task runs in an iteration may be known only when all that it waits for has ended.  The task runs if then
 * both its bits (struct condition) and its slot (struct slot_use) are there.  Most tasks need neither, have zeros in
 * both structs, and always run. */

/* Bits of a *side word*, which says on which side, the device or the CPU, an update runs in this iteration.  A task of
 * the iteration has written the word, and each task that needs bits of it reads it on the host, just before it would
 * run.  A task whose bits are not all in the word does nothing in this iteration. */
struct condition {
    int needs;       /* the bits that it needs; 0: it needs none */
    bool unexpected; /* a forecast assumes that the word lacks these bits, and that the task does nothing */
};

/* A slot (slots.c).  A few iterations at a time have one.  An iteration asks for one at its first task that needs one
 * and whose bits are there.  If none is free, all tasks that need one do nothing in this iteration. */
struct slot_use {
    bool needed;  /* the iteration must have a slot */
    bool returns; /* with `needed`: the iteration gives its slot back when this task has ended */
    bool aside;   /* with `needed`: it waits outside of its lane, and only tasks that need a slot wait for it */
};

/* ---- when.c ------------------------------------------------------------------------------------------------------ */

bool is_due(const struct task *task, uint32_t iteration); /* does it run then, as far as task->extra.when says? */

/* Do `when` or its slot leave it out in some iterations?  A side word does not count: what it leaves out ends only
 * after what it waits for. */
bool is_conditional(const struct task *task);

bool writes_side_word(const struct task *task);       /* does it write a side word? */
struct tensor *side_word_of(const struct task *task); /* the side word that it reads or writes; NULL: none */

/* Does it need bits of a side word, or a slot?  Then it is known only at the last moment whether it runs. */
bool is_decided_late(const struct task *task);

/* Call these two only after all that the task waits for has ended.  Edges and proofs do not ask them: where a task does
 * nothing, either its bytes have been written already, or no task will read them. */
int side_bits(const struct task *task);    /* the bits of the side word that it reads */
bool word_allows(const struct task *task); /* has this word all bits of condition.needs, if there are any? */

#endif

/* uses.h - which tasks touch a tensor, and when: the one index that passes and planners ask.
 *
 *     position      0      1      2      3      4
 *     task        embed   fwd    fwd    bwd    bwd
 *     x           writes  reads                reads        uses_of(x) = {0, write}, {1, read}, {4, read}
 *                               '--- a gap ---'
 *
 * Uses are of storages: a task that touches a view uses all of the tensor that the view is a part of.  Positions are
 * those of the array that the index was made of; it knows nothing of later changes, and tensors made since have no
 * uses.
 */
#ifndef USES_H
#define USES_H

#include "trainer/step/list.h"

struct use {
    struct task *task;     /* each task once, in list order */
    int position;          /* the task's */
    enum access_mode mode; /* what the task does to parts of the tensor: it reads, writes, or both */
};

struct uses {
    struct task **tasks; /* by position */
    size_t n;            /* tasks */
    size_t n_tensors;    /* how many the pool had when the index was made */
    size_t *first;       /* by tensor: its uses are items[first] ... */
    size_t *count;       /* ... items[first + count - 1] */
    struct use *items;   /* all uses; those of one tensor are side by side */
};

struct use_range { /* the uses of one tensor */
    const struct use *uses;
    size_t n;
};

/* The index of n tasks in their order; the array is copied.  The caller frees it with free_uses(). */
struct uses *new_uses(struct task *const *tasks, size_t n, const struct pool *pool);
void free_uses(struct uses *uses);

/* The uses of the tensor's storage, in list order. */
struct use_range uses_of(const struct uses *uses, const struct tensor *tensor);

/* Does the task access bytes of the tensor in this mode (read, write, or one of them)? */
bool touches_bytes(const struct task *task, const struct tensor *tensor, enum access_mode mode);

/* Is some of the tensor's storage written by a task at a position between `begin` and `end`, both excluded? */
bool is_written_between(const struct uses *uses, const struct tensor *tensor, int begin, int end);

/* Are all bytes of the tensor's storage written by tasks before that position?  Else no task may copy it. */
bool is_whole_before(const struct uses *uses, const struct tensor *tensor, int position);

/* Does each step make the value of the tensor's storage anew before tasks read it?  For a training's state the answer
 * is no, since evaluation and saving read it between steps. */
bool is_renewed(const struct uses *uses, const struct tensor *tensor);

/* The position of the last task before `position` that writes bytes of the tensor itself; NONE: none does. */
int last_write_before(const struct uses *uses, const struct tensor *tensor, int position);

/* The bytes that the device holds at each position, an array of n + 1 numbers.  A tensor is held from its first use to
 * its last, and a persistent one always.  The caller frees the array. */
int64_t *bytes_held(const struct uses *uses, const struct pool *pool, const struct device *device);

#endif

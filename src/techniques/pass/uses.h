/* uses.h - who touches a tensor, and when: the one index that passes and planners ask.
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

#include "trainer/step/step.h"

enum { NOWHERE = -1 };
struct use {
    int at;                /* position of the task; each task once, in list order */
    enum access_mode mode; /* of all that it touches of the tensor */
};
struct uses {
    struct task **task; /* as they were */
    size_t n, n_tensors;
    size_t *first, *count; /* by tensor: its uses are use[first] and so many behind it */
    struct use *use;
};
struct uses *find_uses(struct task *const *task, size_t n, const struct pool *p);
void free_uses(struct uses *u);

/* Of x's storage; *n: how many. */
const struct use *uses_of(const struct uses *u, const struct tensor *x, size_t *n);
/* Is some of x's storage written by a task at from < position < to? */
bool is_written_between(const struct uses *u, const struct tensor *x, int from, int to);
/* Are all of its bytes written by tasks at positions before `at`?  Else nobody may copy it. */
bool is_whole_before(const struct uses *u, const struct tensor *x, int at);
/* The last task before `at` that writes bytes of x itself; NOWHERE. */
int last_write_before(const struct uses *u, const struct tensor *x, int at);
/* [n + 1] bytes that the device holds at each position: of a tensor from its first use to its last, of one that
 * persists always.  The caller frees it. */
int64_t *bytes_held(const struct uses *u, const struct pool *p, const struct device *d);

#endif

/* edit.h - changing a list of tasks: the verbs that passes are written in.
 *
 *     struct edit *e = open_edit(s);
 *     insert_behind(e, producer);                          new tasks come here ...
 *     add_copy(s, lane, "swap.out", on_host, x);           ... by step.h's own functions
 *     repoint(e, reader, x, back);
 *     commit(e);                                           or undo(e): the list is as it was
 *
 * The list must not have been placed.  A task's pointer is its identity throughout.  In an open edit
 *
 *     s->task[0 .. n)   n being s->n of before: the tasks as they were listed, dropped ones too, each at its old index;
 *                       new tasks stand behind them, and the array may move when one is added
 *     tasks_in_order()  the order as it is now, which `prev` and `next` of the tasks say
 *     all else          lanes, tensors and accesses of tasks, devices of tensors: as the verbs so far have made it
 *
 * Edges follow from accesses: no verb makes one task wait for another.  A task that is to wait reads what the other one
 * writes, on its own device.  Only a copy may touch tensors of others.  So a marker waits in a lane for what was made
 * elsewhere, and takes no time (copies_nothing()):
 *
 *     struct tensor *word = new_tensor(s->pool, lane->device, MEM_WORK, "word", INT32, 1, (int64_t[]){1});
 *     word->persistent = true;
 *     add_access(add_copy(s, lane, "wait", word, word), made_elsewhere, ACCESS_READ);
 *
 * On a task that was there before, undo() does not take back an access.
 *
 * Every verb costs a constant, but for the walk of a move and of new homes; commit() is one walk over the list.
 */
#ifndef EDIT_H
#define EDIT_H

#include "uses.h"

struct edit *open_edit(struct step *s); /* ends with commit() or undo(), exactly once */
void commit(struct edit *e);
/* Tasks and tensors that are new are freed. */
void undo(struct edit *e);

/* Tasks that are added from here on come right before, or behind, t, each behind the last one, and have its layer,
 * micro-batch and role, unless s->tags is set to others. */
void insert_before(struct edit *e, struct task *t);
void insert_behind(struct edit *e, struct task *t);

/* Moves t later in the list, to right behind `where`; or earlier, to right before it.  false: nothing has moved, since
 * `where` is on its other side, or a task on the way touches the same bytes and one of the two writes, or one is
 * held until the norm is known and the other one holds it.  Several that sink behind one task are reversed: begin with
 * the last to keep their order. */
bool sink(struct edit *e, struct task *t, struct task *where);
bool hoist(struct edit *e, struct task *t, struct task *where);
/* Why the last of them moved nothing: `second` comes behind `first` for the bytes of `over`, or, where that is NULL,
 * because it is held. */
struct obstacle {
    const struct task *first, *second; /* in the order of the list; one of them was to be moved */
    const struct tensor *over;
    const struct task *on_way; /* the other one; NULL: the list ends there */
};
const struct obstacle *what_was_in_the_way(const struct edit *e);

/* A persistent tensor, its views with it, lies on that device from the first iteration on. */
void set_home(struct edit *e, struct tensor *x, struct device *d);
/* A persistent tensor whose value no task needs from the step before: from now on it has no bytes but while it is used.
 */
void let_go(struct edit *e, struct tensor *x);
/* The tensor shares its bytes with no other of its list. */
void set_alone(struct edit *e, struct tensor *x);
/* A new tensor on d that persists and holds what x holds before the first iteration, and what set-up writes to x. */
struct tensor *mirror(struct edit *e, struct tensor *x, struct device *d);
/* t touches `new`, of the same size, where it touched `old` or a view of it. */
void repoint(struct edit *e, struct task *t, const struct tensor *old, struct tensor *new);
/* All that touch x in `uses`, from position `from` on, and by now `old` instead, touch `new`. */
void switch_readers(struct edit *e, const struct uses *uses, const struct tensor *x, int from, const struct tensor *old,
                    struct tensor *new);

/* Cuts an elementwise task into n pieces, or fewer where it is too small: pieces begin on the device's alignment.  They
 * take its place; piece[] gets them, their number is returned. */
size_t cut(struct edit *e, struct task *t, size_t n, struct task **piece);
/* The same task once more, at the place of insertion; what it writes is to be re-pointed. */
struct task *repeat(struct edit *e, const struct task *t);
/* `mine` computes what `theirs` did, of accesses in the same order, and `theirs` leaves the list. */
void stand_in(struct edit *e, struct task *mine, struct task *theirs);
/* t's work as a task of the host's lane, on tensors in place of t's own: it stands where t did, which leaves the list,
 * and new tasks come behind it. */
struct task *replace_on_host(struct edit *e, struct task *t, struct lane *lane, struct tensor *const *there);
/* Leaves the list: for copies that others replace. */
void drop(struct edit *e, struct task *t);

/* ---- parts.c: what passes and step files need of lists and tensors ----------------------------------------------- */

/* The tasks in their order as it is now, while the list is edited too; the caller frees the array. */
struct task **tasks_in_order(const struct step *s, size_t *n);
/* The same task again, of the same origin. */
struct task *add_again(struct step *s, const struct task *t);
/* Does it read, or write, bytes of x? */
bool touches_bytes(const struct task *t, const struct tensor *x, enum access_mode mode);
/* Tensors of bytes have no shape, and their parts are ranges [begin, end). */
struct tensor *new_bytes_tensor(struct pool *p, struct device *d, enum memory_class class, const char *name,
                                size_t bytes);
struct tensor *new_range(struct pool *p, struct tensor *of, const char *name, size_t begin, size_t end);
/* The view of `of` that `like` is of its storage, which is as large. */
struct tensor *same_part(struct pool *p, struct tensor *of, const struct tensor *like);
/* The task works when the word on the host has all of those bits, of enum choice_bit (cl/shared.h); expected: it is to
 * be expected that it does. */
void need_choice(struct task *t, struct tensor *word, int bits, bool expected);

#endif

/* edit.h - changing a list of tasks: the verbs that passes are written in.
 *
 *     struct edit *edit = open_edit(list);
 *     insert_behind(edit, producer);                       new tasks come after `producer` ...
 *     add_copy(list, lane, "swap.out", on_host, tensor);   ... by list.h's own functions
 *     repoint_task(edit, reader, tensor, back);
 *     commit_edit(edit);                                   or undo_edit(edit): the list is as it was
 *
 * The list must not have been placed.  A task's pointer is its identity throughout.  In an open edit
 *
 *     list->tasks[0 .. n)   n being list->n of before: the tasks as they were listed, dropped ones too, each at its
 *                           old index; new tasks come after them, and the array may move when one is added
 *     tasks_in_order()      the order as it is now, which `prev` and `next` of the tasks say
 *     all else              lanes, tensors and accesses of tasks, devices of tensors: as the verbs so far have made it
 *
 * No verb makes one task wait for another: edges follow from accesses.  So a task that is to wait for another one of
 * its device gets an access: it reads what the other one writes.  Only a copy may touch tensors of another device.  So
 * where a task is to wait for what was made elsewhere, a marker comes before it in its lane, and has the access in its
 * place.  The marker is a copy of a word to itself, which takes no time (copies_nothing()):
 *
 *     struct tensor *word = new_work_tensor(list->pool, lane->device, "word", SHAPE(1));
 *     word->persistent = true;
 *     struct task *marker = add_copy(list, lane, "wait", word, word);
 *     add_access(marker, made_elsewhere, ACCESS_READ);
 *
 * A step file can say with `after=` that one task waits for another.  The list keeps that by the origins of the two
 * (list.h).  Repeats and stand-ins have the same origin, so they wait too, and the verbs need not see to it.
 *
 * A pass may ask what a later one would make of its rewrite.  After preview_edit(edit) the list can be looked at, and
 * edited and undone, as if the edit had been committed.  undo_edit(edit) must follow.
 *
 * undo_edit() does not take back accesses that were added to a task that was there before.  A verb takes
 * constant time, except where it walks over tasks or views; commit_edit() walks over the list once.
 */
#ifndef EDIT_H
#define EDIT_H

#include "uses.h"

/* ---- edit.c ------------------------------------------------------------------------------------------------------ */

struct edit *open_edit(struct list *list); /* ends with commit_edit() or undo_edit(), exactly once */
void commit_edit(struct edit *edit);
void undo_edit(struct edit *edit); /* frees the tasks and tensors that are new */

/* The list is as after commit_edit(), and no edit is open in it; but the edit is still to be undone, after all edits
 * that are opened from here on have been undone. */
void preview_edit(struct edit *edit);

/* Tasks that are added from here on come right before the task, or right after it, in the order in which they are
 * added.  They have the task's layer, micro-batch and role, unless list->tags is set to others. */
void insert_before(struct edit *edit, struct task *task);
void insert_behind(struct edit *edit, struct task *task);

/* Adds a copy right before the task, as add_copy() does.  The position for tasks that are added from here on, and their
 * tags, stay as they are. */
struct task *add_copy_before(struct edit *edit, struct task *task, struct lane *lane, const char *name,
                             struct tensor *to, struct tensor *from);

/* sink_task() moves the task later in the list, to right after `where`; hoist_task() moves it earlier, to right before
 * `where`.  false: nothing has moved, since
 *
 *     - `where` is on the other side of the task; or
 *     - a task on the way and this task touch the same bytes, and one of them writes; or
 *     - one of these two waits until the norm is known (enum gate), and the other finds it; or
 *     - one of these two is_after() the other.
 *
 * Tasks that sink to the same position are reversed: begin with the last one to keep their order. */
bool sink_task(struct edit *edit, struct task *task, struct task *where);
bool hoist_task(struct edit *edit, struct task *task, struct task *where);

/* Why the last move moved nothing: `second` must come after `first`. */
struct obstacle {
    const struct task *first, *second; /* in the order of the list; one of them was to be moved */
    const struct tensor *over; /* the tensor whose bytes both touch; NULL: a gate or is_after() orders the two */
    const struct task *on_way; /* the one of the two that was not to be moved; NULL: the list ends there */
};
const struct obstacle *last_obstacle(const struct edit *edit);

/* The persistent tensor, with its views, lies on that device from the first iteration on. */
void set_home(struct edit *edit, struct tensor *tensor, struct device *device);

/* From now on the persistent tensor has bytes only while it is used: no task needs its value of the step before. */
void make_transient(struct edit *edit, struct tensor *tensor);

/* From now on the tensor keeps its bytes throughout, as a persistent tensor does; make_transient() takes that back. */
void make_persistent(struct edit *edit, struct tensor *tensor);

/* The tensor shares its bytes with no other of its list. */
void set_exclusive(struct edit *edit, struct tensor *tensor);

/* A new tensor on the device that persists: whatever set-up writes to the tensor, it writes to the mirror too
 * (write_bytes_of()). */
struct tensor *mirror_tensor(struct edit *edit, struct tensor *tensor, struct device *device);

/* The task touches `new`, which has the same size, where it touched `old` or a view of it. */
void repoint_task(struct edit *edit, struct task *task, const struct tensor *old, struct tensor *new);

/* The tasks that touch the tensor in `uses`, from position `from` on, touch `new` where they touch `old`.  `old` is the
 * tensor, or what an earlier call has put in its place. */
void switch_readers(struct edit *edit, const struct uses *uses, const struct tensor *tensor, int from,
                    const struct tensor *old, struct tensor *new);

/* Cuts an elementwise task into n slices, or fewer where it is too small: slices begin on the device's alignment.  The
 * slices, which slices[] gets, take the task's position in the list.  Returns how many there are. */
size_t cut_task(struct edit *edit, struct task *task, size_t n, struct task **slices);

/* Adds the task once more, at the position of insertion.  The caller re-points what it writes. */
struct task *repeat_task(struct edit *edit, const struct task *task);

/* `mine`, a new task of this edit, takes over all fields of struct task_extra but those that depend on how the work is
 * done: on_host, seconds, commands, argument_bytes, partial.  (Undoing the edit drops it, so nothing is noted.) */
void inherit_extra(struct task *mine, const struct task *theirs);

/* `mine`, also new, computes what `theirs` did, with accesses in the same order.  `theirs` leaves the list. */
void stand_in(struct edit *edit, struct task *mine, struct task *theirs);

/* A task of the host's lane takes the task's position in the list and does its work, on host_tensors[] in place of the
 * tensors of the task's accesses.  New tasks come after it. */
struct task *replace_on_host(struct edit *edit, struct task *task, struct lane *lane,
                             struct tensor *const *host_tensors);

/* The task leaves the list: for copies that others replace. */
void drop_task(struct edit *edit, struct task *task);

/* From now on the task runs only when the word, on the host, has all of those bits (enum side_bit, cl/shared.h).  A
 * forecast assumes either that the word has them, so that the task runs, or that it is skipped.  Call it for new tasks
 * of this edit only: undoing the edit drops them, so nothing is noted here. */
enum assumption { ASSUME_RUNS, ASSUME_SKIPPED };
void need_side_bits(struct task *task, struct tensor *word, int bits, enum assumption assumed);

/* The tasks in their present order, also while the list is edited.  The caller frees the array. */
struct task **tasks_in_order(const struct list *list, size_t *n);

/* ---- ranges.c ---------------------------------------------------------------------------------------------------- */

/* Tensors of bytes have no shape, and their parts are ranges [begin, end). */
struct tensor *new_bytes_tensor(struct pool *pool, struct device *device, enum memory_class class, const char *name,
                                size_t bytes);
struct tensor *new_range(struct pool *pool, struct tensor *base, const char *name, size_t begin, size_t end);

/* `view` is a part of some storage that is as large as `base`.  Returns the same part (offset and shape) of `base`. */
struct tensor *same_part(struct pool *pool, struct tensor *base, const struct tensor *view);

#endif

/* list.h - the step as a list of tasks.
 *
 * A *step* of the training runs the tasks of a list.  Their order is correct when they simply run one after another.  A
 * task says which tensors it reads and writes, which lane it runs on and how much work it is:
 *
 *     task         lane           reads         writes      waits for
 *     0 forward    0:0 compute    weight, x     y           4'
 *     1 backward   0:0 compute    weight, y     gradient
 *     2 download   0:0 download   gradient      h           1
 *     3 update     host cpu       h, m          m, w        2
 *     4 upload     0:0 upload     w             weight      3          (4': of the step before)
 *
 * Everything else follows from the list.  place() gives every tensor an address: those whose lives do not meet share
 * bytes.  depend() finds the edges: which task must wait for which, within the step and from each step to the
 * next.
 *
 * An *iteration* is one time that any list runs, and its number: iteration n of the list for training is step n.  Other
 * lists, such as that for evaluation, count iterations of their own, which are no steps.
 *
 * Other folders rewrite a list, prove it, show it, run it on a virtual clock, or, in run/, for real.  Nothing here
 * calls a device, except for the buffers of tensors.
 *
 *     tensor.h   what tasks read and write            tensor.c, slots.c
 *     task.h     a task, by itself                    task.c; with role.h
 *                the arguments of its kernel          kernel_args.h
 *                what passes and techniques ask       list_extra.h, task_extra.h, tensor_extra.h; when.h when.c
 *     list.h     a list, and adding tasks to it       list.c; add.c, copy.c
 *                waits that the list states itself    after.c
 *                edges                                depend.c; with step_parts.h segments.c, waits.c
 *                addresses                            place.c; with step_parts.h those that it calls
 *
 * Protocol: new_pool, new_tensor / new_list, add tasks; then run/'s finish_lists() for all lists that share the arena,
 * or place() and depend() where nothing is to run.
 */
#ifndef LIST_H
#define LIST_H

#include "list_extra.h" /* brings: list_extra, and waits that the list states */
#include "task.h"       /* brings: task, and what it is made of: access, arg, grid, edge; role, tags; task_extra */
#include "tensor.h"     /* brings: tensor, slots, pool, memory_class */

/* ---- a list: list.c, list_changes.c ------------------------------------------------------------------------------ */

enum { MOST_TASKS = 1000000 }; /* in a list: gpt2 on 128 devices has 915,049, which take 1.4 GB */
enum { MOST_IN_FLIGHT = 4 };   /* instances of one task that may be in flight */

struct list {
    char name[LIST_NAME]; /* "train", "eval" */
    struct pool *pool;
    struct task **tasks; /* in list order; a pointer is the task's identity, its position may change */
    size_t n, cap;
    struct tags tags; /* put on every task that is added: see tag_tasks() */

    /* set by depend(): the edges of task 0, of task 1 ... */
    struct edge *edges;
    size_t n_edges, cap_edges;

    struct running *running;                 /* what run/ needs to run it; NULL: it was never finished for running */
    void (*free_running)(struct list *list); /* frees `running` */

    struct list_extra extra; /* what passes ask and change, and the bytes that are held */
};

/* "step" for the list for training, else "iteration". */
const char *iteration_noun(const struct list *list);

/* An empty list, for tensors of that pool. */
struct list *new_list(struct pool *pool, const char *name);

/* Nothing of the list may be in flight: see drain() in run.h. */
void free_list(struct list *list);

/* Adds an empty task, which the list owns: at its end, or at the cursor. */
struct task *append_task(struct list *list);

/* For a task that has left its list. */
void free_task(struct task *task);

/* The number of iterations after which the same tasks run again, at most `most`. */
uint32_t repeat_of(const struct list *list, uint32_t most);

/* Tags the tasks that are added from now on.  NONE: they are of no single layer or micro-batch. */
void tag_tasks(struct list *list, int layer, int micro, enum role role);

/* tag_tasks() with NONE for both. */
void tag_role(struct list *list, enum role role);

/* ---- adding tasks: add.c ----------------------------------------------------------------------------------------- */

/* n work-groups of the device's size, side by side. */
struct grid groups_on(const struct device *device, size_t n);

/* Each of these adds a task to the list, which owns it: at its end, or at the cursor. */

/* The kernel of cl/FILE that a task launches, on how many work-items, and its arguments. */
struct kernel_call {
    const char *file, *kernel;
    struct grid grid;
    const struct arg *args; /* n_args of them, which are copied */
    int n_args;
};
struct task *add_kernel(struct list *list, struct lane *lane, const char *name, const struct kernel_call *call);
struct task *add_host(struct list *list, struct lane *lane, const char *name, host_function *function, void *argument);

/* A task with commands of its own, which the function enqueues.  description: these `bytes` bytes are copied, and the
 * function finds the copy in task->argument. */
struct task *add_own_commands(struct list *list, struct lane *lane, const char *name, enqueue_function *function,
                              const void *description, size_t bytes);

/* ---- adding copies: copy.c --------------------------------------------------------------------------------------- */

/* An upload, a download, or a copy within a context: the two tensors' devices say which. */
struct task *add_copy(struct list *list, struct lane *lane, const char *name, struct tensor *to, struct tensor *from);

/* A copy up from the host, down to it, or within a context, on the device's lane for that purpose; between two devices
 * it is the sender's download lane. */
struct task *add_copy_for(struct list *list, const char *name, struct tensor *to, struct tensor *from,
                          const char *purpose);

/* A copy down to the host.  Returns the host's tensor, which is new. */
struct tensor *add_download(struct list *list, const char *name, struct tensor *from, const char *purpose);

/* Does it copy bytes to themselves?  That takes no time: it makes the next task that touches them wait until its lane
 * has come to this point. */
bool copies_nothing(const struct task *task);

/* ---- changing the order, for the verbs of passes: list.c, list_changes.c ----------------------------------------- */

/* Puts the n tasks from position `first` on in another order: the task that is at positions[i] before goes to
 * first + i. */
void permute_tasks(struct list *list, size_t first, const size_t *positions, size_t n);

/* Puts the task right after `where`, while the list is edited. */
void link_behind(struct task *task, struct task *where);

/* ---- after.c ----------------------------------------------------------------------------------------------------- */

/* The consumer waits for the producer, of the same step or of the step before, and so do their slices, repeats and
 * stand-ins. */
void add_after(struct list *list, const struct task *consumer, const struct task *producer, enum step_waited which);

/* Has add_after() said this? */
bool is_after(const struct list *list, const struct task *consumer, const struct task *producer,
              enum step_waited which);

/* The waits that add_after() has stated, for the tasks that the list has now, in the order of their consumers.  The
 * caller frees the array of *n. */
struct listed_wait *collect_listed_waits(const struct list *list, size_t *n);

/* ---- depend.c ---------------------------------------------------------------------------------------------------- */

enum edges_wanted { DATA_EDGES, ALL_EDGES };

/* Fills in every task's edges with their `needs_wait`, and sets `notify` and `flush`.  ALL_EDGES: reuse edges too,
 * which follow from addresses: call place() before. */
void depend(struct list *list, enum edges_wanted wanted);

/* ---- place.c ----------------------------------------------------------------------------------------------------- */

enum place_purpose { PLACE_TO_CHECK, PLACE_TO_RUN };

/* Finds lifetimes, then addresses for all tensors that the lists use, persistent ones first.  PLACE_TO_RUN: also takes
 * memory for them.  Returns NULL, or, when a budget is too small, a problem with task, tensor and bytes; each list's
 * levels and peaks are set in either case. */
struct problem *place(struct pool *pool, struct list *const *lists, size_t n, enum place_purpose purpose);

#endif

/* overlap.h - which updates can move to the CPU, and moving them.
 *
 * The folder has nine files.  The technique is overlap.c, where reading begins.  Read them in this order:
 *
 *     1  overlap.h             this one: what can move, and the functions that move it
 *     2  overlap.c             moves updates to the CPU, with the copies that they need
 *     3  overlap_plan.h        plans: which updates move; making plans, trying them, and choosing one
 *     4  overlap_choose.c      searches for the best plan
 *     5  overlap_try.c         carries a plan out in the list, has it simulated, and undoes it
 *     6  overlap_room.c        which plan to take where a pass that runs later makes room
 *     7  overlap_pass.c        the pass, its options and its reports: what calls all the others
 *     8  overlap_local.c       --overlap local: the running step decides where updates run
 *     9  overlap_local_plan.c  --overlap local: what the step is expected to decide, as a plan
 *
 * Files 8 and 9 can be left out: nothing in the others is explained there.  Machinery from elsewhere:
 * planning/search/search.c tries plans; trainer/step/when.h lets a task run only if a word says so.
 *
 *     struct update_buckets *buckets = ...;
 *     fill_buckets(buckets, uses);                                  before the list is edited
 *     struct edit *edit = open_edit(list);
 *     struct update_mover mover = begin_moves(edit, list, uses, cores, GRADIENTS_ALONE);
 *     move_updates(&mover, buckets, side);
 *     end_moves(&mover);
 *     commit_edit(edit);
 *
 * No other folder includes a header of this one.  Two words:
 *
 *     bucket     the updates that move together: those of a layer
 *     side       where the updates of a bucket run
 */
#ifndef OVERLAP_H
#define OVERLAP_H

#include "planning/pass/edit.h"

/* ---- overlap.c: which updates can move --------------------------------------------------------------------------- */

enum { MOST_BUCKETS = 1024 }; /* the updates of further layers do not move */

/* The updates of a layer, or of parameters that belong to no layer: a plan gives all of them one side. */
struct update_bucket {
    char name[56];       /* "layer 3"; or by the parameters, "other param.0" */
    int layer;           /* NONE: it belongs to no layer */
    size_t first_update; /* position in the list */
    int released;        /* position of the last task that makes a gradient of it; NONE: no task does */
};

struct update_buckets {
    struct update_bucket items[MOST_BUCKETS]; /* in the order in which the backward releases them */
    size_t n;
    size_t n_left_out; /* how many updates could move but for MOST_BUCKETS: those of further layers */
    int *bucket_of;    /* by position in the list: the bucket of an update that can move; NONE: of all else */
};

/* Is the update one of a step file, which says how long the host takes, and has nothing that the host could run? */
bool is_of_step_file(const struct task *update);

/* Looks through the list that `uses` was made of.  The caller frees bucket_of. */
void fill_buckets(struct update_buckets *buckets, const struct uses *uses);

/* ---- overlap.c: moving them -------------------------------------------------------------------------------------- */

/* Where the updates of a bucket run.  The head of overlap.c calls these C, L and D. */
enum side { ON_CPU, ON_CPU_LAST, ON_DEVICE, SIDES };
typedef unsigned char side_byte; /* an enum side in one byte, as the search has its options */

/* On the device, gradients that go down either keep their bytes throughout the step, so that no task waits for their
 * copy; or they share these bytes with other tensors, which takes less memory.  (A model's gradients persist and keep
 * their bytes anyway, except for ZeRO-2 and -3 with one micro-batch.) */
enum sharing { GRADIENTS_ALONE, GRADIENTS_SHARED, SHARINGS };

struct update_mover { /* moves updates, in one edit */
    struct edit *edit;
    struct list *list;
    const struct uses *uses; /* the uses in the list as it was when the edit was opened */
    int cores;               /* the number of CPU cores that do updates */
    enum sharing sharing;
    struct tensor **counterparts; /* by tensor of the device, on the host: its mirror, or the copy that updates share */
    int n_slices;                 /* the number of slices that have moved */
    /* The last task, copies included, of the update that was moved last.  The next update comes right after this task,
     * if nothing is in the way.  NULL: no update was moved yet. */
    struct task *last;
    size_t last_position; /* the position, in the list before the edit, beside which `last` is */
};

/* A mover that has moved nothing yet.  cores: those of the CPU that do updates, at least 1.  end_moves() frees what the
 * mover has allocated, before the edit is committed or undone. */
struct update_mover begin_moves(struct edit *edit, struct list *list, const struct uses *uses, int cores,
                                enum sharing sharing);
void end_moves(struct update_mover *mover);

/* Moves bucket k to side[k], for each k. */
void move_updates(struct update_mover *mover, const struct update_buckets *buckets, const side_byte *side);

/* ---- overlap.c: the steps by which one update moves -------------------------------------------------------------- */

/* These are also taken by overlap_local.c, which gets data to the host in another way (struct transport).
 *
 *     cut_update()  ->  for each slice move_slice()  ->  for each access host_tensor()  ->  bring_down()
 *                                                                                       ->  part_of_mirror()
 */

/* Purposes of lanes. */
#define FOR_OFFLOAD "offload" /* copies of gradients down and of parameters up */
#define FOR_CONTROL "control" /* copies of words that say what runs, and of the norm */

/* Moves the update at that position of the list. */
void move_update(struct update_mover *mover, size_t position);

/* The position of the task that releases the update, since it makes the last of its gradients; NONE: no task of the
 * list makes one. */
int release_position(const struct uses *uses, const struct task *update);

struct update_slices {
    struct task **tasks; /* the caller frees it */
    size_t n;
};

/* Cuts a large update.  A small one stays whole, as its only slice. */
struct update_slices cut_update(struct update_mover *mover, struct task *update);

/* The tensor of the host that is to stand in for access i of `slice`, which is a slice of `update`.  Adds the copy down
 * that fills it, if it needs one. */
struct tensor *host_tensor(struct update_mover *mover, const struct task *update, const struct task *slice, int i);

/* A new copy of the tensor on the host.  The task that copies comes right after `maker` and the copies that already
 * follow it. */
struct tensor *bring_down(struct update_mover *mover, struct tensor *tensor, struct task *maker, int layer,
                          const char *purpose);

/* The part of the host's mirror that corresponds to `part` of `whole`. */
struct tensor *part_of_mirror(struct update_mover *mover, struct tensor *whole, const struct tensor *part);

/* How a slice gets its data on the host.  move_update() has one way, and --overlap local (overlap_local.c) another. */
struct transport {
    struct tensor *(*host_tensor)(struct update_mover *mover, const struct task *update, const struct task *slice,
                                  int i);
    const char *purpose; /* the purpose of the copies up */
};

struct moved_slice {        /* a slice on the host */
    struct task *update;    /* its update */
    struct task *last_copy; /* the last copy up */
};

/* Puts the host's update in place of `slice`, which is a slice of `update`, with the copies down and up. */
struct moved_slice move_slice(struct update_mover *mover, const struct task *update, struct task *slice,
                              const struct transport *transport);

#endif

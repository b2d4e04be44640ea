/* overlap.h - which updates can move to the CPU, and moving them.  overlap_plan.h is about the plans that say which do.
 *
 * The technique is overlap.c, where reading begins; with --overlap local it is overlap_local.c too.  Machinery from
 * elsewhere: planning/search/search.c tries plans; trainer/step/when.h lets a task run only if a word says so.
 *
 *     struct update_buckets *buckets = ...;
 *     fill_buckets(buckets, uses);                                  before the list is edited
 *     struct edit *edit = open_edit(list);
 *     struct update_mover mover = begin_moves(edit, list, uses, cores, GRADIENTS_ALONE);
 *     move_updates(&mover, buckets, side);
 *     end_moves(&mover);
 *     commit_edit(edit);
 *
 * overlap_parts.h has the steps by which one update moves.  No other folder includes a header of this one.  Two words:
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

#endif

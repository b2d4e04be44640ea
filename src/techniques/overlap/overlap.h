/* overlap.h - the layered optimizer: which updates can move to the CPU, and moving them (overlap.c).
 *
 *     struct update_buckets *buckets = ...;
 *     find_buckets(buckets, uses);                                  before the list is edited
 *     struct edit *edit = open_edit(list);
 *     struct mover mover = begin_moves(edit, list, uses, cores, GRADIENTS_ALONE);
 *     move_updates(&mover, buckets, side);
 *     end_moves(&mover);
 *     commit_edit(edit);
 */
#ifndef OVERLAP_H
#define OVERLAP_H

#include "techniques/pass/edit.h"

/* ---- which updates can move -------------------------------------------------------------------------------------- */

enum { MOST_BUCKETS = 1024 }; /* the updates of further layers do not move */
/* The updates of a layer, or of parameters that belong to no layer: a plan gives all of them one side. */
struct update_bucket {
    char name[56]; /* "layer 3"; or by the parameters, "other param.0" */
    int layer;     /* NONE: it belongs to no layer */
    size_t update; /* the position of its first update */
    int released;  /* the position of the last task that makes a gradient of it; NONE: no task does */
};

struct update_buckets {
    struct update_bucket bucket[MOST_BUCKETS]; /* in the order in which the backward releases them */
    size_t n;
    size_t n_left_out; /* how many updates could move but for MOST_BUCKETS: those of further layers */
    int *bucket_of;    /* by position in the list: the bucket of an update that can move; NONE: of all else */
};
/* Looks through the list that `uses` was made of.  The caller frees bucket_of. */
void find_buckets(struct update_buckets *buckets, const struct uses *uses);
/* The position of the last task that makes a gradient of the update; NONE: no task of the list does. */
int last_maker(const struct uses *uses, const struct task *update);

/* What lanes are for. */
#define FOR_OFFLOAD "offload" /* copies of gradients down and of parameters up */
#define FOR_CONTROL "control" /* copies of words that say what runs, and of the norm */

/* ---- moving them ------------------------------------------------------------------------------------------------- */

/* C, L and D of a plan. */
enum side { ON_CPU, ON_CPU_LATE, ON_DEVICE, SIDES };
/* On the device, gradients that go down either keep their bytes throughout the step, so that no task waits for their
 * copy; or they share these bytes with other tensors, which takes less memory.  (A model's gradients persist and keep
 * their bytes anyway, except for ZeRO-2 and -3 with one micro-batch.) */
enum sharing { GRADIENTS_ALONE, GRADIENTS_SHARED };

struct mover { /* moves updates, in one edit */
    struct edit *edit;
    struct list *list;
    const struct uses *uses; /* of the list as it was when the edit was opened */
    int cores;               /* the number of CPU cores that do updates */
    enum sharing sharing;
    struct tensor **counterpart; /* by tensor of the device, on the host: its mirror, or the copy that updates share */
    int n_pieces;                /* the number of pieces that have moved */
    /* The last task, copies included, of the update that was moved last.  The next update comes right after this task,
     * if nothing is in the way.  NULL: no update was moved yet. */
    struct task *last;
    size_t last_position; /* the position, in the list before the edit, beside which `last` stands */
};
/* Ends with end_moves(), before the edit is committed or undone.  cores: at least 1. */
struct mover begin_moves(struct edit *edit, struct list *list, const struct uses *uses, int cores,
                         enum sharing sharing);
void end_moves(struct mover *mover);
/* Carries a plan out: side[k], an enum side, is where bucket k goes. */
void move_updates(struct mover *mover, const struct update_buckets *buckets, const unsigned char *side);
/* Moves the update at that position of the list. */
void move_update(struct mover *mover, size_t position);

/* The steps of move_update(). */
struct update_pieces {
    struct task **piece; /* the caller frees it */
    size_t n;
};
/* Cuts a large update.  A small one stays whole, as its only piece. */
struct update_pieces cut_update(struct mover *mover, struct task *update);
/* The tensor of the host that is to stand in for access i of `piece`, which is a piece of `update`. */
struct tensor *host_side(struct mover *mover, const struct task *update, const struct task *piece, int i);
/* A new copy of the tensor on the host.  The task that copies comes right after `maker` and the copies that already
 * follow it. */
struct tensor *bring_down(struct mover *mover, struct tensor *tensor, struct task *maker, int layer,
                          const char *purpose);
/* The same part of the host's mirror as `part` is of `whole`. */
struct tensor *part_of_mirror(struct mover *mover, struct tensor *whole, const struct tensor *part);
/* Copies the new parameters up, right after the task that was added last.  on_host: the host's tensors, by access of
 * the piece.  Returns the last copy. */
struct task *bring_up(struct mover *mover, const struct task *piece, struct tensor *const *on_host,
                      const char *purpose);

/* How a piece gets its data on the host.  move_update() has one way, and --overlap local (local.c) another. */
struct transport {
    struct tensor *(*host_side)(struct mover *mover, const struct task *update, const struct task *piece, int i);
    const char *purpose; /* that of the copies up */
};

struct moved {              /* a piece on the host */
    struct task *update;    /* its update */
    struct task *last_copy; /* the last copy up */
};
/* Puts the host's update in place of `piece`, which is a piece of `update`, with the copies down and up. */
struct moved move_piece(struct mover *mover, const struct task *update, struct task *piece,
                        const struct transport *transport);

#endif

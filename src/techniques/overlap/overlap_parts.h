/* overlap_parts.h - the steps of overlap.c by which one update moves.  overlap_local.c takes them too, but gets data
 * to the host in another way (struct transport).
 *
 *     cut_update()  ->  for each slice move_slice()  ->  for each access host_tensor()  ->  bring_down()
 *                                                                                       ->  part_of_mirror()
 */
#ifndef OVERLAP_PARTS_H
#define OVERLAP_PARTS_H

#include "overlap.h"

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

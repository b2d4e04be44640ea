/* move_update.h - the steps by which one update moves, for overlap.c and local.c.  Implemented in overlap.c. */
#ifndef MOVE_UPDATE_H
#define MOVE_UPDATE_H

#include "overlap.h"

/* What lanes are for. */
#define FOR_OFFLOAD "offload" /* copies of gradients down and of parameters up */
#define FOR_CONTROL "control" /* copies of words that say what runs, and of the norm */

/* Moves the update at that position of the list. */
void move_update(struct update_mover *mover, size_t position);

/* The position of the task that releases the update, since it makes the last of its gradients; NONE: no task of the
 * list makes one. */
int release_position(const struct uses *uses, const struct task *update);

struct update_pieces {
    struct task **pieces; /* the caller frees it */
    size_t n;
};
/* Cuts a large update.  A small one stays whole, as its only piece. */
struct update_pieces cut_update(struct update_mover *mover, struct task *update);
/* The tensor of the host that is to stand in for access i of `piece`, which is a piece of `update`. */
struct tensor *host_tensor(struct update_mover *mover, const struct task *update, const struct task *piece, int i);
/* A new copy of the tensor on the host.  The task that copies comes right after `maker` and the copies that already
 * follow it. */
struct tensor *bring_down(struct update_mover *mover, struct tensor *tensor, struct task *maker, int layer,
                          const char *purpose);
/* The part of the host's mirror that corresponds to `part` of `whole`. */
struct tensor *part_of_mirror(struct update_mover *mover, struct tensor *whole, const struct tensor *part);

/* How a piece gets its data on the host.  move_update() has one way, and --overlap local (local.c) another. */
struct transport {
    struct tensor *(*host_tensor)(struct update_mover *mover, const struct task *update, const struct task *piece,
                                  int i);
    const char *purpose; /* the purpose of the copies up */
};

struct moved {              /* a piece on the host */
    struct task *update;    /* its update */
    struct task *last_copy; /* the last copy up */
};
/* Puts the host's update in place of `piece`, which is a piece of `update`, with the copies down and up. */
struct moved move_piece(struct update_mover *mover, const struct task *update, struct task *piece,
                        const struct transport *transport);

#endif

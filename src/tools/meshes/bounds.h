/* bounds.h - ways to train on a number of devices, and what no step of theirs can undercut. */
#ifndef BOUNDS_H
#define BOUNDS_H

#include "techniques/recompute/recompute.h"
#include "techniques/swap/swap.h"
#include "trainer/train/train.h"

struct mesh_candidate {
    int number;       /* its place in the order in which candidates are made */
    struct mesh mesh; /* its array of layers is shared with others */
    const struct turn_order *turn_order;
    const char *pipeline; /* the order's name, or its text */
    int micro_batch, micros;
    enum recompute recompute; /* the bounds assume that this is off */
    enum swap swap;           /* the bounds assume that this is off */
    /* set by set_bounds() */
    double least_seconds; /* what a step takes at least */
    double least_state;   /* bytes of parameters, gradients and optimizer on the fullest device */
    double least_bytes;   /* bytes on it while activations are kept too */
    double tasks;         /* how many its list has, about */
};

struct unit_work {            /* of a layer, the embedding or the head, for one micro-batch */
    double forward, backward; /* seconds on the first rank */
    double parameter_bytes;   /* on that rank */
    double tape_bytes;        /* those that its forward keeps for its backward */
};

/* What is known of one micro-batch of `micro_batch` sequences on a tensor-parallel group that has all layers: a list
 * that is built and simulated once, for all candidates that cut the model and the batch so. */
struct sketch {
    int tp, micro_batch;
    double tasks;             /* how many the list has for one micro-batch, about */
    double passed_bytes;      /* the activations that one stage passes to the next */
    double bytes_beside_tape; /* at the peak in the backward of the head and the last layer */
    int64_t link_share;       /* how many devices share a link to the host */
    double link_byte_seconds; /* what a byte takes on it, on its way to a device; 0: no time of its own */
    struct unit_work *units;  /* [layers + 2]: the embedding, the layers, the head */
};

/* like: settings of such a list, whose mesh and batch are set here.  NULL: it cannot be built.  The caller frees the
 * sketch with free_sketch(). */
struct sketch *new_sketch(const struct settings *like, int tp, int micro_batch);
void free_sketch(struct sketch *sketch);

/* Sets the candidate's bounds, and `tasks`.  clips: updates wait for the norm of all gradients. */
void set_bounds(struct mesh_candidate *candidate, const struct sketch *sketch, bool clips);

#endif

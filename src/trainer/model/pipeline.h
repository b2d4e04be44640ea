/* pipeline.h - pipelines: in which order a device does the forwards and backwards of its stages and micro-batches.
 *
 * What a device does at a time is a *turn*: one computation of one stage for one micro-batch.  A *turn order* says
 * which turns each device takes one after another; train/build_train.c adds their tasks to the list.  1f1b with 2
 * devices and 3 micro-batches (F forward, B backward):
 *
 *     device 0   F0 F1 B0 F2 B1 B2
 *     device 1   F0 B0 F1 B1 F2 B2
 */
#ifndef PIPELINE_H
#define PIPELINE_H

#include "build.h"
#include "ops.h"

enum pipeline {
    PIPELINE_1F1B,
    PIPELINE_GPIPE,
    PIPELINE_INTERLEAVED,
    PIPELINE_ZBH1,
    PIPELINE_ZBH2,
    PIPELINE_DUALPIPEV,
    PIPELINES
};
extern const char *const pipeline_name[PIPELINES + 1]; /* "1f1b", ...: words of --pipeline; NULL ends them */
struct turns;                                          /* pipeline.c: the turns that a device has taken so far */
struct written_turns;

/* Purposes of lanes, as in device.h. */
#define FOR_ACTIVATIONS "activations" /* copies of activations between pipeline stages, which wait for their stage */
#define FOR_GRADIENTS "gradients"     /* copies of gradients between pipeline stages, which wait for their stage */

struct turn_order {
    void (*take_turns)(struct turns *of_a_device); /* adds all turns of the device, in its order */
    int chunks;                                    /* stages per device */
    bool folded;                                   /* as in struct mesh */
    const struct written_turns *written;           /* turns from a file; NULL: take_turns() finds them */
};
extern const struct turn_order pipeline_orders[PIPELINES];

/* ---- pipeline.c: orders ------------------------------------------------------------------------------------------ */

struct turn {
    enum computation computation; /* what is computed */
    int stage, micro;             /* whose they are: a stage, and a micro-batch */
};

/* The *n_turns turns of the device with this pipeline coordinate, in its order; the caller frees them. */
struct turn *pipeline_order(const struct turn_order *turn_order, const struct mesh *mesh, int pp_rank, int micros,
                            int *n_turns);

/* The *n_turns turns of all devices, in an order that is correct when they are taken one by one; the caller frees
 * them. */
struct turn *merge_orders(const struct turn_order *turn_order, const struct mesh *mesh, int micros, size_t *n_turns);

/* ---- pipeline.c: what is done, and what a turn waits for --------------------------------------------------------- */

/* Counts a turn that has been done.  done: for how many micro-batches each stage has done each computation.  A whole
 * backward counts as both of its halves, too. */
void note_done(int (*done)[COMPUTATIONS], const struct turn *turn);

/* Which micro-batch is due if a stage takes them in ascending order.  Of `turn` only stage and computation count. */
int due_micro(int (*const done)[COMPUTATIONS], const struct turn *turn);

enum head_weights { UNTIED, TIED };
enum { MOST_NEEDS = 2 };

/* Writes the turns that a turn waits for, and returns how many there are.  They are no whole backwards, which do both
 * halves.  last: the last stage.  TIED: the weight gradients of stage 0 wait for those of the last stage, since the
 * embedding's gradient needs that of a tied head. */
int turn_needs(const struct turn *turn, int last, enum head_weights head, struct turn needs[MOST_NEEDS]);

/* ---- pipeline.c: orders that are written down -------------------------------------------------------------------- */

/* An order for a number of devices and of micro-batches.  The folder that reads it has proved what the other orders
 * ensure: each stage takes its micro-batches in ascending order, and no device waits for ever. */
struct written_turns {
    int devices, micros; /* how many of them it is for */
    struct turn **turns; /* by device: its turns, in its order */
    int *n;              /* by device: the number of its turns */
    const char *text;    /* the whole order as text, which checkpoints keep */
};

/* The folder that reads orders (struct training_parts, base/additions.h). */
struct order_reader {
    const char *ending; /* how names of files with an order end: ".csv" */
    /* from: the path of such a file, or the text of written turns, which has several lines.  Ends the program when this
     * is no order for training. */
    const struct turn_order *(*read)(const char *from);
};
bool is_written_order(const char *named); /* does --pipeline name a file with an order, or the text of one? */

/* The order that --pipeline names.  NULL: nothing of that name is there. */
const struct turn_order *turn_order_of(const char *named);

/* ---- stage.c: the tasks of a turn -------------------------------------------------------------------------------- */

/* The tasks that follow belong to the tape's rank and micro-batch. */
void on_tape(struct builder *b, struct tape *tape, enum role role);

/* A tape for that stage and micro-batch, on the rank with this data-parallel coordinate and tensor-parallel coordinate
 * b->tp_rank. */
struct tape make_tape(const struct builder *b, int dp_rank, int stage, int micro, int grad_group);

/* Adds the forward of the stage for the tape's rank and micro-batch, and records it on the tape.  before: the tape of
 * the stage before it, or NULL. */
void forward_stage(struct builder *b, struct tape *tape, int stage, const struct tape *before,
                   const struct batch *batch);

/* Call it after the stage's backward: sends the gradient of tape->in to the stage before. */
void send_gradient(struct builder *b, struct tape *tape, const struct tape *before);

#endif

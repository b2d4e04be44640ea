/* support_training.h - trainers that train: settings, states, steps. */
#ifndef SUPPORT_TRAINING_H
#define SUPPORT_TRAINING_H

#include "support.h"
#include "trainer/train/train.h"

/* Settings as `yard train` has them after these words; short warm-up, values kept for verify. */
struct settings *parse_words(const char *words);
struct state { /* parameters of one rank, then Adam's m and v of all units */
    float *values;
    size_t n, n_parameters;
};
struct state read_state(struct trainer *trainer, int rank); /* the caller frees the values */
struct state read_whole_state(struct trainer *trainer);     /* the state of all ranks, as on one device */

/* Opens a trainer with random parameters and a train list that proves right. */
struct trainer *open_training(struct settings *settings, unsigned lists);
#define TINY_SIZES "--layers 2 --heads 2 --channels 32 --seq-len 16 --batch 4 " /* a small model's, and its batch */
/* A model of these sizes, with our own products, random parameters, text, and lists to train and to evaluate.  more:
 * further options. */
struct trainer *open_tiny_training(const char *more);
void run_steps(struct trainer *trainer, uint32_t from, uint32_t to);

void begin_anew(struct trainer *trainer); /* sets the first values of seed 1337, and Adam's state to 0 */

/* Fails unless the last step's loss is finite, replicas are equal, and no task wrote past its memory. */
void check_training(struct trainer *trainer, uint32_t last);

/* Opens, trains and checks; returns the state of all ranks. */
struct state train(struct settings *settings, uint32_t steps);

/* Fails unless what ranks keep alike is the same to the bit: all of a parameter that is not cut, and the same part of
 * one that is. */
void expect_equal_replicas(const struct trainer *trainer, const char *words);

#endif

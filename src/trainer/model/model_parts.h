/* model_parts.h - what the files of this folder need of one another.  model.h and the headers that it includes have
 * what others need.
 */
#ifndef MODEL_PARTS_H
#define MODEL_PARTS_H

#include "model.h"

/* ---- replica.c, rank_share.c ------------------------------------------------------------------------------------- */

/* A tensor that the replica keeps from step to step. */
struct tensor *new_kept(struct model *model, const struct replica *replica, enum memory_class class, const char *name,
                        struct shape shape);

/* A tensor of a unit that the replica keeps: "param.1" is that of unit 1, if `what` is "param". */
struct tensor *unit_tensor(struct model *model, const struct replica *replica, enum memory_class class,
                           const char *what, int unit, size_t elements);

/* The unit's parameters on the first data-parallel rank, at the replica's place in its tensor-parallel group. */
struct tensor *first_of(const struct model *model, const struct replica *replica, int unit);

/* Makes the tensors of a unit: parameters, and in training gradient and moments. */
void make_unit(struct model *model, struct replica *replica, int unit);

/* Makes each parameter, and its gradient, as a view of its unit's tensor. */
void make_weights(struct model *model, struct replica *replica);

/* ---- shards.c ---------------------------------------------------------------------------------------------------- */

struct coordinates { /* a shard of a unit, or its owner */
    int unit, tp_rank, dp_rank;
};

const struct mesh *mesh_of(const struct builder *b);

/* The rank with these coordinates that has the unit. */
struct replica *replica_of(const struct builder *b, struct coordinates at);

/* The rank with the same coordinates that has the last stage, and so the head. */
struct replica *last_replica(const struct builder *b, struct coordinates at);

/* Tasks that are added from now on belong to this unit, on the rank with these coordinates that has the unit. */
void on_unit(struct builder *b, struct coordinates at, enum role role);

/* What a tensor-parallel rank has of the unit: its sizes. */
const struct unit *unit_part(const struct builder *b, int unit, int tp_rank);

struct range shard_at(const struct builder *b, struct coordinates at);

struct reduction *reduction_of(const struct builder *b, int unit, int tp_rank);

/* ---- norm.c, norm_blocks.c --------------------------------------------------------------------------------------- */

/* Makes the tensor of all block sums, and moves all losses to the norm's rank. */
void begin_norm(struct builder *b, struct tensor *losses, struct tensor *const *rank_losses);

/* Adds the block sums of a unit's shards. */
void add_blocks(struct builder *b, int unit);

/* Adds the task that finds out, before the updates, whether the losses are finite.  It computes no norm yet. */
void add_loss_check(struct builder *b, struct tensor *losses);

/* Computes the norm from all block sums.  All ranks are told, unless their updates have not waited for the norm. */
void finish_norm(struct builder *b, struct tensor *losses);

#endif

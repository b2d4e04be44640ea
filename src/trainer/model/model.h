/* model.h - GPT-2 as tasks: its table of parameters, its layers, its optimizer.
 *
 * A model is a pre-LayerNorm transformer with learned positions, GELU (tanh form) and a tied or untied head, in
 * float32.  Everything about parameters follows from one table (params.c).  Building a step calls layer functions
 * (layers.c) that read like the equations; each operation (ops.c, linear.c) adds its forward tasks to the list and
 * leaves a note on a *tape*; backward() reads the tape from its end and adds the gradient tasks.
 *
 * Sizes: B sequences of T tokens in a micro-batch, N = B*T tokens, C channels, H heads, V vocabulary, L layers.
 *
 *     params.h     sizes, the table of parameters            params.c
 *     build.h      the builder, the tape                     build.c, builder.c, grids.c, tp_ranks.c
 *     ops.h        the operations, each with its backward    ops.c, linear.c, loss.c ...; gemm.c, engines.c
 *     pipeline.h   the order of micro-batches                pipeline.c; stage.c
 *     model.h      a model on its devices                    model.c, replica.c, rank_share.c
 *                  its values                                init.c, param_values.c
 *                  its layers                                layers.c
 *                  its optimizer                             reduce.c, norm.c, optimizer.c, shards.c
 *     adamw_host.h its update on the host                    adamw_host.c
 */
#ifndef MODEL_H
#define MODEL_H

#include "build.h"     /* brings: builder, tape, op, kernels, LAUNCH() */
#include "cl/shared.h" /* brings: BLOCK, PART_NUMBERS, CONTROL_*, VERDICT_* */
#include "ops.h"       /* brings: batch, gemm; declares: linear(), attention() ... */
#include "params.h"    /* brings: config, param, unit, params, weight */
#include "pipeline.h"  /* brings: pipeline, turn */

/* ---- a model, and a rank's part of it: model.c, replica.c, rank_share.c ------------------------------------------ */

/* A rank has the units of its own stages only.  For all other units the tensors in these arrays are NULL. */
struct replica {
    int rank;
    struct device *device;
    struct tensor **values, **grads; /* per unit: parameters, gradients */
    struct tensor **m, **v;          /* per unit: Adam's state of the rank's shard (without ZeRO: of all), or NULL */
    struct tensor **shards;          /* per unit: with ZeRO-3, the part of the parameters that it keeps, or NULL */
    struct weight unlayered[UNLAYERED_PARAMS]; /* those of no layer; a tied HEAD is WTE, or a copy on another device */
    struct weight *by_param;                   /* all parameters, in the table's order: those of a layer lie together */
    struct tensor *lookup_grad; /* (V, C) the embedding's own gradient when the head has one too; else NULL */
    struct replica *second_set; /* --grad-groups: the same parameters, gradients of another gradient group */
    struct tensor *control;     /* (CONTROL_SIZE) what changes per step: CONTROL_* in cl/shared.h */
    struct tensor *verdict;     /* (VERDICT_SIZE) what norm_finish says of the gradient: VERDICT_* */
};

/* How a model's gradients are kept; zeros: one set, which is kept as long as the model. */
struct gradients {
    bool dropped; /* they need not outlive the reduction (ZeRO-2) */
    bool grouped; /* there is a second set, for a second gradient group (--grad-groups) */
};

struct model {
    struct params *params; /* the table of the whole model */
    struct params **parts; /* by tensor-parallel coordinate: the table of what a rank has */
    struct pool *pool;
    const struct mesh *mesh;
    struct replica *replicas; /* per rank: rank r lives on device r */
    bool training;            /* gradients and optimizer state exist */
    struct gradients gradients;
    int norm_rank; /* the rank on which losses and the norm are summed */
};

enum model_use { TO_COMPUTE, TO_TRAIN }; /* the latter: with gradients and optimizer state */

/* A model with its tensors, which are not filled yet.  The mesh must stay as long as the model. */
struct model *new_model(struct pool *pool, const struct config *config, const struct mesh *mesh, enum model_use use,
                        struct gradients gradients);

/* A model without devices and tensors, which says only which rank has what: replicas is NULL. */
struct model *outline_model(const struct config *config, const struct mesh *mesh);

void free_model(struct model *model);                                /* the tensors belong to the pool */
int stage_of(const struct model *model, int unit);                   /* the stage that has the unit */
int first_unit(const struct model *model, int stage);                /* stage n_stages(): the end of all units */
const struct params *params_of(const struct model *model, int rank); /* the table of what that rank has */

/* What is kept of a parameter: the tensors for each of these roles have the parameter's shape.  Checkpoints and
 * snapshots store all roles but the gradient. */
enum kept { KEPT_VALUE, KEPT_M, KEPT_V, KEPT_GRADIENT };
enum { STORED_ROLES = KEPT_GRADIENT };
bool is_shared_out(const struct mesh *mesh, enum kept role); /* does ZeRO keep it in shards? */

/* The elements of a unit that a rank keeps for that role: its shard, or all. */
struct range held_by(const struct model *model, int unit, int rank, enum kept role);

/* ---- param_values.c ---------------------------------------------------------------------------------------------- */

/* The tensor that a rank keeps for a role of a unit; NULL: none is kept. */
struct tensor *tensor_of(const struct replica *replica, int unit, enum kept role);

/* Copies a whole parameter between `values` and the devices; nothing may be in flight.  Writing gives each rank that
 * has a part of the parameter that part, and a tied head that is a copy of the embedding is written with it.  Reading
 * puts the whole together from the parts of tensor-parallel ranks, and each part from shards of data-parallel ranks. */
void write_param(struct model *model, int param, enum kept role, const float *values);
void read_param(struct model *model, int param, enum kept role, float *values);

/* ---- init.c: random first values; finite_params.c ---------------------------------------------------------------- */

/* Draws all values as GPT-2's first values are; they depend only on the seed and the sizes, not on the mesh. */
void init_random(struct model *model, uint64_t seed);

/* The name of the first parameter with an element that is not finite; NULL: there is none. */
const char *find_not_finite_parameter(struct model *model);

/* Ends the program (EXIT_FAILED) if find_not_finite_parameter() finds one; `path` is the file that the values came
 * from. */
void refuse_if_not_finite(struct model *model, const char *path);

/* write_param() for values that were read from the file `path`.  Ends the program (EXIT_FAILED) if one of them is not
 * finite. */
void write_param_of_file(struct model *model, int param, const float *values, const char *path);

/* ---- layers.c: the layers of the model --------------------------------------------------------------------------- */

/* One stage of the residual stream (N, C): the first one makes it of the batch's tokens (x is NULL then), the last one
 * ends with the final LayerNorm. */
struct tensor *gpt_stage(struct builder *b, int stage, const struct batch *batch, struct tensor *x);

/* hidden (n, C): logits (n, V); each row ends in padding of 0. */
struct tensor *gpt_head(struct builder *b, struct tensor *hidden);

/* ---- reduce.c ---------------------------------------------------------------------------------------------------- */

/* Call it after a gradient group's last backward of a unit on all ranks.  With a tied head it adds up the embedding's
 * two gradients.  grad_group: 0 for the first; the gradient of a further one is then added to that of the first. */
void end_grad_group(struct builder *b, int unit, int grad_group);

/* Call it after the last gradient group, and reduce_unit() after it: sends the shards of a unit's gradient to the
 * data-parallel ranks that sum them. */
void send_unit(struct builder *b, int unit);

/* Sums the shards of a unit's gradient that send_unit() has sent, on all tensor-parallel ranks. */
void reduce_unit(struct builder *b, int unit);

/* ---- optimizer.c ------------------------------------------------------------------------------------------------- */

/* The positions of the arguments of kernel adamw (cl/adamw.cl); up to ADAMW_VERDICT they are those of its task's
 * accesses, too. */
enum { ADAMW_P, ADAMW_M, ADAMW_V, ADAMW_G, ADAMW_CONTROL, ADAMW_VERDICT, ADAMW_N, ADAMW_N_DECAY, ADAMW_SIDE };

/* Call it after the last forward, and only without clipping.  From now on update_if_released() updates each unit right
 * after its reduce, unless the losses are not finite.  The norm is only reported.
 *
 * losses (dp * UNIT_ALIGN) is a tensor on the norm's rank.  rank_losses[k] (1) is the loss of data-parallel rank k,
 * which is moved to element k * UNIT_ALIGN of `losses`; that of the norm's rank lies there already. */
void release_updates(struct builder *b, struct tensor *losses, struct tensor *const *rank_losses);

/* Call it after each reduce_unit().  If release_updates() has been called, it adds the unit's blocks to the norm,
 * updates the unit, and sends the new parameters. */
void update_if_released(struct builder *b, int unit);

/* Call it when all units are reduced: adds the norm, and, unless they were released, the updates and what sends the
 * parameters back. */
void add_update(struct builder *b, struct tensor *losses, struct tensor *const *rank_losses);

/* ---- adamw_host.c ------------------------------------------------------------------------------------------------ */

/* AdamW on the host, with the accesses and args of the kernel's task. */
void adamw_on_host(void *argument, const struct task *task, uint32_t iteration);

#endif

/* model.c - makes a model of its replicas, and a replica of its tensors. */
#include "model_parts.h"

/* Makes replica->second_set: it has the same parameters, and gradients of its own for a second gradient group. */
static void make_second_set(struct model *model, struct replica *replica)
{
    int n_units = model->params->n_units;
    struct replica *second = copy_bytes(replica, sizeof *replica);
    second->grads = allocate_each(n_units, sizeof *second->grads);
    for (int unit = 0; unit < n_units; unit++)
        if (replica->values[unit])
            second->grads[unit] = as_buffer(
                unit_tensor(model, replica, MEM_GRADIENTS, "grad.group", unit, count_elements(replica->values[unit])));
    make_weights(model, second);
    replica->second_set = second;
}

static void make_replica(struct model *model, int rank)
{
    struct replica *replica = &model->replicas[rank];
    int n_units = model->params->n_units;
    replica->rank = rank;
    replica->device = &model->pool->machine->devices[rank];
    replica->values = allocate_each(n_units, sizeof *replica->values);
    replica->grads = allocate_each(n_units, sizeof *replica->grads);
    replica->m = allocate_each(n_units, sizeof *replica->m);
    replica->v = allocate_each(n_units, sizeof *replica->v);
    replica->shards = allocate_each(n_units, sizeof *replica->shards);
    for (int unit = 0; unit < n_units; unit++)
        if (has_stage(model->mesh, rank, stage_of(model, unit)))
            make_unit(model, replica, unit);
    make_weights(model, replica);
    if (model->training) {
        replica->control = new_kept(model, replica, MEM_WORK, "control", SHAPE(CONTROL_SIZE));
        replica->verdict = new_kept(model, replica, MEM_WORK, "verdict", SHAPE(VERDICT_SIZE));
    }
    if (model->gradients.grouped)
        make_second_set(model, replica);
}

struct model *outline_model(const struct config *config, const struct mesh *mesh)
{
    check_config(config);
    struct model *model = allocate(1, sizeof *model);
    model->params = new_params(config, &one_rank, 0);
    model->parts = allocate_each(mesh->tp, sizeof(struct params *));
    for (int tp_rank = 0; tp_rank < mesh->tp; tp_rank++)
        model->parts[tp_rank] = new_params(config, mesh, tp_rank);
    model->mesh = mesh;
    return model;
}

struct model *new_model(struct pool *pool, const struct config *config, const struct mesh *mesh, enum model_use use,
                        struct gradients gradients)
{
    struct model *model = outline_model(config, mesh);
    model->pool = pool;
    model->training = use == TO_TRAIN;
    model->gradients = gradients;
    model->replicas = allocate_each(n_ranks(mesh), sizeof *model->replicas);
    for (int rank = 0; rank < n_ranks(mesh); rank++)
        make_replica(model, rank);
    return model;
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

/* Frees its arrays: the tensors belong to the pool. */
static void free_replica(struct replica *replica)
{
    free(replica->values);
    free(replica->grads);
    free(replica->m);
    free(replica->v);
    free(replica->shards);
    free(replica->by_param);
    if (replica->second_set) { /* all its other arrays are those of the replica */
        free(replica->second_set->grads);
        free(replica->second_set->by_param);
        free(replica->second_set);
    }
}

void free_model(struct model *model)
{
    if (model->replicas)
        for (int rank = 0; rank < n_ranks(model->mesh); rank++)
            free_replica(&model->replicas[rank]);
    for (int tp_rank = 0; tp_rank < model->mesh->tp; tp_rank++)
        free_params(model->parts[tp_rank]);
    free_params(model->params);
    free(model->replicas);
    free(model->parts);
    free(model);
}

/* model.c - makes a model of its replicas, and says which stage has which unit. */
#include "model_parts.h"

int first_unit(const struct model *model, int stage)
{
    if (stage == 0)
        return 0;
    if (stage == n_stages(model->mesh))
        return model->params->n_units;
    return 1 + model->mesh->first_layer[stage];
}

int stage_of(const struct model *model, int unit)
{
    int stage = 0;
    while (unit >= first_unit(model, stage + 1))
        stage++;
    return stage;
}

const struct params *params_of(const struct model *model, int rank) { return model->parts[tp_of(model->mesh, rank)]; }

struct model *outline_model(const struct config *config, const struct mesh *mesh)
{
    check_config(config);
    struct model *model = allocate(1, sizeof *model);
    model->params = new_params(config, &one_rank, 0);
    model->parts = allocate((size_t)mesh->tp, sizeof(struct params *));
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
    model->replicas = allocate((size_t)n_ranks(mesh), sizeof *model->replicas);
    for (int rank = 0; rank < n_ranks(mesh); rank++)
        make_replica(model, rank);
    return model;
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

/* rank_share.c - which units, and which parts of them, a rank has. */
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

bool is_shared_out(const struct mesh *mesh, enum kept role)
{
    if (mesh->dp == 1 || role == KEPT_GRADIENT)
        return false;
    return mesh->zero >= (role == KEPT_VALUE ? 3 : 1);
}

struct range held_by(const struct model *model, int unit, int rank, enum kept role)
{
    size_t elements = params_of(model, rank)->units[unit].elements;
    if (!is_shared_out(model->mesh, role))
        return (struct range){0, elements};
    return shard_of(elements, dp_of(model->mesh, rank), model->mesh->dp);
}

struct tensor *first_of(const struct model *model, const struct replica *replica, int unit)
{
    int rank = rank_at(model->mesh, 0, stage_of(model, unit)) + tp_of(model->mesh, replica->rank);
    return model->replicas[rank].values[unit];
}

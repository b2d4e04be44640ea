/* replica.c - a rank's part of parameters, gradients and optimizer state on its device.
 *
 * A rank has the units of its stages.  Data-parallel ranks hold the same units; with ZeRO each keeps Adam's state of
 * its own shard only.
 *
 * With ZeRO-3 parameters lie in shards too.  Lists are built as if every rank had all parameters of its units; then the
 * pass `gather` makes each of these tensors live only while a layer is at work.
 */
#include "model_parts.h"

static void make_unit(struct model *model, struct replica *replica, int unit);
static enum unlayered_param first_unlayered(const struct params *params, int unit);

struct tensor *new_kept(struct model *model, const struct replica *replica, enum memory_class class, const char *name,
                        struct shape shape)
{
    const struct tensor_form form = {.device = replica->device, .class = class, .name = name, .shape = shape};
    struct tensor *tensor = new_tensor(model->pool, &form);
    tensor->persistent = class != MEM_GRADIENTS || !model->gradients.dropped;
    tensor->is_buffer = !tensor->persistent; /* what is kept of it is a shard of the sum over ranks */
    return tensor;
}

struct tensor *unit_tensor(struct model *model, const struct replica *replica, enum memory_class class,
                           const char *what, int unit, size_t elements)
{
    char name[48];
    snprintf(name, sizeof name, "%s.%d", what, unit);
    return new_kept(model, replica, class, name, SHAPE((int64_t)elements));
}

void make_weights(struct model *model, struct replica *replica)
{
    replica->by_param = allocate((size_t)model->params->n, sizeof *replica->by_param);
    for (int i = 0; i < model->params->n; i++) {
        const struct param *param = &params_of(model, replica->rank)->items[i];
        struct tensor *values = replica->values[param->unit], *gradients = replica->grads[param->unit];
        struct weight *weight = &replica->by_param[i];
        if (!values)
            continue;
        const struct shape shape = {.n_dims = param->n_dims, .size = {param->rows, param->shape[1]}};
        weight->value = new_view(model->pool, values, param->name, param->offset, shape);
        if (gradients)
            weight->grad = new_view(model->pool, gradients, JOINED("grad.", param->name), param->offset, shape);
        weight->cut = param->cut;
        weight->first = param->first;
        int nth = i - model->params->units[param->unit].first_param; /* its number among the unit's parameters */
        if (param->layer < 0)
            replica->unlayered[(int)first_unlayered(model->params, param->unit) + nth] = *weight;
    }
    if (model->params->config.tied)
        make_tied_head(model, replica);
}

void make_replica(struct model *model, int rank)
{
    struct replica *replica = &model->replicas[rank];
    size_t n_units = (size_t)model->params->n_units;
    replica->rank = rank;
    replica->device = &model->pool->machine->devices[rank];
    replica->values = allocate(n_units, sizeof *replica->values);
    replica->grads = allocate(n_units, sizeof *replica->grads);
    replica->m = allocate(n_units, sizeof *replica->m);
    replica->v = allocate(n_units, sizeof *replica->v);
    replica->shards = allocate(n_units, sizeof *replica->shards);
    for (int unit = 0; unit < (int)n_units; unit++)
        if (has_stage(model->mesh, rank, stage_of(model, unit)))
            make_unit(model, replica, unit);
    make_weights(model, replica);
    if (model->training) {
        replica->control = new_kept(model, replica, MEM_WORK, "control", SHAPE(CONTROL_SIZE));
        replica->state = new_kept(model, replica, MEM_WORK, "state", SHAPE(STATE_SIZE));
    }
    if (model->gradients.grouped)
        make_second_set(model, replica);
}

/* ---- a first reading ends here ----------------------------------------------------------------------------------- */

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

const struct tensor *first_of(const struct model *model, const struct replica *replica, int unit)
{
    int rank = rank_at(model->mesh, 0, stage_of(model, unit)) + tp_of(model->mesh, replica->rank);
    return model->replicas[rank].values[unit];
}

static void make_unit(struct model *model, struct replica *replica, int unit)
{
    size_t elements = params_of(model, replica->rank)->units[unit].elements;
    struct range mine = held_by(model, unit, replica->rank, KEPT_M);
    bool empty = mine.begin == mine.end;
    replica->values[unit] = unit_tensor(model, replica, MEM_PARAMETERS, "param", unit, elements);
    replica->values[unit]->replica.of = first_of(model, replica, unit);
    if (is_shared_out(model->mesh, KEPT_VALUE) && !empty) {
        struct tensor *shard = unit_tensor(model, replica, MEM_PARAMETERS, "shard", unit, mine.end - mine.begin);
        shard->replica.of = first_of(model, replica, unit);
        shard->replica.begin = mine.begin * ELEMENT_BYTES;
        shard->replica.is_shard = true;
        replica->shards[unit] = shard;
    }
    if (!model->training)
        return;
    replica->grads[unit] = unit_tensor(model, replica, MEM_GRADIENTS, "grad", unit, elements);
    if (empty)
        return;
    replica->m[unit] = unit_tensor(model, replica, MEM_OPTIMIZER, "adam.m", unit, mine.end - mine.begin);
    replica->v[unit] = unit_tensor(model, replica, MEM_OPTIMIZER, "adam.v", unit, mine.end - mine.begin);
}

/* The first parameter of a unit that is not a layer: of the embedding, or of the final norm with the head. */
static enum unlayered_param first_unlayered(const struct params *params, int unit)
{
    if (unit == 0)
        return WTE;
    return params->config.tied ? LNF_W : HEAD;
}

/* ---- set-up and saving ------------------------------------------------------------------------------------------- */

void free_replica(struct replica *replica)
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

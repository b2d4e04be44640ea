/* replica.c - a rank's part of parameters, gradients and optimizer state on its device.
 *
 * A rank has the units of its stages.  Data-parallel ranks hold the same units; with ZeRO each keeps Adam's state of
 * its own shard only.  A tied head on another device than the embedding is a copy of it, with a gradient of its own.
 *
 * With ZeRO-3 parameters lie in shards too.  Lists are built as if every rank had all parameters of its units; then the
 * pass `gather` makes each of these tensors live only while a layer is at work.
 */
#include "model.h"

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

static struct tensor *new_kept(struct model *model, const struct replica *replica, enum memory_class class,
                               const char *name, struct shape shape)
{
    const struct tensor_form form = {.device = replica->device, .class = class, .name = name, .shape = shape};
    struct tensor *tensor = new_tensor(model->pool, &form);
    tensor->persistent = class != MEM_GRADIENTS || !model->gradients.dropped;
    tensor->is_buffer = !tensor->persistent; /* what is kept of it is a shard of the sum over ranks */
    return tensor;
}

static struct tensor *unit_tensor(struct model *model, const struct replica *replica, enum memory_class class,
                                  const char *what, int unit, size_t elements)
{
    char name[48];
    snprintf(name, sizeof name, "%s.%d", what, unit);
    return new_kept(model, replica, class, name, SHAPE((int64_t)elements));
}

/* The unit's parameters on the first data-parallel rank, at the replica's place in its tensor-parallel group. */
static const struct tensor *first_of(const struct model *model, const struct replica *replica, int unit)
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

/* Makes what a tied head needs.  A rank with the first stage has a gradient of the look-up.  A rank with the last stage
 * has the head: the embedding itself if it has that too, else a copy (which a second set shares with its rank's). */
static void make_tied_head(struct model *model, struct replica *replica)
{
    const struct param *wte = &params_of(model, replica->rank)->all[0];
    bool first = has_stage(model->mesh, replica->rank, 0);
    bool last = has_stage(model->mesh, replica->rank, n_stages(model->mesh) - 1);
    struct weight *head = &replica->unlayered[HEAD];
    if (first && model->training)
        replica->lookup_grad =
            as_buffer(new_kept(model, replica, MEM_GRADIENTS, "grad.wte.lookup", SHAPE(wte->shape[0], wte->shape[1])));
    if (first && last)
        *head = replica->unlayered[WTE];
    if (first || !last)
        return;
    if (!head->value) {
        head->value =
            as_buffer(new_kept(model, replica, MEM_PARAMETERS, "param.head", SHAPE(wte->rows, wte->shape[1])));
        head->value->replica.of = first_of(model, replica, 0);
        head->value->replica.begin = wte->offset * ELEMENT_BYTES;
    }
    head->cut = wte->cut;
    head->first = wte->first;
    if (model->training)
        head->grad = as_buffer(new_kept(model, replica, MEM_GRADIENTS, "grad.head", SHAPE(wte->rows, wte->shape[1])));
}

/* The first parameter of a unit that is not a layer: of the embedding, or of the final norm with the head. */
static enum unlayered_param first_unlayered(const struct params *params, int unit)
{
    if (unit == 0)
        return WTE;
    return params->config.tied ? LNF_W : HEAD;
}

/* Makes each parameter, and its gradient, as a view of its unit's tensor. */
static void make_weights(struct model *model, struct replica *replica)
{
    replica->by_param = allocate((size_t)model->params->n, sizeof *replica->by_param);
    for (int i = 0; i < model->params->n; i++) {
        const struct param *param = &params_of(model, replica->rank)->all[i];
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

/* Makes replica->second_set: it has the same parameters, and gradients of its own for a second gradient group. */
static void make_second_set(struct model *model, struct replica *replica)
{
    size_t n_units = (size_t)model->params->n_units;
    struct replica *second = copy_bytes(replica, sizeof *replica);
    second->grads = allocate(n_units, sizeof *second->grads);
    for (int unit = 0; unit < (int)n_units; unit++)
        if (replica->values[unit])
            second->grads[unit] = as_buffer(
                unit_tensor(model, replica, MEM_GRADIENTS, "grad.group", unit, count_elements(replica->values[unit])));
    make_weights(model, second);
    replica->second_set = second;
}

static void make_replica(struct model *model, int rank)
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

/* ---- set-up and saving ----------------------------------------------------------------------------------------- */

struct tensor *tensor_of(const struct replica *replica, int unit, enum kept role)
{
    if (role == KEPT_GRADIENT)
        return replica->grads[unit];
    if (role == KEPT_M)
        return replica->m[unit];
    if (role == KEPT_V)
        return replica->v[unit];
    return replica->shards[unit] ? replica->shards[unit] : replica->values[unit];
}

enum way { TO_DEVICE, FROM_DEVICE };
/* Copies between `part`, a rank's part of a parameter, and the tensor in which the rank keeps all, a shard or nothing
 * of this part. */
static void copy_kept(const struct model *model, int index, int rank, enum kept role, enum way way, float *part)
{
    const struct param *param = &params_of(model, rank)->all[index];
    struct range held = held_by(model, param->unit, rank, role);
    size_t begin = MAX(held.begin, param->offset);
    size_t end = MIN(held.end, param->offset + param_elements(param));
    struct tensor *tensor = tensor_of(&model->replicas[rank], param->unit, role);
    if (!tensor || begin >= end)
        return;
    size_t first_byte = ELEMENT_BYTES * (begin - held.begin);
    size_t bytes = ELEMENT_BYTES * (end - begin);
    float *values = part + (begin - param->offset);
    if (way == TO_DEVICE)
        write_bytes_of(tensor, first_byte, bytes, values);
    else
        read_bytes_of(tensor, first_byte, bytes, values);
}

enum part_copy { INTO_WHOLE, OUT_OF_WHOLE };
/* Copies between a whole parameter and a tensor-parallel rank's part of it: from the part into the whole, or the part
 * out of it. */
static void copy_part(const struct model *model, int index, int tp_rank, enum part_copy copy, float *to,
                      const float *from)
{
    const struct param *param = &model->params->all[index];
    struct part part = part_of(&model->parts[tp_rank]->all[index].cut, param->shape, tp_rank, model->mesh->tp);
    size_t n = part.end - part.begin;
    for (size_t i = 0; i < part.stretches; i++) {
        size_t in_whole = i * part.length + part.begin;
        size_t in_part = i * n;
        if (copy == INTO_WHOLE)
            memcpy(to + in_whole, from + in_part, n * sizeof *to);
        else
            memcpy(to + in_part, from + in_whole, n * sizeof *to);
    }
}

void write_param(struct model *model, int param, enum kept role, const float *values)
{
    bool with_head =
        param == 0 && role == KEPT_VALUE && model->params->config.tied && !is_shared_out(model->mesh, KEPT_VALUE);
    for (int tp_rank = 0; tp_rank < model->mesh->tp; tp_rank++) {
        float *part = allocate(param_elements(&model->parts[tp_rank]->all[param]), sizeof *part);
        copy_part(model, param, tp_rank, OUT_OF_WHOLE, part, values);
        for (int rank = tp_rank; rank < n_ranks(model->mesh); rank += model->mesh->tp) {
            const struct weight *wte = &model->replicas[rank].unlayered[WTE];
            const struct weight *head = &model->replicas[rank].unlayered[HEAD];
            copy_kept(model, param, rank, role, TO_DEVICE, part);
            if (with_head && head->value && head->value != wte->value)
                write_bytes_of(head->value, 0, ELEMENT_BYTES * param_elements(&model->parts[tp_rank]->all[param]),
                               part);
        }
        free(part);
    }
}

void read_param(struct model *model, int param, enum kept role, float *values)
{
    int stage = stage_of(model, model->params->all[param].unit);
    int ranks = is_shared_out(model->mesh, role) ? model->mesh->dp : 1;
    for (int tp_rank = 0; tp_rank < model->mesh->tp; tp_rank++) {
        float *part = allocate(param_elements(&model->parts[tp_rank]->all[param]), sizeof *part);
        for (int dp = 0; dp < ranks; dp++)
            copy_kept(model, param, rank_at(model->mesh, dp, stage) + tp_rank, role, FROM_DEVICE, part);
        copy_part(model, param, tp_rank, INTO_WHOLE, values, part);
        free(part);
    }
}

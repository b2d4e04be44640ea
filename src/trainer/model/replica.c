/* replica.c - a rank's part of parameters, gradients and optimizer state on its device.
 *
 * A rank has the units of its stages.  Data-parallel ranks hold the same units; with ZeRO each keeps Adam's state of
 * its own shard only.
 *
 * With ZeRO-3 parameters lie in shards too.  Lists are built as if every rank had all parameters of its units; then the
 * pass `gather` makes each of these tensors live only while a layer is at work.
 */
#include "model_parts.h"

/* ---- the tensors of a unit --------------------------------------------------------------------------------------- */

struct tensor *new_kept(struct model *model, const struct replica *replica, enum memory_class class, const char *name,
                        struct shape shape)
{
    const struct tensor_form form = {.device = replica->device, .class = class, .name = name, .shape = shape};
    struct tensor *tensor = new_tensor(model->pool, &form);
    tensor->persistent = class != MEM_GRADIENTS || !model->gradients.dropped;
    tensor->extra.is_buffer = !tensor->persistent; /* what is kept of it is a shard of the sum over ranks */
    return tensor;
}

struct tensor *unit_tensor(struct model *model, const struct replica *replica, enum memory_class class,
                           const char *what, int unit, size_t elements)
{
    char name[TENSOR_NAME];
    snprintf(name, sizeof name, "%s.%d", what, unit);
    return new_kept(model, replica, class, name, SHAPE((int64_t)elements));
}

void make_unit(struct model *model, struct replica *replica, int unit)
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

/* ---- weights: views of them -------------------------------------------------------------------------------------- */

/* The first parameter of a unit that is not a layer: of the embedding, or of the final norm with the head. */
static enum unlayered_param first_unlayered(const struct params *params, int unit)
{
    if (unit == 0)
        return WTE;
    return params->config.tied ? LNF_W : HEAD;
}

/* Makes what a tied head needs.  A rank with the first stage has a gradient of the look-up.  A rank with the last stage
 * has the head: the embedding itself if it has that too, else a copy (which a second set shares with its rank's), with
 * a gradient of its own. */
static void make_tied_head(struct model *model, struct replica *replica)
{
    const struct param *wte = &params_of(model, replica->rank)->items[WTE];
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

void make_weights(struct model *model, struct replica *replica)
{
    replica->by_param = allocate_each(model->params->n, sizeof *replica->by_param);
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

/* param_values.c - copies whole parameters between the host's memory and the devices, for first values and saved ones.
 */
#include "model.h"

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
    const struct param *param = &params_of(model, rank)->items[index];
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
    const struct param *param = &model->params->items[index];
    struct part part = part_of(&model->parts[tp_rank]->items[index].cut, param->shape, tp_rank, model->mesh->tp);
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
        float *part = allocate(param_elements(&model->parts[tp_rank]->items[param]), sizeof *part);
        copy_part(model, param, tp_rank, OUT_OF_WHOLE, part, values);
        for (int rank = tp_rank; rank < n_ranks(model->mesh); rank += model->mesh->tp) {
            const struct weight *wte = &model->replicas[rank].unlayered[WTE];
            const struct weight *head = &model->replicas[rank].unlayered[HEAD];
            copy_kept(model, param, rank, role, TO_DEVICE, part);
            if (with_head && head->value && head->value != wte->value)
                write_bytes_of(head->value, 0, ELEMENT_BYTES * param_elements(&model->parts[tp_rank]->items[param]),
                               part);
        }
        free(part);
    }
}

void read_param(struct model *model, int param, enum kept role, float *values)
{
    int stage = stage_of(model, model->params->items[param].unit);
    int ranks = is_shared_out(model->mesh, role) ? model->mesh->dp : 1;
    for (int tp_rank = 0; tp_rank < model->mesh->tp; tp_rank++) {
        float *part = allocate(param_elements(&model->parts[tp_rank]->items[param]), sizeof *part);
        for (int dp = 0; dp < ranks; dp++)
            copy_kept(model, param, rank_at(model->mesh, dp, stage) + tp_rank, role, FROM_DEVICE, part);
        copy_part(model, param, tp_rank, INTO_WHOLE, values, part);
        free(part);
    }
}

/* second_tensors.c - what a replica has twice: a tied head, the embedding on another device or with another gradient;
 * and the gradients of a second gradient group (--grad-groups).
 *
 * A tied head on another device than the embedding is a copy of it, with a gradient of its own.
 */
#include "model_parts.h"

void make_tied_head(struct model *model, struct replica *replica)
{
    const struct param *wte = &params_of(model, replica->rank)->items[0];
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

void make_second_set(struct model *model, struct replica *replica)
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

/* grids.c - grids of kernels, and tensors of the list that a builder adds to. */
#include "model.h"

struct grid work_groups(const struct builder *b, int n) { return groups_on(b->device, (size_t)n); }
struct grid blocks(const struct builder *b, size_t n) { return groups_on(b->device, ceil_div(n, BLOCK)); }

struct grid column_blocks(const struct builder *b, int n)
{
    return groups_on(b->device, ceil_div((size_t)n, b->device->shape.work_group > 1 ? GPU_COLUMNS : CPU_COLUMNS));
}

struct tensor *activation(struct builder *b, const char *name, struct shape shape)
{
    const struct tensor_form form = {.device = b->device, .class = MEM_ACTIVATIONS, .name = name, .shape = shape};
    return new_tensor(b->list->pool, &form);
}

int rank_vocab(const struct builder *b) { return (int)params_of(b->model, b->replica->rank)->items[WTE].shape[0]; }
int columns_of(const struct tensor *x) { return (int)x->shape.size[x->shape.n_dims - 1]; }
int rows_of(const struct tensor *x) { return (int)(count_elements(x) / (size_t)columns_of(x)); }

/* builder.c - makes a builder, and frees it. */
#include "model.h"
#include "trainer/base/additions.h"

/* Refuses micro-batches of `tokens` tokens where the driver would end a kernel's loops too soon.  The longest loops go
 * over all tokens; embed_backward_tokens does so again for each part of a row.  The driver counts rounds of inner loops
 * and ends of loops too, so one of our rounds may be four of its own. */
static void check_loops(const struct device *device, int channels, int tokens)
{
    size_t parts = ceil_div((size_t)channels, (size_t)device->shape.work_group * device->shape.vector);
    size_t most = SHORT_LOOPS / 4 / parts;
    if (device->extra.quirks.short_loops && (size_t)tokens > most)
        fail(EXIT_USAGE,
             "device %s, %s, ends a kernel's loops after %d rounds: a micro-batch may have %zu tokens there, "
             "not %d; use %s, or another driver",
             device->id, device->name, SHORT_LOOPS, most, tokens, ways_to_shrink);
}

struct builder make_builder(struct list *list, struct model *model, struct kernels kernels, int batch, int seq)
{
    struct builder b = {.list = list, .model = model, .kernels = kernels, .batch = batch, .seq = seq};
    b.reductions = allocate_each(model->params->n_units * model->mesh->tp, sizeof *b.reductions);
    for (int rank = 0; rank < n_ranks(model->mesh); rank++)
        check_loops(model->replicas[rank].device, model->params->config.channels, batch * seq);
    on_rank(&b, 0, NONE, ROLE_OTHER);
    return b;
}

void end_build(struct builder *b)
{
    for (int i = 0; i < b->model->params->n_units * b->model->mesh->tp; i++) {
        free(b->reductions[i].sums);
        free(b->reductions[i].first_block);
    }
    free(b->grads);
    free(b->summed);
    free(b->reductions);
    free(b->met);
}

/* optimizer.c - what follows the last micro-batch: sum over ranks, norm, AdamW, and parameters back to every rank.
 *
 * Data parallelism in its simplest correct form.  Rank r lives on device r; unit u (a layer, the embedding, the final
 * norm) is owned by rank u % ranks, which alone keeps its Adam state.  Per unit:
 *
 *     reduce   the other ranks' gradients travel to the owner, which sums them in rank order
 *     norm     the owner takes sums of squares over fixed blocks; rank 0 adds them up in table order, and halts the
 *              update when the norm or a rank's loss is not finite
 *     update   the owner runs AdamW
 *     send     the new parameters travel to the other ranks
 *
 * The sum over ranks is (g0 + g1) + g2 ..., whoever owns the unit: the bits depend on the number of ranks only.
 */
#include "model.h"

#include <stdlib.h>

static void on_rank(struct build *b, int rank, int unit, enum role role)
{
    b->replica = &b->model->replica[rank];
    b->device = b->replica->device;
    b->step->stamp = (struct stamp){unit >= 1 && unit < b->model->params->n_units - 1 ? unit - 1 : -1, -1, role};
}

static struct tensor *gradient_on(struct build *b, int rank, int owner, int unit)
{
    struct replica *from = &b->model->replica[rank], *to = &b->model->replica[owner];
    if (rank == owner)
        return from->grad[unit];
    struct tensor *g = from->grad[unit];
    struct tensor *received =
        new_tensor(b->step->pool, to->device, MEM_GRADIENTS, "grad.received", FLOAT32, g->rank, g->shape);
    add_move(b->step, "reduce.move", received, g);
    return received;
}

/* The sum over ranks of a unit's gradient, on its owner. */
static struct tensor *reduce_unit(struct build *b, int unit)
{
    int owner = owner_of(b->model, unit);
    on_rank(b, owner, unit, ROLE_REDUCE);
    struct tensor *sum = gradient_on(b, 0, owner, unit);
    for (int rank = 1; rank < b->model->n_ranks; rank++) {
        struct tensor *g = gradient_on(b, rank, owner, unit);
        set_elementwise(LAUNCH(b, "reduce.add", "elementwise.cl", "accumulate", blocks(b, count_elements(sum)),
                               INOUT(sum), IN(g), ELEMENTS(count_elements(sum))));
    }
    return sum;
}

/* With a tied head the embedding has two gradients, from the head and from the look-up, summed only here. */
static void sum_tied(struct build *b)
{
    for (int rank = 0; rank < b->model->n_ranks; rank++) {
        on_rank(b, rank, 0, ROLE_REDUCE);
        struct tensor *head = b->replica->other[WTE].grad, *lookup = b->replica->lookup_grad;
        if (lookup)
            set_elementwise(LAUNCH(b, "tied.add", "elementwise.cl", "accumulate", blocks(b, count_elements(head)),
                                   INOUT(head), IN(lookup), ELEMENTS(count_elements(head))));
    }
}

/* ---- norm ------------------------------------------------------------------------------------------------------ */

/* Each unit's block sums have a part of their own in one tensor on rank 0; padding stays zero. */
static struct tensor *new_partials(struct build *b, size_t *part)
{
    size_t n = 0;
    for (int u = 0; u < b->model->params->n_units; u++) {
        part[u] = n;
        n += round_up(ceil_div(b->model->params->unit[u].elements, NORM_BLOCK), UNIT_ALIGN);
    }
    struct tensor *t =
        new_tensor(b->step->pool, b->model->replica[0].device, MEM_WORK, "norm.partials", FLOAT32, SHAPE((int64_t)n));
    t->persistent = true;
    return t;
}

static void gather_losses(struct build *b, struct tensor *losses, struct tensor *const *rank_loss)
{
    on_rank(b, 0, 0, ROLE_NORM);
    for (int rank = 1; rank < b->model->n_ranks; rank++) {
        struct tensor *part = new_view(b->step->pool, losses, "loss.part", (size_t)rank * UNIT_ALIGN, SHAPE(1));
        add_move(b->step, "loss.move", part, rank_loss[rank]);
    }
}

static void add_norm(struct build *b, struct tensor **sum, struct tensor *losses)
{
    int n_units = b->model->params->n_units;
    size_t *part = allocate((size_t)n_units, sizeof *part);
    struct tensor *partials = new_partials(b, part);
    for (int u = 0; u < n_units; u++) {
        size_t n_blocks = ceil_div(count_elements(sum[u]), NORM_BLOCK);
        on_rank(b, owner_of(b->model, u), u, ROLE_NORM);
        struct tensor *view = new_view(b->step->pool, partials, "norm.part", part[u], SHAPE((int64_t)n_blocks));
        struct tensor *out = b->replica->rank == 0 ? view
                                                   : new_tensor(b->step->pool, b->device, MEM_WORK, "norm.local",
                                                                FLOAT32, SHAPE((int64_t)n_blocks));
        /* Not elementwise: a sum stands for NORM_BLOCK elements, and since tensors begin on 512 bytes, pieces could
         * begin at every 128th sum only.  Who shards a unit adds one of these tasks per shard. */
        LAUNCH(b, "norm.blocks", "norm.cl", "norm_blocks", groups(b, n_blocks), OUT(out), IN(sum[u]),
               INT(count_elements(sum[u])));
        if (out != view)
            add_move(b->step, "norm.move", view, out);
    }
    on_rank(b, 0, 0, ROLE_NORM);
    LAUNCH(b, "norm.finish", "norm.cl", "norm_finish", groups(b, 1), INOUT(b->replica->state), IN(partials),
           INT(count_elements(partials)), IN(b->replica->control), IN(losses), INT(count_elements(losses)));
    for (int rank = 1; rank < b->model->n_ranks; rank++)
        add_move(b->step, "norm.send", b->model->replica[rank].state, b->replica->state);
    free(part);
}

/* ---- update ---------------------------------------------------------------------------------------------------- */

static void update_unit(struct build *b, int unit, struct tensor *sum)
{
    on_rank(b, owner_of(b->model, unit), unit, ROLE_UPDATE);
    struct replica *r = b->replica;
    size_t n = b->model->params->unit[unit].elements;
    set_elementwise(LAUNCH(b, "adamw", "adamw.cl", "adamw", blocks(b, n), INOUT(r->value[unit]), INOUT(r->m[unit]),
                           INOUT(r->v[unit]), IN(sum), IN(r->control), IN(r->state), ELEMENTS(n),
                           ELEMENTS(b->model->params->unit[unit].n_decay)));
    b->step->stamp.role = ROLE_BROADCAST;
    for (int rank = 0; rank < b->model->n_ranks; rank++)
        if (rank != r->rank)
            add_move(b->step, "send.param", b->model->replica[rank].value[unit], r->value[unit]);
}

void add_update(struct build *b, struct tensor *losses, struct tensor *const *rank_loss)
{
    int n_units = b->model->params->n_units;
    struct tensor **sum = allocate((size_t)n_units, sizeof *sum);
    sum_tied(b);
    for (int u = n_units; u-- > 0;) /* in the order in which backward finishes them */
        sum[u] = reduce_unit(b, u);
    gather_losses(b, losses, rank_loss);
    add_norm(b, sum, losses);
    for (int u = 0; u < n_units; u++) /* in the order in which the next forward needs them */
        update_unit(b, u, sum[u]);
    free(sum);
}

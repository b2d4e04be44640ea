/* reduce.c - gradients come together: those of groups of micro-batches, of a tied head, and of data-parallel ranks.
 *
 * The shards of a unit's gradient travel to the ranks that own them, in send_unit(), and reduce_unit() sums them.  The
 * two are apart, so that other tasks can be added between them.  All ranks of a tensor-parallel group have some
 * parameters whole, and their gradients are made alike first.
 */
#include "model_parts.h"

/* With a tied head the embedding has two gradients, from the head and from the look-up, summed only here. */
static void sum_tied(struct builder *b, int tp_rank, int grad_group)
{
    struct coordinates at = {.unit = 0, .tp_rank = tp_rank};
    for (at.dp_rank = 0; at.dp_rank < mesh_of(b)->dp; at.dp_rank++) {
        struct replica *last = last_replica(b, at);
        struct replica *first = replica_of(b, at);
        if (grad_group > 0) {
            first = first->second_set;
            last = last->second_set;
        }
        if (!first->lookup_grad) /* the head is not tied */
            return;
        struct tensor *sum = first->unlayered[WTE].grad;
        on_unit(b, at, ROLE_REDUCE);
        if (last->rank != first->rank)
            add_move(b->list, "tied.move", sum, last->unlayered[HEAD].grad, FOR_MOVES);
        struct tensor *words = new_view(b->list->pool, sum, "grad.wte", 0, first->lookup_grad->shape);
        add_into(b->list, "tied.add", words, first->lookup_grad);
    }
}

/* dp is 1 here: sizes.c refuses gradient groups beside more data-parallel ranks (check_grad_groups()). */
void end_grad_group(struct builder *b, int unit, int grad_group)
{
    for (int tp_rank = 0; tp_rank < mesh_of(b)->tp; tp_rank++) {
        const struct coordinates at = {.unit = unit, .tp_rank = tp_rank};
        if (unit == 0)
            sum_tied(b, tp_rank, grad_group);
        struct replica *replica = replica_of(b, at);
        on_unit(b, at, ROLE_REDUCE);
        if (grad_group > 0)
            add_into(b->list, "group.add", replica->grads[unit], replica->second_set->grads[unit]);
    }
}

/* The last n_same elements of a unit's gradient, those of the parameters that all ranks of a group have whole. */
static struct tensor *view_same(struct builder *b, struct tensor *grad, size_t n_same)
{
    return new_view(b->list->pool, grad, "grad.same", count_elements(grad) - n_same, SHAPE((int64_t)n_same));
}

/* Do two devices compute the same bits? */
static bool are_alike(const struct device *one, const struct device *other)
{
    return strcmp(one->name, other->name) == 0 && one->shape.vector == other->shape.vector;
}

/* Parameters that all ranks of a group have whole have the same gradient on each.  But devices of different kinds
 * differ in its last bits: then a rank takes the gradient of the group's first rank. */
static void make_alike(struct builder *b, int unit, int dp_rank)
{
    struct coordinates at = {.unit = unit, .dp_rank = dp_rank};
    const struct replica *first = replica_of(b, at);
    on_unit(b, at, ROLE_REDUCE);
    struct tensor *from = first->grads[unit];
    for (at.tp_rank = 1; at.tp_rank < mesh_of(b)->tp; at.tp_rank++) {
        const struct unit *part = unit_part(b, unit, at.tp_rank);
        const struct replica *replica = replica_of(b, at);
        size_t n_same = part->elements - part->n_counted;
        if (n_same == 0 || are_alike(replica->device, first->device))
            continue;
        struct tensor *to = view_same(b, replica->grads[unit], n_same);
        add_move(b->list, "reduce.agree", to, view_same(b, from, n_same), FOR_MOVES);
    }
}

void send_unit(struct builder *b, int unit)
{
    int dp = mesh_of(b)->dp;
    struct tensor **grads = allocate_each(dp, sizeof *grads);
    for (int dp_rank = 0; dp_rank < dp; dp_rank++)
        make_alike(b, unit, dp_rank);
    for (int tp_rank = 0; tp_rank < mesh_of(b)->tp; tp_rank++) {
        struct coordinates at = {.unit = unit, .tp_rank = tp_rank};
        on_unit(b, at, ROLE_REDUCE);
        for (at.dp_rank = 0; at.dp_rank < dp; at.dp_rank++)
            grads[at.dp_rank] = replica_of(b, at)->grads[unit];
        struct reduction *reduction = reduction_of(b, unit, tp_rank);
        reduction->parts = add_reduce_moves(b->list, "reduce", grads, dp, NORM_BLOCK);
    }
    free(grads);
}

void reduce_unit(struct builder *b, int unit)
{
    for (int tp_rank = 0; tp_rank < mesh_of(b)->tp; tp_rank++) {
        const struct coordinates at = {.unit = unit, .tp_rank = tp_rank};
        const struct replica *replica = replica_of(b, at);
        on_unit(b, at, ROLE_REDUCE);
        /* Apart where only shards are kept. */
        enum sums_in where = replica->grads[unit]->persistent ? SUMS_IN_PLACE : SUMS_APART;
        struct reduction *reduction = reduction_of(b, unit, tp_rank);
        reduction->sums = add_reduce_sums(b->list, "reduce", reduction->parts, mesh_of(b)->dp, where);
        free(reduction->parts);
    }
}

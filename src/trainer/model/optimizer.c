/* optimizer.c - adds the updates: AdamW, and what sends the new parameters to all ranks.  Sums over ranks (reduce.c)
 * and the norm (norm.c) come before them.
 *
 * Every unit (a layer, the embedding, the final norm) is cut into as many shards as there are data-parallel ranks, on
 * borders of the norm's blocks; rank k owns shard k.  Per unit:
 *
 *     reduce   the other ranks' gradients of a shard travel to its owner, which sums them in rank order: a
 *              reduce-scatter.  It comes after the unit's last backward, so it runs while the backward of other units
 *              goes on.                                                                                  (reduce.c)
 *     norm     of all gradients together (norm.c).  Without clipping no update waits for it: each waits for the losses
 *              alone, and runs right after its reduce.
 *     update   owners run AdamW on their shards
 *     send     the new parameters travel to the other ranks: an all-gather
 *
 * Without ZeRO the sums travel instead, and every rank updates all of the unit.  The sum is in rank order,
 * ((g0 + g1) + g2) ..., whichever rank owns the shard: the bits depend only on the number of data-parallel ranks.
 *
 * Each rank of a tensor-parallel group has another part of a unit.  So the first ranks of all groups do all of the
 * above together, then the second ranks, and so on.  All ranks of a group have some parameters whole: their gradients
 * are alike, and the norm counts them once.
 */
#include "model_parts.h"

/* ---- updates ----------------------------------------------------------------------------------------------------- */

/* Adds AdamW on the shard of rank `owner_rank`, whose gradient is `sum`, with the state that rank `at` has of it. */
static void update_shard(struct builder *b, struct coordinates at, int owner_rank, struct tensor *sum)
{
    struct replica *replica = replica_of(b, at);
    on_unit(b, at, ROLE_UPDATE);
    int unit = at.unit;
    struct range shard = shard_at(b, (struct coordinates){.unit = unit, .tp_rank = at.tp_rank, .dp_rank = owner_rank});
    size_t elements = shard.end - shard.begin;
    size_t held = held_by(b->model, unit, replica->rank, KEPT_M).begin;
    struct range in_state = {shard.begin - held, shard.end - held}; /* where the shard lies in the rank's m and v */
    size_t end_decay = unit_part(b, unit, at.tp_rank)->n_decay;
    size_t n_decay = end_decay > shard.begin ? MIN(end_decay - shard.begin, elements) : 0;
    struct tensor *value = view_of_shard(b->list->pool, replica->values[unit], owner_rank, shard);
    struct tensor *m = view_of_shard(b->list->pool, replica->m[unit], owner_rank, in_state);
    struct tensor *v = view_of_shard(b->list->pool, replica->v[unit], owner_rank, in_state);
    struct task *task = LAUNCH(b, "adamw", "adamw.cl", "adamw", blocks(b, elements),
                               INOUT(value), INOUT(m), INOUT(v),
                               IN(sum), IN(replica->control), IN(replica->verdict),
                               ELEMENTS(elements), ELEMENTS(n_decay),
                               NO_TENSOR /* side */);
    _Static_assert(CONTROL_SIZE * ELEMENT_BYTES <= READ_WHOLE, "a slice of an update reads the control block whole");
    set_elementwise(task);
    task->extra.on_host.function = adamw_on_host;
    task->extra.state = (struct state_range){.rank = replica->rank, .unit = unit, .elements = shard};
}

/* Updates a shard of a unit.  With ZeRO its owner updates it, and sends the new parameters to all.  Else the owner
 * sends the sum of gradients, and all ranks update. */
static void update_and_send(struct builder *b, struct coordinates owner)
{
    int dp = mesh_of(b)->dp;
    bool owner_updates = mesh_of(b)->zero;
    int unit = owner.unit;
    struct tensor *sum = reduction_of(b, unit, owner.tp_rank)->sums[owner.dp_rank];
    const struct range shard = shard_at(b, owner);
    struct tensor **parts = allocate_each(dp, sizeof *parts); /* by rank: the shard of its parameters or gradient */
    struct coordinates at = owner;
    for (at.dp_rank = 0; at.dp_rank < dp; at.dp_rank++) {
        struct replica *replica = replica_of(b, at);
        struct tensor *whole = owner_updates ? replica->values[unit] : replica->grads[unit];
        parts[at.dp_rank] = view_of_shard(b->list->pool, whole, owner.dp_rank, shard);
    }
    if (owner_updates)
        update_shard(b, owner, owner.dp_rank, sum);
    else
        parts[owner.dp_rank] = sum;
    on_unit(b, owner, ROLE_BROADCAST);
    add_broadcast_from(b->list, owner_updates ? "send.param" : "send.grad", parts, dp, owner.dp_rank);
    if (!owner_updates)
        for (at.dp_rank = 0; at.dp_rank < dp; at.dp_rank++)
            update_shard(b, at, owner.dp_rank, parts[at.dp_rank]);
    free(parts);
}

/* A tied head on another device than the embedding is a copy: it gets the new embedding. */
static void send_tied(struct builder *b, int tp_rank)
{
    if (!b->model->params->config.tied)
        return;
    struct coordinates at = {.unit = 0, .tp_rank = tp_rank};
    for (at.dp_rank = 0; at.dp_rank < mesh_of(b)->dp; at.dp_rank++) {
        struct replica *last = last_replica(b, at);
        struct replica *first = replica_of(b, at);
        on_unit(b, at, ROLE_BROADCAST);
        if (last != first)
            add_move(b->list, "send.tied", last->unlayered[HEAD].value, first->unlayered[WTE].value, FOR_MOVES);
    }
}

static void update_unit(struct builder *b, int unit)
{
    for (int tp_rank = 0; tp_rank < mesh_of(b)->tp; tp_rank++) {
        struct coordinates owner = {.unit = unit, .tp_rank = tp_rank};
        for (owner.dp_rank = 0; owner.dp_rank < mesh_of(b)->dp; owner.dp_rank++)
            if (reduction_of(b, unit, tp_rank)->sums[owner.dp_rank])
                update_and_send(b, owner);
        if (unit == 0)
            send_tied(b, tp_rank);
    }
}

/* ---- all updates ------------------------------------------------------------------------------------------------- */

void release_updates(struct builder *b, struct tensor *losses, struct tensor *const *rank_losses)
{
    b->released = true;
    begin_norm(b, losses, rank_losses);
    add_loss_check(b, losses);
}

void update_if_released(struct builder *b, int unit)
{
    if (b->released) {
        add_blocks(b, unit);
        update_unit(b, unit);
    }
}

void add_update(struct builder *b, struct tensor *losses, struct tensor *const *rank_losses)
{
    int n_units = b->released ? 0 : b->model->params->n_units;
    if (!b->released)
        begin_norm(b, losses, rank_losses);
    for (int unit = 0; unit < n_units; unit++)
        add_blocks(b, unit);
    finish_norm(b, losses);
    for (int unit = 0; unit < n_units; unit++) /* in the order in which the next forward needs them */
        update_unit(b, unit);
}

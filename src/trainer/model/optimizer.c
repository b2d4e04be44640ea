/* optimizer.c - adds what comes after backward: gradients are summed over data-parallel ranks, the norm, AdamW, and new
 * parameters for all ranks.
 *
 * Every unit (a layer, the embedding, the final norm) is cut into as many shards as there are data-parallel ranks, on
 * borders of the norm's blocks; rank k owns shard k.  Per unit:
 *
 *     reduce   the other ranks' gradients of a shard travel to its owner, which sums them in rank order: a
 *              reduce-scatter.  It comes after the unit's last backward, so it runs while the backward of other units
 *              goes on.
 *     norm     owners take sums of squares over fixed blocks; one rank adds them up in table order, and halts the
 *              updates when the norm or a rank's loss is not finite.  Without clipping no update waits for the norm:
 *              each waits for the losses alone, and runs right after its reduce.
 *     update   owners run AdamW on their shards
 *     send     the new parameters travel to the other ranks: an all-gather
 *
 * Without ZeRO the sums travel instead, and every rank updates all of the unit.  The sum is in rank order,
 * ((g0 + g1) + g2) ..., whichever rank owns the shard: the bits depend only on the number of data-parallel ranks.
 *
 * Each rank of a tensor-parallel group has another part of a unit.  So the first ranks of all groups do all of the
 * above together, then the second ranks, and so on.  All ranks of a group have some parameters whole: their gradients
 * are alike, and the norm counts them once.
 *
 * The shard of a data-parallel rank is the one that it owns.
 */
#include "model.h"

struct coordinates { /* a shard of a unit, or its owner */
    int unit, tp_rank, dp_rank;
};

static const struct mesh *mesh_of(const struct builder *b) { return b->model->mesh; }

/* The rank with these coordinates that has the unit. */
static struct replica *replica_of(const struct builder *b, struct coordinates at)
{
    int stage = stage_of(b->model, at.unit);
    return &b->model->replicas[rank_at(mesh_of(b), at.dp_rank, stage) + at.tp_rank];
}

/* The rank with the same coordinates that has the last stage, and so the head. */
static struct replica *last_replica(const struct builder *b, struct coordinates at)
{
    at.unit = b->model->params->n_units - 1;
    return replica_of(b, at);
}

/* Tasks that are added from now on belong to this unit, on the rank with these coordinates that has the unit. */
static void on_unit(struct builder *b, struct coordinates at, enum role role)
{
    on_rank(b, replica_of(b, at)->rank, NONE, role);
    begin_unit(b, at.unit);
}

/* What a tensor-parallel rank has of the unit: its sizes. */
static const struct unit *unit_part(const struct builder *b, int unit, int tp_rank)
{
    return &b->model->parts[tp_rank]->units[unit];
}

static struct range shard_at(const struct builder *b, struct coordinates at)
{
    return shard_of(unit_part(b, at.unit, at.tp_rank)->elements, at.dp_rank, mesh_of(b)->dp);
}

static struct reduction *reduction_of(const struct builder *b, int unit, int tp_rank)
{
    return &b->reductions[unit * mesh_of(b)->tp + tp_rank];
}

/* ---- reduce ---------------------------------------------------------------------------------------------------- */

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
    struct tensor **grads = allocate((size_t)dp, sizeof *grads);
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

/* ---- norm ------------------------------------------------------------------------------------------------------ */

/* How many elements of its shard of a unit's gradient a rank adds to the norm. */
static size_t count_counted(const struct builder *b, struct coordinates at)
{
    struct range shard = shard_at(b, at);
    size_t end = MIN(shard.end, unit_part(b, at.unit, at.tp_rank)->n_counted);
    return end > shard.begin ? end - shard.begin : 0;
}

static size_t count_blocks(const struct builder *b, struct coordinates at)
{
    return ceil_div(count_counted(b, at), NORM_BLOCK);
}

/* Gives the shards of a unit's part their places in the tensor of all block sums, from `first` on, with padding between
 * them that stays zero.  Returns where the next ones begin. */
static size_t place_blocks(struct builder *b, int unit, int tp_rank, size_t first)
{
    struct reduction *reduction = reduction_of(b, unit, tp_rank);
    reduction->first_block = allocate((size_t)mesh_of(b)->dp, sizeof *reduction->first_block);
    struct coordinates at = {.unit = unit, .tp_rank = tp_rank};
    for (at.dp_rank = 0; at.dp_rank < mesh_of(b)->dp; at.dp_rank++) {
        reduction->first_block[at.dp_rank] = first;
        first += round_up(count_blocks(b, at), UNIT_ALIGN);
    }
    return first;
}

/* Makes the tensor of all block sums, and moves all losses to the norm's rank. */
static void begin_norm(struct builder *b, struct tensor *losses, struct tensor *const *rank_loss)
{
    size_t n_blocks = 0;
    for (int unit = 0; unit < b->model->params->n_units; unit++)
        for (int tp_rank = 0; tp_rank < mesh_of(b)->tp; tp_rank++)
            n_blocks = place_blocks(b, unit, tp_rank, n_blocks);
    on_rank(b, b->model->norm_rank, NONE, ROLE_NORM);
    b->partials = new_work_tensor(b->list->pool, b->device, "norm.partials", SHAPE((int64_t)n_blocks));
    b->partials->persistent = true;
    for (int dp_rank = 0; dp_rank < mesh_of(b)->dp; dp_rank++) {
        struct tensor *part = new_view(b->list->pool, losses, "loss.part", (size_t)dp_rank * UNIT_ALIGN, SHAPE(1));
        if (rank_loss[dp_rank]->storage != losses)
            add_move(b->list, "loss.move", part, rank_loss[dp_rank], FOR_MOVES);
    }
}

/* Adds the block sums of a unit's shards.  These tasks are not elementwise: a sum stands for NORM_BLOCK elements, and
 * since tensors begin on 512 bytes, slices could begin at every 128th sum only. */
static void add_blocks(struct builder *b, int unit)
{
    struct pool *pool = b->list->pool;
    for (int tp_rank = 0; tp_rank < mesh_of(b)->tp; tp_rank++) {
        const struct reduction *reduction = reduction_of(b, unit, tp_rank);
        struct coordinates at = {.unit = unit, .tp_rank = tp_rank};
        for (at.dp_rank = 0; at.dp_rank < mesh_of(b)->dp; at.dp_rank++) {
            size_t counted = count_counted(b, at);
            size_t n_blocks = count_blocks(b, at);
            on_unit(b, at, ROLE_NORM);
            if (!counted)
                continue;
            struct tensor *sum =
                view_of_shard(pool, reduction->sums[at.dp_rank], at.dp_rank, (struct range){0, counted});
            struct tensor *part =
                new_view(pool, b->partials, "norm.part", reduction->first_block[at.dp_rank], SHAPE((int64_t)n_blocks));
            struct tensor *out = part;
            if (b->device != part->device)
                out = new_work_tensor(pool, b->device, "norm.local", SHAPE((int64_t)n_blocks));
            LAUNCH(b, "norm.blocks", "norm.cl", "norm_blocks", work_groups(b, n_blocks),
                   OUT(out),
                   IN(sum),
                   INT(counted));
            if (out != part)
                add_move(b->list, "norm.move", part, out, FOR_MOVES);
        }
    }
}

/* Sends norm, clip scale and whether the update is halted to all other ranks. */
static void send_state(struct builder *b)
{
    struct tensor **states = allocate((size_t)n_ranks(mesh_of(b)), sizeof *states);
    int n_others = 0;
    for (int rank = 0; rank < n_ranks(mesh_of(b)); rank++)
        if (rank != b->model->norm_rank)
            states[n_others++] = b->model->replicas[rank].state;
    add_broadcast(b->list, "norm.send", states, n_others, b->replica->state, FOR_MOVES);
    free(states);
}

/* Checks before the updates whether the losses are finite, and computes no norm yet. */
static void check_losses(struct builder *b, struct tensor *losses)
{
    on_rank(b, b->model->norm_rank, NONE, ROLE_NORM);
    LAUNCH(b, "loss.check", "norm.cl", "norm_finish", work_groups(b, 1),
           INOUT(b->replica->state),
           NO_TENSOR, INT(0),
           IN(b->replica->control),
           IN(losses), INT(count_elements(losses)));
    send_state(b);
}

/* Computes the norm from all block sums.  All ranks are told, unless their updates have not waited for the norm. */
static void finish_norm(struct builder *b, struct tensor *losses)
{
    on_rank(b, b->model->norm_rank, NONE, ROLE_NORM);
    LAUNCH(b, "norm.finish", "norm.cl", "norm_finish", work_groups(b, 1),
           INOUT(b->replica->state),
           IN(b->partials), INT(count_elements(b->partials)),
           IN(b->replica->control),
           IN(losses), INT(count_elements(losses)));
    if (!b->released)
        send_state(b);
}

/* ---- update ---------------------------------------------------------------------------------------------------- */

/* Adds AdamW on the shard of rank `owner`, whose gradient is `sum`, with the state that the rank `at` has of it. */
static void update_shard(struct builder *b, struct coordinates at, int owner, struct tensor *sum)
{
    struct replica *replica = replica_of(b, at);
    on_unit(b, at, ROLE_UPDATE);
    const int unit = at.unit;
    struct range shard = shard_at(b, (struct coordinates){.unit = unit, .tp_rank = at.tp_rank, .dp_rank = owner});
    size_t elements = shard.end - shard.begin;
    size_t held = held_by(b->model, unit, replica->rank, KEPT_M).begin;
    struct range in_state = {shard.begin - held, shard.end - held}; /* where the shard lies in the rank's m and v */
    size_t end_decay = unit_part(b, unit, at.tp_rank)->n_decay;
    size_t n_decay = end_decay > shard.begin ? MIN(end_decay - shard.begin, elements) : 0;
    struct tensor *value = view_of_shard(b->list->pool, replica->values[unit], owner, shard);
    struct tensor *m = view_of_shard(b->list->pool, replica->m[unit], owner, in_state);
    struct tensor *v = view_of_shard(b->list->pool, replica->v[unit], owner, in_state);
    struct task *task = LAUNCH(b, "adamw", "adamw.cl", "adamw", blocks(b, elements),
                               INOUT(value), INOUT(m), INOUT(v),
                               IN(sum), IN(replica->control), IN(replica->state),
                               ELEMENTS(elements), ELEMENTS(n_decay),
                               NO_TENSOR);
    set_elementwise(task);
    task->on_host.function = adamw_on_host;
    task->state = (struct state_range){.rank = replica->rank, .unit = unit, .elements = shard};
}

/* Updates a shard of a unit.  With ZeRO its owner updates it, and sends the new parameters to all.  Else the owner
 * sends the sum of gradients, and all ranks update. */
static void update_and_send(struct builder *b, struct coordinates owner)
{
    int dp = mesh_of(b)->dp;
    bool zero = mesh_of(b)->zero;
    const int unit = owner.unit;
    struct tensor *sum = reduction_of(b, unit, owner.tp_rank)->sums[owner.dp_rank];
    const struct range shard = shard_at(b, owner);
    struct tensor **parts = allocate((size_t)dp, sizeof *parts); /* by rank: the shard of its parameters or gradient */
    struct coordinates at = owner;
    for (at.dp_rank = 0; at.dp_rank < dp; at.dp_rank++) {
        struct replica *replica = replica_of(b, at);
        struct tensor *whole = zero ? replica->values[unit] : replica->grads[unit];
        parts[at.dp_rank] = view_of_shard(b->list->pool, whole, owner.dp_rank, shard);
    }
    if (zero)
        update_shard(b, owner, owner.dp_rank, sum);
    else
        parts[owner.dp_rank] = sum;
    on_unit(b, owner, ROLE_BROADCAST);
    add_broadcast_from(b->list, zero ? "send.param" : "send.grad", parts, dp, owner.dp_rank);
    if (!zero)
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

/* ---- in which order ---------------------------------------------------------------------------------------------- */

void release_updates(struct builder *b, struct tensor *losses, struct tensor *const *rank_loss)
{
    b->released = true;
    begin_norm(b, losses, rank_loss);
    check_losses(b, losses);
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
    if (b->released) {
        add_blocks(b, unit);
        update_unit(b, unit);
    }
}

void add_update(struct builder *b, struct tensor *losses, struct tensor *const *rank_loss)
{
    int n_units = b->released ? 0 : b->model->params->n_units;
    if (!b->released)
        begin_norm(b, losses, rank_loss);
    for (int unit = 0; unit < n_units; unit++)
        add_blocks(b, unit);
    finish_norm(b, losses);
    for (int unit = 0; unit < n_units; unit++) /* in the order in which the next forward needs them */
        update_unit(b, unit);
}

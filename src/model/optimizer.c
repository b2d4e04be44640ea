/* optimizer.c - what follows backward: gradients summed over data-parallel ranks, the norm, AdamW, and parameters back.
 *
 * Every unit (a layer, the embedding, the final norm) is cut into as many shards as there are data-parallel ranks, on
 * borders of the norm's blocks; rank k owns shard k.  Per unit:
 *
 *     reduce   the other ranks' gradients of a shard travel to its owner, which sums them in rank order: a
 *              reduce-scatter.  Behind the unit's last backward, so that it runs while backward goes on.
 *     norm     owners take sums of squares over fixed blocks; rank 0 adds them up in table order, and halts the update
 *              when the norm or a rank's loss is not finite
 *     update   owners run AdamW on their shards
 *     send     the new parameters travel to the other ranks: an all-gather
 *
 * Without ZeRO the sums travel instead, and every rank updates all of the unit.  Members of a tensor-parallel group
 * have other parts of a unit, so all this is done by the first members of all groups, by the second ones, and so on;
 * what members have alike has the same gradient on each, and counts once in the norm.  The sum is in rank order,
 * ((g0 + g1) + g2) ..., whoever owns the shard: the bits depend on the number of data-parallel ranks only.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

static const struct mesh *mesh_of(const struct build *b) { return b->model->mesh; }

/* On data-parallel rank k, of the members whose turn it is. */
static struct replica *replica_at(const struct build *b, int k, int stage)
{
    return &b->model->replica[rank_at(mesh_of(b), k, stage) + b->member];
}

/* The tasks that follow are of that unit there. */
static void at(struct build *b, int k, int unit, enum role role)
{
    on_rank(b, replica_at(b, k, stage_of(b->model, unit))->rank, -1, role);
    b->step->stamp.layer = layer_of_unit(b->model->params, unit);
}

static struct shard shard_at(const struct build *b, int unit, int k)
{
    return shard_of(b->model->part[b->member]->unit[unit].elements, k, mesh_of(b)->dp);
}

static struct tensor **sums_of(const struct build *b, int unit)
{
    return b->sum + (unit * mesh_of(b)->tp + b->member) * mesh_of(b)->dp;
}

/* ---- reduce ---------------------------------------------------------------------------------------------------- */

/* With a tied head the embedding has two gradients, from the head and from the look-up, summed only here. */
static void sum_tied(struct build *b, bool grouped)
{
    for (int k = 0; k < mesh_of(b)->dp; k++) {
        struct replica *last = replica_at(b, k, n_stages(mesh_of(b)) - 1);
        at(b, k, 0, ROLE_REDUCE);
        struct replica *first = grouped ? b->replica->group : b->replica;
        if (!first->lookup_grad)
            return;
        if (last->rank != first->rank)
            add_move(b->step, "tied.move", first->other[WTE].grad, (grouped ? last->group : last)->other[HEAD].grad);
        add_into(b->step, "tied.add", first->other[WTE].grad, first->lookup_grad);
    }
}

void end_group(struct build *b, int unit, bool grouped)
{
    for (b->member = 0; b->member < mesh_of(b)->tp; b->member++) {
        if (unit == 0)
            sum_tied(b, grouped);
        at(b, 0, unit, ROLE_REDUCE);
        if (grouped)
            add_into(b->step, "group.add", b->replica->grad[unit], b->replica->group->grad[unit]);
    }
}

/* What the members of a group have alike has the same gradient on all of them, but on devices of another kind for the
 * last bits: these take the first member's. */
static void agree(struct build *b, int unit, int k)
{
    b->member = 0;
    at(b, k, unit, ROLE_REDUCE);
    const struct device *d = b->device;
    struct tensor *from = b->replica->grad[unit];
    for (b->member = 1; b->member < mesh_of(b)->tp; b->member++) {
        const struct unit *u = &b->model->part[b->member]->unit[unit];
        struct replica *r = replica_at(b, k, stage_of(b->model, unit));
        size_t n = u->elements - u->n_counted, end = count_elements(from);
        bool same_kind = strcmp(r->device->name, d->name) == 0 && r->device->vector == d->vector;
        if (n && !same_kind)
            add_move(b->step, "reduce.agree",
                     new_view(b->step->pool, r->grad[unit], "grad.alike", u->n_counted, SHAPE((int64_t)n)),
                     new_view(b->step->pool, from, "grad.alike", end - n, SHAPE((int64_t)n)));
    }
}

void send_unit(struct build *b, int unit)
{
    int dp = mesh_of(b)->dp;
    struct tensor **grad = allocate((size_t)dp, sizeof *grad);
    for (int k = 0; k < dp; k++)
        agree(b, unit, k);
    for (b->member = 0; b->member < mesh_of(b)->tp; b->member++) {
        for (int k = 0; k < dp; k++)
            grad[k] = replica_at(b, k, stage_of(b->model, unit))->grad[unit];
        at(b, 0, unit, ROLE_REDUCE);
        b->brought[unit * mesh_of(b)->tp + b->member] = add_reduce_moves(b->step, "reduce", grad, dp, NORM_BLOCK);
    }
    free(grad);
}

void reduce_unit(struct build *b, int unit)
{
    for (b->member = 0; b->member < mesh_of(b)->tp; b->member++) {
        at(b, 0, unit, ROLE_REDUCE);
        add_reduce_sums(b->step, "reduce", b->brought[unit * mesh_of(b)->tp + b->member], mesh_of(b)->dp,
                        sums_of(b, unit), b->replica->grad[unit]->persistent); /* else only shards of it are kept */
    }
}

/* ---- norm ------------------------------------------------------------------------------------------------------ */

static void gather_losses(struct build *b, struct tensor *losses, struct tensor *const *rank_loss)
{
    on_rank(b, 0, -1, ROLE_NORM);
    for (int k = 0; k < mesh_of(b)->dp; k++) {
        struct tensor *part = new_view(b->step->pool, losses, "loss.part", (size_t)k * UNIT_ALIGN, SHAPE(1));
        if (rank_loss[k]->root != losses)
            add_move(b->step, "loss.move", part, rank_loss[k]);
    }
}

/* Not elementwise: a sum stands for NORM_BLOCK elements, and since tensors begin on 512 bytes, pieces could begin at
 * every 128th sum only.  The block sums of one shard, at `first` of the partial sums; returns where the next one's
 * begin. */
static size_t add_blocks(struct build *b, struct tensor *sum, struct tensor *partials, size_t first)
{
    size_t n = ceil_div(count_elements(sum), NORM_BLOCK);
    struct tensor *view = new_view(b->step->pool, partials, "norm.part", first, SHAPE((int64_t)n)), *out = view;
    if (b->device != partials->device)
        out = new_tensor(b->step->pool, b->device, MEM_WORK, "norm.local", FLOAT32, SHAPE((int64_t)n));
    LAUNCH(b, "norm.blocks", "norm.cl", "norm_blocks", groups(b, n), OUT(out), IN(sum), INT(count_elements(sum)));
    if (out != view)
        add_move(b->step, "norm.move", view, out);
    return first + round_up(n, UNIT_ALIGN);
}

/* Of shard k of a unit's gradient that part which belongs to the norm; NULL: none. */
static struct tensor *counted(struct build *b, int unit, int k)
{
    struct tensor *sum = sums_of(b, unit)[k];
    struct shard s = shard_at(b, unit, k);
    size_t end = MIN(s.end, b->model->part[b->member]->unit[unit].n_counted);
    return sum && s.begin < end ? new_slice(b->step->pool, sum, k, (struct shard){0, end - s.begin}) : NULL;
}

/* All of them, in an order that does not depend on dp: by unit, member and shard; NULL where there is none. */
static struct tensor **all_counted(struct build *b, size_t *n_partials)
{
    int dp = mesh_of(b)->dp, tp = mesh_of(b)->tp, n = b->model->params->n_units * dp * tp;
    struct tensor **all = allocate((size_t)n, sizeof *all);
    for (int i = 0; i < n; i++) {
        b->member = i / dp % tp;
        all[i] = counted(b, i / dp / tp, i % dp);
        *n_partials += all[i] ? round_up(ceil_div(count_elements(all[i]), NORM_BLOCK), UNIT_ALIGN) : 0;
    }
    return all;
}

/* Each shard's block sums have a part of their own in one tensor on rank 0; what lies between stays zero. */
static struct tensor *add_partials(struct build *b)
{
    int dp = mesh_of(b)->dp, tp = mesh_of(b)->tp;
    size_t n = 0, first = 0;
    struct tensor **all = all_counted(b, &n), *partials;
    partials =
        new_tensor(b->step->pool, b->model->replica[0].device, MEM_WORK, "norm.partials", FLOAT32, SHAPE((int64_t)n));
    partials->persistent = true;
    for (int i = 0; i < b->model->params->n_units * dp * tp; i++) {
        b->member = i / dp % tp;
        at(b, i % dp, i / dp / tp, ROLE_NORM);
        if (all[i])
            first = add_blocks(b, all[i], partials, first);
    }
    free(all);
    return partials;
}

static void add_norm(struct build *b, struct tensor *losses)
{
    struct tensor *partials = add_partials(b), **state = allocate((size_t)n_ranks(mesh_of(b)), sizeof *state);
    on_rank(b, 0, -1, ROLE_NORM);
    LAUNCH(b, "norm.finish", "norm.cl", "norm_finish", groups(b, 1), INOUT(b->replica->state), IN(partials),
           INT(count_elements(partials)), IN(b->replica->control), IN(losses), INT(count_elements(losses)));
    for (int rank = 1; rank < n_ranks(mesh_of(b)); rank++)
        state[rank] = b->model->replica[rank].state;
    add_broadcast(b->step, "norm.send", state + 1, n_ranks(mesh_of(b)) - 1, b->replica->state);
    free(state);
}

/* ---- update ---------------------------------------------------------------------------------------------------- */

/* AdamW on shard k of a unit, with the state that data-parallel rank `on` has of it. */
static void update_shard(struct build *b, int unit, int k, int on, struct tensor *gradient)
{
    at(b, on, unit, ROLE_UPDATE);
    struct replica *r = b->replica;
    struct shard s = shard_at(b, unit, k);
    size_t n = s.end - s.begin, held = updated_by(b->model, unit, r->rank).begin;
    size_t n_decay = b->model->part[b->member]->unit[unit].n_decay;
    struct shard of_state = {s.begin - held, s.end - held};
    struct task *task =
        LAUNCH(b, "adamw", "adamw.cl", "adamw", blocks(b, n), INOUT(new_slice(b->step->pool, r->value[unit], k, s)),
               INOUT(new_slice(b->step->pool, r->m[unit], k, of_state)),
               INOUT(new_slice(b->step->pool, r->v[unit], k, of_state)), IN(gradient), IN(r->control), IN(r->state),
               ELEMENTS(n), ELEMENTS(n_decay > s.begin ? MIN(n_decay - s.begin, n) : 0));
    set_elementwise(task);
    task->host_run = adamw_on_host;
}

/* Shard k of parameters or gradients on every data-parallel rank; the caller frees it. */
static struct tensor **slices(struct build *b, int unit, int k, bool of_gradients)
{
    int dp = mesh_of(b)->dp;
    struct tensor **t = allocate((size_t)dp, sizeof *t);
    for (int on = 0; on < dp; on++) {
        struct replica *r = replica_at(b, on, stage_of(b->model, unit));
        t[on] = new_slice(b->step->pool, of_gradients ? r->grad[unit] : r->value[unit], k, shard_at(b, unit, k));
    }
    return t;
}

/* Shard k of a unit: its owner updates it and sends it; or it sends the sum, and all update. */
static void update_unit(struct build *b, int unit, int k)
{
    bool zero = mesh_of(b)->zero;
    struct tensor *sum = sums_of(b, unit)[k], **part = slices(b, unit, k, !zero);
    if (zero) {
        update_shard(b, unit, k, k, sum);
        at(b, k, unit, ROLE_BROADCAST);
        add_share(b->step, "send.param", part, mesh_of(b)->dp, k);
    } else {
        part[k] = sum;
        at(b, k, unit, ROLE_BROADCAST);
        add_share(b->step, "send.grad", part, mesh_of(b)->dp, k);
        for (int on = 0; on < mesh_of(b)->dp; on++)
            update_shard(b, unit, k, on, part[on]);
    }
    free(part);
}

/* A tied head on another device than the embedding gets the new one. */
static void send_tied(struct build *b)
{
    for (int k = 0; b->model->params->config.tied && k < mesh_of(b)->dp; k++) {
        struct replica *last = replica_at(b, k, n_stages(mesh_of(b)) - 1);
        at(b, k, 0, ROLE_BROADCAST);
        if (last != b->replica)
            add_move(b->step, "send.tied", last->other[HEAD].value, b->replica->other[WTE].value);
    }
}

void add_update(struct build *b, struct tensor *losses, struct tensor *const *rank_loss)
{
    const struct mesh *m = mesh_of(b);
    gather_losses(b, losses, rank_loss);
    add_norm(b, losses);
    for (int unit = 0; unit < b->model->params->n_units; unit++) /* in the order in which the next forward needs them */
        for (b->member = 0; b->member < m->tp; b->member++) {
            for (int k = 0; k < m->dp; k++)
                if (sums_of(b, unit)[k])
                    update_unit(b, unit, k);
            if (unit == 0)
                send_tied(b);
        }
}

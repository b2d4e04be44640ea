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
 * Without ZeRO the sums travel instead, and every rank updates all of the unit.  The sum over ranks is (g0 + g1) + g2
 * ..., whoever owns the shard: the bits depend on the number of data-parallel ranks only.
 */
#include "model.h"

#include <stdlib.h>

static const struct mesh *mesh_of(const struct build *b) { return b->model->mesh; }

/* The tasks that follow are of that unit, on data-parallel rank k. */
static void at(struct build *b, int k, int unit, enum role role)
{
    on_rank(b, rank_at(mesh_of(b), k, stage_of(b->model, unit)), -1, role);
    b->step->stamp.layer = layer_of_unit(b->model->params, unit);
}

static struct shard shard_at(const struct build *b, int unit, int k)
{
    return shard_of(b->model->params->unit[unit].elements, k, mesh_of(b)->dp);
}

/* Elements of a unit's tensor, named "grad.3/1" for shard 1; or all of it. */
static struct tensor *slice(struct build *b, struct tensor *of, int k, struct shard s)
{
    char name[48];
    if (s.begin == 0 && s.end == count_elements(of))
        return of;
    snprintf(name, sizeof name, "%.36s/%d", of->name, k);
    return new_view(b->step->pool, of, name, s.begin, SHAPE((int64_t)(s.end - s.begin)));
}

static void add_to(struct build *b, const char *name, struct tensor *sum, struct tensor *g)
{
    size_t n = count_elements(sum);
    set_elementwise(LAUNCH(b, name, "elementwise.cl", "accumulate", blocks(b, n), INOUT(sum), IN(g), ELEMENTS(n)));
}

/* ---- reduce ---------------------------------------------------------------------------------------------------- */

/* With a tied head the embedding has two gradients, from the head and from the look-up, summed only here. */
static void sum_tied(struct build *b, bool grouped)
{
    for (int k = 0; k < mesh_of(b)->dp; k++) {
        struct replica *last = &b->model->replica[rank_at(mesh_of(b), k, n_stages(mesh_of(b)) - 1)];
        at(b, k, 0, ROLE_REDUCE);
        struct replica *first = grouped ? b->replica->group : b->replica;
        if (!first->lookup_grad)
            return;
        if (last->rank != first->rank)
            add_move(b->step, "tied.move", first->other[WTE].grad, (grouped ? last->group : last)->other[HEAD].grad);
        add_to(b, "tied.add", first->other[WTE].grad, first->lookup_grad);
    }
}

void end_group(struct build *b, int unit, bool grouped)
{
    if (unit == 0)
        sum_tied(b, grouped);
    at(b, 0, unit, ROLE_REDUCE);
    if (grouped)
        add_to(b, "group.add", b->replica->grad[unit], b->replica->group->grad[unit]);
}

/* Rank `from`'s gradient of shard k, on its owner. */
static struct tensor *gradient_of(struct build *b, int unit, int k, int from)
{
    struct replica *owner = b->replica;
    at(b, from, unit, ROLE_REDUCE);
    struct tensor *g = slice(b, b->replica->grad[unit], k, shard_at(b, unit, k));
    if (from == k)
        return g;
    struct tensor *received =
        new_tensor(b->step->pool, owner->device, MEM_GRADIENTS, "grad.received", FLOAT32, g->rank, g->shape);
    add_move(b->step, "reduce.move", received, g);
    return received;
}

/* Every owner begins with another sender, so that no device gets all of them at once. */
static void gather_gradients(struct build *b, int unit, struct tensor **part /* [k * dp + from] */)
{
    int dp = mesh_of(b)->dp;
    for (int turn = 0; turn < dp; turn++)
        for (int k = 0; k < dp; k++) {
            struct shard s = shard_at(b, unit, k);
            int from = (k + turn) % dp;
            at(b, k, unit, ROLE_REDUCE);
            if (s.begin < s.end)
                part[k * dp + from] = gradient_of(b, unit, k, from);
        }
}

void reduce_unit(struct build *b, int unit)
{
    int dp = mesh_of(b)->dp;
    struct tensor **part = allocate((size_t)(dp * dp), sizeof *part);
    gather_gradients(b, unit, part);
    for (int k = 0; k < dp; k++) {
        at(b, k, unit, ROLE_REDUCE);
        struct tensor *sum = b->sum[unit * dp + k] = part[k * dp];
        for (int from = 1; sum && from < dp; from++)
            add_to(b, "reduce.add", sum, part[k * dp + from]);
    }
    free(part);
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

/* Each shard's block sums have a part of their own in one tensor on rank 0; what lies between stays zero. */
static struct tensor *new_partials(struct build *b)
{
    size_t n = 0;
    for (int i = 0; i < b->model->params->n_units * mesh_of(b)->dp; i++)
        if (b->sum[i])
            n += round_up(ceil_div(count_elements(b->sum[i]), NORM_BLOCK), UNIT_ALIGN);
    struct tensor *t =
        new_tensor(b->step->pool, b->model->replica[0].device, MEM_WORK, "norm.partials", FLOAT32, SHAPE((int64_t)n));
    t->persistent = true;
    return t;
}

static void add_norm(struct build *b, struct tensor *losses)
{
    int dp = mesh_of(b)->dp;
    struct tensor *partials = new_partials(b), **state = allocate((size_t)n_ranks(mesh_of(b)), sizeof *state);
    size_t first = 0;
    for (int i = 0; i < b->model->params->n_units * dp; i++) {
        at(b, i % dp, i / dp, ROLE_NORM);
        if (b->sum[i])
            first = add_blocks(b, b->sum[i], partials, first);
    }
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
    size_t n = s.end - s.begin, held = updated_by(b->model, unit, on).begin;
    size_t n_decay = b->model->params->unit[unit].n_decay;
    struct shard of_state = {s.begin - held, s.end - held};
    set_elementwise(LAUNCH(b, "adamw", "adamw.cl", "adamw", blocks(b, n), INOUT(slice(b, r->value[unit], k, s)),
                           INOUT(slice(b, r->m[unit], k, of_state)), INOUT(slice(b, r->v[unit], k, of_state)),
                           IN(gradient), IN(r->control), IN(r->state), ELEMENTS(n),
                           ELEMENTS(n_decay > s.begin ? MIN(n_decay - s.begin, n) : 0)));
}

/* The same bytes of one tensor per data-parallel rank, from rank k to the others, beginning behind k. */
static void share(struct build *b, const char *name, int unit, int k, struct tensor **tensor)
{
    int dp = mesh_of(b)->dp;
    struct tensor **to = allocate((size_t)dp, sizeof *to);
    for (int turn = 1; turn < dp; turn++)
        to[turn - 1] = tensor[(k + turn) % dp];
    at(b, k, unit, ROLE_BROADCAST);
    add_broadcast(b->step, name, to, dp - 1, tensor[k]);
    free(to);
}

/* Shard k of parameters or gradients on every data-parallel rank; the caller frees it. */
static struct tensor **slices(struct build *b, int unit, int k, bool of_gradients)
{
    int dp = mesh_of(b)->dp;
    struct tensor **t = allocate((size_t)dp, sizeof *t);
    for (int on = 0; on < dp; on++) {
        struct replica *r = &b->model->replica[rank_at(mesh_of(b), on, stage_of(b->model, unit))];
        t[on] = slice(b, of_gradients ? r->grad[unit] : r->value[unit], k, shard_at(b, unit, k));
    }
    return t;
}

/* Shard k of a unit: its owner updates it and sends it; or it sends the sum, and all update. */
static void update_unit(struct build *b, int unit, int k)
{
    bool zero = mesh_of(b)->zero;
    struct tensor *sum = b->sum[unit * mesh_of(b)->dp + k], **part = slices(b, unit, k, !zero);
    if (zero) {
        update_shard(b, unit, k, k, sum);
        share(b, "send.param", unit, k, part);
    } else {
        part[k] = sum;
        share(b, "send.grad", unit, k, part);
        for (int on = 0; on < mesh_of(b)->dp; on++)
            update_shard(b, unit, k, on, part[on]);
    }
    free(part);
}

/* A tied head on another device than the embedding gets the new one. */
static void send_tied(struct build *b)
{
    for (int k = 0; b->model->params->config.tied && k < mesh_of(b)->dp; k++) {
        struct replica *last = &b->model->replica[rank_at(mesh_of(b), k, n_stages(mesh_of(b)) - 1)];
        at(b, k, 0, ROLE_BROADCAST);
        if (last != b->replica)
            add_move(b->step, "send.tied", last->other[HEAD].value, b->replica->other[WTE].value);
    }
}

void add_update(struct build *b, struct tensor *losses, struct tensor *const *rank_loss)
{
    int dp = mesh_of(b)->dp;
    gather_losses(b, losses, rank_loss);
    add_norm(b, losses);
    for (int i = 0; i < b->model->params->n_units * dp; i++) { /* in the order in which the next forward needs them */
        if (b->sum[i])
            update_unit(b, i / dp, i % dp);
        if (i == dp - 1)
            send_tied(b);
    }
}

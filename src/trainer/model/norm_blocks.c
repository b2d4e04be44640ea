/* norm_blocks.c - the sums of squares of blocks, of which norm.c makes the norm. */
#include "model_parts.h"

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
    reduction->first_block = allocate_each(mesh_of(b)->dp, sizeof *reduction->first_block);
    struct coordinates at = {.unit = unit, .tp_rank = tp_rank};
    for (at.dp_rank = 0; at.dp_rank < mesh_of(b)->dp; at.dp_rank++) {
        reduction->first_block[at.dp_rank] = first;
        first += round_up(count_blocks(b, at), UNIT_ALIGN);
    }
    return first;
}

void begin_norm(struct builder *b, struct tensor *losses, struct tensor *const *rank_losses)
{
    size_t n_blocks = 0;
    for (int unit = 0; unit < b->model->params->n_units; unit++)
        for (int tp_rank = 0; tp_rank < mesh_of(b)->tp; tp_rank++)
            n_blocks = place_blocks(b, unit, tp_rank, n_blocks);
    on_rank(b, b->model->norm_rank, NONE, ROLE_NORM);
    b->partials = new_kept_work_tensor(b->list->pool, b->device, "norm.partials", SHAPE((int64_t)n_blocks));
    for (int dp_rank = 0; dp_rank < mesh_of(b)->dp; dp_rank++) {
        struct tensor *part = new_view(b->list->pool, losses, "loss.part", (size_t)dp_rank * UNIT_ALIGN, SHAPE(1));
        if (rank_losses[dp_rank]->storage != losses)
            add_move(b->list, "loss.move", part, rank_losses[dp_rank], FOR_MOVES);
    }
}

/* The tasks are not elementwise: a sum stands for NORM_BLOCK elements, and since tensors begin on 512 bytes, slices
 * could begin at every 128th sum only. */
void add_blocks(struct builder *b, int unit)
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
            LAUNCH(b, "norm.blocks", "norm.cl", "norm_blocks", groups_on(b->device, n_blocks),
                   OUT(out),
                   IN(sum),
                   INT(counted));
            if (out != part)
                add_move(b->list, "norm.move", part, out, FOR_MOVES);
        }
    }
}

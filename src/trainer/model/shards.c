/* shards.c - who has which part of a unit: replicas and shards by their coordinates, for what comes after backward.
 *
 * It has a file of its own, since reduce.c, norm.c and optimizer.c all ask it.
 */
#include "model_parts.h"

const struct mesh *mesh_of(const struct builder *b) { return b->model->mesh; }

struct replica *replica_of(const struct builder *b, struct coordinates at)
{
    int stage = stage_of(b->model, at.unit);
    return &b->model->replicas[rank_at(mesh_of(b), at.dp_rank, stage) + at.tp_rank];
}

struct replica *last_replica(const struct builder *b, struct coordinates at)
{
    at.unit = b->model->params->n_units - 1;
    return replica_of(b, at);
}

void on_unit(struct builder *b, struct coordinates at, enum role role)
{
    on_rank(b, replica_of(b, at)->rank, NONE, role);
    begin_unit(b, at.unit);
}

const struct unit *unit_part(const struct builder *b, int unit, int tp_rank)
{
    return &b->model->parts[tp_rank]->units[unit];
}

struct range shard_at(const struct builder *b, struct coordinates at)
{
    return shard_of(unit_part(b, at.unit, at.tp_rank)->elements, at.dp_rank, mesh_of(b)->dp);
}

struct reduction *reduction_of(const struct builder *b, int unit, int tp_rank)
{
    return &b->reductions[unit * mesh_of(b)->tp + tp_rank];
}

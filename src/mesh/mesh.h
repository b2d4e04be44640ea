/* mesh.h - which device plays which part, and how what they share is cut.
 *
 *     mesh         coordinates of ranks, layers of stages, shards of units         mesh.c
 *     collective   one tensor to many devices; the sum of many on one              collective.c
 *
 * A *mesh* arranges the ranks (one per device) along three axes.  Ranks that differ only in the data-parallel
 * coordinate hold the same parameters and train on other sequences; those that differ only in the pipeline coordinate
 * hold other layers.  With dp=2,pp=2, rank 0 and 1 are the two stages of the first pipeline, 2 and 3 of the second.
 *
 * A pipeline has n_stages() stages, stage s on the device with coordinate s % pp: one stage each, or several (chunks)
 * in an interleaved pipeline.
 */
#ifndef MESH_H
#define MESH_H

#include "../step/step.h" /* defines: tensor, step, machine */

enum { MAX_RANKS = 4096, MAX_CHUNKS = 16 };
struct mesh {
    int dp, pp, tp;
    int zero;         /* what data-parallel ranks share out: 1 optimizer state, 2 gradients too, 3 parameters too */
    int chunks;       /* stages per device */
    int *first_layer; /* [n_stages + 1] of each stage, and the end */
};
extern const struct mesh one_rank; /* of a model of one layer */
/* "dp=A,pp=B,tp=C" in any order, an omitted axis being 1; NULL: all `ranks` are data-parallel. */
struct problem *parse_mesh(const char *text, int ranks, struct mesh *m);
/* Which layers each stage has: as many each as can be, or those that "3,5,4" says. */
struct problem *cut_layers(struct mesh *m, int layers, const char *stages);
void free_mesh(struct mesh *m);
int n_ranks(const struct mesh *m);
int n_stages(const struct mesh *m);
int rank_at(const struct mesh *m, int dp, int stage);
int dp_of(const struct mesh *m, int rank);
bool has_stage(const struct mesh *m, int rank, int stage);

/* Part k of n of `elements`, in whole norm blocks: [begin, end), perhaps empty. */
struct shard {
    size_t begin, end;
};
struct shard shard_of(size_t elements, int k, int n);

/* ---- collective.c ---------------------------------------------------------------------------------------------- */

/* The same bytes to n other tensors.  Through the host they come down once and go up n times. */
void add_broadcast(struct step *s, const char *name, struct tensor *const *to, int n, struct tensor *from);

#endif

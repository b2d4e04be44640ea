/* mesh.h - which device plays which part, and how what they share is cut.
 *
 *     mesh         coordinates of ranks, layers of stages, shards of units, parts of tensors      mesh.c
 *     collective   one tensor to many devices; sums over devices                                  collective.c
 *
 * A *mesh* arranges the ranks (one per device) along three axes.  Ranks that differ only in the data-parallel
 * coordinate hold the same parameters and train on other sequences; those that differ only in the pipeline coordinate
 * hold other layers.  Those that differ only in the tensor-parallel coordinate, a *group* of *tensor-parallel ranks*,
 * hold parts of the same layers and work on the same tokens.  With dp=2,pp=2, rank 0 and 1 are the two stages of the
 * first pipeline, 2 and 3 of the second; with tp=2 beside it, each of these four is a group of two neighbouring ranks.
 *
 * A pipeline has n_stages() stages, one for each device or several (chunks).  Stage s is on the device with coordinate
 * s % pp; in a folded pipeline, whose stages go down the devices and up again, that is so for even chunks, and in odd
 * ones the last device is the first.
 */
#ifndef MESH_H
#define MESH_H

#include "trainer/step/step.h" /* defines: tensor, step, machine */

enum { MAX_RANKS = 4096 };
struct mesh {
    int dp, pp, tp;
    int zero;   /* what data-parallel ranks share out: 1 optimizer state, 2 gradients too, 3 parameters too */
    int chunks; /* stages per device */
    bool folded;
    int *first_layer; /* [n_stages + 1] of each stage, and the end */
};
extern const struct mesh one_rank; /* of a model of one layer */
/* "dp=A,pp=B,tp=C" in any order, an omitted axis being 1; NULL: all `ranks` are data-parallel. */
struct problem *parse_mesh(const char *text, int ranks, struct mesh *m);
/* Which layers each stage has: as many each as can be, or those that "3,5,4" says. */
struct problem *cut_layers(struct mesh *m, int layers, const char *stages);
void free_mesh(struct mesh *m);
char *format_mesh(char out[64], const struct mesh *m); /* "dp=2,pp=1,tp=2" into `out`, which is returned */
int n_ranks(const struct mesh *m);
int n_stages(const struct mesh *m);
int pp_of(const struct mesh *m, int stage);           /* the pipeline coordinate of its device */
int rank_at(const struct mesh *m, int dp, int stage); /* the first rank of that group */
int dp_of(const struct mesh *m, int rank);
int tp_of(const struct mesh *m, int rank);
bool has_stage(const struct mesh *m, int rank, int stage);

/* Part k of n of `elements`, in whole grains: [begin, end), perhaps empty. */
struct shard {
    size_t begin, end;
};
struct shard flat_part(size_t elements, size_t grain, int k, int n);
struct shard shard_of(size_t elements, int k, int n); /* in norm blocks */

/* How a tensor of two dimensions is cut among the ranks of a tensor-parallel group. */
enum partition { SPLIT_NONE, SPLIT_ROWS, SPLIT_COLUMNS };
struct cut {
    enum partition split;
    int sections;  /* along that axis, each cut by itself: q, k and v */
    int64_t grain; /* so many rows or columns stay together: those of a head */
};
/* Part k of n: elements [begin, end) of each of `runs` runs of `length`, which make up the tensor.  Not cut: all. */
struct part {
    size_t runs, length, begin, end;
};
struct part part_of(const struct cut *c, const int64_t shape[2], int k, int n);

/* ---- collective.c ---------------------------------------------------------------------------------------------- */

/* Shard k of a tensor, named "grad.3/1" for shard 1; or the tensor itself where it is all of it. */
struct tensor *new_slice(struct pool *p, struct tensor *of, int k, struct shard s);
/* sum += x, on the sum's device. */
void add_into(struct step *s, const char *name, struct tensor *sum, struct tensor *x);
/* A reduce-scatter in two: moves and sums, with work between that hides the moves.  Tensor k of n becomes, in its part
 * k (of whole grains), the sum of all of them, ((x0 + x1) + x2) ...  Not in place, a sum is in a tensor of its own, and
 * the n tensors are no longer needed.
 *
 * The moves return n * n tensors: [k * n + i] is what tensor i has of part k, on the device of tensor k.  The sums read
 * these and return n tensors: [k] holds sum k.  NULL stands where a part is empty.  Both arrays are the caller's, who
 * frees them. */
struct tensor **add_reduce_moves(struct step *s, const char *name, struct tensor *const *x, int n, size_t grain);
struct tensor **add_reduce_sums(struct step *s, const char *name, struct tensor *const *part, int n, bool in_place);
/* Each tensor, one per device, gets part k of tensor k, for all k.  Parts begin on the device's alignment. */
void add_all_gather(struct step *s, const char *name, struct tensor *const *x, int n);
/* Each becomes the sum of all, to the same bits: parts are summed and the results shared out, so each device sends and
 * receives twice its tensor, however many there are. */
void add_all_reduce(struct step *s, const char *name, struct tensor *const *x, int n);

/* The same bytes to n other tensors: one message, whose number all its copies get.  Through the host they come down
 * once and go up n times. */
void add_broadcast(struct step *s, const char *name, struct tensor *const *to, int n, struct tensor *from,
                   enum purpose purpose);
/* The same to one other. */
void add_move(struct step *s, const char *name, struct tensor *to, struct tensor *from, enum purpose purpose);
/* Those of x[k] to the n - 1 others, beginning behind k: when each shares, no device gets everything at once. */
void add_share(struct step *s, const char *name, struct tensor *const *x, int n, int k);

#endif

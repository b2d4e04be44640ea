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
 * s % pp.  A folded pipeline goes down the devices and up again: the first stage of its even chunks is on
 * the first device, and that of its odd chunks on the last one.
 *
 * Protocol: parse_mesh(), cut_layers() when the number of layers is known, then only looks at the mesh, free_mesh().
 */
#ifndef MESH_H
#define MESH_H

#include "trainer/step/list.h"

enum { MOST_RANKS = 4096 };

struct mesh {
    int dp, pp, tp;   /* ranks along each axis: data-parallel, pipeline, tensor-parallel */
    int zero;         /* what data-parallel ranks share out; 1: optimizer state, 2: gradients too, 3: parameters too */
    int chunks;       /* stages per device */
    bool folded;      /* the pipeline is folded */
    int *first_layer; /* [n_stages + 1] by stage: its first layer; then the number of layers */
};
extern const struct mesh one_rank; /* the mesh of one device, for a model of one layer */

/* ---- mesh.c ------------------------------------------------------------------------------------------------------ */

/* The three functions that follow fill in *mesh, and return NULL, or the problem that the user's words do not fit. */

/* "dp=A,pp=B,tp=C" in any order, an omitted axis being 1; NULL: all `ranks` are data-parallel. */
struct problem *parse_mesh(const char *text, int ranks, struct mesh *mesh);

/* Sets which layers each stage has: all stages as many as can be, or, where `stages` is not NULL, as "3,5,4" says. */
struct problem *cut_layers(struct mesh *mesh, int layers, const char *stages);

/* cut_layers() for stages that are recorded, perhaps of another mesh: they are kept if they fit this one. */
struct problem *cut_layers_as_recorded(struct mesh *mesh, int layers, const char *stages);
void free_mesh(struct mesh *mesh);

enum { MESH_TEXT = 64 };
char *format_mesh(char out[MESH_TEXT], const struct mesh *mesh); /* "dp=2,pp=1,tp=2" into `out`, which is returned */
int n_ranks(const struct mesh *mesh);                            /* dp * pp * tp, one for each device */
int n_stages(const struct mesh *mesh);                           /* of a pipeline: pp, or some for each device */
int pp_of(const struct mesh *mesh, int stage);                   /* the pipeline coordinate of its device */
int rank_at(const struct mesh *mesh, int dp, int stage);         /* the first rank of the group that has the stage */
int dp_of(const struct mesh *mesh, int rank);                    /* the rank's data-parallel coordinate */
int tp_of(const struct mesh *mesh, int rank);                    /* the rank's tensor-parallel coordinate */
bool has_stage(const struct mesh *mesh, int rank, int stage);    /* is the stage, from 0, on the rank's device? */

/* Part k of n of a tensor with `elements` elements, perhaps none.  A part is a whole number of grains, of `grain`
 * elements each. */
struct range flat_part(size_t elements, size_t grain, int k, int n);

struct range shard_of(size_t elements, int k, int n); /* flat_part() whose grain is a block of the norm */

/* How a tensor of two dimensions is cut among the ranks of a tensor-parallel group. */
enum partition { SPLIT_NONE, SPLIT_ROWS, SPLIT_COLUMNS };

struct cut {
    enum partition split;
    int sections;  /* how many sections along that axis are each cut by themselves: 3 for q, k and v */
    int64_t grain; /* how many rows or columns stay together: those of a head */
};

/* A rank's part of a tensor that is made up of `stretches` stretches of `length` elements: elements [begin, end) of
 * each stretch. */
struct part {
    size_t stretches, length, begin, end;
};

/* Part k of n; all of the tensor if it is not cut. */
struct part part_of(const struct cut *cut, const int64_t shape[2], int k, int n);

/* ---- collective.c ------------------------------------------------------------------------------------------------ */

/* A view of the shard with this number, the elements `shard`, named "grad.3/1" for shard 1; or the tensor itself where
 * the shard is all of it. */
struct tensor *view_of_shard(struct pool *pool, struct tensor *tensor, int number, struct range shard);

/* Adds a task: sum += addend, element by element, on the sum's device, where both tensors are. */
void add_into(struct list *list, const char *name, struct tensor *sum, struct tensor *addend);

/* Where sums come: in the owners' own tensors, or in new ones. */
enum sums_in { SUMS_IN_PLACE, SUMS_APART };

/* A reduce-scatter in two steps, moves and sums, so that work between them can hide the moves.  Part k (of whole
 * grains) of tensor k of n becomes the sum of part k of all of them, ((x0 + x1) + x2) ...  With two tensors:
 *
 *     device 0, tensor 0    [part 0] [part 1]      part 0 += part 0 of tensor 1
 *                              ^        |
 *                              |        v          the moves
 *     device 1, tensor 1    [part 0] [part 1]      part 1 += part 1 of tensor 0
 *
 * With SUMS_APART each sum gets a tensor of its own, and the n tensors are no longer needed.
 *
 * The moves return n * n tensors: [k * n + i] is part k of tensor i, on the device of tensor k.  The sums read these
 * and return n tensors: [k] holds sum k.  An empty part has NULL.  The caller frees both arrays. */
struct tensor **add_reduce_moves(struct list *list, const char *name, struct tensor *const *tensors, int n,
                                 size_t grain);
struct tensor **add_reduce_sums(struct list *list, const char *name, struct tensor *const *parts, int n,
                                enum sums_in where);

/* Each of the n tensors, one per device, gets part k of tensor k, for all k.  Parts begin on the device's alignment. */
void add_all_gather(struct list *list, const char *name, struct tensor *const *tensors, int n);

/* Each of the n tensors becomes the sum of all, to the same bits.  Parts are summed and the results are shared out, so
 * each device sends and receives twice the bytes of its tensor, however many devices there are. */
void add_all_reduce(struct list *list, const char *name, struct tensor *const *tensors, int n);

/* Copies a tensor to n others, as one message, whose number all its copies get.  On the way through the host the bytes
 * come down once and go up n times. */
void add_broadcast(struct list *list, const char *name, struct tensor *const *targets, int n, struct tensor *source,
                   const char *purpose);

/* Copies a tensor to one other: a message too. */
void add_move(struct list *list, const char *name, struct tensor *to, struct tensor *from, const char *purpose);

/* Copies tensors[from] to the n - 1 others, beginning with tensors[from + 1].  So when each device shares its own
 * tensor, they do not all send to the same device at once. */
void add_broadcast_from(struct list *list, const char *name, struct tensor *const *tensors, int n, int from);

#endif

/* reshard.h - which rank holds which part of the state that outlives a run (reshard_pieces.c), and which ranges of
 * elements lead from the pieces of one mesh to those of another (reshard_plan.c).
 *
 * This folder copies nothing itself.  techniques/checkpoint reads, copies and writes the bytes as a plan says, in its
 * file transfer.c.
 *
 * A *tensor* here is a parameter's values, or Adam's m or v of it: whole, (out, in), without padding.  A *piece* is the
 * part of it that lies on one rank: a box of rows and columns, or with ZeRO a range of its elements.  Both are written
 * row by row, so a walk through a tensor from its first element to its last walks each of its pieces from start to end.
 * All work on checkpoints is such walks, a tensor at a time.
 *
 * The caller frees a `struct cut_tensors` with free_cut_tensors().  A mesh or sizes that are wrong have ended the
 * program before (check_config(), cut_layers()), so nothing of reshard_pieces.c fails.
 */
#ifndef RESHARD_H
#define RESHARD_H

#include "trainer/model/model.h"

extern const char *const kept_name[STORED_ROLES]; /* "value", "m", "v" */

struct piece {
    int rank;
    bool flat;                /* true: elements [begin[0], end[0]) of the tensor; false: a box, [begin, end) by axis */
    int64_t begin[2], end[2]; /* a vector's second axis is [0, 1) */
    size_t memory_offset;     /* place in memory: elements from the start of the rank's unit, or of its shard of it */
    uint64_t file_offset;     /* place in the rank's file: bytes from its start */
    uint64_t hash;            /* XXH64 of the piece's bytes */
};

struct kept_tensor {
    char name[TENSOR_NAME];
    int param, unit;
    enum kept role;
    int dims; /* 1 or 2 */
    int64_t shape[2];
    int axis;     /* tensor parallelism cuts the tensor along this axis; NONE: it is never cut */
    int sections; /* parts of the axis, each of which is cut by itself */
    size_t n_pieces;
    struct piece *pieces; /* by rank, or in another form's own order; those of one rank in the tensor's order */
};

/* All tensors of a model on a mesh, by unit, role, and parameter; what each rank's file holds is in this order too. */
struct cut_tensors {
    struct config config;
    struct mesh mesh; /* the mesh that cuts the tensors; its first_layer is NULL */
    size_t n;
    struct kept_tensor *tensors;
};

/* ---- reshard_pieces.c: all tensors ------------------------------------------------------------------------------- */

/* All tensors with the pieces that the mesh cuts them into.  cut_layers() has dealt the mesh's layers to its stages. */
struct cut_tensors *new_cut_tensors(const struct config *config, const struct mesh *mesh);

/* All tensors of the model's state without any pieces. */
struct cut_tensors *new_uncut_tensors(const struct config *config);

/* A rank has elements of the tensor's unit, one parameter after another.  Adds the pieces of the tensor that are among
 * elements [held.begin, held.end) of these.  Where all ranks of a tensor-parallel group hold the same parameter, only
 * the first of them gets pieces. */
void add_pieces(const struct model *model, struct kept_tensor *tensor, int rank, struct range held);

size_t count_pieces(const struct cut_tensors *state); /* the pieces of all tensors */
void free_cut_tensors(struct cut_tensors *state);

/* ---- reshard_pieces.c: one tensor, one piece --------------------------------------------------------------------- */

/* How many elements each has. */
size_t tensor_elements(const struct kept_tensor *tensor);
size_t piece_elements(const struct piece *piece);

/* Which element of the tensor is element i of the piece?  *stretch: how many elements, from this one on, are next to
 * each other both in the tensor and in the piece. */
size_t element_of(const struct kept_tensor *tensor, const struct piece *piece, size_t i, size_t *stretch);

enum { PIECE_NAME = 96 }; /* the most bytes of a piece's name, and its end */

/* Writes to `out` the name of piece i in its safetensors file, "value/h.0.ln_1.weight/0", and returns `out`. */
char *piece_name(char out[PIECE_NAME], const struct kept_tensor *tensor, size_t i);

/* ---- reshard_plan.c ---------------------------------------------------------------------------------------------- */

/* From the pieces of one mesh to those of another: a range of elements to copy. */
struct copy {
    size_t n;                      /* elements */
    size_t from_piece, to_piece;   /* indices into the two tensors' pieces */
    size_t from_offset, to_offset; /* where they begin: elements from the start of each piece */
};

/* The plan for one tensor, of which `from` and `to` have different pieces.  The copies are in the tensor's order, so
 * pieces are read and written from start to end. */
struct copies {
    const struct kept_tensor *from, *to;
    struct copy *items; /* the caller of plan_copies() frees it, also after a problem */
    size_t n, cap;
};

/* Makes the plan.  Returns NULL, or the problem (EXIT_FAILED) that the pieces of a side do not cover each element once.
 * `where` says where `from` is, for the problem's sentence. */
struct problem *plan_copies(const struct kept_tensor *from, const struct kept_tensor *to, const char *where,
                            struct copies *plan);

/* Proves a plan from its copies alone (plan_copies() has checked that the pieces have each element once): every element
 * of every destination piece is written exactly once, with the same element of the tensor.  Returns NULL when the plan
 * is right, else what is wrong. */
struct problem *prove_copies(const struct copies *plan);

#endif

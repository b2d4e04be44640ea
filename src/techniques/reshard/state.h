/* state.h - state that outlives the run: checkpoints that load on any number of devices.
 *
 *     pieces       which rank holds which part of each parameter's values and of its m and v      pieces.c
 *     copy plan    from the pieces of one mesh to those of another: ranges to copy, proved        copy_plan.c
 *     manifest     the description of a checkpoint as a file, read strictly                       manifest.c
 *     checkpoint   the folder: found, opened, made whole, pruned                                  checkpoint.c
 *     ranks        the files of a checkpoint that is being written                                rank_files.c
 *     transfer     bytes along a plan: loading, resharding, verifying, comparing                  transfer.c
 *     save         from devices to files and back                                              save_and_load.c
 *     resume       a training as a checkpoint, and how it goes on                              resume.c
 *     store        another form of a checkpoint, read by the folder that brings it                checkpoint.c
 *     export       the model alone, for other programs                                            export.c
 *
 * A *tensor* here is a parameter's values, or Adam's m or v of it: whole, (out, in), without padding.  A *piece* is the
 * part of it that lies on one rank: a box of rows and columns, or with ZeRO a range of its elements.  Both are written
 * row by row, so a walk through a tensor from its first element to its last walks each of its pieces from start to end.
 * All work on checkpoints is such walks, a tensor at a time.
 *
 *     DIR/step-30/manifest.json            step, options, and where every piece lies
 *     DIR/step-30/rank-0.safetensors       what rank 0 wrote: its pieces in a row; replicas are written once
 *
 * Two meshes belong to a checkpoint.  The *mesh of the pieces* says how the files are cut: verify, diff, export, --init
 * and --from follow it alone, and so does all loading.  The *strategy* is the mesh under which training goes on:
 * --resume takes it where --mesh does not say.  A run saves both as one mesh, with one exception: a run that was
 * resumed on a single device trains without a mesh.  Its pieces are whole, but it records the strategy that it was
 * resumed from, for the day when there are more devices again.  `ckpt reshard` without --mesh makes such checkpoints
 * too: it merges the pieces and keeps the strategy; with --mesh it changes both.  `ckpt ls` shows both.
 *
 * The folder is published like a file: it is written under another name, synced, renamed, and its parent is synced.  So
 * a folder that has its final name is whole.
 */
#ifndef STATE_H
#define STATE_H

#include "trainer/train/hooks.h"

/* ---- pieces.c -------------------------------------------------------------------------------------------------- */

extern const char *const kept_name[KEPT_ROLES]; /* "value", "m", "v" */

struct piece {
    int rank;
    bool flat;                /* true: elements [begin[0], end[0]) of the tensor; false: a box, [begin, end) by axis */
    int64_t begin[2], end[2]; /* a vector's second axis is [0, 1) */
    size_t memory_offset;     /* place in memory: elements from the start of the rank's unit, or of its shard of it */
    uint64_t file_offset;     /* place in the rank's file: bytes from its start */
    uint64_t hash;            /* XXH64 of the piece's bytes */
};
struct kept_tensor {
    char name[48];
    int param, unit;
    enum kept role;
    int dims; /* 1 or 2 */
    int64_t shape[2];
    int axis;            /* tensor parallelism cuts the tensor along this axis; -1: it is never cut */
    int sections;        /* parts of the axis, each of which is cut by itself */
    size_t n;            /* pieces */
    struct piece *piece; /* by rank, or in another form's own order; those of one rank in the tensor's order */
};
/* All tensors of a model on a mesh, by unit, role, and parameter; what each rank's file holds is in this order too. */
struct pieces {
    struct config config;
    struct mesh mesh; /* it cuts the tensors; its first_layer is NULL */
    size_t n;
    struct kept_tensor *tensor;
};
/* All tensors with the pieces that the mesh cuts them into, for free_pieces().  The mesh's layers are cut
 * (cut_layers()). */
struct pieces *cut_state(const struct config *c, const struct mesh *m);
/* All tensors of the model's state without any pieces; the same. */
struct pieces *uncut_state(const struct config *c);
/* A rank has elements of the tensor's unit, one parameter after another.  Adds the pieces of the tensor that are among
 * elements [held.begin, held.end) of these.  Where all ranks of a tensor-parallel group hold the same parameter, only
 * the first of them gets pieces. */
void add_pieces(const struct model *m, struct kept_tensor *t, int rank, struct shard held);
size_t count_pieces(const struct pieces *p); /* of all tensors */
void free_pieces(struct pieces *p);
size_t tensor_elements(const struct kept_tensor *t);
size_t piece_elements(const struct piece *p);
/* Which element of the tensor is element i of the piece?  *stretch: so many elements, from this one on, are next to
 * each other both in the tensor and in the piece. */
size_t element_of(const struct kept_tensor *t, const struct piece *p, size_t i, size_t *stretch);
/* "value/h.0.ln_1.weight/0": piece i in its safetensors file. */
char *piece_name(char out[96], const struct kept_tensor *t, size_t i);

/* ---- copy_plan.c ----------------------------------------------------------------------------------------------- */

struct copy {
    size_t n;                      /* elements */
    size_t from_piece, to_piece;   /* indices into the two tensors' pieces */
    size_t from_offset, to_offset; /* where they begin: elements from the start of each piece */
};
/* The plan for one tensor, of which `from` and `to` have different pieces.  The copies are in the tensor's order, so
 * pieces are read and written from start to end. */
struct copies {
    const struct kept_tensor *from, *to;
    struct copy *copy; /* the caller frees it */
    size_t n, cap;
};
/* Fails (EXIT_FAILED) when the pieces of either side do not cover each element once; `where` says where `from` is. */
struct copies plan_copies(const struct kept_tensor *from, const struct kept_tensor *to, const char *where);
/* Proves a plan from its copies alone (plan_copies() has checked that the pieces have each element once): every element
 * of every destination piece is written exactly once, with the same element of the tensor.  Returns NULL when the plan
 * is right, else what is wrong. */
struct problem *prove_copies(const struct copies *p);
/* Where a piece begins in all that its rank has of the tensor: the bytes of the rank's pieces in front of it. */
size_t bytes_before(const struct kept_tensor *t, size_t piece);

/* ---- manifest.c, read_manifest.c, checkpoint.c ------------------------------------------------------------------ */

/* Memory for the pieces of one tensor, used for each in turn: fresh memory costs more than hashing the bytes. */
struct read_buffer {
    char *bytes;
    size_t cap;
    uint64_t open, read, verify, upload; /* ns that opening, reading, hashing and uploading have taken so far */
    uint64_t bytes_read;                 /* so far */
};
#define MANIFEST "manifest.json"
enum { MOST_MANIFEST_BYTES = 256 << 20, LAST_STEP = 1000000000 };
struct checkpoint {
    char *path;              /* its folder, or the file of another form */
    struct in_store *stored; /* what another form adds; NULL: the checkpoint is a folder */
    uint32_t step;           /* the last step that was trained */
    uint64_t run;     /* random id of the run that began from nothing; runs that resume it keep it; 0: not known */
    int64_t session;  /* number of the run among all that wrote into the folder, resumed ones too (see checkpoint.c) */
    char program[16]; /* the version of yard that wrote it; "": not known, or not written yet */
    int64_t samples;  /* sequences trained on: the data position */
    uint64_t data;    /* XXH64 of the tokens that it was trained on, 0: not known */
    unsigned vector;  /* width of the devices' vectors, in floats; 0: the devices differ */
    char *tokenizer;
    json_t *options; /* the training's options, by name, as texts; for "mesh" and "zero" see strategy_of() */
    struct pieces *pieces;
    uint64_t *bytes;            /* size of each rank's file; 0: the rank has no file; array NULL: all is in one file */
    struct read_buffer *buffer; /* NULL: nothing is read from it, it is only described */
};
/* The path of the file with the rank's pieces; the caller frees it. */
char *rank_file(const struct checkpoint *c, int rank);
char *manifest_text(const struct checkpoint *c); /* the caller frees it */
/* Strict: fails with the rule that the manifest breaks, and its place in the manifest.  The files beside the manifest
 * are checked by read_checkpoint(). */
struct checkpoint *read_manifest(const char *folder);
/* read_manifest() for a text of n bytes.  `s`: NULL, or what the other form of this checkpoint adds, with its sizes
 * set; the checkpoint owns it then. */
struct checkpoint *parse_manifest(const char *path, const char *text, size_t n, struct in_store *s);
void free_checkpoint(struct checkpoint *c);
/* A copy of c for another path, without its pieces and files. */
struct checkpoint *like_checkpoint(const struct checkpoint *c, const char *path);
json_t *tensors_json(const struct checkpoint *c); /* all tensors and pieces; the caller owns it */
json_t *mesh_json(const struct mesh *m);          /* the same */
const char *recorded_option(const struct checkpoint *c, const char *name); /* "": the option is not recorded */
struct mesh strategy_of(const struct checkpoint *c);                       /* its layers are not cut */

/* The checkpoint that `path` names: a folder with a manifest, or, in a folder of such, the newest complete one.
 * Incomplete ones are passed over with a warning.  NULL: there is none.  The caller frees the path. */
char *find_checkpoint(const char *path);
/* The paths of all checkpoints in a folder, damaged ones too; the path alone when it is itself a checkpoint.  The
 * caller frees each, and the array. */
char **all_checkpoints(const char *path, size_t *n);
/* Opens the checkpoint that `path` names, for free_checkpoint().  A folder's manifest is read, and its files are
 * compared with the manifest by size and header.  Another form warns of damage that it could pass over.  Fails when
 * there is no checkpoint. */
struct checkpoint *open_checkpoint(const char *path);
const struct store *find_store(const char *path); /* the form that this file has; NULL: no other form */
int64_t last_session(const char *folder);         /* highest of the complete checkpoints in it; 0: there are none */
/* Fails when the path is a checkpoint, or lies in one: nothing else is written there. */
void expect_outside(const char *claimant, const char *path);
/* Removes checkpoints of sessions before `session`, then all but the `keep` newest (0: all are kept). */
void prune_checkpoints(const char *folder, int64_t session, int64_t keep);

/* Another form of a checkpoint: one file, in which a run writes one state over another.  A folder of src that has such
 * files registers how they are read (struct module).
 *
 * The manifest in such a file is written once and describes every state.  So it lacks what changes from state to state:
 * "step", "session", "samples", "run", "files", and the pieces' "file" and "hash"; and "offset" counts from where a
 * state begins.  open() fills in what belongs to the state that it chose. */
struct store {
    const char *name;   /* the form's name, as `yard ckpt ls --json` has it */
    const char *option; /* the option of yard train that writes it, "--snapshot" */
    const char *place;  /* what has room for a state, "a slot" */
    const char *advice; /* what to do when bytes do not have the hash of their piece */
    bool (*is_ours)(const char *path);
    /* The newest state that is whole, all of it read and its hashes compared.  Fails when there is none. */
    struct checkpoint *(*open)(const char *path);
    json_t *(*to_json)(const struct checkpoint *c); /* for `yard ckpt ls`: facts that only this form has */
    void (*print)(const struct checkpoint *c);      /* the same facts as a line */
};
/* What another form adds to a checkpoint: the first member of a struct of the store's own, allocated with that. */
struct in_store {
    const struct store *store;
    size_t n;       /* pieces of all tensors */
    uint64_t bytes; /* size of the place for one state */
    char **damage;  /* sentences: what is not as it was written */
    size_t n_damage, cap_damage;
};

/* ---- transfer.c ------------------------------------------------------------------------------------------------ */

/* Reads a tensor's elements, all of them in order, into `values` (NULL: the pieces are only checked).  Fails where the
 * pieces do not cover each element once, or do not have their hashes. */
void read_kept(const struct checkpoint *c, size_t tensor, float *values);
/* Reads and checks like read_kept(), but returns the problem; NULL: the tensor is sound. */
struct problem *verify_tensor(const struct checkpoint *c, size_t tensor);
/* Writes the same state in the pieces of another mesh, as a checkpoint of its own, a tensor at a time.  to->pieces has
 * the pieces without places and hashes, which are filled in.  Returns the bytes of all tensors. */
uint64_t reshard(const struct checkpoint *from, struct checkpoint *to);
struct difference {
    size_t elements;       /* number of elements with different bits */
    double most;           /* largest |a - b| */
    double distance, norm; /* ||a - b||, ||b|| */
};
/* Of two arrays of n floats, or of a tensor in two checkpoints of models of the same sizes. */
struct difference compare_floats(const float *a, const float *b, size_t n);
struct difference compare_tensor(const struct checkpoint *a, const struct checkpoint *b, size_t tensor);

/* ---- rank_files.c ------------------------------------------------------------------------------------------------ */

/* The files of a checkpoint that is being written: `to` has its pieces, which get their places, and a path. */
struct ranks_written {
    struct folder *folder;
    struct st_writer **file; /* by rank, with the header written: it expects the bytes of the rank's pieces in order;
                              * NULL: the rank has no pieces */
};
struct ranks_written open_ranks(struct checkpoint *to);
/* Call it when all bytes are written and hashes are filled in.  Publishes files, then the manifest, then the folder. */
void publish_ranks(struct ranks_written *w, const struct checkpoint *c);

/* ---- save_and_load.c --------------------------------------------------------------------------------------------- */

/* Writes the model's state as DIR/step-N.  The caller has set all of c except path, pieces and bytes, which are set
 * here; the caller frees c. */
void save_checkpoint(struct model *m, const char *folder, struct checkpoint *c);
/* Loads the parameters, or all state, into the devices of the model. */
void load_checkpoint(struct model *m, const struct checkpoint *c, enum loaded_state what);

/* ---- resume.c: a training as a checkpoint ------------------------------------------------------------------------ */

struct reshard_options { /* reshard_options.c has the options, and the module */
    const char *resume;
    int keep;
};
extern struct reshard_options reshard_options;
/* A checkpoint of the run as it is after that step, without its pieces. */
struct checkpoint *describe_training(const struct trainer *t, uint32_t step);
const json_t *recorded_options(const struct trainer *t);
extern const struct archive archive;
extern const struct hooks reshard_hooks;
extern const struct module module_reshard;
extern const struct subcommand ckpt_command;

/* ---- export.c -------------------------------------------------------------------------------------------------- */

/* All parameters as safetensors with Hugging Face's GPT-2 names.  transformers 4 reads a head only beside prefixed
 * names. */
void export_safetensors(const struct checkpoint *c, const char *path, enum tensor_names names);
/* A folder with the model in Hugging Face's GPT-2 form.  tokenizer: see tokenizer_to_json(), NULL: none; end: see
 * end_of_text(). */
void export_huggingface(const struct checkpoint *c, const char *folder, const json_t *tokenizer, int end);
/* One file with the model in llm.c's form. */
void export_llmc(const struct checkpoint *c, const char *path);

#endif

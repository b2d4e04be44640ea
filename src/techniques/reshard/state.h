/* state.h - state that outlives the run: checkpoints that load on any number of devices.
 *
 *     pieces       which rank holds which part of each parameter's values and of its m and v      pieces.c
 *     plan         from the pieces of one mesh to those of another: ranges to copy, proved        plan.c
 *     manifest     the description of a checkpoint as a file, read strictly                       manifest.c
 *     checkpoint   the folder: found, opened, made whole, pruned                                  checkpoint.c
 *     ranks        the files of one that is being written                                         ranks.c
 *     transfer     bytes along a plan: loading, resharding, verifying, comparing                  transfer.c
 *     save         from devices to files and back                                              save.c
 *     resume       a training as a checkpoint, and how it goes on                              resume.c
 *     store        another form of a checkpoint, read by whoever brings it                        checkpoint.c
 *     export       the model alone, for other programs                                            export.c
 *
 * A *tensor* here is a parameter's values, or Adam's m or v of it: whole, (out, in), without padding.  A *piece* is the
 * part of it that lies on one rank: a box of rows and columns, or with ZeRO a range of its elements.  Both are written
 * row by row, so whoever walks a tensor from its first element to its last walks each of its pieces from start to end.
 * All work on checkpoints is such walks, a tensor at a time.
 *
 *     DIR/step-30/manifest.json            step, options, and where every piece lies
 *     DIR/step-30/rank-0.safetensors       what rank 0 wrote: its pieces, one behind another; replicas are written once
 *
 * Two meshes belong to a checkpoint.  The *mesh of the pieces* says how the files are cut: verify, diff, export, --init
 * and --from follow it alone, and so does whoever loads.  The *strategy* says how training goes on: --resume takes it
 * where --mesh does not say.  They are the same when a run has saved, but for one that went on plainly, on a single
 * device: its pieces are whole, and its strategy waits for more devices.  `ckpt reshard` merges the pieces in the same
 * sense; with --mesh it changes both.  `ckpt ls` shows both.
 *
 * The folder is published like a file: written under another name, synced, renamed, and its parent synced.  So one that
 * has its name is whole.
 */
#ifndef STATE_H
#define STATE_H

#include "trainer/train/hooks.h"

/* ---- pieces.c -------------------------------------------------------------------------------------------------- */

extern const char *const kept_name[KEPT_ROLES]; /* "value", "m", "v" */

struct piece {
    int rank;
    bool flat;                /* elements [begin[0], end[0]) of the tensor; else of each axis [begin, end) */
    int64_t begin[2], end[2]; /* of a vector the second axis is [0, 1) */
    size_t at;                /* in memory: elements from the start of the rank's unit, or of its shard of it */
    uint64_t offset, hash;    /* in its rank's file: bytes from the start; XXH64 of the bytes */
};
struct kept_tensor {
    char name[48];
    int param, unit;
    enum kept role;
    int dims; /* 1 or 2 */
    int64_t shape[2];
    int axis, sections; /* that tensor parallelism cuts it along, each section by itself; axis -1: never cut */
    size_t n;
    struct piece *piece; /* by rank, or as they come in another form; those of each in the tensor's order */
};
/* All tensors of a model on a mesh, by unit, role, and parameter; what each rank's file holds is in this order too. */
struct pieces {
    struct config config;
    struct mesh mesh; /* that cuts them; of its layers nothing is known */
    size_t n;
    struct kept_tensor *tensor;
};
/* As the mesh, whose layers are cut, cuts them. */
struct pieces *cut_state(const struct config *c, const struct mesh *m);
/* The same tensors without any pieces. */
struct pieces *uncut_state(const struct config *c);
/* Adds to the pieces what of the tensor is among elements [held.begin, held.end) of what the rank has of its unit:
 * nothing, where all ranks of its tensor-parallel group have that alike, and it is not the first of them. */
void add_pieces(const struct model *m, struct kept_tensor *t, int rank, struct shard held);
size_t count_pieces(const struct pieces *p);
void free_pieces(struct pieces *p);
size_t tensor_elements(const struct kept_tensor *t);
size_t piece_elements(const struct piece *p);
/* The tensor's element that is the piece's element i, and how many behind it follow one another in both, itself too. */
size_t element_of(const struct kept_tensor *t, const struct piece *p, size_t i, size_t *stretch);
/* "value/h.0.ln_1.weight/0": piece i in its safetensors file. */
char *piece_name(char out[96], const struct kept_tensor *t, size_t i);

/* ---- plan.c ---------------------------------------------------------------------------------------------------- */

struct copy { /* elements, counted from the start of each piece */
    size_t from, to, n;
    size_t from_at, to_at;
};
struct copies { /* of one tensor: in its order, so pieces are read and written from start to end */
    const struct kept_tensor *from, *to;
    struct copy *copy; /* the caller frees it */
    size_t n, cap;
};
/* Fails (EXIT_FAILED) when the pieces of either side do not cover each element once; `where` says where `from` is. */
struct copies plan_copies(const struct kept_tensor *from, const struct kept_tensor *to, const char *where);
/* Proves it from the copies alone (plan_copies() has checked that the pieces have each element once): every element
 * of every destination piece is written exactly once, with the same element of the tensor.  NULL, or what is wrong. */
struct problem *prove_copies(const struct copies *p);
/* Bytes of the pieces of the same rank in front of this one: where it begins in what the rank has of the tensor. */
size_t bytes_before(const struct kept_tensor *t, size_t piece);

/* ---- manifest.c, checkpoint.c ----------------------------------------------------------------------------------- */

#define MANIFEST "manifest.json"
enum { MAX_MANIFEST = 256 << 20, MAX_STEP = 1000000000 };
struct checkpoint {
    char *path;              /* its folder, or the file that has it */
    struct in_store *stored; /* in another form; NULL: it is a folder */
    uint32_t step;           /* that was the last one */
    uint64_t run;     /* by chance: of the run that began from nothing, kept by those that resume it; 0: not known */
    int64_t session;  /* runs are counted, those that resume too: the newest checkpoint is of the last session */
    char program[16]; /* the version of yard that wrote it; "": not known, or not written yet */
    int64_t samples;  /* sequences trained on: the data position */
    uint64_t data;    /* XXH64 of the tokens that it was trained on, 0: not known */
    unsigned vector;  /* width of the devices' vectors, 0: unlike */
    char *tokenizer;
    json_t *options; /* of the training, by name, as texts; for "mesh" and "zero" see strategy_of() */
    struct pieces *pieces;
    uint64_t *bytes; /* of each rank's file; 0: it has none; NULL: all is in one file */
    struct room {
        char *bytes;
        size_t cap;
        uint64_t open, read, verify, upload; /* ns that these have taken so far, */
        uint64_t bytes_read;                 /* of so many bytes */
    } * room; /* for one tensor at a time: fresh memory would cost more than hashing what comes there */
};
char *rank_file(const struct checkpoint *c, int rank); /* the path of what has its pieces; the caller frees it */
char *manifest_text(const struct checkpoint *c);       /* the caller frees it */
/* Strict: every rule that a manifest breaks is named, with its place.  Files are looked at by read_checkpoint(). */
struct checkpoint *read_manifest(const char *folder);
/* The same of a text; with `s`, whose sizes are set, of a checkpoint in that form, which owns it. */
struct checkpoint *parse_manifest(const char *path, const char *text, size_t n, struct in_store *s);
void free_checkpoint(struct checkpoint *c);
struct checkpoint *like_checkpoint(const struct checkpoint *c, const char *path); /* all but its pieces and files */
json_t *tensors_json(const struct checkpoint *c);
json_t *mesh_json(const struct mesh *m);
const char *recorded_option(const struct checkpoint *c, const char *name); /* "": there is none */
struct mesh strategy_of(const struct checkpoint *c);                       /* its layers are not cut */

/* A folder with a manifest, or the newest complete one in a folder of such; NULL: there is none.  Others are passed
 * over with a warning.  The caller frees it. */
char *find_checkpoint(const char *path);
/* Of a folder of checkpoints all, the damaged ones too; else the path alone.  The caller frees each, and the array. */
char **all_checkpoints(const char *path, size_t *n);
/* It, its manifest read and its files compared with that by size and header; or the one in another form, with a warning
 * for what is damaged beside it.  Fails when there is none. */
struct checkpoint *open_checkpoint(const char *path);
const struct store *find_store(const char *path); /* whose form that file has; NULL: nobody's */
int64_t last_session(const char *folder);         /* of the complete checkpoints in it; 0: there are none */
/* Fails when the path is a checkpoint, or lies in one: nothing else is written there. */
void expect_outside(const char *who, const char *path);
/* Removes checkpoints of sessions before `session`, then all but the `keep` newest (0: all are kept). */
void prune_checkpoints(const char *folder, int64_t session, int64_t keep);

/* Another form of a checkpoint: one file, in which a run puts one state into the place of another.  A folder that has
 * such files registers how they are read (struct module).
 *
 * Its manifest lasts while states come and go.  So there it has neither "step", "session" and "samples", nor "run",
 * "files", and the pieces' "file" and "hash"; and "offset" counts from where a state begins.  Who opens it fills in
 * what belongs to one state. */
struct store {
    const char *name;   /* of the form, as `yard ckpt ls --json` has it */
    const char *place;  /* what has room for a state, "a slot" */
    const char *advice; /* where bytes have not the hash of their piece */
    bool (*is_ours)(const char *path);
    /* The newest state that is whole, all of it read and its hashes compared.  Fails when there is none. */
    struct checkpoint *(*open)(const char *path);
    json_t *(*to_json)(const struct checkpoint *c); /* for `yard ckpt ls`: what only it knows, */
    void (*print)(const struct checkpoint *c);      /* and that as a line */
};
/* What such a checkpoint has beside: the first member of a struct of the store's own, allocated with that. */
struct in_store {
    const struct store *store;
    size_t n;       /* pieces of all tensors */
    uint64_t bytes; /* room for a state */
    char **damage;  /* sentences: what is not as it was written */
    size_t n_damage, cap_damage;
};

/* ---- transfer.c ------------------------------------------------------------------------------------------------ */

/* The tensor's elements, of pieces that cover each once and have their hashes; NULL: they are looked at only. */
void read_kept(const struct checkpoint *c, size_t tensor, float *values);
struct problem *verify_tensor(const struct checkpoint *c, size_t tensor); /* the same as an answer; NULL: it is sound */
/* Writes the same state in the pieces of another mesh, as a checkpoint of its own, a tensor at a time; the bytes of
 * tensors that were read and written.  to->pieces has the pieces without places and hashes, which are filled in. */
uint64_t reshard(const struct checkpoint *from, struct checkpoint *to);
struct difference {
    size_t elements;       /* whose bits differ */
    double most;           /* largest |a - b| */
    double distance, norm; /* ||a - b||, ||b|| */
};
struct difference compare_floats(const float *a, const float *b, size_t n);
struct difference compare_tensor(const struct checkpoint *a, const struct checkpoint *b, size_t tensor);

/* The files of a checkpoint (ranks.c) that is being written: `to` has its pieces, which get their places, and a
 * path. */
struct ranks_written {
    struct folder *folder;
    struct st_writer **file; /* by rank, begun: to be given the bytes of its pieces in order; NULL: it has none */
};
struct ranks_written open_ranks(struct checkpoint *to);
/* With all bytes written and the hashes filled in: the files, then the manifest, then the folder. */
void publish_ranks(struct ranks_written *w, const struct checkpoint *c);

/* ---- save.c ---------------------------------------------------------------------------------------------------- */

/* The model's state as DIR/step-N.  c: all but path, pieces and bytes, which are made; the caller frees it. */
void save_checkpoint(struct model *m, const char *folder, struct checkpoint *c);
/* Parameters, and Adam's state. */
void load_checkpoint(struct model *m, const struct checkpoint *c, bool moments);

/* ---- resume.c: a training as a checkpoint ------------------------------------------------------------------------ */

struct reshard_options {
    const char *resume;
    int keep;
};
extern struct reshard_options reshard_options;
/* A checkpoint of the run as it is behind that step, but for its pieces. */
struct checkpoint *describe_training(const struct trainer *t, uint32_t step);
const json_t *recorded_options(const struct trainer *t);
extern const struct archive archive;
extern const struct hooks reshard_hooks;
extern const struct module module_reshard;

/* ---- export.c -------------------------------------------------------------------------------------------------- */

/* All parameters as safetensors with Hugging Face's GPT-2 names.  prefixed: they begin with "transformer.", but the
 * head's: transformers 4 reads no head without that. */
void export_safetensors(const struct checkpoint *c, const char *path, bool prefixed);
/* Hugging Face's GPT-2, a folder; tokenizer: see tokenizer_to_json(), NULL: none.  Or one file of llm.c's. */
void export_huggingface(const struct checkpoint *c, const char *folder, const json_t *tokenizer);
void export_llmc(const struct checkpoint *c, const char *path);

#endif

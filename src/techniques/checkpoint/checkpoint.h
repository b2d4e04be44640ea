/* checkpoint.h - state that outlives the run: a checkpoint, which loads on any number of devices.
 *
 * Begin with techniques/reshard/reshard.h: the pieces of which a checkpoint consists, and what to copy from mesh to
 * mesh.  Three headers say what this folder has, each for some of its files:
 *
 *     checkpoint.h   a checkpoint in memory: made, found, read, and compared with another
 *     files.h        its files: the manifest, and how a folder is written and appears whole
 *     resume.h       a training as a checkpoint, and back: saving, loading, going on
 *
 * src/tools/ckpt has the command `yard ckpt`.
 *
 * On the disk a checkpoint is a folder:
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
 * The folder's files call each other in one direction.  checkpoint.c draws it for those that read a checkpoint.
 */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "techniques/reshard/reshard.h"
#include "trainer/base/json.h"

#define RANK_FILE "rank-%d.safetensors" /* the name of a rank's file in a checkpoint */

/* Memory for the pieces of one tensor, used for each in turn: fresh memory costs more than hashing the bytes. */
struct read_buffer {
    char *bytes;
    size_t cap;
};

/* What loading has taken so far. */
struct load_times {
    uint64_t open, read, verify, upload; /* ns of opening, reading, hashing and uploading */
    uint64_t bytes_read;
};

enum { LAST_STEP = 1000000000 }; /* the highest step of a checkpoint */
enum { NOT_KNOWN = 0 };          /* a run's id or a hash that was not recorded */
enum { VECTORS_DIFFER = 0 };     /* the width where devices have several */

struct checkpoint {
    char *path;                      /* its folder, or its single file */
    struct single_file *single_file; /* the file that the checkpoint is; NULL: it is a folder */
    uint32_t step;                   /* the last step that was trained */
    uint64_t run_id;  /* random id of the run that began from nothing; runs that resume it keep it; or NOT_KNOWN */
    int64_t session;  /* number of the run among all that wrote into the folder, resumed ones too */
    char program[16]; /* the version of yard that wrote it; "": not known, or not written yet */
    int64_t samples;  /* sequences trained on: the data position */
    uint64_t data;    /* XXH64 of the tokens that it was trained on; or NOT_KNOWN */
    unsigned vector;  /* width of the devices' vectors, in floats; or VECTORS_DIFFER */
    char *tokenizer;
    json_t *options;         /* the training's options, by name, as texts; for "mesh" and "zero" see read_strategy() */
    struct cut_tensors *cut; /* all tensors of the state, with the pieces that the files have */
    uint64_t *bytes;         /* size of each rank's file; 0: the rank has no file; array NULL: all is in one file */
    struct read_buffer buffer; /* where its pieces are read */
    struct load_times times;
};

/* ---- checkpoint.c ------------------------------------------------------------------------------------------------ */

/* Frees the checkpoint and all that it points to.  Nothing on the disk changes. */
void free_checkpoint(struct checkpoint *checkpoint);

/* A copy for another path, without the pieces and files.  The caller frees it with free_checkpoint(). */
struct checkpoint *new_checkpoint_like(const struct checkpoint *checkpoint, const char *path);

/* The path of the file with the rank's pieces; the caller frees it. */
char *rank_file(const struct checkpoint *checkpoint, int rank);

/* The text of the option, which the checkpoint keeps; "": the option is not recorded. */
const char *recorded_option(const struct checkpoint *checkpoint, const char *name);

/* The mesh under which training goes on; its layers are not cut.  Fails (EXIT_FAILED) where the recorded text is no
 * mesh, which reading the manifest does before anyone else. */
struct mesh read_strategy(const struct checkpoint *checkpoint);

/* ---- checkpoint.c: another form of a checkpoint ------------------------------------------------------------------ */

/* One file, in which a run writes one state over another.  A folder of src that has such files registers how they
 * are read (struct module).  To all others what it opens is a checkpoint.
 *
 * The manifest in such a file is written once and describes every state.  So it lacks what changes from state to state:
 * "step", "session", "samples", "run", "files", and the pieces' "file" and "hash"; and "offset" counts from where a
 * state begins.  open() fills in what belongs to the state that it chose. */
struct checkpoint_form {
    const char *name;   /* the form's name, as `yard ckpt ls --json` has it */
    const char *option; /* the option of yard train that writes it, "--snapshot" */
    const char *place;  /* what has room for a state, "a slot" */
    const char *advice; /* what to do when bytes do not have the hash of their piece */
    bool (*is_ours)(const char *path);
    /* The newest state that is whole, all of it read and its hashes compared.  Fails when there is none. */
    struct checkpoint *(*open)(const char *path);
    json_t *(*to_json)(const struct checkpoint *checkpoint); /* for `yard ckpt ls`: facts that only this form has */
    void (*print)(const struct checkpoint *checkpoint);      /* prints these facts as a line */
};

/* What only a checkpoint in a single file has.  It is the first member of a struct of the form's own, allocated with
 * that. */
struct single_file {
    const struct checkpoint_form *form;
    size_t n;       /* pieces of all tensors */
    uint64_t bytes; /* size of the place for one state */
    char **damage;  /* sentences: what is not as it was written */
    size_t n_damage, cap_damage;
};

/* The form that this file has; NULL: no other form, or no folder that reads it. */
const struct checkpoint_form *find_checkpoint_form(const char *path);

/* ---- find.c: the folder that --save fills ------------------------------------------------------------------------ */

/* Which checkpoints are in that folder, and which of them is the newest?
 *
 *     DIR/step-20/  DIR/step-30/          complete, or damaged since
 *     DIR/step-30.new/                    complete; it waits for the place of the old step-30
 *     DIR/step-40.tmp-1234/               being written, or left by a process that was killed
 *
 * A folder is published like a file (publish_folder.c).  So a folder that has its final name was whole when it got it.
 * It is *complete* if its manifest is right and its files agree with that by size and header.  Hashes are compared when
 * bytes are read (transfer.c).
 *
 * Runs that write into one folder are numbered, resumed runs too: each is a *session*.  The newest checkpoint is the
 * last one of the last session: a run that was resumed from step 20 has newer checkpoints than step 30 of the run
 * before. */

/* The checkpoint that `path` names: a folder with a manifest, or, in a folder of such, the newest complete one.
 * Incomplete ones are passed over with a warning.  NULL: there is none.  The caller frees the path. */
char *find_checkpoint(const char *path);

/* The paths of all checkpoints in a folder, damaged ones too; the path alone when it is itself a checkpoint.  The
 * caller frees each, and the array. */
char **all_checkpoints(const char *path, size_t *n);

/* Opens the checkpoint that `path` names.  A folder's manifest is read, and its files are compared with the manifest by
 * size and header.  Another form warns of damage that it could pass over.  Fails when there is no checkpoint: EXIT_IO,
 * or EXIT_FAILED where one is damaged.  The caller frees it with free_checkpoint(). */
struct checkpoint *open_checkpoint(const char *path);

/* Opens what open_checkpoint() opens, for a caller that would take a model too, but has found none: the message then
 * names both. */
struct checkpoint *open_checkpoint_or_model(const char *path);

/* The highest session of the complete checkpoints in the folder; sessions count from 1.  0: there are none. */
int64_t last_session(const char *folder);

/* Fails (EXIT_USAGE) when the path is a checkpoint, or lies in one: nothing else is written there.  claimant: the
 * option that names the path, for the message. */
void expect_outside(const char *claimant, const char *path);
enum { ANY_SESSION = 0, KEEP_ALL = 0 };

/* Removes the checkpoints of sessions before `session`, which may be ANY_SESSION, and then all but the `keep` newest.
 * With KEEP_ALL all of these stay. */
void prune_checkpoints(const char *folder, int64_t session, int64_t keep);

/* ---- transfer.c: bytes along a copy plan, a tensor at a time ----------------------------------------------------- */

/* Loading, resharding, verifying.  Whatever is read of a checkpoint is compared with its pieces' hashes.  What does
 * not match ends the program (EXIT_FAILED) with the tensor and the bytes of the file; verify_tensor() returns that
 * sentence instead.  The parameter `nth` is an index into the checkpoint's cut->tensors. */

/* Reads a tensor's elements, all of them in order, into `values` (NULL: the pieces are only checked).  Fails where the
 * pieces do not cover each element once, or do not have their hashes. */
void read_kept(struct checkpoint *checkpoint, size_t nth, float *values);

/* Reads and checks like read_kept(), but returns the problem, which the caller frees; NULL: the tensor is sound. */
struct problem *verify_tensor(struct checkpoint *checkpoint, size_t nth);

/* Writes the same state in the pieces of another mesh, as a checkpoint of its own, a tensor at a time.  to->cut has
 * the pieces without places and hashes, which are filled in.  Returns the bytes of all tensors. */
uint64_t reshard_into(struct checkpoint *from, struct checkpoint *to);

/* ---- transfer.c: how far two arrays, or two checkpoints, are apart ----------------------------------------------- */

struct difference {
    size_t elements;       /* number of elements with different bits */
    double most;           /* largest |a - b| */
    double distance, norm; /* ||a - b||, ||b|| */
};

/* Compares two arrays of n floats. */
struct difference compare_floats(const float *a, const float *b, size_t n);

/* Compares tensor cut->tensors[nth] of two checkpoints of models of the same sizes, whatever their meshes are.
 * Fails as read_kept() does. */
struct difference compare_tensor(struct checkpoint *a, struct checkpoint *b, size_t nth);

#endif

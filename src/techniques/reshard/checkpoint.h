/* checkpoint.h - state that outlives the run: a checkpoint, which loads on any number of devices.  The struct is that
 * of checkpoint.c; the folder's other headers say what is done with it:
 *
 *     pieces.h            which rank holds which part of each parameter's values and of its m and v     begin here
 *     copy_plan.h         from the pieces of one mesh to those of another: ranges to copy, proved       then
 *     transfer.h          bytes along a plan: loading, resharding, verifying                            then
 *     compare.h           two checkpoints, element by element
 *     manifest.h          the description of a checkpoint as a file, written, and read strictly
 *     find_checkpoint.h   the folder that --save fills: found, opened, made whole, pruned
 *     other_form.h        another form of a checkpoint, read by the folder that brings it
 *     folder.h            a folder that appears whole
 *     rank_files.h        the files of a checkpoint that is being written
 *     save_and_load.h     from devices to files and back
 *     past_cache.h        files without the page cache
 *     resume.h            a training as a checkpoint, and how it goes on
 *     reshard_options.h   what the options ask for
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

#include "pieces.h"
#include "trainer/base/json.h"

#define RANK_FILE "rank-%d.safetensors" /* the name of a rank's file in a checkpoint */

/* Memory for the pieces of one tensor, used for each in turn: fresh memory costs more than hashing the bytes. */
struct read_buffer {
    char *bytes;
    size_t cap;
    uint64_t open, read, verify, upload; /* ns that opening, reading, hashing and uploading have taken so far */
    uint64_t bytes_read;                 /* so far */
};
enum { LAST_STEP = 1000000000 }; /* the highest step of a checkpoint */
enum { NOT_KNOWN = 0 };          /* a run's id or a hash that was not recorded */
enum { VECTORS_DIFFER = 0 };     /* the width where devices have several */
struct checkpoint {
    char *path;                    /* its folder, or the file of another form */
    struct other_form *other_form; /* what another form adds (other_form.h); NULL: the checkpoint is a folder */
    uint32_t step;                 /* the last step that was trained */
    uint64_t run;     /* random id of the run that began from nothing; runs that resume it keep it; or NOT_KNOWN */
    int64_t session;  /* number of the run among all that wrote into the folder, resumed ones too: find_checkpoint.h */
    char program[16]; /* the version of yard that wrote it; "": not known, or not written yet */
    int64_t samples;  /* sequences trained on: the data position */
    uint64_t data;    /* XXH64 of the tokens that it was trained on; or NOT_KNOWN */
    unsigned vector;  /* width of the devices' vectors, in floats; or VECTORS_DIFFER */
    char *tokenizer;
    json_t *options; /* the training's options, by name, as texts; for "mesh" and "zero" see read_strategy() */
    struct pieces *pieces;
    uint64_t *bytes;            /* size of each rank's file; 0: the rank has no file; array NULL: all is in one file */
    struct read_buffer *buffer; /* NULL: nothing is read from it, it is only described */
};
/* Frees the checkpoint and all that it points to.  Nothing on the disk changes. */
void free_checkpoint(struct checkpoint *checkpoint);
/* A copy for another path, without the pieces and files.  The caller frees it with free_checkpoint(). */
struct checkpoint *like_checkpoint(const struct checkpoint *checkpoint, const char *path);
/* The path of the file with the rank's pieces; the caller frees it. */
char *rank_file(const struct checkpoint *checkpoint, int rank);
/* The text of the option, which the checkpoint keeps; "": the option is not recorded. */
const char *recorded_option(const struct checkpoint *checkpoint, const char *name);
/* The mesh under which training goes on; its layers are not cut.  Fails (EXIT_FAILED) where the recorded text is no
 * mesh, which reading the manifest does before anyone else. */
struct mesh read_strategy(const struct checkpoint *checkpoint);

#endif

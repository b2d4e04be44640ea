/* support_state.h - checkpoints without a device: of random numbers that depend on a seed, cut by any mesh. */
#ifndef SUPPORT_STATE_H
#define SUPPORT_STATE_H

#include "support.h"
#include "techniques/snapfile/snapfile_parts.h"

/* Sizes and a mesh that fit each other, by chance: uneven heads, layers and vocabulary; shards that are empty. */
struct random_case {
    struct config config;
    struct mesh from, to; /* layers are cut; the caller frees them */
};
struct random_case random_case(uint32_t number);

/* This many ranks and this `zero`, with the layers cut; axes that are 0 or not named have one rank. */
struct mesh cut_mesh(const struct config *config, struct mesh mesh);

/* The value that element i of a tensor has in the state of that seed. */
float state_value(uint64_t seed, size_t tensor, size_t i);

/* Writes a checkpoint of such values at `path`, whose parent folder exists. */
void write_random_state(const char *path, const struct config *config, const struct mesh *mesh, uint32_t step,
                        int64_t session, uint64_t seed);

/* Reads all values of a safetensors file, whatever their dtype. */
void read_all_tensors(const char *path);

/* Fails the test unless all tensors of the checkpoint have the values of that seed. */
void expect_state(struct checkpoint *c, uint64_t seed);

/* Do all tensors of the checkpoint have the values of that seed? */
bool has_state(struct checkpoint *c, uint64_t seed);

/* ---- snapshots of such values ------------------------------------------------------------------------------------ */

struct stored { /* what a run would store */
    struct model *model;
    struct cut_tensors *cut; /* those of a checkpoint without ZeRO: where values lie on the ranks */
    struct snapfile_plan plan;
};

/* Each shard of a unit has a payload, on the rank that updates it; or a payload for each half of it. */
enum payloads { WHOLE_PAYLOADS, HALF_PAYLOADS };
struct stored new_stored(const struct config *config, const struct mesh *mesh, int slots, enum payloads payloads);
void free_stored(struct stored *x);

/* The bytes of a payload when tensors have the values of that seed; where nothing is, NaN. */
float *fill_payload(const struct stored *x, size_t payload, uint64_t seed);

/* The checkpoint that open_snapfile_writer() wants as a description of the run. */
struct checkpoint description(json_t *options, uint32_t step, int64_t session);

/* The seed of the values that a session stores of an iteration. */
uint64_t seed_of(uint32_t step, int64_t session);
void store_iteration(struct snapfile_writer *s, const struct stored *x, uint32_t step, int64_t session);

/* Writes a file with iterations 1 to n of session 1, in two slots. */
void write_snapshot(const char *path, const struct config *config, const struct mesh *mesh, enum payloads payloads,
                    uint32_t n);

/* ---- small checkpoints ------------------------------------------------------------------------------------------- */

extern const struct config small_config;

enum { SMALL_SEED = 5 }; /* the seed of the values of small_state() */

/* A checkpoint of that model as step 3 of session 1, on tp=2; the caller frees its path. */
char *small_state(const char *name);

/* Writes the folder's manifest anew from `text`, in which the first `old` becomes `new`, with a hash that fits. */
void change_manifest(const char *folder, const char *text, const char *old, const char *new);

/* Opens the checkpoint at this path and verifies all that is in it; what is wrong ends the program with a sentence. */
void check_checkpoint(void *path);

/* Fails unless this is the newest complete checkpoint of the folder. */
void expect_newest_checkpoint(const char *folder, const char *name);

/* ---- snapshot files whose bytes are changed ---------------------------------------------------------------------- */

struct image { /* a file, its bytes, and what reading it gave */
    const char *path;
    char *bytes; /* they are changed here, and put_bytes() writes them */
    size_t n;
    uint32_t step;  /* the step that was read, 0: none */
    size_t damage;  /* sentences */
    char said[512]; /* the first of these sentences, or why nothing was read; "": no damage */
};

/* Writes a file with iterations 1 and 2 on dp=2 and reads it; the caller frees the bytes. */
struct image make_image(const char *path, struct snapfile *layout);
void put_bytes(const struct image *x, size_t at, size_t n);

/* Reads the file.  true: damage was noticed, and what is read is an iteration, or nothing. */
bool notices(struct image *x);

/* The byte at which the newest iteration's first tensor begins. */
size_t first_piece(const char *path);

/* ---- files and folders ------------------------------------------------------------------------------------------- */

void overwrite(const char *path, const char *bytes, size_t n);
void expect_same_file(const char *a, const char *b);
int count_files(const char *folder); /* with . and .. */

#endif

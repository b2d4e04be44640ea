/* snap.h - the snapshot file: S slots of a whole iteration each, written while training goes on.
 *
 *     snaplayout   where every byte of it lies, and its pages          snaplayout.c
 *     snapread     the newest whole iteration, as a checkpoint         snapread.c
 *     snap         the run's side: the protocol of writing             snap.c
 *
 * One run writes it, from the threads of its lanes; whoever reads takes it through open_checkpoint() (state.h) for a
 * checkpoint, which it then is.
 */
#ifndef SNAP_H
#define SNAP_H

#include "state.h"

/* ---- what is stored --------------------------------------------------------------------------------------------- */

/* What one persist task stores, a *payload*: what an update wrote, in memory layout, parts one behind another. */
struct snap_part {
    int rank, unit;    /* of the model */
    enum kept role;    /* value, m or v */
    size_t begin, end; /* elements of what the rank keeps of that unit and role, as struct piece counts `at` */
    size_t at;         /* bytes from the start of the payload */
};
struct snap_payload {
    uint64_t bytes;
    struct snap_part *part;
    size_t n;
};
struct snap_plan {
    const struct config *config;
    const struct mesh *mesh;
    int slots;
    int64_t batch; /* sequences of an iteration */
    struct snap_payload *payload;
    size_t n;
};

/* ---- snaplayout.c ----------------------------------------------------------------------------------------------- */

enum { SNAP_PAGE = 4096, MAX_SLOTS = 16 };
struct stored_payload {
    uint64_t bytes;
    uint64_t at;   /* from the slot's start */
    uint64_t hash; /* in the newest commit */
};
struct snap_commit {
    uint64_t seq;        /* commits are counted */
    uint32_t step, slot; /* slots from 1; 0: there is no commit */
    int64_t samples, session;
};
struct snapshot {
    uint64_t id[2]; /* by chance; its commit pages have it too */
    int slots;
    size_t n;
    struct stored_payload *payload;
    uint64_t manifest_bytes, manifest_hash;
    uint64_t commit_bytes, manifest_at, slots_at, slot_bytes, file_bytes; /* that follow from those */
    struct snap_commit newest;                                            /* that is whole */
    int page;                                                             /* which has it, 0 or 1; -1: none */
    uint64_t last_seq;                                                    /* seen on any page */
    char **damage;                                                        /* sentences: what is not as it was written */
    size_t n_damage, cap_damage;
};
/* The sizes that follow.  file_bytes, if it is not 0, must come out.  NULL, or what is wrong. */
const char *place_payloads(struct snapshot *s);
/* The payload that has `bytes` from there on in a slot; NULL: they are in none. */
const struct stored_payload *payload_at(const struct snapshot *s, uint64_t offset, uint64_t bytes);
uint64_t slot_at(const struct snapshot *s, int slot); /* in the file */
uint64_t commit_at(const struct snapshot *s, int page);
void free_snapshot(struct snapshot *s);
/* The two kinds of pages in memory; what is read back may be anything.  NULL, or what is wrong. */
void fill_superblock(const struct snapshot *s, char page[SNAP_PAGE]);
const char *parse_superblock(struct snapshot *s, const char page[SNAP_PAGE], uint64_t file_bytes);
void fill_commit(const struct snapshot *s, const struct snap_commit *c, const uint64_t *hashes, char *page);
const char *parse_commit(const struct snapshot *s, const char *page, struct snap_commit *c, uint64_t *hashes);
/* The pieces that lie in the plan's payloads (pieces.c).  Fails when there is an element that no part has. */
struct pieces *cut_stored(const struct snap_plan *plan, const struct snapshot *s);
bool is_superblock(const char *page); /* or what once was one */

/* ---- snapread.c ------------------------------------------------------------------------------------------------- */

bool is_snapshot(const char *path); /* a file with a superblock, or one that a run was about to fill: empty */
/* Recovered; or, with newest.slot 0, without a whole commit, and then its pieces are of no slot. */
struct checkpoint *read_snapshot(const char *path);
struct checkpoint *open_snapshot(const char *path); /* fails when there is none */
/* Fails when another iteration was committed since it was opened: a run may be writing the slot that is read. */
void expect_untouched(const struct snapshot *s, struct reader *r);

/* ---- snap.c: writing -------------------------------------------------------------------------------------------- */

struct snap;
/* The file for this plan, with room for all slots: a full disk is met here.  c: as describe_training() makes it; its
 * step and samples are those at which the run begins.  A file whose layout and options are the same is taken over, and
 * its newest commit stays readable until a newer one is durable.  Beside any other snapshot a new file is made, which
 * takes its name when it has a durable commit.  The plan may go when this returns.
 * Problems: EXIT_IO for what the system refuses, EXIT_USAGE for a file that is no snapshot or that a run has open. */
struct problem *open_snap(const char *path, const struct checkpoint *c, const struct snap_plan *plan,
                          struct snap **out);
void close_snap(struct snap *s); /* what was begun and not committed is dropped */

/* From any thread. */

/* A slot, from 1 on, for that iteration; 0: none is free, or the file has failed, and the iteration is dropped. */
int snap_begin(struct snap *s, uint32_t iteration);
/* Payload `payload` of that slot's iteration: hashed, written, and on its way to the disk.  Errors are remembered; once
 * more is allowed.  false: a value in it is not finite, and the iteration must be dropped. */
bool snap_write(struct snap *s, int slot, size_t payload, const void *bytes);
/* When all payloads are written: the commit page, then a flush.  false: the file has failed; a warning says so once,
 * and nothing of this iteration is acknowledged. */
struct snap_times {
    uint64_t written, durable; /* now_ns(): recoverable after a kill, and after a power cut */
};
bool snap_commit(struct snap *s, int slot, struct snap_times *t);
void snap_drop(struct snap *s, int slot); /* instead of a commit: its iteration is not to be kept */

struct snap_counts {
    uint32_t stored, dropped, newest; /* commits; iterations without a slot, or given up; the last commit's, 0: none */
    uint64_t bytes, ns;               /* of payloads, and the time that writing and flushing took */
    bool in_memory;                   /* the file lies in persistent memory, and is written through libpmem */
};
struct snap_counts snap_counts(struct snap *s);

#endif

/* snap.h - the snapshot file: S slots of a whole iteration each, written while training goes on.
 *
 *     struct snapfile    snapfile.c              where every byte of it lies; its newest recoverable iteration
 *     struct snap        snap.c                  the run's side: the protocol of writing
 *     struct snapshots   snapshots.c             what a run's tasks do: they call snap.c
 *                        snapshot.c              puts these tasks into the list
 *
 * A slot is a checkpoint in one file: the same pieces (pieces.c), the same manifest, read and verified by the same
 * functions.  Only where the pieces lie differs, and that their hashes stand behind them, since they change with each
 * iteration: to reshard/ it is another form of a checkpoint (struct store).  One run writes it, from the threads of its
 * lanes; whoever reads opens it as a checkpoint.
 */
#ifndef SNAP_H
#define SNAP_H

#include "techniques/pass/pass.h"
#include "techniques/reshard/state.h"

enum { MOST_EVERY = 1000 }; /* of --snapshot-every */
enum snapshot_in { IN_HOST, IN_DEVICE };
struct snapshot_options {
    const char *file;             /* NULL: the pass is off */
    int every, slots, iterations; /* store every so many; room in the file; how many are reported */
    enum snapshot_in in;          /* where the copy lies for which an update waits; from the device it goes down */
    bool restart;
};
extern struct snapshot_options snapshot_options;
extern const struct hooks snapshot_hooks;
extern const struct module module_snapshot;
/* --restart: false in the parent, at the end, with the exit code; true in each child.  restart.c */
bool train_in_children(struct settings *s, int argc, char **argv, int *code);

/* ---- what is stored --------------------------------------------------------------------------------------------- */

/* What one task stores is a *payload*: what an update wrote, as it lies in memory.  It has the range's parameters, then
 * Adam's m of them, then v, each on a page of its own.  A slot has the payloads one behind another. */
struct snap_plan {
    const struct config *config;
    const struct mesh *mesh;
    int slots;
    int64_t batch;             /* sequences of an iteration */
    struct state_range *range; /* by payload */
    size_t n;
};
uint64_t payload_bytes(const struct state_range *r);
/* The pieces that lie in these payloads, "offset" from the slot's start.  Fails where they are not the whole state. */
struct pieces *cut_stored(const struct snap_plan *plan);

/* ---- snapfile.c ------------------------------------------------------------------------------------------------- */

enum { SNAP_PAGE = 4096, MANIFEST_AT = 2 * SNAP_PAGE };
struct snap_commit {     /* as it lies on the disk (struct disk_page) */
    uint64_t seq;        /* commits are counted */
    uint32_t step, slot; /* slots from 1; 0: there is no commit */
    int64_t samples, session;
    uint64_t hash; /* XXH64 of the hashes of its pieces */
};
extern const struct store snapshot_store;
struct snapfile {
    struct in_store in; /* `bytes` are a slot's */
    uint64_t run;       /* that writes it, or that made its newest commit */
    int slots;
    uint64_t manifest_bytes, manifest_hash;
    uint64_t slots_at;         /* in the file, where the first one begins */
    struct snap_commit newest; /* that can be recovered */
    int page;                  /* which has it, 0 or 1; -1: none */
    uint64_t last_seq;         /* seen on any page */
};
struct snapfile *snapfile_of(const struct checkpoint *c); /* of one that is opened from such a file, or written there */
uint64_t slot_at(const struct snapfile *s, int slot);     /* in the file; n + 1: its end */
uint64_t hashes_at(const struct snapfile *s, int slot);
void fill_page(const struct snapfile *s, const struct snap_commit *c, char page[SNAP_PAGE]);
bool is_snapshot(const char *path); /* a file with one of its pages, or one that a run was about to fill: empty */
/* Of the newer page, which is all that is read; slot 0: there is none. */
struct snap_commit look_for_commit(const char *path);
/* Recovered; or, with newest.slot 0, without a whole commit, and then the pieces' hashes and places mean nothing. */
struct checkpoint *read_snapshot(const char *path);     /* what a run is writing at this moment is read again */
struct checkpoint *read_own_snapshot(const char *path); /* locked by the caller: nobody else writes */
struct checkpoint *open_snapshot(const char *path);     /* fails when there is none */

/* ---- snap.c: writing -------------------------------------------------------------------------------------------- */

struct snap;
/* The file for this plan, with room for all slots: a full disk is met here.  c: as describe_training() makes it; its
 * step and samples are those at which the run begins.  A file whose layout and options are the same is taken over, and
 * its newest commit stays readable until a newer one is durable.  Beside any other snapshot a new file is made, which
 * takes its name when it has a durable commit.  The plan may go when this returns.
 * Problems: EXIT_IO for what the system refuses, EXIT_USAGE for a file that is no snapshot or that a run has open. */
struct problem *open_snap(const char *path, const struct checkpoint *c, const struct snap_plan *plan,
                          struct snap **out);

struct snap_counts {
    uint32_t stored, dropped, newest; /* commits; iterations without a slot, or given up; the last commit's, 0: none */
    uint64_t bytes, ns;               /* of payloads, and the time that writing and flushing took */
    bool in_memory;                   /* the file lies in persistent memory, and is written through libpmem */
};
struct snap_counts close_snap(struct snap *s); /* what was begun and not committed is dropped */

/* From any thread: a slot, from 1 on, for that iteration; 0: none is free, or the file has failed, and the iteration is
 * dropped. */
int snap_begin(struct snap *s, uint32_t iteration);
/* From the disk's thread, in turn.  Payload `payload` of that slot's iteration: hashed, written, and on its way to the
 * disk.  Errors are remembered, and a value that is not finite: such an iteration is dropped. */
void snap_write(struct snap *s, int slot, size_t payload, const void *bytes);
/* When all payloads are written and the step is sound: the commit's page, then a flush; else the iteration is dropped.
 * false: it was, or the file has failed, which a warning says once. */
struct stored_step {
    uint32_t step;
    uint64_t recoverable, durable; /* now_ns(): from when on, after a kill, and after a power cut */
};
bool snap_commit(struct snap *s, int slot, bool sound, struct stored_step *stored);

/* ---- snapshots.c: a training's ---------------------------------------------------------------------------------- */

/* Opens the file of --snapshot and gives the train list's tasks their work.  Nothing is in flight. */
void open_snapshots(struct trainer *t);
/* Behind a drain. */
struct snap_counts close_snapshots(struct trainer *t);
/* On the thread of the report; a bad step is not committed. */
void note_reported(struct trainer *t, uint32_t number, bool sound);
/* What has been committed since the last call; the caller frees it. */
size_t take_commits(struct trainer *t, struct stored_step **commits);

#endif

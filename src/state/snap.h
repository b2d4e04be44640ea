/* snap.h - the snapshot file: S slots of a whole iteration each, written while training goes on.
 *
 * One run writes it, from the threads of its lanes; whoever reads takes it through open_checkpoint() (state.h) for a
 * checkpoint, which it then is.  Layout and protocol are at the top of snapfile.c.
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
/* Payload `payload` of that slot's iteration: hashed, written, and on its way to the disk.  Errors are remembered. */
void snap_write(struct snap *s, int slot, size_t payload, const void *bytes);
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
};
struct snap_counts snap_counts(struct snap *s);

#endif

/* snapfile.h - snapshot files: a run stores its newest iterations in such a file, and no crash loses a commit.
 *
 * What to read, in this order:
 *
 *     snapfile_write.c     writing it: the protocol, by which no crash loses a commit
 *     snapfile_open.c      opening a file to write into it, and closing it: its name, its lock
 *     snapfile_system.c    calls of the system, where Linux and macOS differ
 *     snapfile_layout.c    where every byte of it lies
 *     snapfile_read.c      its newest iteration that is whole
 *
 * This folder knows nothing of tasks.  techniques/snapshot puts those that store something into the list, and calls the
 * functions below from them:
 *
 *     open_snapfile_writer()
 *     for each iteration:
 *         begin_commit()             takes a slot
 *         write_payload()            for one payload after another
 *         finish_commit()            commits the iteration
 *     close_snapfile_writer()        after a drain
 *
 * Words.  A *payload* is what one update wrote: its part of the parameters, of Adam's m and of v.  A *slot* is the room
 * in the file for all payloads of an iteration, with a buffer in memory for each (struct slots in tensor_extra.h).  A
 * *commit* is written on a page, which names the slot: from then on the iteration is *recoverable*, after a kill; when
 * that is flushed it is *durable*, after a power cut too.  A *valid* page is one that was written whole, whether or not
 * its slot was.
 *
 * To checkpoint/ the file is another form of a checkpoint (struct checkpoint_form): the same pieces, the same manifest,
 * read and verified by the same functions.  Only where the pieces lie differs, and that their hashes lie in the slot,
 * since they change with each iteration.
 */
#ifndef SNAPFILE_H
#define SNAPFILE_H

#include "techniques/checkpoint/checkpoint.h"

enum { NO_SLOT = 0 }; /* slots count from 1 */

/* A commit.  Its bytes lie in a page of the file as they lie in this struct, so the struct must stay as it is. */
struct snapfile_commit {
    uint64_t seq;             /* its number among all commits of the file */
    uint32_t step;            /* the step after which the state was stored */
    uint32_t slot;            /* the slot that has the state; NO_SLOT: there is no commit */
    int64_t samples, session; /* as in struct checkpoint */
    uint64_t hash;            /* XXH64 of the hashes of its pieces */
};

/* What a run has stored in its file. */
struct snapfile_counts {
    uint32_t stored;  /* commits */
    uint32_t dropped; /* iterations that found no free slot, or were given up */
    uint32_t newest;  /* the iteration of the last commit; it counts only if some were stored */
    uint64_t bytes;   /* size of all payloads that were written */
    uint64_t ns;      /* time that writing and flushing took */
    bool in_memory;   /* the file lies in persistent memory, and is written through libpmem */
};

struct commit_times { /* the times of a step that was committed */
    uint32_t step;
    uint64_t recoverable, durable; /* now_ns() from when on it can be recovered after a kill, and after a power cut */
};

/* ---- snapfile_layout.c ------------------------------------------------------------------------------------------- */

struct snapfile_plan { /* says what a run stores of an iteration */
    const struct config *config;
    const struct mesh *mesh;
    struct slots *slots;        /* which iteration has which slot */
    int64_t batch;              /* sequences of an iteration */
    struct state_range *ranges; /* by payload: the part of the state that it has */
    size_t n;
};
uint64_t payload_bytes(const struct state_range *range); /* what the payload takes in a slot */

/* ---- snapfile_open.c: opening it to write, and closing it -------------------------------------------------------- */

struct snapfile_writer; /* a file that is being written */

/* Opens the file for this plan, with room for all slots, so that a full disk fails here.  checkpoint: as
 * new_checkpoint() makes it; its step and samples are those at which the run begins.  A file whose layout and
 * options are the same is taken over, and its newest commit stays readable until a newer one is durable.  Beside any
 * other snapshot a new file is made, which takes its name when it has a durable commit.  The plan may go when this
 * returns, but not its slots.
 * Problems: EXIT_IO where the system refuses, EXIT_USAGE for a file that is no snapshot or that a run has open. */
struct problem *open_snapfile_writer(const char *path, const struct checkpoint *checkpoint,
                                     const struct snapfile_plan *plan, struct snapfile_writer **out);

/* An iteration that was begun and not committed is given up, and counted nowhere: drain first. */
struct snapfile_counts close_snapfile_writer(struct snapfile_writer *writer);

/* ---- snapfile_write.c: the protocol ------------------------------------------------------------------------------ */

/* Any thread may call it.  Takes a slot for that iteration.  NO_SLOT: none is free, or the file has failed;
 * then the iteration is dropped. */
int begin_commit(struct snapfile_writer *writer, uint32_t iteration);

/* Only the disk's thread calls it, for one payload after another of an iteration that has a slot.  Hashes and writes
 * the payload, and asks the disk to store it.  An error, or a value that is not finite, is remembered: then
 * finish_commit() drops the iteration. */
void write_payload(struct snapfile_writer *writer, uint32_t iteration, size_t payload, const void *bytes);

/* Call it when all payloads are written.  If `sound`, writes the commit's page, flushes the file, and fills in *times.
 * false: the iteration was dropped, or the file has failed, which a warning says once. */
bool finish_commit(struct snapfile_writer *writer, uint32_t iteration, bool sound, struct commit_times *times);

/* ---- snapfile_read.c --------------------------------------------------------------------------------------------- */

/* The commit of the newer page, which is all that is read; its slot is NO_SLOT where there is none. */
struct snapfile_commit look_for_commit(const char *path);

#endif

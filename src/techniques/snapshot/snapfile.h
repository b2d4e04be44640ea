/* snapfile.h - what is known of a snapshot file without its layout: its newest commit, and what a run has stored in it.
 * snapshot.h explains the words, and snapshot_parts.h has the rest of the file.
 *
 * To checkpoint/ the file is another form of a checkpoint (struct checkpoint_form): the same pieces, the same manifest,
 * read and verified by the same functions.  Only where the pieces lie differs, and that their hashes lie in the slot,
 * since they change with each iteration.
 */
#ifndef SNAPFILE_H
#define SNAPFILE_H

#include <stdbool.h>
#include <stdint.h>

enum { NO_SLOT = 0 }; /* slots count from 1 */

/* A commit.  Its bytes lie in a page of the file as they lie in this struct, so the struct must stay as it is. */
struct snapfile_commit {
    uint64_t seq;             /* its number among all commits of the file */
    uint32_t step;            /* the step after which the state was stored */
    uint32_t slot;            /* the slot that has the state; NO_SLOT: there is no commit */
    int64_t samples, session; /* those of struct checkpoint */
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

/* ---- snapfile_read.c --------------------------------------------------------------------------------------------- */

/* The commit of the newer page, which is all that is read; its slot is NO_SLOT where there is none. */
struct snapfile_commit look_for_commit(const char *path);

#endif

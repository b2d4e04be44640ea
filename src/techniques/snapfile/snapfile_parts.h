/* snapfile_parts.h - what the files of this folder know of one another: where the bytes of a snapshot file lie, and
 * what a run keeps of a file that it writes.  snapfile.h explains the words.
 */
#ifndef SNAPFILE_PARTS_H
#define SNAPFILE_PARTS_H

#include "snapfile.h"
#include "trainer/file/bytes.h"  /* brings: reader */
#include "trainer/step/tensor.h" /* brings: MOST_SLOTS */

#include <pthread.h>

/* ---- snapfile_layout.c: the file --------------------------------------------------------------------------------- */

enum { SNAPFILE_PAGE = 4096, MANIFEST_AT = 2 * SNAPFILE_PAGE };
enum { MAGIC_BYTES = 8, HASH_BYTES = sizeof(uint64_t) };
enum { PAGE_HASH_AT = SNAPFILE_PAGE - HASH_BYTES }; /* a page ends with its hash */

uint64_t hashes_bytes(size_t pieces); /* what the hashes of so many pieces take in a slot */

/* The pieces that lie in these payloads, which the caller frees, also after a problem.  Their file_offset counts from
 * the slot's beginning.  Problem: EXIT_USAGE where the pieces are not the whole state. */
struct problem *cut_stored(const struct snapfile_plan *plan, struct cut_tensors **out);

/* How a page begins, byte for byte, as the head of snapfile_layout.c draws it. */
struct snapfile_page {
    char magic[MAGIC_BYTES];
    uint32_t version, endian;
    uint64_t file_bytes, run_id, zero;
    uint32_t slots, pieces;
    uint64_t manifest_bytes, manifest_hash;
    struct snapfile_commit commit;
};
extern const struct checkpoint_form snapfile_form;

struct snapfile {
    struct single_file base; /* its `bytes` is the size of a slot */
    uint64_t run_id;         /* id of the run that writes the file, or that made its newest commit */
    int slots;
    uint64_t manifest_bytes, manifest_hash;
    uint64_t slots_at;             /* offset of the first slot in the file */
    struct snapfile_commit newest; /* the newest commit that can be recovered */
    int page;                      /* the page that has it, 0 or 1; NONE: no page */
    uint64_t last_seq;             /* the highest seq of a commit on any page */
};

/* The file of a checkpoint that was opened from a snapshot file, or is written to one. */
struct snapfile *snapfile_of(const struct checkpoint *checkpoint);

uint64_t slot_at(const struct snapfile *snapfile, int slot);   /* offset in the file; slots + 1: the file's end */
uint64_t hashes_at(const struct snapfile *snapfile, int slot); /* offset of the hashes of the slot's pieces */
void fill_page(const struct snapfile *snapfile, const struct snapfile_commit *commit, char page[SNAPFILE_PAGE]);

/* Fills in *snapfile from a page, whose bytes may be anything.  Returns what is wrong with it; NULL: nothing.
 * Ends the program (EXIT_FAILED) if a newer yard wrote it. */
const char *parse_page(struct snapfile *snapfile, const char page[SNAPFILE_PAGE], const struct reader *reader);

/* Does the file have one of the two pages, or is it empty, as a run leaves it that ends before it fills the file? */
bool is_snapshot(const char *path);

/* The same for an open file.  Returns the problem where it cannot be read. */
struct problem *look_for_pages(int fd, const char *path, bool *is_ours);

/* ---- snapfile_read.c: reading it --------------------------------------------------------------------------------- */

/* Recovers a snapshot.  Where no commit is whole, newest.slot is NO_SLOT, and hashes and places of pieces mean
 * nothing. */
struct checkpoint *read_snapshot(const char *path);        /* a run may be writing: a page that changes is read again */
struct checkpoint *read_newest_snapshot(const char *path); /* fails when no commit is whole */

/* read_snapshot() for a run that has locked the file: no other run is writing, and nothing changes. */
struct checkpoint *read_locked_snapshot(const char *path);

/* ---- snapfile_open.c, snapfile_write.c: a file that is being written --------------------------------------------- */

struct held_slot { /* a slot, for the last iteration that had it */
    uint32_t iteration;
    bool not_finite;  /* a value in it is not finite */
    size_t payloads;  /* the number that have been written: they come in their order */
    uint64_t *hashes; /* by piece, in the manifest's order */
};
typedef void *persist_bytes(void *to, const void *from, size_t n);

struct snapfile_writer {     /* a file that is being written */
    struct checkpoint *file; /* its description; step and samples as the run began; its pieces are of no slot */
    int64_t batch;           /* sequences of an iteration */
    size_t n;                /* payloads */
    uint64_t *payload_at;    /* [n + 1] where each payload begins in a slot, and the end */
    int fd;
    int direct_fd;          /* the file, opened once more to write past the page cache; NONE: the system cannot */
    char *memory;           /* the file, mapped; NULL: it does not lie in persistent memory */
    persist_bytes *persist; /* writes to `memory` */
    struct writer *beside;  /* a new file that does not have its name yet; NULL: the file has its name */
    int named_fd;           /* the file that has the name until the new one takes it, locked; or NONE */

    /* The lock is held to take a slot and to return it, to set `failed`, and to count commits and what was dropped.
     * Which slot an iteration has is looked up without it, since `iteration` of struct slots is atomic.  The thread
     * that writes reads `failed` without it, since no other sets it before the file is closed. */
    pthread_mutex_t lock;
    struct slots *slots; /* which iteration has which slot */
    bool failed;
    struct snapfile_counts counts; /* `bytes` and `ns` are the writing thread's, and are read when it has ended */

    /* used by the thread that writes; a slot also by the one that takes it */
    struct held_slot held[MOST_SLOTS + 1];
    int page;     /* the page that has the newest commit; NONE: no page */
    uint64_t seq; /* the commit's */
};

/* ---- snapfile_open.c: the file's name ---------------------------------------------------------------------------- */

/* The new file takes the name of the old one.  snapfile_write.c calls this function and the next one. */
struct problem *take_name(struct snapfile_writer *writer);

/* Has another program taken the file's name from it?  Then it warns, and nothing is stored any more. */
bool give_up_if_lost(struct snapfile_writer *writer);

/* ---- snapfile_system.c: calls of the system ---------------------------------------------------------------------- */

int flush_file(int fd);                            /* fdatasync(): 0, or an error in errno */
void start_writing(int fd, uint64_t at, size_t n); /* asks the system to begin to write this part of the page cache */
void forget_cached(int fd);                        /* asks the system to read the file from the disk the next time */

/* The file itself, if it lies in persistent memory and libpmem is installed, and what writes there; else NULL. */
char *map_memory(int fd, uint64_t bytes, persist_bytes **persist);

#endif

/* snapfile.h - the snapshot file: where its bytes lie, and how it is read.  The words are explained in snapshot.h.
 *
 * To reshard/ the file is another form of a checkpoint (struct checkpoint_form): the same pieces, the same manifest,
 * read and verified by the same functions.  Only where the pieces lie differs, and that their hashes lie in the slot,
 * since they change with each iteration.
 */
#ifndef SNAPFILE_H
#define SNAPFILE_H

#include "techniques/reshard/other_form.h"
#include "trainer/file/bytes.h" /* defines: reader */

/* ---- file_layout.c: the file ------------------------------------------------------------------------------------- */

enum { NO_SLOT = 0 }; /* slots count from 1 */
enum { SNAPFILE_PAGE = 4096, MANIFEST_AT = 2 * SNAPFILE_PAGE };
struct snapfile_plan { /* says what a run stores of an iteration */
    const struct config *config;
    const struct mesh *mesh;
    struct ring *ring;          /* which iteration has which slot */
    int64_t batch;              /* sequences of an iteration */
    struct state_range *ranges; /* by payload: the part of the state that it has */
    size_t n;
};
uint64_t payload_bytes(const struct state_range *range); /* what the payload takes in a slot */
/* The pieces that lie in these payloads.  Their file_offset counts from the slot's beginning.  Fails where the pieces
 * are not the whole state. */
struct pieces *cut_stored(const struct snapfile_plan *plan);

/* A commit.  Its bytes lie in a page of the file as they lie in this struct, so the struct must stay as it is.  See
 * struct disk_page, and the head of file_layout.c. */
struct snapfile_commit {
    uint64_t seq;             /* its number among all commits of the file */
    uint32_t step;            /* the step after which the state was stored */
    uint32_t slot;            /* the slot that has the state; NO_SLOT: there is no commit */
    int64_t samples, session; /* those of struct checkpoint */
    uint64_t hash;            /* XXH64 of the hashes of its pieces */
};
extern const struct checkpoint_form snapfile_form;
struct snapfile {
    struct other_form base; /* its `bytes` is the size of a slot */
    uint64_t run;           /* id of the run that writes the file, or that made its newest commit */
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
/* Fills in *snapfile from a page, whose bytes may be anything.  Returns what is wrong with it; NULL: nothing. */
const char *parse_page(struct snapfile *snapfile, const char page[SNAPFILE_PAGE], const struct reader *reader);
/* Does the file have one of the two pages, or is it empty, as a run leaves it that ends before it fills the file? */
bool is_snapshot(const char *path);

/* ---- reading.c: reading it --------------------------------------------------------------------------------------- */

/* The commit of the newer page, which is all that is read; its slot is NO_SLOT where there is none. */
struct snapfile_commit look_for_commit(const char *path);
/* Recovers a snapshot.  Where no commit is whole, newest.slot is NO_SLOT, and hashes and places of pieces mean
 * nothing. */
struct checkpoint *read_snapshot(const char *path);        /* a run may be writing: a page that changes is read again */
struct checkpoint *open_newest_snapshot(const char *path); /* fails when no commit is whole */
/* read_snapshot() for a run that has locked the file: no other run is writing, and nothing changes. */
struct checkpoint *read_locked_snapshot(const char *path);

#endif

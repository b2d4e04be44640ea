/* snapshot.h - per-layer snapshots: what the files of this folder know of each other.
 *
 *     snapshot.c          the technique: puts the tasks that store an update into the list           begin here
 *     running.c           what these tasks do in a run                                                then
 *     writer.c            the protocol by which they write the file, so that no crash loses a commit  then
 *     file_layout.c       where every byte of the file lies                                           then
 *     reading.c           its newest iteration that is whole
 *     opening.c           opening a file to write into it, and closing it: its name, its lock
 *     system_calls.c      calls of the system, where Linux and macOS differ
 *     stored.c            which updates are stored, where ranks have the same state; an update that is listed twice
 *     snapshot_pass.c     the pass: it goes through all updates; the report of `yard plan`, and the options
 *
 * Words.  A *payload* is what one update wrote: its part of the parameters, of Adam's m and of v.  A *slot* is the room
 * in the file for all payloads of an iteration; buffers in memory have as many.  A *commit* is written on a page,
 * which names the slot: from then on the iteration is *recoverable*, after a kill; when that is flushed it is
 * *durable*, after a power cut too.  A *valid* page is one that was written whole, whether or not its slot was.
 *
 * To reshard/ the file is another form of a checkpoint (struct store): the same pieces, the same manifest, read and
 * verified by the same functions.  Only where the pieces lie differs, and that their hashes lie in the slot, since they
 * change with each iteration.
 */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include "techniques/pass/pass.h"
#include "techniques/reshard/store.h"
#include "trainer/file/bytes.h" /* defines: reader */

#include <pthread.h>

enum { MOST_EVERY = 1000 }; /* the largest --snapshot-every */
enum snapshot_in { IN_HOST, IN_DEVICE };
struct snapshot_options {
    const char *file;       /* NULL: nothing is stored */
    int every;              /* iterations from one that is stored to the next */
    int slots;              /* iterations for which there is room */
    int iterations;         /* `yard plan` reports the commits of so many */
    enum snapshot_in place; /* where the first copy of an update's result goes; the next update waits for this copy */
};
extern struct snapshot_options snapshot_options;
extern const struct hooks snapshot_hooks;
extern const struct module module_snapshot;

/* ---- snapshot.c, stored.c: the list ------------------------------------------------------------------------------ */

struct storing { /* what the functions below need to know of a list whose updates are stored */
    struct list *list;
    struct edit *edit;
    enum snapshot_in place;
    bool by_hand; /* the tasks of a step file say themselves how long they take */
};
/* Adds the tasks that store what an update writes: so many bytes. */
void store_update(struct storing *storing, struct task *update, size_t bytes);
/* The parts of store_update().  in_slot() makes a task run only where its iteration has a slot.  new_buffers() makes a
 * buffer of so many bytes on the device for each slot.  copy_written() adds the copies of what `update` wrote into the
 * buffers; add_persist() adds the task that writes the buffers to the disk. */
struct task *in_slot(struct task *task);
struct tensor *new_buffers(struct pool *pool, struct device *device, size_t bytes);
void copy_written(const struct storing *storing, struct tensor *buffers, const struct task *whole,
                  const struct task *update, enum snapshot_in in);
void add_persist(const struct storing *storing, struct tensor *buffers, const struct task *update);

/* Is the access a write of parameters or of the optimizer's state? */
bool is_state(const struct access *access);

/* stored.c.  Bytes of the payload of each of n tasks; 0: none of its results is stored.  The caller frees the array. */
size_t *bytes_to_store(struct task *const *task, size_t n, const struct pool *pool);
/* --overlap local lists an update twice.  The last task of the host, of the first n tasks, that does the same as this
 * update of the device; NULL: there is none. */
struct task *last_on_host(const struct list *list, size_t n, const struct task *update);
/* Adds the tasks that store such an update, whichever side does it in a step.  last: what last_on_host() has found. */
void store_either(struct storing *storing, struct task *update, struct task *last, size_t n, size_t bytes);

/* ---- file_layout.c: the file ------------------------------------------------------------------------------------- */

enum { SNAP_PAGE = 4096, MANIFEST_AT = 2 * SNAP_PAGE };
struct snap_plan { /* says what a run stores of an iteration */
    const struct config *config;
    const struct mesh *mesh;
    struct ring *ring;         /* its member k has slot k */
    int64_t batch;             /* sequences of an iteration */
    struct state_range *range; /* by payload: the part of the state that it has */
    size_t n;
};
uint64_t payload_bytes(const struct state_range *range);
/* The pieces that lie in these payloads, "offset" from the slot's start.  Fails where they are not the whole state. */
struct pieces *cut_stored(const struct snap_plan *plan);

struct snap_commit {     /* a commit page's contents (on the disk: struct disk_page) */
    uint64_t seq;        /* its number among all commits of the file */
    uint32_t step, slot; /* slots count from 1; 0: there is no commit */
    int64_t samples, session;
    uint64_t hash; /* XXH64 of the hashes of its pieces */
};
extern const struct store snapshot_store;
struct snapfile {
    struct in_store in; /* its `bytes` is the size of a slot */
    uint64_t run;       /* id of the run that writes the file, or that made its newest commit */
    int slots;
    uint64_t manifest_bytes, manifest_hash;
    uint64_t slots_at;         /* offset of the first slot in the file */
    struct snap_commit newest; /* the newest commit that can be recovered */
    int page;                  /* the page that has it, 0 or 1; NONE: no page */
    uint64_t last_seq;         /* the highest one on any page */
};
struct snapfile *
snapfile_of(const struct checkpoint *checkpoint); /* it was opened from a snapshot file, or is written to one */
uint64_t slot_at(const struct snapfile *snapfile, int slot);   /* offset in the file; slots + 1: the file's end */
uint64_t hashes_at(const struct snapfile *snapfile, int slot); /* offset of the hashes of the slot's pieces */
void fill_page(const struct snapfile *snapfile, const struct snap_commit *commit, char page[SNAP_PAGE]);
/* Fills in *snapfile from a page, whose bytes may be anything.  Returns what is wrong with it; NULL: nothing. */
const char *parse_page(struct snapfile *snapfile, const char page[SNAP_PAGE], const struct reader *reader);
/* Does the file have one of the two pages, or is it empty, as a run leaves it that ends before it fills the file? */
bool is_snapshot(const char *path);

/* ---- reading.c: reading it --------------------------------------------------------------------------------------- */

/* The commit of the newer page, which is all that is read; slot 0: there is none. */
struct snap_commit look_for_commit(const char *path);
/* Recover a snapshot.  Where no commit is whole, newest.slot is 0, and the pieces' hashes and places mean nothing. */
struct checkpoint *read_snapshot(const char *path); /* a run may be writing: a page that changes is read again */
struct checkpoint *open_snapshot(const char *path); /* fails when no commit is whole */
/* read_snapshot() for a run that has locked the file: no other run is writing, and nothing changes. */
struct checkpoint *read_locked_snapshot(const char *path);

/* ---- writer.c, opening.c: writing it ----------------------------------------------------------------------------- */

struct snap_counts {
    uint32_t stored;  /* commits */
    uint32_t dropped; /* iterations that found no free slot, or were given up */
    uint32_t newest;  /* the iteration of the last commit; 0: none */
    uint64_t bytes;   /* size of all payloads that were written */
    uint64_t ns;      /* time that writing and flushing took */
    bool in_memory;   /* the file lies in persistent memory, and is written through libpmem */
};
struct held_slot { /* a slot, for the last iteration that had it */
    uint32_t iteration;
    bool not_finite;  /* a value in it is not finite */
    size_t payloads;  /* the number that have been written: they come in their order */
    uint64_t *hashes; /* by piece, in the manifest's order */
};
typedef void *persist_bytes(void *to, const void *from, size_t n);
struct snap {                /* a file that is being written */
    struct checkpoint *file; /* its description; step and samples as the run began; its pieces are of no slot */
    int64_t batch;           /* sequences of an iteration */
    size_t n;                /* payloads */
    uint64_t *payload_at;    /* [n + 1] where each payload begins in a slot, and the end */
    int fd;
    int direct_fd;          /* the same file, opened to write past the page cache; -1: the file system cannot */
    char *memory;           /* the same file, mapped; NULL: it does not lie in persistent memory */
    persist_bytes *persist; /* writes to `memory` */
    struct writer *beside;  /* a new file that does not have its name yet; NULL: the file has its name */
    int named_fd;           /* the file that has the name until the new one takes it, locked; -1: none */

    /* The lock is held to take a slot and to return it, to set `failed`, and to count commits and what was dropped.
     * Which slot an iteration has is looked up without it, since the ring's words are atomic.  The thread that writes
     * reads `failed` without it, since no other sets it before the file is closed. */
    pthread_mutex_t lock;
    struct ring *ring; /* which iteration has which slot */
    bool failed;
    struct snap_counts counts; /* `bytes` and `ns` are the writing thread's, and are read when it has ended */

    /* used by the thread that writes; a slot also by the one that takes it */
    struct held_slot slot[MOST_MEMBERS + 1];
    int page;     /* the page that has the newest commit; NONE: no page */
    uint64_t seq; /* that commit's */
};
/* Opens the file for this plan, with room for all slots, so that a full disk fails here.  checkpoint: as
 * describe_training() makes it; its step and samples are those at which the run begins.  A file whose layout and
 * options are the same is taken over, and its newest commit stays readable until a newer one is durable.  Beside any
 * other snapshot a new file is made, which takes its name when it has a durable commit.  The plan may go when this
 * returns, but not its ring.
 * Problems: EXIT_IO where the system refuses, EXIT_USAGE for a file that is no snapshot or that a run has open. */
struct problem *open_snap(const char *path, const struct checkpoint *checkpoint, const struct snap_plan *plan,
                          struct snap **out);
/* An iteration that was begun and not committed is given up, and counted nowhere: drain first. */
struct snap_counts close_snap(struct snap *snap);

/* Any thread may call it.  Takes a slot for that iteration; slots count from 1.  0: none is free, or the file has
 * failed; then the iteration is dropped. */
int snap_begin(struct snap *snap, uint32_t iteration);
/* Only the disk's thread calls it, for one payload after another of an iteration that has a slot.  Hashes and writes
 * the payload, and asks the disk to store it.  An error, or a value that is not finite, is remembered: then
 * snap_commit() drops the iteration. */
void snap_write(struct snap *snap, uint32_t iteration, size_t payload, const void *bytes);
struct stored_step {
    uint32_t step;
    uint64_t recoverable, durable; /* now_ns() from when on it can be recovered after a kill, and after a power cut */
};
/* Call it when all payloads are written.  If `sound`, writes the commit's page, flushes the file, and fills in *stored.
 * false: the iteration was dropped, or the file has failed, which a warning says once. */
bool snap_commit(struct snap *snap, uint32_t iteration, bool sound, struct stored_step *stored);

/* opening.c for writer.c */
void take_name(void *argument); /* the new file takes the name of the old one; for attempt(), argument: struct snap */
bool tell_when_lost(struct snap *snap); /* has another program taken the file's name from it?  Then warns. */

/* ---- system_calls.c: calls of the system ------------------------------------------------------------------------- */

int flush_file(int fd);                            /* fdatasync(): 0, or an error in errno */
void start_writing(int fd, uint64_t at, size_t n); /* asks the system to begin to write this part of the page cache */
void forget_cached(int fd);                        /* asks the system to read the file from the disk the next time */
/* The file of `fd`, opened once more to be written past the page cache; -1: the file system does not have that. */
int open_direct(int fd);
/* The file itself, if it lies in persistent memory and libpmem is installed, and what writes there; else NULL. */
char *map_memory(int fd, uint64_t bytes, persist_bytes **persist);

/* ---- running.c: in a training ------------------------------------------------------------------------------------ */

/* Opens the file of --snapshot and gives the train list's tasks their work.  Nothing is in flight. */
void open_snapshots(struct trainer *trainer);
struct snap_counts close_snapshots(struct trainer *trainer); /* after a drain */
/* The report's thread calls it.  sound: the step's numbers are finite; a step of which they are not is not
 * committed. */
void note_reported(struct trainer *trainer, uint32_t number, bool sound);
/* The commits since the last call; the caller frees them. */
size_t take_commits(struct trainer *trainer, struct stored_step **commits);

#endif

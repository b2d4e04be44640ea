/* snapshot.h - per-layer snapshots: the tasks that store what updates write, in a list and in a run.
 *
 * What to read, in this order:
 *
 *     snapshot.c           the technique: puts the tasks that store an update into the list
 *     running.c            what these tasks do in a run
 *     snapshot_writer.h    writing the file
 *       writer.c             the protocol, by which no crash loses a commit
 *       opening.c            opening a file to write into it, and closing it: its name, its lock
 *       system_calls.c       calls of the system, where Linux and macOS differ
 *     snapshot_file.h      the file
 *       file_layout.c        where every byte of it lies
 *       reading.c            its newest iteration that is whole
 *     stored.c             which updates are stored, where ranks have the same state; an update that is listed twice
 *     snapshot_pass.c      the pass: it goes through all updates; the report of `yard plan`, and the options
 *
 * Words.  A *payload* is what one update wrote: its part of the parameters, of Adam's m and of v.  A *slot* is the room
 * in the file for all payloads of an iteration, with a buffer in memory for each; slot k is what the ring of the list's
 * pool (struct ring in tensor.h) calls its member k.  A *commit* is written on a page, which names the slot: from then
 * on the iteration is *recoverable*, after a kill; when that is flushed it is *durable*, after a power cut too.  A
 * *valid* page is one that was written whole, whether or not its slot was.
 */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include "planning/pass/pass.h"

struct snap_counts;  /* snapshot_writer.h */
struct commit_times; /* snapshot_writer.h */

enum { MOST_EVERY = 1000 }; /* the largest --snapshot-every */
enum snapshot_in { IN_HOST, IN_DEVICE };
struct snapshot_options {
    const char *file;       /* NULL: nothing is stored */
    int every;              /* iterations from one that is stored to the next */
    int slots;              /* iterations for which there is room */
    int iterations;         /* of how many `yard plan` reports the commits */
    enum snapshot_in place; /* where the first copy of an update's result goes; the next update waits for this copy */
};
extern struct snapshot_options snapshot_options;
extern const struct hooks snapshot_hooks;
extern const struct module module_snapshot;

/* ---- snapshot.c: the list ---------------------------------------------------------------------------------------- */

struct snapshot_edit { /* the rewrite of a list whose updates are to be stored */
    struct list *list;
    struct edit *edit;
    enum snapshot_in place;
    bool by_hand; /* the tasks of a step file say themselves how long they take */
};
/* Adds the tasks that store the `bytes` bytes that an update writes. */
void store_update(struct snapshot_edit *snapshot_edit, struct task *update, size_t bytes);

/* The parts of store_update(): */

/* Makes the task run only where its iteration has a slot, and returns it. */
struct task *in_slot(struct task *task);
/* Makes a buffer of `bytes` bytes on the device for each slot.  That of slot 1 is returned, and leads to the others. */
struct tensor *new_buffers(struct pool *pool, struct device *device, size_t bytes);
/* Adds copies into the buffers: of the tensors that `update` wrote, in the order of the accesses of `whole`, each on
 * the host's alignment.  `update` is the task `whole` itself, or on the host a piece of it, which writes the same part
 * of each tensor. */
void copy_written(const struct snapshot_edit *snapshot_edit, struct tensor *buffers, const struct task *whole,
                  const struct task *update, enum snapshot_in in);
/* Adds the task that writes what an update stored in the buffers to the disk. */
void add_persist(const struct snapshot_edit *snapshot_edit, struct tensor *buffers, const struct task *update);

/* Is the access a write of parameters or of the optimizer's state? */
bool is_state(const struct access *access);

/* ---- stored.c ---------------------------------------------------------------------------------------------------- */

/* Bytes of the payload of each of n tasks; 0: none of its results is stored.  The caller frees the array. */
size_t *bytes_to_store(struct task *const *tasks, size_t n, const struct pool *pool);
/* --overlap local lists an update twice.  The last task of the host, of the first n tasks, that does the same as this
 * update of the device; NULL: there is none. */
struct task *last_on_host(const struct list *list, size_t n, const struct task *update);
/* Adds the tasks that store such an update, whichever side does it in a step.  last: what last_on_host() has found. */
void store_either(struct snapshot_edit *snapshot_edit, struct task *update, struct task *last, size_t n, size_t bytes);

/* ---- running.c: in a training ------------------------------------------------------------------------------------ */

/* Opens the file of --snapshot and gives the train list's tasks their work.  Nothing is in flight. */
void start_snapshots(struct trainer *trainer);
struct snap_counts close_snapshots(struct trainer *trainer); /* after a drain */
/* The report's thread calls it.  sound: the step's numbers are finite; a step of which they are not is not
 * committed. */
void note_reported(struct trainer *trainer, uint32_t iteration, bool sound);
/* The commits since the last call; the caller frees them. */
size_t take_commits(struct trainer *trainer, struct commit_times **commits);

#endif

/* snapshot.h - per-layer snapshots: the tasks that store what updates write, in a list and in a run.
 *
 * What to read, in this order:
 *
 *     snapshot.c           the technique: puts the tasks that store an update into the list
 *     snapshot_run.c       what these tasks do in a run
 *     snapshot_parts.h     the file; snapfile.h has what other folders see of it:
 *       snapfile_write.c     writing it: the protocol, by which no crash loses a commit
 *       snapfile_open.c      opening a file to write into it, and closing it: its name, its lock
 *       snapfile_system.c    calls of the system, where Linux and macOS differ
 *       snapfile_layout.c    where every byte of it lies
 *       snapfile_read.c      its newest iteration that is whole
 *     snapshot_stored.c    which updates are stored, where ranks have the same state
 *     snapshot_report.c    what `yard plan` says of all this
 *     snapshot_pass.c      the pass: its options and its run
 *
 * Names that begin with snapshot are about the technique: its options, its tasks, and what they do in a run.  Names
 * with snapfile are about the file, and know nothing of tasks.
 *
 * Words.  A *payload* is what one update wrote: its part of the parameters, of Adam's m and of v.  A *slot* is the room
 * in the file for all payloads of an iteration, with a buffer in memory for each (struct slots in tensor.h).  A
 * *commit* is written on a page, which names the slot: from then on the iteration is *recoverable*, after a kill; when
 * that is flushed it is *durable*, after a power cut too.  A *valid* page is one that was written whole, whether or not
 * its slot was.
 */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include "planning/pass/pass.h"
#include "snapfile.h"

enum { MOST_EVERY = 1000 }; /* the largest --snapshot-every */
enum snapshot_place { IN_HOST, IN_DEVICE };
struct snapshot_options {
    const char *file; /* NULL: nothing is stored */
    int every;        /* iterations from one that is stored to the next */
    int slots;        /* iterations for which there is room */
    int iterations;   /* how many of them `yard plan` looks at to report the commits */
    /* Where the first copy of an update's result goes; the next update waits for this copy. */
    enum snapshot_place place;
};

/* ---- snapshot.c: the list ---------------------------------------------------------------------------------------- */

struct snapshot_edit { /* the rewrite of a list whose updates are to be stored */
    struct list *list;
    struct edit *edit;
    struct snapshot_options options; /* a copy, whose place may be one that is only tried */
    bool by_hand;                    /* the tasks of a step file say themselves how long they take */
};

/* Adds all tasks: those that store the updates, and the commit.  Returns how many updates are stored. */
size_t store_all(struct snapshot_edit *snapshot_edit);

/* Makes a buffer of `bytes` bytes on the device for each of so many slots.  That of slot 1 is returned, and leads to
 * the others by next_slot. */
struct tensor *new_buffers(struct pool *pool, struct device *device, size_t bytes, int slots);

/* ---- snapshot_stored.c ------------------------------------------------------------------------------------------- */

/* Bytes of the payload of each of n tasks; 0: none of its results is stored.  The caller frees the array. */
size_t *bytes_to_store(struct task *const *tasks, size_t n, const struct pool *pool);

/* Does the access write parameters or the optimizer's state? */
bool writes_state(const struct access *access);

/* ---- snapshot_run.c: in a training ------------------------------------------------------------------------------- */

/* Opens the file of --snapshot and gives the train list's tasks their work.  Nothing is in flight. */
void start_snapshots(struct trainer *trainer);

/* Closes the file, which stays readable.  Nothing is in flight: drain first. */
struct snapfile_counts close_snapshots(struct trainer *trainer);

/* Tells the iteration's commit, which waits for that, that its step has been reported.  The report's thread calls it.
 * sound: the step's numbers are finite; a step is not committed where they are not. */
void note_reported(struct trainer *trainer, uint32_t iteration, bool sound);

/* *commits becomes those since the last call, in their order; the caller frees it.  Returns how many there are. */
size_t take_commits(struct trainer *trainer, struct commit_times **commits);
extern const struct hooks snapshot_hooks;

/* ---- snapshot_report.c: what people and `plan --json` are told --------------------------------------------------- */

/* Writes the report's fields, and its sentence on the list as the pass has left it.  other_period: the period with
 * copies in the other place of enum snapshot_place, in seconds; NAN where it is not known.  Ends the program
 * (EXIT_USAGE) where the devices' buffers do not fit. */
void report_snapshot(struct list *list, const struct costs *costs, const struct run_facts *facts, double other_period,
                     struct pass_report *report);

/* ---- snapshot_pass.c --------------------------------------------------------------------------------------------- */

extern struct snapshot_options snapshot_options; /* what the options of the command line ask for */
extern const struct module module_snapshot;

#endif

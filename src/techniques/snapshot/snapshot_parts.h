/* snapshot_parts.h - what the files of this folder know of one another: the list's rewrite, the run, the report.
 *
 *     before training    store_all() puts the tasks into the list; report_snapshot() says what they take
 *     in training        start_snapshots(), then for each iteration note_reported() and take_commits()
 *     after a drain      close_snapshots()
 */
#ifndef SNAPSHOT_PARTS_H
#define SNAPSHOT_PARTS_H

#include "planning/pass/pass.h"
#include "snapshot.h"
#include "techniques/snapfile/snapfile.h"

/* ---- snapshot.c: the list ---------------------------------------------------------------------------------------- */

struct snapshot_rewrite { /* the rewrite of a list whose updates are to be stored */
    struct list *list;
    struct edit *edit;
    struct snapshot_options options; /* a copy, whose place may be one that is only tried */
    bool no_costs; /* no costs are known, so the tasks for the disk say themselves how long they take */
};

/* Adds all tasks to the list, in the open edit: those that store the updates, and the commit.  Returns how many updates
 * are stored. */
size_t store_all(struct snapshot_rewrite *rewrite);

/* Tasks of snapshots: copies to buffers, *persists*, which write a buffer to the file, and the commit. */
bool is_of_snapshot(const struct task *task);
bool is_persist(const struct task *task);
bool is_commit(const struct task *task);

/* Makes a buffer of `bytes` bytes on the device for each of so many slots.  Returns the buffer of slot 1, which leads
 * to the others by next_slot. */
struct tensor *new_buffers(struct pool *pool, struct device *device, size_t bytes, int slots);

/* ---- snapshot_stored.c ------------------------------------------------------------------------------------------- */

/* Bytes of the payload of each of n tasks; 0: none of its results is stored.  The caller frees the array. */
size_t *bytes_to_store(struct task *const *tasks, size_t n, const struct pool *pool);

/* Does the access write parameters or the optimizer's state? */
bool writes_state(const struct access *access);

/* ---- snapshot_run.c: in a training ------------------------------------------------------------------------------- */

/* Opens the file of --snapshot, until close_snapshots(), and gives the train list's tasks their work.  Nothing is in
 * flight. */
void start_snapshots(struct trainer *trainer);

/* Closes the file, which stays readable.  Nothing is in flight: drain first. */
struct snapfile_counts close_snapshots(struct trainer *trainer);

/* Tells the commit of this iteration that its step has been reported; the commit waits for this call.  The thread of
 * the report's lane makes it.  sound: the step's numbers are finite.  From the first step that is not sound on, none is
 * committed. */
void note_reported(struct trainer *trainer, uint32_t iteration, bool sound);

/* Sets *commits to the commits since the last call, oldest first; the caller frees the array.  Returns how many. */
size_t take_commits(struct trainer *trainer, struct commit_times **commits);

/* What the trainer calls of snapshot_run.c: struct module of the folder has a pointer to them. */
extern const struct hooks snapshot_hooks;

/* ---- snapshot_report.c: what people and `plan --json` are told --------------------------------------------------- */

/* Writes the report's fields, and its sentences on the list as the pass has left it.  other_period: the period with
 * copies in the other place of enum snapshot_place, in seconds; NAN where it is not known, INFINITY where the
 * list does not fit then.  Ends the program (EXIT_USAGE) where the devices' buffers do not fit. */
void report_snapshot(struct list *list, const struct costs *costs, const struct run_facts *facts, double other_period,
                     struct pass_report *report);

#endif

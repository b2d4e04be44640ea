/* find_checkpoint.h - the folder that --save fills: which checkpoints are in it, and which is the newest.  Implemented
 * in find_checkpoint.c.
 *
 *     DIR/step-20/  DIR/step-30/          complete, or damaged since
 *     DIR/step-30.new/                    complete; it waits for the place of the old step-30
 *     DIR/step-40.tmp-1234/               being written, or left by a process that was killed
 *
 * A folder is published like a file (folder.h).  So a folder that has its final name was whole when it got it.  It is
 * *complete* if its manifest is right and its files agree with that by size and header.  Hashes are compared when bytes
 * are read (transfer.h).
 *
 * Runs that write into one folder are numbered, resumed runs too: each is a *session*.  The newest checkpoint is the
 * last one of the last session: a run that was resumed from step 20 has newer checkpoints than step 30 of the run
 * before.
 */
#ifndef FIND_CHECKPOINT_H
#define FIND_CHECKPOINT_H

#include "checkpoint.h"

/* The checkpoint that `path` names: a folder with a manifest, or, in a folder of such, the newest complete one.
 * Incomplete ones are passed over with a warning.  NULL: there is none.  The caller frees the path. */
char *find_checkpoint(const char *path);
/* The paths of all checkpoints in a folder, damaged ones too; the path alone when it is itself a checkpoint.  The
 * caller frees each, and the array. */
char **all_checkpoints(const char *path, size_t *n);
/* Opens the checkpoint that `path` names.  A folder's manifest is read, and its files are compared with the manifest by
 * size and header.  Another form (other_form.h) warns of damage that it could pass over.  Fails when there is no
 * checkpoint: EXIT_IO, or EXIT_FAILED where one is damaged.  The caller frees it with free_checkpoint(). */
struct checkpoint *open_checkpoint(const char *path);
/* The highest session of the complete checkpoints in the folder; sessions count from 1.  0: there are none. */
int64_t last_session(const char *folder);
/* Fails (EXIT_USAGE) when the path is a checkpoint, or lies in one: nothing else is written there.  claimant: the
 * option that names the path, for the message. */
void expect_outside(const char *claimant, const char *path);
enum { ANY_SESSION = 0, KEEP_ALL = 0 };
/* Removes the checkpoints of sessions before `session`, which may be ANY_SESSION, and then all but the `keep` newest.
 * keep: KEEP_ALL: all of these stay. */
void prune_checkpoints(const char *folder, int64_t session, int64_t keep);

#endif

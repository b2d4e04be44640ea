/* snapshot.h - per-layer snapshots: the tasks that store what updates write, in a list and in a run.
 *
 * What to read, in this order:
 *
 *     snapshot.c           the technique: puts the tasks that store an update into the list
 *     snapshot_run.c       what these tasks do in a run
 *     ../snapfile/         the file: the head of snapfile.h says what to read
 *     snapshot_stored.c    which updates are stored, where ranks have the same state
 *     snapshot_report.c    what `yard plan` says of all this
 *     snapshot_pass.c      the pass: its options and its run
 *
 * snapfile.h explains the words: payload, slot, commit.  Machinery from elsewhere: trainer/step/slots.c says which
 * iteration has which slot; trainer/run/late.c runs a task, or skips it, when its iteration has asked for a slot.
 */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include "trainer/base/module.h"

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

/* ---- snapshot_pass.c --------------------------------------------------------------------------------------------- */

/* What the command line asks for.  Only the table of options writes it. */
extern struct snapshot_options asked_snapshot;

extern const struct module module_snapshot;

#endif

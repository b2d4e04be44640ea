/* snapshot_pass.h - what the options of snapshot ask for, and the folder's module: snapshot_pass.c. */
#ifndef SNAPSHOT_PASS_H
#define SNAPSHOT_PASS_H

#include "snapshot.h"

extern struct snapshot_options snapshot_options;
extern const struct module module_snapshot;

#endif

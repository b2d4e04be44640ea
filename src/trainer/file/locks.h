/* locks.h - one process at a time: locks.c. */
#ifndef LOCKS_H
#define LOCKS_H

#include "trainer/base/base.h"

/* A second process that wants the same lock is refused, naming its claimant ("--log").  A lock holds until the
 * descriptor and its copies are closed, or the process ends; some file systems (NFS) have no locks. */
int lock_folder(const char *claimant, const char *path); /* returns the descriptor to close; NONE: it is not locked */
void lock_file(const char *claimant, const char *path, int fd);

/* Opens the regular file at this path with `flags`, as open() does, and locks it.  *fd becomes its descriptor, or NONE
 * where there is no problem, but nothing to lock either: the path is a device or a pipe, to which several processes may
 * write; or nothing is there, and flags lack O_CREAT. */
struct problem *open_locked(const char *claimant, const char *path, int flags, int *fd);

/* Ends the program when another process holds a lock of the file or folder now. */
void expect_unlocked(const char *claimant, const char *path);

#endif

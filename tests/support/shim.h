/* shim.h - for test programs with open, write, fsync and the like of their own, which stand before the system's: one of
 * the calls that they count is spoiled.
 */
#ifndef SHIM_H
#define SHIM_H

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* The system's function of that name. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

enum fault {
    FAULT_NONE,
    FAULT_EIO,        /* the call fails */
    FAULT_FULL,       /* the disk is full: from this call on all fail that make or write something */
    FAULT_SHORT,      /* the call writes half */
    FAULT_KILL,       /* the process is killed before the call, */
    FAULT_KILL_AFTER, /* or after it, when it has written half */
    FAULTS
};
struct counted_calls {
    int n;  /* so many were made */
    int at; /* the number of the one that is spoiled; the first one is 1 */
    enum fault fault;
};

/* Counts a call.  false: it fails, with errno set.  makes: it makes or writes something. */
static inline bool count_call(struct counted_calls *c, bool makes)
{
    c->n++;
    bool is_spoiled = c->n == c->at;
    if (is_spoiled && c->fault == FAULT_KILL)
        raise(SIGKILL);
    bool full = c->fault == FAULT_FULL && c->n >= c->at && makes;
    bool once = c->fault == FAULT_EIO && is_spoiled;
    errno = full ? ENOSPC : EIO;
    return !full && !once;
}

/* How many of n bytes the call that was counted last writes. */
static inline size_t bytes_to_write(const struct counted_calls *c, size_t n)
{
    bool is_cut = c->n == c->at && c->fault >= FAULT_SHORT;
    return is_cut ? (n + 1) / 2 : n;
}

#endif

/* tensor_extra.h - what passes and techniques ask of a tensor, beside what every tensor has (tensor.h); and slots.  In
 * most tensors nearly all of it is zero.  A first reading skips this header.
 */
#ifndef TENSOR_EXTRA_H
#define TENSOR_EXTRA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tensor;

/* ---- the types of its fields ------------------------------------------------------------------------------------- */

/* Which other tensors may have a tensor's bytes before and after its life. */
enum exclusive {
    EXCLUSIVE_NOT,   /* any */
    EXCLUSIVE_SOME,  /* only those that live far away in the list */
    EXCLUSIVE_ALWAYS /* none */
};

/* A mirror is a replica on the host: whatever set-up writes to the mirrored tensor, it writes to the mirror too.  The
 * mirrors of all replicas of one tensor are a chain.  Here w0 has the replica w1 on another device, and each has a
 * mirror:
 *
 *     w0    first: m1                   what is replicated: the chain begins here
 *     w1                                a replica of w0
 *     m1    of: w1    next: m0
 *     m0    of: w0    next: NULL
 *
 * A pass may replace m1 by w1 itself, which then lives on the host.  m1 stays in the chain, but does not persist. */
struct mirror_links {
    struct tensor *of;    /* the tensor that it mirrors; NULL: it is no mirror */
    struct tensor *first; /* the chain's first mirror, in the tensor at which the chain begins; NULL in others */
    struct tensor *next;  /* the chain's next mirror, in a mirror; NULL: none */
};

/* Which iteration has which slot (slots.c).  A pool has one set of slots, for all tensors that lie in slots. */
enum { MOST_SLOTS = 16 };

struct slots {
    int n;       /* number of slots, which are numbered from 1; 0: there are none */
    int durable; /* the slot with the newest iteration that is durable; 0: none */
    /* The iteration that has slot k; 0: none.  Atomic, since running tasks look for their slot meanwhile. */
    _Atomic uint32_t iteration[MOST_SLOTS + 1];
};

/* ---- the fields -------------------------------------------------------------------------------------------------- */

struct tensor_extra {
    /* Set by whoever makes the tensor. */
    enum exclusive exclusive; /* read by place() */
    bool is_buffer;    /* as_buffer() has marked it; its class still says what it holds.  Read by reports of memory */
    bool cheap;        /* an activation that takes little work to make again, for its size */
    bool is_side_word; /* it says which tasks run, and no value follows from it (struct condition in when.h) */

    struct mirror_links mirror;
    struct tensor *later_copy; /* the next tensor that the list fills with copies of the same bytes, for later tasks;
                                * NULL: none, or the list does not fill this one by copies */

    /* Slots: a tensor that lies in slots is there once in each, and these tensors are alike.  The accesses of tasks
     * name only the one in slot 1, and the iteration says which one that means (tensor_at()). */
    struct slots *slots;      /* its slots, if it is the storage in slot 1; else NULL */
    struct tensor *next_slot; /* the same part in the next slot; NULL: this is the last one, or it lies in no slots */
};

#endif

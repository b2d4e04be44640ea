/* list_extra.h - what passes, proofs and reports ask of a list, beside what every list has (list.h).  A first reading
 * skips this header.
 */
#ifndef LIST_EXTRA_H
#define LIST_EXTRA_H

#include "tensor.h" /* brings: memory_class */

/* ---- the types of its fields ------------------------------------------------------------------------------------- */

/* From this position on, until its next level, a device holds this number of bytes. */
struct level {
    int device, position;
    size_t bytes;
    size_t of_class[MEM_CLASSES];
};

/* ---- waits that a list states ------------------------------------------------------------------------------------ */

/* Tasks of one origin wait for those of another, although no tensor says so: `after=` of a step file (after.c). */
struct origin_wait {
    uint64_t producer, consumer; /* origins: tasks of `consumer` wait for tasks of `producer` */
    bool previous;               /* it is the producer's instance of the step before */
};

/* Such a wait of two tasks that the list has now. */
struct listed_wait {
    int producer, consumer; /* positions: the task at `consumer` waits for the one at `producer` */
    bool previous;          /* it is the producer's instance of the step before */
};

/* Which instance of the producer is waited for: add_after(). */
enum step_waited { SAME_STEP, STEP_BEFORE };

/* ---- the fields -------------------------------------------------------------------------------------------------- */

struct list_extra {
    /* Tasks that are added get these numbers. */
    uint64_t last_origin; /* the highest origin so far */
    int message;          /* the message number that copies get which are added now; 0: none */
    int last_message;     /* the highest message number so far */

    struct origin_wait *origin_waits; /* in the order of their consumers */
    size_t n_origin_waits, cap_origin_waits;

    /* While the list is edited; else NULL. */
    struct task *sentinel; /* comes before the first task and after the last one */
    struct task *cursor;   /* new tasks come right after it */

    /* Brings state back to where it is looked for, if tasks of this list may leave it elsewhere; NULL: they do not.
     * drain() and its like call it with nothing in flight, after any number of iterations. */
    void (*restore_state)(struct list *list);

    /* Bytes that are held, set by place(). */
    size_t (*peak)[MEM_CLASSES]; /* by device: most bytes of a class held at a time */
    size_t *peak_total;          /* by device: most bytes of all classes together held at a time */
    struct level *levels;        /* what is held from each position on, in list order */
    size_t n_levels, cap_levels;
};

#endif

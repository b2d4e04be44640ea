/* step_parts.h - private to src/trainer/step: what the files that place tensors, those that find edges, and those that
 * add tasks, know of each other.  list.h has place(), depend() and the adders for others.
 *
 *     place.c       the idea: one arena after another                                                    begin here
 *     lives.c       when each tensor lives
 *     place_order.c the order in which they get addresses
 *     addresses.c   the lowest address that is free for the whole of a life
 *     fit.c         the sentence that says what does not fit, and what would make room
 *     levels.c      how many bytes each device holds from which position of the list on
 *
 *     depend.c      which task must wait for which                                                       begin here
 *     segments.c    the bytes of a tensor or a slab, cut into segments of one history each
 *     waits.c       which of these edges need a wait, since the others follow from them
 *     after.c       which tasks wait because the list says so, though no tensor does: listed waits
 *
 *     add.c         adds tasks; copy.c adds copies                                                       begin here
 */
#ifndef STEP_PARTS_H
#define STEP_PARTS_H

#include "list.h"

/* Time is counted in positions, one list's after those of the list before: two lives meet when they share one. */
struct life {
    struct tensor *tensor;
    size_t first, last;   /* positions */
    size_t bytes;         /* how many bytes it takes, rounded up to the device's alignment */
    size_t arena_address; /* its first byte, counted over all slabs: slab k begins at k times the limit of slabs */
};

struct arena {
    struct device *device;
    struct life *lives; /* one for each of its tensors */
    size_t n, cap;
    size_t n_positions;  /* positions of all lists together */
    size_t least_bytes;  /* the most bytes that a list holds on the device at a time: it cannot do with less */
    size_t bytes_before; /* bytes of the device's arenas before this one */
    size_t first_slab;   /* slabs of the device's arenas before this one */
    size_t slab_bytes[SLABS_PER_DEVICE]; /* by slab: bytes in use from its start */
    size_t n_slabs;
};

/* ---- add.c ------------------------------------------------------------------------------------------------------- */

/* A task of the list that does nothing yet.  It has the list's tags, and an origin of its own. */
struct task *add_task(struct list *list, struct lane *lane, const char *name);

/* ---- lives.c ----------------------------------------------------------------------------------------------------- */

/* Adds every tensor that some list uses, or that persists, to the arena of its device.  Returns the number
 * of positions of all lists. */
size_t gather_lives(struct pool *pool, struct list *const *lists, size_t n, struct arena *arenas);

/* ---- place_order.c ----------------------------------------------------------------------------------------------- */

/* Gives the arena's tensors their addresses, in the order that needs fewer bytes; or each its own bytes, where a step
 * file's device has room for all.  Returns NULL, or the problem when one does not fit. */
struct problem *place_arena(struct arena *arena);

/* ---- addresses.c ------------------------------------------------------------------------------------------------- */

/* A map of the lives of an arena that have an address. */
struct address_map *new_address_map(const struct arena *arena);
void free_address_map(struct address_map *map);

/* Gives the life the lowest address that is free for all of its time, and notes it in the map.  limit: the bytes of a
 * slab; no life lies across the border of two. */
void hold_lowest(struct address_map *map, struct life *life, size_t limit);

/* ---- fit.c ------------------------------------------------------------------------------------------------------- */

/* Bytes of the device that this arena, and those before it, take. */
size_t arena_bytes(const struct arena *arena);

enum limit { LIMIT_OF_SLAB, LIMIT_OF_BUDGET };

/* The problem that a tensor does not fit: it is larger than a slab may be, or it exceeds the budget together with the
 * tensors that were placed before it. */
struct problem *fit_problem(const struct arena *arena, const struct tensor *tensor, enum limit limit);

/* ---- levels.c ---------------------------------------------------------------------------------------------------- */

/* Fills in the list's levels, peak and peak_total.  Lifetimes are known. */
void fill_levels(struct list *list);

/* ---- segments.c -------------------------------------------------------------------------------------------------- */

/* A space is a tensor's own bytes (data edges) or a slab of a device (reuse edges).  It is a sorted list of segments,
 * one at first; a touched range is cut out of it, so that every segment has one history: the node that wrote it last,
 * and those that have read it since. */
struct segment {        /* bytes up to the next segment */
    size_t begin;       /* its first byte */
    int writer, reader; /* its latest write and its latest read since, as positions in walk->touches; or NONE */
};

struct space {
    struct segment *segments;
    size_t n, cap;
};

/* The index of the segment that begins at that byte.  A segment that lies across the byte is cut in two. */
size_t cut_segment(struct space *space, size_t byte);

/* ---- after.c ----------------------------------------------------------------------------------------------------- */

/* All waits that follow from no access, those of gates and of add_after(), in the order of their consumers.  The caller
 * frees the array of *n. */
struct listed_wait *collect_waits_with_gates(const struct list *list, size_t *n);

/* ---- waits.c ----------------------------------------------------------------------------------------------------- */

/* Hands each task its edges, which fill_edges() has found, and sets edge->needs_wait of each. */
void mark_waits(struct list *list);

#endif

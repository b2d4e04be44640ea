/* swap_search.h - what the search of --swap auto knows of a list, and what it chooses: a layout, and an action for each
 * gap of swap_parts.h.
 *
 *     swap_auto.c        makes the decisions and the starts, and lets search/search.c find the best choice
 *     swap_choice.c      carries a choice out
 *     swap_positions.c   says where the copies of a choice come
 */
#ifndef SWAP_SEARCH_H
#define SWAP_SEARCH_H

#include "planning/search/search.h"
#include "swap_parts.h"

/* ---- what the search knows --------------------------------------------------------------------------------------- */

enum { LAYOUT = 0 }; /* the number of the decision about the layout; the others are about gaps */

/* A *layout* says in which order the tasks are, and where copies come.  It is one decision about two things, so that
 * the search, which gives a decision each of its options once, tries all pairs of the two.  For each rule of
 * hold_rules[] in swap_choice.c there is a layout with the tasks as listed.  Then the same rules come again, with the
 * tasks in the clock's order; these layouts are the last, since not all lists have such an order. */
enum {
    FIRST_LAYOUT = 0,
    LAYOUT_OF_FEWEST_BYTES = 2,
    N_LAYOUTS_AS_LISTED = 6,
    N_LAYOUTS = 2 * N_LAYOUTS_AS_LISTED,
};

struct gap_facts { /* a gap, as the search sees it */
    const struct gap *gap;
    double seconds; /* time of a copy of its tensor, one way */
    bool may_remake;
    bool has_decision; /* false: no decision is about this gap, and its tensor is kept */
    size_t decision;   /* the number of the decision that is about it */
};

struct task_move { /* a task goes to where it begins by the clock */
    struct task *task, *behind;
};

struct swapper {
    struct gaps gaps;        /* the gaps of the list as the pass finds it */
    struct task_move *moves; /* one after another they bring a pipeline's tasks into the clock's order */
    size_t n_moves;
    struct gap_facts *gap_facts; /* one for each gap */
    struct fate *fates;          /* one for each gap, by the choice that was applied last */
    const struct costs *costs;
    bool may_swap;    /* false (REMAKE_ALONE): a tensor that cannot be made again is kept */
    bool looks_ahead; /* an earlier pass asks, so the search may spend a part of its work alone */
    struct decision *decisions;
    size_t n_decisions;
    size_t admitted;         /* how many decisions the search takes, from the first on; the others are to keep */
    size_t end[MEM_CLASSES]; /* by round: how many decisions it and earlier rounds have; 0: the round has none */
};

/* ---- swap_choice.c ----------------------------------------------------------------------------------------------- */

/* Finds swapper->moves; there are none where the list is no pipeline, or where times are not known. */
void fill_moves(struct swapper *swapper);

/* Carries a choice out, in an open edit: an apply_function of the search.  context: the swapper. */
void apply_choice(void *context, struct edit *edit, const option_byte *choice);

/* ---- swap_positions.c -------------------------------------------------------------------------------------------- */

/* A rule: bytes are held for a copy `copy_times` times as long as the copy takes. */
struct hold_rule {
    double copy_times; /* USES_ALONE: for no copy; AS_LONG_AS_THERE_IS_ROOM: longer than any gap */
    double margin;     /* the share of the budget that stays free, since addresses leave holes: 0.03 is 3 % */
};

enum { USES_ALONE = 0, AS_LONG_AS_THERE_IS_ROOM = 1000000 };

/* The list as it is now, which may have repeated tasks. */
struct timed_list {
    const struct pool *pool;
    const struct uses *uses;
    const struct span *spans; /* by position: when the task runs, in seconds, roughly; repeated tasks take no time */
};

/* Moves `out` and `in` of the gaps' fates away from the ends of the gaps on the device, as far as `rule` says and
 * as long as the device's budget has room.  They are at the ends before the call, and their copy_seconds are set. */
void set_copy_positions(const struct device *device, const struct hold_rule *rule, const struct timed_list *timed,
                        const struct swaps *swaps);

#endif

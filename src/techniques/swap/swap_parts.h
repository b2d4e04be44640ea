/* swap_parts.h - what the search of --swap auto chooses, and what that does to the list. */
#ifndef SWAP_PARTS_H
#define SWAP_PARTS_H

#include "planning/search/search.h"
#include "swap.h"

enum { LAYOUT = 0 }; /* the number of the decision about the layout; the others are about gaps */

/* A *layout* says in which order the tasks are, and where copies come.  It is one decision about two things, so that
 * the search, which gives a decision each of its options once, tries all pairs of the two.  The options are the rows of
 * layouts[], a table in swap_choice.c.  Those with the tasks in the clock's order come last, since not all lists have
 * one. */
enum { FIRST_LAYOUT = 0, LAYOUT_OF_FEWEST_BYTES = 2, N_LAYOUTS_AS_LISTED = 6, N_LAYOUTS = 12 };

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
    size_t n;                /* decisions */
    size_t admitted;         /* how many decisions the search takes, from the first on; the others are to keep */
    size_t end[MEM_CLASSES]; /* by round: how many decisions it and earlier rounds have; 0: the round has none */
};

/* ---- swap_choice.c ----------------------------------------------------------------------------------------------- */

/* Finds swapper->moves; there are none where the list is no pipeline, or where times are not known. */
void fill_moves(struct swapper *swapper);

/* Carries a choice out, in an open edit: an apply_function of the search.  context: the swapper. */
void apply_choice(void *context, struct edit *edit, const unsigned char *choice);

/* ---- swap_auto.c ------------------------------------------------------------------------------------------------- */

/* --swap auto.  false: all fits, and the list is as it was.  Ends the program (EXIT_USAGE) where nothing fits. */
bool swap_by_search(struct list *list, const struct costs *costs, const struct swap_options *options,
                    const struct run_facts *facts, struct pass_report *report);

/* --recompute auto, whose pass runs before that of swap.  false: all fits, or --swap auto will choose what is made
 * again; the list is as it was.  Ends the program (EXIT_USAGE) where nothing fits and swap is off. */
bool remake_by_search(struct list *list, const struct costs *costs, const struct swap_options *options,
                      const struct run_facts *facts, struct pass_report *report);

/* Does --swap auto make the list fit, with a step of at most `seconds`?  The search for the answer is shorter than that
 * of a run, and ends as soon as one plan shows it.  The list stays as it is. */
bool can_fit_within(struct list *list, const struct costs *costs, const struct swap_options *options, double seconds);

#endif

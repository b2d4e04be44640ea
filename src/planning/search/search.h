/* search.h - the one search, used by all techniques that choose.
 *
 * A pass is a rule and a rewrite; choosing is done here.  The pass says what there is to decide, and how a choice is
 * carried out; the search carries choices out in an edit, one after another, lets them be placed and simulated, and
 * undoes each.
 *
 *     decision    0  1  2  3  4  5           "swap this tensor?", "update this layer on the CPU?": the pass knows which
 *     choice      1  1  0  0  2  0           an option for each decision
 *     group       a  a  a  b  b  -           what often goes together: the same tensor of all layers
 *
 *     starts  ->  the best of them  ->  flip one, flip a group, exchange two  ->  ...  until the work is spent
 *
 * A choice is better when it needs fewer bytes beyond the budgets, then when the step is shorter, then when it copies
 * less.  A choice is placed before it is simulated, which is a fifth of the work: if it needs too many bytes, it is not
 * simulated.  The search also goes on from a choice that is a little worse than the best.  How much worse it may be
 * grows with the time in which nothing better was found (record-to-record travel, Dueck 1993).  The search draws from a
 * seed of its own: the same question has the same answer.
 *
 * A fixed rule needs no search: it is one start, and `work` is 0.
 */
#ifndef SEARCH_H
#define SEARCH_H

#include "choice_text.h" /* brings: option_byte */
#include "planning/pass/edit.h"
#include "planning/predict/forecast.h"

struct decision {        /* a choice has an option_byte for each (choice_text.h) */
    option_byte options; /* how many the search tries: 0 .. options - 1 */
    int group;           /* the first decision of the group that may change together; NONE: it changes alone */
};

struct score {
    double excess_bytes; /* bytes beyond budgets, summed over devices; INFINITY: the list cannot be placed at all */
    double period;       /* seconds of a step; INFINITY: it was not simulated; 0: it is not known how long tasks take */
    double copied_bytes; /* bytes that all copies of the list move */
};

/* Does the list fit into the budgets? */
static inline bool score_fits(const struct score *score) { return score->excess_bytes == 0; }

/* Rewrites the list as the choice says, the same way each time. */
typedef void apply_function(void *context, struct edit *edit, const option_byte *choice);

struct question {
    struct list *list;
    const struct costs *costs;
    const char *activity; /* what the terminal shows during a long search: "looking for what to swap" */
    const struct decision *decisions;
    size_t n; /* decisions */
    apply_function *apply;
    void *context;       /* the first argument of `apply` */
    double least_period; /* seconds: no step can be shorter, so the search ends when one is as short; 0: not known */
    /* How many simulations of tasks the search may spend.  All starts are tried, whatever they cost; further choices
     * are tried as long as some work is left. */
    double work;
};

enum { SEARCH_WORK = 600000 }; /* a few seconds */

/* Tries one choice; the list stays as it is. */
struct score score_choice(const struct question *question, const option_byte *choice);
bool is_better(const struct score *a, const struct score *b);

/* Writes the best choice that is found to best[n], and returns its score.  `starts` holds n_starts choices, one after
 * the other: start i is starts[i * n] ... starts[i * n + n - 1], where n is question->n.  (Choices stand in one array
 * since n is known only when the program runs, and a caller often has dozens of them.) */
struct score find_best_choice(const struct question *question, const option_byte *starts, size_t n_starts,
                              option_byte *best);

#endif

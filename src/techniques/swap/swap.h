/* swap.h - gaps, in which tensors lie idle, and what becomes of them.
 *
 *     swap.c            finds the gaps, and swaps those that a fixed order names
 *     swap_auto.c       --swap auto, --recompute auto: a search says which gaps
 *     swap_report.c     what people and `plan --json` are told
 *     swap_options.c    the folder: its pass, its options
 */
#ifndef SWAP_H
#define SWAP_H

#include "techniques/pass/pass.h"
#include "tools/predict/predict.h"

enum swap { SWAP_OFF, SWAP_AUTO, SWAP_LAYER, SWAP_MICROBATCH };
struct swap_options {
    enum swap how;
    unsigned what; /* the classes of tensors that may leave: a bit per enum memory_class */
};
extern struct swap_options swap_options;

enum action { KEEP, SWAP, REMAKE }; /* only the search uses REMAKE */

/* Tasks `begin` and `end` of the list use x, and no task between them does.  State also has a gap before its first use,
 * where `begin` is NOWHERE, and one after its last use, where `end` is the number of tasks. */
struct gap {
    struct tensor *x;
    struct device *device;    /* the one whose tasks use x; x's home may become the host */
    const struct task *maker; /* the first task that uses x */
    int begin, end;
    int nth; /* how many tasks use x before the gap; swap_auto.c makes it 0 for all gaps of a state tensor */

    /* the next fields say what a pass does about the gap */
    enum action action;
    int out, in;         /* where it is swapped: the device holds x through task `out`, and again from task `in` on */
    struct gap *earlier; /* the last gap before this one in which x is swapped; NULL: none */
    bool sent;           /* a copy takes x to the host; false: the host has it already */
    struct tensor *on_host; /* x while it is away */
    struct tensor *back;    /* x when it has come back, or is made again; NULL: no task reads it any more */
    struct task *leaves;    /* the copy to the host; NULL: there is none */

    /* for swap_auto.c alone */
    int before, after; /* begin and end, in the list without repeated tasks */
    int64_t bytes;     /* bytes that the device holds for x; 0 under the fixed orders */
    double seconds;    /* time of a copy, one way */
    bool may_remake;
    size_t decision; /* the number of the decision that is about this gap; 0: none, x is kept */
};
struct gaps { /* all gaps of a list */
    struct step *step;
    struct forecast bare; /* the forecast for the list as the pass finds it, */
    struct uses *uses;    /* and the uses in this list */
    struct gap *gap;      /* sorted by `begin` */
    size_t n, cap;
};
/* The gaps that are swapped, in the orders in which their copies stand in the list: first by their places, and where
 * several have one place by their gaps. */
struct swaps {
    struct gap **out; /* of those that leave at one place, the tensor whose gap begins first leaves first */
    struct gap **in;  /* of those that come back at one place, the tensor whose gap ends first comes back first */
    size_t n;
};

/* swap.c: --swap layer and --swap microbatch; false: nothing can leave. */
bool swap_by_phases(struct step *s, const struct costs *c, const struct run_facts *w, struct pass_report *r);
/* The gaps of tensors of these classes, a bit per enum memory_class. */
struct gaps find_gaps(struct step *s, const struct costs *c, unsigned classes);
void free_gaps(struct gaps *all);
/* The gaps whose action is SWAP; `begin` and `end` are positions in u.  The caller frees `out` and `in`. */
struct swaps line_up(const struct gaps *all, const struct uses *u);
/* Rewrites the list, after `out` and `in` of the gaps have been chosen; u: the uses in the list as it is now. */
void swap_gaps(struct edit *e, struct step *s, const struct uses *u, const struct swaps *all);

/* swap_auto.c: --swap auto and --recompute auto; false: all fits, or the other one chooses. */
bool swap_by_search(struct step *s, const struct costs *c, const struct run_facts *w, struct pass_report *r);
bool remake_by_search(struct step *s, const struct costs *c, const struct run_facts *w, struct pass_report *r);

/* swap_report.c: reports on the list as it is now; declines: why no gap is swapped or made again, or NULL. */
void report_gaps(const struct gaps *all, const struct costs *c, const char *declines, struct pass_report *r);

#endif

/* swap_parts.h - gaps, in which tensors lie idle, and fates, which say what is done about each gap.  What only the
 * search of --swap auto has is in swap_search.h.
 *
 *     list  ──▶  gaps         ──▶  fates                        ──▶  swaps             ──▶  new list
 *                collect_gaps()    keep_all(), then a fixed order    line_up()              swap_gaps()
 *                                  or apply_choice() of the search
 */
#ifndef SWAP_PARTS_H
#define SWAP_PARTS_H

#include "planning/pass/fetch.h" /* brings: FOR_SWAP */
#include "planning/pass/pass.h"
#include "planning/predict/forecast.h"
#include "swap.h"

/* ---- gaps -------------------------------------------------------------------------------------------------------- */

/* Tasks `begin` and `end` of the list use the tensor, which comments call x, and no task between them does.  State also
 * has a gap before its first use, where `begin` is NONE, and one after its last, where `end` is the number of tasks.
 * Gaps are facts about the list that the pass finds: nothing changes them. */
struct gap {
    struct tensor *tensor;
    struct device *device;    /* the one whose tasks use the tensor; its home may become the host */
    const struct task *maker; /* the first task that uses x */
    int begin, end;
    int uses_before; /* how many tasks use x before the gap */
    bool renewed;    /* no task needs x's value after the gap, so nothing is copied: x's bytes are free in the gap */
    bool may_close;  /* task `end` could come right after task `begin`, so that there is no gap */
    /* x is state that the host updates: when its home is the host, the only copies up are those of swap. */
    bool guest;
};

/* The bytes that the device holds for the gap's tensor. */
static inline int64_t gap_bytes(const struct gap *gap)
{
    return (int64_t)round_up(gap->tensor->bytes, gap->device->alignment);
}

struct gaps { /* all gaps of a list */
    struct list *list;
    struct forecast bare; /* the forecast for the list as the pass finds it */
    struct uses *uses;    /* the uses in that list */
    unsigned classes;     /* the classes of tensors that may leave */
    struct gap *items;    /* n gaps, sorted by `begin` */
    size_t n, cap;
};

enum action { KEEP_TENSOR, SWAP_TENSOR, REMAKE_TENSOR, ACTIONS }; /* only the search uses REMAKE_TENSOR */

/* What is done about a gap, in the list that is rewritten.  Positions count the tasks of this list, into which the
 * search may have put repeated tasks.
 *
 *     tasks             begin  ...  out  ...  in  ...  end
 *     the device has x  |================|    |==========|
 *     copies                        swap.out  swap.in
 *
 * swap.out comes right after task `out`, and swap.in right before task `in`.  begin <= out < in <= end. */
struct fate {
    const struct gap *gap;
    enum action action;     /* KEEP_TENSOR: the device holds x through the whole gap */
    int begin, end;         /* the gap's; a repeated task that uses x ends the gap earlier */
    int out;                /* the device holds x through this task, and then x is away */
    int in;                 /* the device holds x again from this task on; the list's end if x stays away */
    double copy_seconds;    /* how long a copy of x takes, one way; 0 where no search needs to know */
    struct fate *earlier;   /* the fate of the last gap before this one in which x is swapped; NULL: none */
    bool sent;              /* a copy takes x to the host; false: the host has x already */
    struct tensor *on_host; /* x on the host, while x is away */
    struct tensor *back;    /* x after it has come back or was made again; NULL: no task reads x after the gap */
    struct task *copy_out;  /* the task swap.out; NULL: there is none */
};

/* The fates whose action is SWAP_TENSOR, in two orders.  Copies at the same position are in the list in these
 * orders. */
struct swaps {
    struct fate **leaving;   /* in the order in which their gaps begin */
    struct fate **returning; /* in the order in which their gaps end */
    size_t n;                /* the length of each of the two arrays */
};

/* ---- swap.c ------------------------------------------------------------------------------------------------------ */

/* --swap layer and --swap microbatch.  false: nothing can leave, and the list is as it was. */
bool swap_by_phases(struct list *list, const struct costs *costs, const struct swap_options *options,
                    const struct run_facts *facts, struct pass_report *report);

/* The gaps of tensors of these classes, a bit per enum memory_class.  Opens the lanes for copies up, of each device
 * that has a gap.  Ends the program where the list cannot be simulated.  free_gaps() frees what *gaps points to. */
struct gaps collect_gaps(struct list *list, const struct costs *costs, unsigned classes);
void free_gaps(struct gaps *gaps);

/* How many of the tensor's uses, counted from the first one, have gaps between them: for most tensors, all uses.  But
 * the last uses of a guest are the copies up from the host, and swap replaces these by copies of its own. */
size_t uses_with_gaps(const struct uses *uses, const struct tensor *tensor);

/* An array of fates, one for each gap, in the order of gaps, all with the action KEEP_TENSOR.  The caller frees it. */
struct fate *keep_all(const struct gaps *gaps);

/* Lines up the fates whose action is SWAP_TENSOR, and sets their `earlier` and `sent`.  fates: one for each of n gaps;
 * uses: the uses in the list as it is now.  free_swaps() frees the two arrays; the fates remain the caller's. */
struct swaps line_up(struct fate *fates, size_t n, const struct uses *uses);
void free_swaps(struct swaps *swaps);

/* Rewrites the list, after `out` and `in` of the fates have been chosen.  uses: the uses in the list as it is before
 * this call. */
void swap_gaps(struct edit *edit, struct list *list, const struct uses *uses, const struct swaps *swaps);

/* ---- swap_report.c ----------------------------------------------------------------------------------------------- */

/* Fills in the report, for the list as it is now.  fates: one for each gap.  why_kept: why all tensors are kept; NULL:
 * some are not. */
void report_gaps(const struct gaps *gaps, const struct fate *fates, const struct costs *costs, const char *why_kept,
                 struct pass_report *report);

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

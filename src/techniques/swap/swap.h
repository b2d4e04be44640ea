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
    enum swap mode;
    unsigned classes; /* the classes of tensors that may leave: a bit per enum memory_class */
};
extern struct swap_options swap_options;

/* Tasks `begin` and `end` of the list use x, and no task between them does.  State also has a gap before its first use,
 * where `begin` is NOWHERE, and one after its last use, where `end` is the number of tasks.  Gaps are facts about the
 * list that the pass finds: nothing changes them. */
struct gap {
    struct tensor *x;
    struct device *device;    /* the one whose tasks use x; x's home may become the host */
    const struct task *maker; /* the first task that uses x */
    int begin, end;
    int nth;      /* how many tasks use x before the gap */
    bool renewed; /* no task needs x's value behind the gap, so nothing is copied: x's bytes are free in between */
    bool closes;  /* task `end` could come right behind task `begin`, and so end the gap */
    bool guest;   /* x is state that the host updates: when its home is the host, it needs no copies up but swap's */
};
struct gaps { /* all gaps of a list */
    struct step *step;
    struct forecast bare; /* the forecast for the list as the pass finds it */
    struct uses *uses;    /* the uses in that list */
    unsigned classes;     /* the classes of tensors that may leave */
    struct gap *gap;      /* sorted by `begin` */
    size_t n, cap;
};

enum action { KEEP, SWAP, REMAKE }; /* only the search uses REMAKE */

/* What is done about a gap, in the list that is rewritten.  Positions are those in this list: the search may have put
 * repeated tasks into it. */
struct absence {
    const struct gap *gap;
    enum action action; /* KEEP: x is not away at all */
    int begin, end;     /* the gap's; a repeated task that uses x ends the gap earlier */
    int out, in;        /* where x is swapped: the device holds it through task `out`, and again from task `in` on */
    struct absence *earlier; /* the last absence before this one in which x is swapped; NULL: none */
    bool sent;               /* a copy takes x to the host; false: the host has it already */
    struct tensor *on_host;  /* x while it is away */
    struct tensor *back;     /* x when it has come back, or is made again; NULL: no task reads it any more */
    struct task *leaves;     /* the copy to the host; NULL: there is none */
};
/* The absences in which tensors are swapped, in the orders in which their copies stand in the list: first by their
 * places, and where several have one place by their gaps. */
struct swaps {
    /* Of those that leave at one place, the tensor whose gap begins first leaves first. */
    struct absence **leaving;
    /* Of those that come back at one place, the tensor whose gap ends first comes back first. */
    struct absence **returning;
    size_t n;
};

/* swap.c: --swap layer and --swap microbatch; false: nothing can leave. */
bool swap_by_phases(struct step *s, const struct costs *c, const struct run_facts *facts, struct pass_report *r);
/* The gaps of tensors of these classes, a bit per enum memory_class. */
struct gaps find_gaps(struct step *s, const struct costs *c, unsigned classes);
void free_gaps(struct gaps *all);
/* Gaps lie between so many uses of x, counted from the first: the rest are copies up that a guest does without. */
size_t uses_to_part(const struct uses *u, const struct tensor *x);
/* An array of absences, one for each gap, in the order of gaps; the action of all is KEEP.  The caller frees it. */
struct absence *keep_all(const struct gaps *all);
/* The absences whose action is SWAP; absence: one for each of n gaps; u: the uses in the list as it is now.  The caller
 * frees `out` and `in`. */
struct swaps line_up(struct absence *absence, size_t n, const struct uses *u);
/* Rewrites the list, after `out` and `in` of the absences have been chosen. */
void swap_gaps(struct edit *e, struct step *s, const struct uses *u, const struct swaps *all);

/* swap_auto.c: --swap auto and --recompute auto; false: all fits, or the other one chooses. */
bool swap_by_search(struct step *s, const struct costs *c, const struct run_facts *facts, struct pass_report *r);
bool remake_by_search(struct step *s, const struct costs *c, const struct run_facts *facts, struct pass_report *r);

/* swap_report.c: reports on the list as it is now; absence: one for each gap; declines: why in all gaps tensors are
 * kept, or NULL. */
void report_gaps(const struct gaps *all, const struct absence *absence, const struct costs *c, const char *declines,
                 struct pass_report *r);

#endif

/* gaps.h - the tensors that need not be held all the time, and a list in which they are not.
 *
 * Between two uses of a tensor lies a gap.  In it the tensor may be kept, or swapped: a copy takes it to the host, and
 * another one brings it back as a new tensor, to which the later tasks are re-pointed; or made again: the tasks that
 * wrote it are repeated right before its next use.  State that persists, when it is swapped, lives on the host, and is
 * on the device only while it is used.
 *
 * To be read in this order:
 *
 *     gaps.c         what may move: the survey of a list, its gaps, and how long copies take
 *     swap_plan.c    what comes of a plan
 *     swap_rules.c   what leaves by rule, where too much is held
 *     swap_search.c  the search for the best plan
 *     swap_line.c    a plan made true in an edit, which the caller commits or undoes
 *     swap_where.c   where in the list bytes leave and come back
 *     swap_bound.c   what no plan can beat
 *     swap.c         the pass, and its report; recompute.c: what is made again and never swapped
 *
 * Where bytes leave and come back is a place in the *line*: the list with what is made again, but without copies.
 */
#ifndef GAPS_H
#define GAPS_H

#include "pass.h"

/* ---- gaps.c ------------------------------------------------------------------------------------------------------ */

struct gap_uses { /* of a root, in list order; a task counts once */
    struct use {
        int task; /* its position */
        enum access_mode mode;
    } * use;
    size_t n, cap;
};
struct gap {
    struct tensor *tensor; /* a root */
    int before, behind;    /* the uses around it, as positions in the list; of state -1: none before, n: none behind */
    size_t candidate;      /* that it is of */
};
struct candidate { /* what has one fate: a gap of a tensor, or all gaps of one that persists */
    struct tensor *tensor;
    struct device *device;
    size_t first, n; /* gaps */
    int maker;       /* the first task that writes it; of state the first that uses it */
    bool remakeable;
    double out, in, again; /* seconds of a copy to the host, and back; of what writes it */
};
struct survey {
    struct step *step;
    const struct costs *costs;
    struct task **task; /* as they were */
    int n;
    size_t tensors; /* in the pool, before any edit */
    struct gap_uses *uses;
    struct gap *gaps;
    struct candidate *candidates;
    size_t n_gaps, n_candidates, cap_gaps, cap_candidates;
    double *start, *end; /* of each task in the steady step, when all is kept; its position when not known */
    size_t **held;       /* by device: [n] bytes at each position, when all is kept */
    struct lane **to_host, **from_host; /* by device: the lanes of swaps */
};
/* Gaps of tensors of these classes (a bit per enum memory_class) on all devices but the host; f: the list as it is, or
 * NULL: nothing is swapped. */
struct survey *look_for_gaps(struct step *s, const struct costs *c, const struct forecast *f, unsigned classes);
void free_survey(struct survey *v);
/* By root, of so many tensors. */
struct gap_uses *find_gap_uses(struct task *const *task, int n, size_t tensors);
void free_gap_uses(struct gap_uses *uses, size_t tensors);
bool same_block(const struct task *a, const struct task *b); /* of a layer, one way */
bool is_rewritten_between(const struct survey *v, const struct tensor *x, int from, int to);
/* Everything that wrote it, before `behind`, can be repeated, and nothing writes it from there on. */
bool may_remake(const struct survey *v, const struct tensor *x, int behind);
/* Made by a layer's forward for its backward, and touched by nothing else. */
bool is_of_one_layer(const struct survey *v, const struct candidate *c);
bool crosses(const struct gap *g, int position); /* of the list */

/* ---- swap_line.c ------------------------------------------------------------------------------------------------- */

enum fate { KEEP, SWAP, REMAKE };
struct spot { /* in the line: the bytes are held through `out` and again from `in` on */
    int out, in;
};
struct way {       /* how spots are chosen */
    double lead;   /* so many times as long as a copy takes is it held for it; 0: for its uses alone */
    bool in_first; /* what comes back has the first claim to bytes, not what leaves */
    double margin; /* share of the budget that stays free: addresses leave holes */
};
struct swap_plan {
    enum fate *fate;       /* by candidate */
    struct spot *spot;     /* by gap */
    bool by_layer;         /* what is made again comes before all that a layer's backward does */
    const struct way *way; /* that they were chosen in; NULL: one by one */
    double excess;         /* bytes over budgets, summed over devices; INFINITY: it cannot be placed at all */
    double period;         /* seconds; 0 where no times are known */
    double moved;          /* bytes copied */
    size_t *need;          /* by device: what it takes */
};
struct deed {                /* what a plan does about a gap; NULL where it does nothing */
    struct task *out;        /* the copy to the host */
    struct task *in, *ready; /* the copy back, or the first and the last task that makes it again */
    struct task *reader;     /* that needs it */
};
struct stretch { /* a gap that is swapped, as places in the line */
    size_t gap;
    int begin, end; /* -1 or the last use before; the next use, or the line's length */
    bool copied;    /* to the host: not so what is there already */
    struct device *device;
    int64_t bytes;
};
struct line {
    struct task **task;
    int n;
    size_t tensors;
    struct gap_uses *uses;    /* by places */
    double *start;            /* when each task starts, roughly: later by what is made again before it */
    struct stretch *out, *in; /* first made first; first needed first */
    size_t n_stretches;
    struct deed *deeds; /* by gap */
};
/* Makes again what the plan says; spots are chosen on what comes out ... */
struct line open_line(const struct survey *v, struct edit *e, const struct swap_plan *p);
/* ... and this puts the copies in. */
void insert_copies(const struct survey *v, struct edit *e, struct line *l, const struct swap_plan *p);
struct line follow_plan(const struct survey *v, struct edit *e, const struct swap_plan *p); /* both, on its own spots */
void free_line(struct line *l);

/* ---- swap_where.c ------------------------------------------------------------------------------------------------ */

void choose_spots(const struct survey *v, const struct line *l, struct swap_plan *p, const size_t *budget,
                  const struct way *way);
/* [l->n] bytes that the device holds at each place, when what leaves is held for its uses alone.  The caller frees it.
 */
int64_t *bytes_along(const struct survey *v, const struct line *l, const struct device *d);

/* ---- swap_plan.c ------------------------------------------------------------------------------------------------- */

struct planner {
    struct survey *survey;
    size_t *budget;                           /* by device; those of the machine are lifted while plans are tried */
    bool swap, remake;                        /* fates that are allowed ... */
    unsigned classes;                         /* ... to tensors of these classes, a bit per enum memory_class */
    bool any;                                 /* whatever fits will do */
    double bare;                              /* when all is kept: the period ... */
    size_t *holes;                            /* ... and by device what it takes beyond the most bytes held */
    double work, most;                        /* tasks tried, and how many may be */
    struct busy busy;                         /* that, on the terminal */
    struct swap_plan least[1 << MEM_CLASSES]; /* by classes: see least_plan() */
};
struct planner open_planner(struct survey *v, const size_t *budget, bool swap, bool remake);
void close_planner(struct planner *p); /* not the survey */
extern const double MOST_WORK;         /* tasks of all plans that a search tries: a few seconds */
struct swap_plan new_plan(const struct survey *v);
void copy_plan(const struct survey *v, struct swap_plan *to, const struct swap_plan *from);
struct swap_plan copy_of_plan(const struct survey *v, const struct swap_plan *p);
void free_plan(struct swap_plan *p);
bool is_better_plan(const struct swap_plan *a, const struct swap_plan *b);
/* A fate that the candidate may have: the one wished for, or else another than KEEP. */
enum fate allowed_fate(const struct planner *p, size_t candidate, enum fate wish);
/* Fits, and is as short as when all is kept. */
bool is_perfect(const struct planner *p, const struct swap_plan *plan);
/* Sets the plan's spots, unless `way` is NULL, and what comes of it; its period is INFINITY when it is over budgets by
 * more than `most` bytes. */
void try_within(struct planner *p, struct swap_plan *plan, const struct way *way, double most);
const struct way *any_way(size_t n); /* for any number */
/* In the best way; those over budgets by more than `most` bytes are not wanted. */
void try_fates(struct planner *p, struct swap_plan *plan, double most);
/* In another way, if that is better. */
void try_other_ways(struct planner *p, struct swap_plan *plan);
/* What its reader waits for comes earlier, by as long as that waited (Capuchin's rule); false: that is no better. */
bool lead_more(struct planner *p, struct swap_plan *plan);
/* More lead, and other spots one by one, while that is better. */
void polish(struct planner *p, struct swap_plan *plan);
/* By device: no plan needs fewer bytes than are in use at a time.  The caller frees it. */
size_t *bytes_in_use(const struct planner *p);

/* ---- swap_rules.c ------------------------------------------------------------------------------------------------ */

/* Where the device holds more than `most` bytes, something gets the fate that is wished for, while there is any: what
 * is cheapest to have again, or what has the furthest next use. */
void evict(const struct planner *p, struct swap_plan *plan, const struct device *d, double most, enum fate wish,
           bool by_cost);

/* ---- swap_search.c ----------------------------------------------------------------------------------------------- */

/* The best plan that is found for the budgets. */
struct swap_plan find_plan(struct planner *p);
/* The plan that needs the fewest bytes, on each device: `need` holds the smallest budgets that work.  Times do not
 * matter to it.  It is the planner's. */
const struct swap_plan *least_plan(struct planner *p);

/* ---- swap_bound.c ------------------------------------------------------------------------------------------------ */

/* Seconds that a step takes at least in these budgets. */
double lower_bound(const struct planner *p, const size_t *budget);

#endif

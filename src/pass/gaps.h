/* gaps.h - the tensors that need not be held all the time, and a list in which they are not.
 *
 * Between two uses of a tensor lies a gap.  In it the tensor may be kept, or swapped: a copy takes it to the host, and
 * another one brings it back as a new tensor, to which the later tasks are re-pointed; or made again: the tasks that
 * wrote it are repeated right before its next use.  State that persists, when it is swapped, lives on the host, and is
 * on the device only while it is used.
 *
 *     survey     finds the gaps of a list and how long copies take
 *     plan       a fate for each candidate, and where in the list its bytes leave and come back
 *     open_plan  an edit in which the list is as the plan says; the caller commits or undoes it
 *
 * Where bytes leave and come back is a place in the *line*: the list with what is made again, but without copies.
 */
#ifndef GAPS_H
#define GAPS_H

#include "pass.h"

enum fate { KEEP, SWAP, REMAKE };
struct gap {
    struct tensor *tensor; /* a root */
    int before, behind;    /* the uses around it, as positions in the list; of state -1: none before, n: none behind */
    size_t candidate;      /* that it is of */
};
struct candidate { /* what has one fate: a gap of a tensor, or all gaps of one that persists */
    struct tensor *tensor;
    struct device *device;
    size_t first, n; /* gaps */
    bool remakeable;
    int maker; /* the first task that writes it; of state the first that uses it */
};
struct copy_speed {
    double latency, per_byte; /* seconds */
};
struct survey {
    struct step *step;
    const struct costs *costs;
    struct task **task; /* as they were */
    int n;
    size_t tensors; /* in the pool, before any edit */
    int *first_use; /* uses of tensor i: use[first_use[i]] ... in list order */
    struct use *use;
    struct gap *gaps;
    struct candidate *candidates;
    size_t n_gaps, n_candidates, cap_gaps, cap_candidates;
    double *start, *end;          /* of each task in the steady step, when all is kept; its position when not known */
    struct copy_speed *down, *up; /* by device */
    struct lane **to_host, **from_host; /* by device: the lanes of swaps */
};
struct use {
    int task; /* its position */
    enum access_mode mode;
};

/* Gaps of tensors of these classes (a bit per enum memory_class) on all devices but the host; f: the list as it is. */
struct survey *look_for_gaps(struct step *s, const struct costs *c, const struct forecast *f, unsigned classes);
void free_survey(struct survey *v);
double copy_seconds(const struct copy_speed *s, size_t bytes);

struct spot { /* in the line: the bytes are held through `out` and again from `in` on */
    int out, in;
};
struct swap_plan {
    enum fate *fate;   /* by candidate */
    struct spot *spot; /* by gap */
    double excess;     /* bytes over budgets, summed over devices; INFINITY: it cannot be placed at all */
    double period;     /* seconds; 0 where no times are known */
    double moved;      /* bytes copied */
    size_t *need;      /* by device: what it takes */
};
struct deed {                /* what a plan does about a gap; NULL where it does nothing */
    struct task *out;        /* the copy to the host */
    struct task *in, *ready; /* the copy back, or the first and the last task that makes it again */
    struct task *reader;     /* that needs it */
};
struct line {
    struct task **task;
    int n;
    int *at;             /* by task->index: position in the line */
    double *start;       /* when each task starts, roughly: later by what is made again before it */
    struct task **early; /* by gap: the first repeat that reads the tensor in it, or NULL */
    struct deed *deeds;  /* by gap */
};

/* Makes again what the plan says; spots are chosen on what comes out ... */
struct line open_line(const struct survey *v, struct edit *e, const struct swap_plan *p);
/* ... and this puts the copies in. */
void insert_copies(const struct survey *v, struct edit *e, struct line *l, const struct swap_plan *p);
void free_line(struct line *l);
int gap_begins(const struct survey *v, const struct line *l, size_t gap);   /* in the line: -1 or its last use before */
int gap_ends(const struct survey *v, const struct line *l, size_t gap);     /* its next use, or the line's length */
bool leaves(const struct survey *v, const struct swap_plan *p, size_t gap); /* it is swapped */
bool is_copied(const struct survey *v, size_t gap); /* to the host: not so state that was only read */
bool crosses(const struct gap *g, int position);    /* of the list */

/* ---- swap_where.c ------------------------------------------------------------------------------------------------ */

struct way {       /* how spots are chosen */
    bool tight;    /* held for its uses alone */
    bool in_first; /* what comes back has the first claim to bytes, not what leaves */
    double lead;   /* so many times as long as a copy takes is it held for it */
    double margin; /* share of the budget that stays free: addresses leave holes */
};
void choose_spots(const struct survey *v, const struct line *l, struct swap_plan *p, const size_t *budget,
                  const struct way *way);
/* [l->n] bytes that the device holds at each place, when what leaves is held for its uses alone.  The caller frees it.
 */
int64_t *bytes_along(const struct survey *v, const struct line *l, const struct swap_plan *p, const struct device *d);

/* ---- swap_plan.c ------------------------------------------------------------------------------------------------- */

struct planner {
    struct survey *survey;
    size_t *budget;    /* by device; those of the machine are lifted while plans are tried */
    bool swap, remake; /* fates that are allowed */
    double bare;       /* period, when all is kept */
    double work, most; /* tasks tried, and how many may be ... */
    double last_work;  /* ... and so many more to move copies in the end */
};
struct planner open_planner(struct survey *v, const size_t *budget, bool swap, bool remake);
void close_planner(struct planner *p); /* not the survey */
struct swap_plan new_plan(const struct survey *v);
void free_plan(struct swap_plan *p);
void copy_plan(const struct survey *v, struct swap_plan *to, const struct swap_plan *from);
/* Sets the plan's spots, unless `way` is NULL, and what comes of it. */
void try_plan(struct planner *p, struct swap_plan *plan, const struct way *way);
/* The best plan that is found for the budgets. */
struct swap_plan find_plan(struct planner *p);
/* Of one device: whatever its tensors can do has the fate, and bytes are held for uses alone. */
void try_tight(struct planner *p, struct swap_plan *plan, const struct device *d, enum fate fate);
/* The same of all devices.  false: even so, more bytes are in use at a time than a device has. */
bool tight_plan(struct planner *p, struct swap_plan *plan, enum fate fate);
/* No plan needs fewer bytes than are in use at a time. */
size_t bytes_in_use(struct planner *p, const struct device *d);
/* A fate that the candidate may have: the one wished for, or else another than KEEP. */
enum fate allowed_fate(const struct planner *p, const struct candidate *c, enum fate wish);
extern const double MOST_WORK; /* tasks of all plans that are tried: a few seconds */
bool is_spent(const struct planner *p);
/* [tasks] what the device holds when all is kept; the caller frees it. */
int64_t *bytes_kept(const struct survey *v, const struct device *d);

/* ---- swap_bound.c ------------------------------------------------------------------------------------------------ */

/* The smallest budget of a device for which a plan is found, when the others have as much as they like. */
size_t find_smallest(struct planner *p, const struct device *d);
/* Seconds that a step takes at least in these budgets. */
double lower_bound(const struct planner *p, const size_t *budget);

#endif

/* stats.h - what a trace says: steps and their periods, the path that a step waited for, and why lanes were idle.
 * Implemented in stats.c and causes.c.
 */
#ifndef STATS_H
#define STATS_H

#include "trace.h"

#include <jansson.h>

/* ---- stats.c: what a trace says ---------------------------------------------------------------------------------- */

/* Opens a trace for comparisons: times of a paced trace become modelled ones (x pace_scale, from start_ns), and the
 * time in which a viewer paused the trainer is cut out.  The caller frees it with free_trace(). */
struct trace *read_modelled_trace(const char *path);

const char *name_of_trace_kind(const struct trace *trace); /* "real", "paced", "simulated" */

/* The index of the task list with that name.  Where there is none, ends the program (EXIT_USAGE) and names the trace by
 * `path`.  name NULL: the index of the first list that has records, or 0. */
uint32_t find_trace_list(const struct trace *trace, const char *path, const char *name);

/* The steps of one task list.  The first one warms up (compilation, caches), so it does not count when there are more;
 * nor do steps at the end that are not whole. */
struct trace_steps {
    uint32_t list;
    const struct trace_step *items; /* the steps of the trace */
    size_t n;
    size_t first, counted; /* the steps that count are items[first .. first + counted) */
    uint64_t start, end;   /* the window they fill, which begins when the step before is done, or at the first start */
};
struct trace_steps steps_of_list(const struct trace *trace, uint32_t list);

/* Is the nth record's step a counted one? */
bool is_counted(const struct trace *trace, const struct trace_steps *steps, size_t nth);

/* Medians; 0 without steps.  The period of step n goes from where step n - 1 is done to where step n is done; without
 * step n - 1 it is the length of step n. */
double median_period_ns(const struct trace_steps *steps);
double median_length_ns(const struct trace_steps *steps);

/* What ran on devices at the same time as each layer's updates on the CPU, over the counted steps.  Among tasks of
 * the same step only backwards and updates of other layers count.  A row for each layer:
 *
 *     how many updates ran beside such work, and for how many none was left
 *     how many ran beside work of the next step
 *     for how much of their time they ran beside either
 *
 * The caller frees the table with free_table(). */
struct table *new_beside_table(const struct trace *trace, const struct trace_steps *steps);

void print_beside(struct table *beside); /* prints nothing for a table without rows */

/* The chain of tasks that the step waited for, found from its last end back to the end of the step before, always by
 * the predecessor (by edge or lane) that ended last.  Its hops, last first, fill that time without a hole: each waits,
 * then runs.  The caller frees the array of hops. */
struct trace_hop {
    size_t record;
    uint64_t wait, start, end; /* waits [wait, start), runs [start, end) on the path */
};

struct trace_path {
    uint32_t step;
    uint64_t start, end;
    struct trace_hop *hops;
    size_t n, cap;
};

/* step: an index in steps->items. */
struct trace_path find_critical_path(const struct trace *trace, const struct trace_steps *steps, size_t step);

/* The path's hops and waits by task and lane, the longest first.  The caller frees the table with free_table(). */
enum { PATH_NAME, PATH_LANE, PATH_HOPS, PATH_MS, PATH_SHARE, PATH_COLUMNS }; /* the table's columns */
struct table *new_path_table(const struct trace *trace, const struct trace_path *path, const char *heading);

size_t find_median_step(const struct trace_steps *steps); /* index of the counted step with the median period */

/* ---- causes.c: why lanes were idle ------------------------------------------------------------------------------- */

/* Why a lane was idle.  The head of causes.c says what each cause means. */
enum cause {
    CAUSE_PIPELINE,
    CAUSE_LINK,
    CAUSE_COMPUTE,
    CAUSE_CPU,
    CAUSE_DISK,
    CAUSE_NORM,
    CAUSE_BYTES,
    CAUSE_BATCH,
    CAUSE_HOST,
    CAUSE_LAUNCH,
    CAUSE_NOTHING,
    CAUSES
};
extern const char *const cause_name[CAUSES]; /* "pipeline", "link", ... */
enum { GAP_PARTS = 4 };

struct trace_gap {               /* idle time on a lane, before a record */
    int64_t blocker;             /* the record of its producer that ended last, perhaps before the gap; or NONE */
    enum cause cause[GAP_PARTS]; /* the cause of part k, which goes from at[k] to at[k + 1] and may be empty */
    uint64_t at[GAP_PARTS + 1];  /* the clocks between the parts; the last is the start of the record */
};

/* The gap before bar i of a lane.  It begins where bar i - 1, of whatever list, ends, or at the trace's first start. */
struct trace_gap gap_before_bar(const struct trace *trace, const struct bars *bars, size_t i);

/* causes: [n_lanes] nanoseconds of the window in which a lane had no record of the list.  In the rest it was busy. */
void sum_up_causes(const struct trace *trace, const struct trace_steps *steps, uint64_t (*causes)[CAUSES]);

/* What a lane did in a step: the mean over the window. */
struct lane_use {
    const char *lane, *device; /* their names, in the trace */
    double busy_ms, idle_ms;
    double busy;             /* the share of the window in which it was busy */
    double cause_ms[CAUSES]; /* idle_ms by cause */
};
struct lane_use *new_lane_uses(const struct trace *trace, const struct trace_steps *steps); /* [n_lanes] */
json_t *lane_uses_json(const struct lane_use *uses, size_t n);                              /* the caller owns it */

/* Prints the lanes that were busy, with the causes' shares of the window. */
void print_lane_uses(FILE *out, const char *heading, const struct lane_use *uses, size_t n);

#endif

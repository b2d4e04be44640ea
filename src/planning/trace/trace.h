/* trace.h - what ran when: the trace file, its writer and its reader.
 *
 * A trace is a memory-mapped file: a task table, and after it a ring of fixed-size records.  So another process (the
 * viewer) can read it while the trainer runs, or while it waits at a breakpoint, and a record costs the trainer only a
 * few stores.  The file knows lanes, tasks and times.  Only record.c and list_tables.c of this folder know lists and
 * trainings.  A .c file whose name begins with trace_ is a subcommand of `yard trace`.
 *
 *     trace_file.h   write.c       the layout of the file; the trainer's half
 *     trace_parts.h                where the file's tables are, for the files that read and write it
 *     list_tables.h  list_tables.c the tables of tasks, edges, lanes and tensors, from lists
 *     record.h       record.c      what a run writes
 *     follow.h       follow.c      the reader's half, for a file that may grow; it also reads a whole trace at once
 *     trace.h        read.c        the tables, checked
 *                    index.c       which records are a lane's, a task's, a step's
 *                    memory_use.c  what tensors hold on each device over time, by the clock
 *     near.h                       searches for a place near another one
 *                    purpose.c     what a lane is for
 *     stats.h        stats.c       what a trace says
 *                    causes.c      why lanes were idle
 *     command.h      trace.c       the command `yard trace`: its words
 *                    trace_summary.c  trace_export.c  trace_diff.c      and what it does
 */
#ifndef TRACE_H
#define TRACE_H

#include "trace_file.h" /* brings: trace_header, trace_lane, trace_task, trace_record ... and the writer */
#include "trainer/base/base.h"
#include "trainer/base/lane.h"

/* ---- a trace in memory ------------------------------------------------------------------------------------------- */

struct bar {             /* a record on its lane */
    uint64_t start, end; /* the record's times */
    uint64_t busy;       /* nanoseconds of all bars before it on the lane */
    uint32_t record;     /* the index in trace->records */
    uint32_t task;       /* the record's task, here so that a bar's colour costs no look at the record */
};

struct bars { /* all bars of a lane, in the order of records */
    struct bar *items;
    uint64_t *starts; /* [n] those of the bars, alone, so that a search among them misses fewer caches */
    size_t n, cap, cap_starts;
};

struct runs { /* the records of a task, in order */
    size_t *record;
    size_t n, cap;
};

struct trace_step {
    uint32_t step;
    bool computes;       /* true: it has work on a compute lane */
    uint64_t start, end; /* its first start, its last end */
    uint64_t work;     /* the start of its first task on a compute lane (batches are fetched long before), else start */
    uint64_t done;     /* its last end, except on disks and of snapshots, for which later steps do not wait; or 0 */
    uint64_t computed; /* its last end on a compute lane, or 0 */
};

struct trace_step_list { /* ascending */
    struct trace_step *items;
    size_t n, cap;
};

struct pause { /* a time in which a viewer paused the trainer: nothing ran in [start, end) */
    uint64_t start, end;
    uint64_t before; /* nanoseconds of all pauses before it */
    size_t record;   /* the record that was begun after it; SIZE_MAX: that one has not ended */
};

struct amount { /* the bytes of each class from this clock on, until the next amount */
    uint64_t clock;
    uint64_t bytes[TRACE_CLASSES];
};

struct amount_sum { /* the sum of an amount, or of some amounts in a row */
    uint64_t clock; /* the amount's, or the first one's */
    uint64_t sum;   /* the bytes of all classes together, or the largest sum of these amounts */
};

struct memory_use { /* what tensors hold on a device: the amounts, ascending; the first is at clock 0 */
    struct amount *amounts;
    struct amount_sum *sums;   /* [n] those of the amounts, for searches, as `starts` of bars */
    struct amount_sum *blocks; /* [n / AMOUNTS_IN_BLOCK, rounded up] for the largest sum of many amounts */
    size_t n, cap, cap_sums, cap_blocks;
};

enum { AMOUNTS_IN_BLOCK = 16 };

/* A validated copy of a trace in memory: every index and offset has been checked.  The records are those that have
 * ended, sorted by start (then end, step, task). */
struct trace {
    struct trace_header header;
    struct trace_device *devices;
    struct trace_lane *lanes;
    struct trace_task *tasks;
    struct trace_edge *edges;
    struct trace_tensor *tensors;
    uint32_t *uses;
    struct trace_record *records;
    struct trace_record *unfinished; /* begun, not ended: what runs now, or what ran when the process was killed */
    size_t n_records, n_unfinished;
    uint64_t n_lost;     /* records overwritten in the ring; n_records + n_unfinished + n_lost = header.head */
    uint32_t whole_step; /* the last step that, like all before it, has all its records */
    struct bars *bars;   /* [lanes] */
    struct runs *runs;   /* [tasks] */
    struct trace_step_list steps[TRACE_LISTS];
    struct pause *pauses; /* ascending, without overlap */
    size_t n_pauses, cap_pauses;
    struct memory_use *memory_use; /* [devices] */
    uint32_t memory_use_step;      /* the whole_step for which memory_use was made */
};
static inline bool has_role(const struct trace *trace, const struct trace_task *task, const char *role)
{
    return strcmp(trace->header.role[task->role], role) == 0;
}

/* ---- read.c ------------------------------------------------------------------------------------------------------ */

void free_trace(struct trace *trace);

/* ---- follow.c ---------------------------------------------------------------------------------------------------- */

/* A whole trace, for free_trace().  Ends the program where open_follower() would find a problem. */
struct trace *read_trace(const char *path);

void sort_records(struct trace_record *records, size_t n); /* into the order that struct trace has */

/* ---- index.c ----------------------------------------------------------------------------------------------------- */

void index_trace(struct trace *trace, size_t first); /* records from `first` on are new: updates bars ... pauses */
uint64_t paused_before(const struct trace *trace, uint64_t clock); /* nanoseconds */
size_t first_bar_from(const struct bars *bars, uint64_t clock);    /* the first that starts at `clock` or later */
/* The first of the bars from bar i on that starts at `clock` or later.  It is found sooner than by first_bar_from() if
 * it is near bar i. */
size_t next_bar_from(const struct bars *bars, size_t i, uint64_t clock);
size_t first_bar_in(const struct bars *bars, uint64_t clock);               /* the first that ends after `clock` */
size_t bar_of(const struct trace *trace, size_t record);                    /* the index of its bar on its lane */
uint64_t busy_between(const struct bars *bars, uint64_t from, uint64_t to); /* ns of [from, to) that have a bar */

/* busy_between() for a caller that knows the first and the last bar there. */
uint64_t busy_from_to(const struct bar *first, const struct bar *last, uint64_t from, uint64_t to);

/* How many of the task's runs come before the step, or in it and before the record `at`. */
size_t count_runs(const struct trace *trace, uint32_t task, uint32_t step, size_t at);

/* The index of the first step that has this number or a higher one; n: none has. */
size_t first_step_of(const struct trace_step_list *list, uint64_t number);

/* The index of the first of n steps whose work begins at the clock or later; n: none does. */
size_t first_step_from(const struct trace_step *steps, size_t n, uint64_t clock);

/* The index of the record of (task, step) next to the index `at`: the last one below, or the first from there on. */
int64_t find_run_before(const struct trace *trace, uint32_t task, uint32_t step, size_t at);
int64_t find_run_from(const struct trace *trace, uint32_t task, uint32_t step, size_t at);

/* The producer of that task in that step whose record ended last, and the edge from it.  Only records before `at`
 * count.  A producer that skipped the step is represented by its last record before it.  NONE: there is none. */
int64_t find_last_producer(const struct trace *trace, uint32_t task, uint32_t step, size_t at,
                           const struct trace_edge **edge);

/* ---- memory_use.c ------------------------------------------------------------------------------------------------ */

/* Updates trace->memory_use.  Records from `first` on are new; they are indexed, and whole_step is found. */
void update_memory_use(struct trace *trace, size_t first);

const struct amount *amount_at(const struct memory_use *use, uint64_t clock); /* the one that is valid at that clock */
size_t next_amount(const struct memory_use *use, size_t i, uint64_t clock);   /* the first after it, from index i on */

/* The first with the largest sum of amounts [from, end), which are one or more. */
const struct amount *most_held(const struct memory_use *use, size_t from, size_t end);

uint64_t most_bytes_held(const struct memory_use *use); /* the most bytes held at a time */

/* The tensors that are alive on the device at that clock, largest first: returns their number, and an array that the
 * caller frees. */
size_t tensors_alive_at(const struct trace *trace, uint32_t device, uint64_t clock,
                        const struct trace_tensor ***tensors);

/* ---- purpose.c --------------------------------------------------------------------------------------------------- */

/* "0:0 swap out": the purpose of each lane's copies if they have only one, else the lane's name.  The
 * caller frees the array. */
typedef char lane_purpose[56];
lane_purpose *new_lane_purposes(const struct trace *trace);

#endif

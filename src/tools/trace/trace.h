/* trace.h - what ran when: the trace file, its writer and its reader.
 *
 * A trace is a memory-mapped file with a task table in front and a ring of fixed-size records behind it, so that
 * another process (the viewer) can read it while the trainer runs, or while it stands at a breakpoint, and so that a
 * record costs the trainer a few stores.  This module knows lanes, tasks and times; it knows nothing of OpenCL or
 * training.
 *
 * Layout, little endian, every part aligned to 64 bytes:
 *
 *     struct trace_header              at 0: first what stays, then the trainer's living words, then the viewer's
 *     struct trace_device[n_devices]   at devices_at
 *     struct trace_lane  [n_lanes]     at lanes_at
 *     struct trace_task  [n_tasks]     at tasks_at
 *     struct trace_edge  [n_edges]     at edges_at
 *     struct trace_tensor[n_tensors]   at tensors_at
 *     uint32_t           [n_uses]      at uses_at: tasks by their index, those that touch tensor 0 in order, then 1 ...
 *     struct trace_record[capacity]    at records_at: record i of the run is at i % capacity
 *
 * A record is written in two phases: at issue (queued; start = end = 0), then when it has ended (end != 0, stored
 * last).  Before a slot of the ring is used again its `end` is set to 0, first of all.  So a reader takes a slot twice:
 * two equal copies with end != 0 are a whole record, whatever the writer is doing.  `head` counts the records begun; it
 * is stored after the record's first phase.  All times are nanoseconds of the host's CLOCK_MONOTONIC_RAW, device times
 * are converted before they are stored; a simulated trace has its virtual clock, from 0.  Texts are printable ASCII.
 *
 *     write.c     the trainer's half
 *     record.c    what a run writes by it: see record.h
 *     follow.c    the reader's half, also of a file that grows: see follow.h; a whole trace at once
 *     read.c      the tables, checked
 *     index.c     which records are a lane's, a task's, a step's
 *     held.c      what tensors hold on each device over time, by the clock
 *     purpose.c   what a lane is for
 *     launch.c    the viewer, started on a trace
 *     stats.c     what a trace says
 *     causes.c    why lanes were idle
 */
#ifndef TRACE_H
#define TRACE_H

#include "trainer/base/base.h"
#include "trainer/base/lane.h"

#include <jansson.h>

enum { TRACE_VERSION = 4, TRACE_MAX_LANES = 4096, TRACE_LISTS = 8, TRACE_ROLES = 16, TRACE_CLASSES = 8 };
enum { TRACE_RING = 1 << 20 }; /* records that a trace keeps where nobody says how many */
#define TRACE_MAGIC "YARDTRC1"
enum trace_kind { TRACE_REAL, TRACE_PACED, TRACE_SIMULATED };
enum trace_flag {
    TRACE_APPROXIMATE = 1,  /* the driver's times were missing or impossible; host times stand in */
    TRACE_HELD = 2,         /* a viewer held the trainer before it issued this, and nothing ran */
    TRACE_STEPPED_BACK = 4, /* approximate: the driver let it start before the end of the run before it on its lane */
};

/* What a viewer asks of the trainer, which looks before it issues a task, and takes nothing on trust (record.c). */
struct trace_control {
    uint64_t until; /* clock: a lease.  0, past or too far ahead: nothing is asked */
    uint64_t pause; /* not 0: no task is issued, ... */
    uint64_t tasks; /* ... but one more whenever this count rises, ... */
    uint64_t steps; /* ... and all that are left of the step when this one does */
    uint64_t spare[4];
};
struct trace_header {
    char magic[8];
    uint32_t version;
    uint32_t kind; /* enum trace_kind */
    uint32_t n_devices, n_lanes, n_tasks, n_edges, n_tensors, n_uses;
    uint32_t n_lists, n_roles, n_classes;
    int32_t pid; /* who writes, ... */
    uint64_t devices_at, lanes_at, tasks_at, edges_at, tensors_at, uses_at, records_at;
    uint64_t capacity;              /* records in the ring */
    uint64_t start_ns;              /* clock when the trace was made: subtract it to start at 0 */
    double pace_scale;              /* modelled seconds per second shown; 1 for real */
    uint64_t born;                  /* ... and when that process was started, as the system counts; 0: not known */
    char list[TRACE_LISTS][24];     /* names of the task lists: "train", "eval", ... */
    char role[TRACE_ROLES][16];     /* of the tasks' roles: "forward", ... */
    char memory[TRACE_CLASSES][16]; /* of the classes of memory: "parameters", ... */
    char model[240];                /* one line for people: model, batch, devices */

    /* at TRACE_LIVE: changes while the trainer runs */
    uint64_t head;      /* records begun so far; written last, atomically */
    uint64_t closed_ns; /* clock when it was closed; 0: the run goes on, or it was killed */
    uint64_t alive_ns;  /* clock of the last thing that happened: a task issued or ended, or a look during a pause */
    uint64_t held;      /* 0: tasks are issued; else 1 + the task that a paused trainer would issue next */
    uint64_t spare_live[4];

    struct trace_control control; /* at TRACE_CONTROL */
};
enum { TRACE_LIVE = offsetof(struct trace_header, head), TRACE_CONTROL = offsetof(struct trace_header, control) };
struct trace_device {
    char id[24];     /* "0:0" */
    char name[80];   /* as its driver gives it */
    uint64_t budget; /* bytes that tensors may take */
    uint64_t spare;
};
struct trace_lane {
    char name[40]; /* "0:0 compute" */
    uint32_t kind; /* enum lane_kind */
    uint32_t device_index;
    double flops_per_s; /* what it reaches at most, where that is known: fused multiply-adds; 0: not known */
    double bytes_per_s; /* its memory, or the link that its copies take */
};
struct trace_task {
    char name[40]; /* "mlp.fc" */
    int32_t layer; /* -1: none */
    int32_t micro; /* micro-batch, -1: none */
    uint32_t lane;
    uint32_t list;
    double flops;
    uint64_t bytes;      /* read and written; of a copy those that are moved */
    double predicted_ns; /* what the costs say that it takes alone; 0: not predicted */
    uint32_t first_edge, n_edges;
    uint32_t role; /* index in header.role */
    uint32_t spare;
    char shape[64]; /* what it writes, then what it reads: "512x1024 <- 512x256, 1024x256" */
};
struct trace_edge {
    uint32_t from;          /* task index; the edge is listed at its consumer */
    uint16_t previous_step; /* 1: the producer ran one step before */
    uint16_t reuse;         /* 0: a data edge, 1: two tensors share bytes */
};
/* Its bytes are held in each step that touches it, from the start of the first of its tasks to the end of the last. */
struct trace_tensor {
    char name[48];
    uint32_t device, class, list; /* class: index in header.memory */
    uint32_t first_use, n_uses;   /* tasks of the list that touch it, ascending; none: it is kept, from step to step */
    uint32_t spare;
    uint64_t bytes;
};
struct trace_record {
    uint32_t step;  /* counts from 1 */
    uint32_t task;  /* index in the task table */
    uint32_t flags; /* enum trace_flag */
    uint32_t spare;
    uint64_t queued, start, end;
};

/* ---- write.c --------------------------------------------------------------------------------------------------- */

struct trace;
struct trace_writer;
/* Creates (or replaces) the file, mode 0600, with room for `capacity` records: the last ones are kept.  What is known
 * before anything runs is copied from `tables`: its tables, and of its header kind, pace scale, counts and names. */
struct trace_writer *trace_create(const char *path, const struct trace *tables, uint64_t capacity);
/* First phase: returns the record's number for trace_end().  One thread at a time calls begin (the issuing thread);
 * trace_end may come from any thread, in any order, once per record.  When the ring has come round to a record before
 * it ended, its end is dropped.  end < start is stored as start = end and TRACE_APPROXIMATE; end = 0, which only a
 * virtual clock shows, as 1. */
uint64_t trace_begin(struct trace_writer *w, uint32_t step, uint32_t task, uint64_t queued);
void trace_end(struct trace_writer *w, uint64_t number, uint64_t start, uint64_t end, uint32_t flags);
/* A word of life while nothing is issued: `held` as in the header.  The next record says that it was held. */
void trace_alive(struct trace_writer *w, uint64_t held);
/* What viewers ask for: it changes under its reader. */
const struct trace_control *trace_asked(const struct trace_writer *w);
/* Cuts the file to what was used and closes it. */
void trace_close(struct trace_writer *w);

/* ---- read.c, follow.c, index.c --------------------------------------------------------------------------------- */

struct bar {             /* a record on its lane */
    uint64_t start, end; /* the record's */
    uint64_t busy;       /* ns of all bars before it */
    uint32_t record;     /* index in trace->records */
    uint32_t task;       /* the record's: with it, a bar's colour costs no look at the record */
};
struct bars { /* of a lane, in order of records */
    struct bar *bar;
    size_t n, cap;
};
struct runs { /* of a task: its records, in order */
    size_t *record;
    size_t n, cap;
};
struct trace_step {
    uint32_t step;
    bool computes;       /* it has work on a compute lane */
    uint64_t start, end; /* first start, last end */
    uint64_t work;       /* where its work on compute lanes begins, if it has any: batches are fetched long before */
    uint64_t done;       /* the last end, but for disks and snapshots, which later steps do not wait for; or 0 */
    uint64_t computed;   /* the last end on a compute lane, or 0 */
};
struct trace_step_list { /* ascending */
    struct trace_step *step;
    size_t n, cap;
};
struct hold { /* a viewer held the trainer: nothing ran in [from, to) */
    uint64_t from, to;
    uint64_t before; /* ns of all holds before it */
    size_t record;   /* what was issued then; SIZE_MAX: it has not ended */
};
struct amount { /* from this clock on, until the next one */
    uint64_t clock, bytes[TRACE_CLASSES];
};
struct held { /* ascending; the first is at 0 */
    struct amount *amount;
    size_t n, cap;
};
/* A validated copy of a trace in memory: every index and offset has been checked, the records are those that have
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
    struct trace_record *unfinished; /* begun, not ended: what runs now, or ran when the process was killed */
    size_t n_records, n_unfinished;
    uint64_t n_lost;     /* overwritten in the ring; n_records + n_unfinished + n_lost = header.head */
    uint32_t whole_step; /* steps up to this one have all their records */
    struct bars *bars;   /* [lanes] */
    struct runs *runs;   /* [tasks] */
    struct trace_step_list steps[TRACE_LISTS];
    struct hold *holds; /* ascending, apart */
    size_t n_holds, cap_holds;
    struct held *held;  /* [devices] */
    uint32_t held_step; /* steps up to this one were whole for it */
};
static inline bool has_role(const struct trace *t, const struct trace_task *k, const char *role)
{
    return strcmp(t->header.role[k->role], role) == 0;
}
struct trace *trace_open(const char *path); /* what trace_follow_open() finds wrong ends the program */
void trace_free(struct trace *t);

void trace_sort(struct trace_record *records, size_t n); /* as struct trace has them */
void trace_index(struct trace *t, size_t first); /* records from `first` on are new: bars, runs, steps, holds follow */
uint64_t trace_hold_before(const struct trace *t, uint64_t clock);       /* ns */
size_t first_bar_from(const struct bars *b, uint64_t clock);             /* the first that starts at `clock` or later */
size_t first_bar_in(const struct bars *b, uint64_t clock);               /* the first that ends behind `clock` */
size_t bar_of(const struct trace *t, size_t record);                     /* its index on its lane */
uint64_t busy_between(const struct bars *b, uint64_t from, uint64_t to); /* ns of [from, to) that have a bar */
/* The same, where it is known which bars lie there. */
uint64_t busy_from_to(const struct bar *first, const struct bar *last, uint64_t from, uint64_t to);
/* The record of (task, step) next to the record `at`: the last one before it, or the first one from it on. */
enum { NO_RECORD = -1 };
int64_t trace_find_before(const struct trace *t, uint32_t task, uint32_t step, size_t at);
int64_t trace_find_from(const struct trace *t, uint32_t task, uint32_t step, size_t at);
/* Of the records before `at` that the task waits for in that step, or the last before that which their tasks did not
 * skip, the one that ended last, and its edge; NO_RECORD: there is none. */
int64_t trace_last_producer(const struct trace *t, uint32_t task, uint32_t step, size_t at,
                            const struct trace_edge **edge);

/* ---- held.c, purpose.c ----------------------------------------------------------------------------------------- */

/* Records from `first` on are new, and indexed, and whole_step is found: t->held follows. */
void trace_hold(struct trace *t, size_t first);
/* The amount of that clock; of all classes together; the most of those. */
const struct amount *amount_at(const struct held *h, uint64_t clock);
uint64_t sum_amount(const struct amount *a);
uint64_t trace_peak(const struct held *h);
/* The tensors that are alive on the device at that clock, largest first: how many, and an array that the caller frees.
 */
size_t trace_alive_at(const struct trace *t, uint32_t device, uint64_t clock, const struct trace_tensor ***tensors);
/* "0:0 swap out": what each lane's copies are for where all are for one thing, else its name.  The caller frees. */
typedef char lane_purpose[56];
lane_purpose *trace_purposes(const struct trace *t);

/* ---- launch.c -------------------------------------------------------------------------------------------------- */

/* Where a trace may lie that nobody asked for: $XDG_RUNTIME_DIR, $TMPDIR or /tmp.  The caller frees it. */
char *private_trace(void);
/* Start `yard view` on the trace and go on, with or without it: a warning says why there is none.  `remove`: the file
 * goes, for the viewer has it open. */
void show_trace(const char *path, bool remove);

/* ---- stats.c: what a trace says -------------------------------------------------------------------------- */

/* Times of a paced trace become modelled ones (x pace_scale, from start_ns), so that it compares with the others.  What
 * a pause held is cut out. */
struct trace *trace_open_modelled(const char *path);
const char *trace_kind_name(const struct trace *t); /* "real", "paced", "simulated" */
/* Index of the task list: the one named, or without a name the first that has records. */
uint32_t trace_list(const struct trace *t, const char *path, const char *name);

/* The steps of one task list.  The first warms up (compilation, caches): it does not count when there are more, nor
 * do steps at the end that are not whole. */
struct trace_steps {
    uint32_t list;
    const struct trace_step *steps; /* the trace's */
    size_t n;
    size_t first, counted; /* those that count: steps[first .. first + counted) */
    uint64_t start, end; /* the window they fill: from where the step before is done, or the first start without one */
};
struct trace_steps trace_steps_of(const struct trace *t, uint32_t list);
bool trace_counts(const struct trace *t, const struct trace_steps *s, size_t record); /* is it of a counted step? */
/* Medians, 0 without steps.  Period: from where step n - 1 is done to where step n is; without step n - 1, n's length.
 */
double trace_period_ns(const struct trace_steps *s);
double trace_length_ns(const struct trace_steps *s);

/* Per layer, over the counted steps: of its updates on the CPU how many ran beside (at the same time as) a backward or
 * update of another layer in the same step, on a device; how many had no such work left; how many ran beside work of
 * the next step; and for what part of their time they ran beside either. */
struct table *trace_beside(const struct trace *t, const struct trace_steps *s);
void print_beside(const struct table *beside); /* where there are any */

/* What the step waited for: from its last end back to the end of the step before, always to the predecessor (by edge
 * or lane) that ended last.  The hops, last first, fill that time without a hole: each waits, then runs. */
struct trace_hop {
    size_t record;
    uint64_t wait, from, to; /* waits [wait, from), runs [from, to) on the path */
};
struct trace_path {
    uint32_t step;
    uint64_t start, end;
    struct trace_hop *hops;
    size_t n, cap;
};
struct trace_path trace_critical_path(const struct trace *t, const struct trace_steps *s, size_t step /* an index */);
/* Its hops and waits by task and lane, the longest first.  One table at a time is filled and shown. */
struct table *trace_path_table(const struct trace *t, const struct trace_path *path, const char *heading);
size_t trace_median_step(const struct trace_steps *s); /* index of the counted step with the median period */

/* ---- causes.c: why lanes were idle ------------------------------------------------------------------------------- */

/* As defined in causes.c. */
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
struct trace_gap {               /* on a lane, before a record */
    int64_t blocker;             /* the record of its producer that ended last, perhaps before the gap; or NO_RECORD */
    enum cause cause[GAP_PARTS]; /* of part k, which may be empty: ... */
    uint64_t at[GAP_PARTS + 1];  /* ... from at[k] to at[k + 1]; the last is where the record starts */
};
/* Before bar i of a lane: behind bar i - 1, of whatever list, or from the trace's first record. */
struct trace_gap trace_gap_of_bar(const struct trace *t, const struct bars *b, size_t i);
/* causes: [n_lanes] ns of the window in which a lane had no record of the list.  All that is left of it was busy. */
void trace_causes(const struct trace *t, const struct trace_steps *s, uint64_t (*causes)[CAUSES]);
/* An array with each lane's name, device, ms per step busy and idle, and ms by cause; and as text those that were busy,
 * with the causes' shares of the window. */
json_t *trace_lanes_json(const struct trace *t, const struct trace_steps *s);
void print_lane_use(FILE *out, const char *heading, const json_t *lanes);

#endif

/* trace.h - what ran when: the trace file, its writer and its reader.
 *
 * A trace is a memory-mapped file: a task table, and after it a ring of fixed-size records.  So another process (the
 * viewer) can read it while the trainer runs, or while it stands at a breakpoint, and a record costs the trainer only
 * a few stores.  This module knows lanes, tasks and times; it knows nothing of OpenCL or training.
 *
 * Layout, little endian, every part aligned to 64 bytes:
 *
 *     struct trace_header              at 0: first what stays, then what the trainer changes, then the viewer's wishes
 *     struct trace_device[n_devices]   at devices_at
 *     struct trace_lane  [n_lanes]     at lanes_at
 *     struct trace_task  [n_tasks]     at tasks_at
 *     struct trace_edge  [n_edges]     at edges_at
 *     struct trace_tensor[n_tensors]   at tensors_at
 *     uint32_t           [n_uses]      at uses_at: the tasks that touch tensor 0, ascending, then tensor 1 ...
 *     struct trace_record[capacity]    at records_at: record i of the run is at i % capacity
 *
 * A record is written in two phases: when its task is issued (queued; start = end = 0), and when the task has ended
 * (end != 0, which is stored last).  Before a slot of the ring is used again, its `end` is set to 0 before anything
 * else.  A reader takes each slot twice: two equal copies with end != 0 are a whole record, whatever the writer is
 * doing.  `head` counts the records begun; it is stored after the record's first phase.  All times are nanoseconds of
 * the host's CLOCK_MONOTONIC_RAW; device times are converted before they are stored.  A simulated trace has a virtual
 * clock, which begins at 0.  Texts are printable ASCII.
 *
 *     write.c     the trainer's half
 *     record.c    what a run writes with it: see record.h
 *     follow.c    the reader's half, for a file that may grow: see follow.h; it also reads a whole trace at once
 *     read.c      the tables, checked
 *     index.c     which records are a lane's, a task's, a step's
 *     held.c      what tensors hold on each device over time, by the clock
 *     purpose.c   what a lane is for
 *     launch.c    starting the viewer on a trace
 *     stats.c     what a trace says
 *     causes.c    why lanes were idle
 */
#ifndef TRACE_H
#define TRACE_H

#include "trainer/base/base.h"
#include "trainer/base/lane.h"

#include <jansson.h>

enum { TRACE_VERSION = 4, TRACE_MAX_LANES = 4096, TRACE_LISTS = 8, TRACE_ROLES = 16, TRACE_CLASSES = 8 };
enum { TRACE_RING = 1 << 20 }; /* the number of records that a trace keeps, unless another one is given */
#define TRACE_MAGIC "YARDTRC1"
enum trace_kind { TRACE_REAL, TRACE_PACED, TRACE_SIMULATED };
enum trace_flag {
    TRACE_APPROXIMATE = 1,  /* the driver's times were missing or impossible; the host's times replace them */
    TRACE_HELD = 2,         /* a viewer held the trainer before it issued this task, and nothing ran meanwhile */
    TRACE_STEPPED_BACK = 4, /* approximate: it started before the last run on its lane ended, says the driver */
};

/* What a viewer asks of the trainer.  The trainer looks before it issues a task, and trusts none of it (record.c). */
struct trace_control {
    uint64_t until; /* the clock at which the request expires; 0, past or too far ahead: nothing is asked */
    uint64_t pause; /* not 0: no task is issued, but for those that `tasks` and `steps` grant */
    uint64_t tasks; /* a count: whenever it rises, one more task is issued */
    uint64_t steps; /* a count: whenever it rises, all tasks that are left of the step are issued */
    uint64_t spare[4];
};
struct trace_header {
    char magic[8];
    uint32_t version;
    uint32_t kind; /* enum trace_kind */
    uint32_t n_devices, n_lanes, n_tasks, n_edges, n_tensors, n_uses;
    uint32_t n_lists, n_roles, n_classes;
    int32_t pid; /* the process that writes */
    uint64_t devices_at, lanes_at, tasks_at, edges_at, tensors_at, uses_at, records_at;
    uint64_t capacity;              /* records in the ring */
    uint64_t start_ns;              /* the clock when the trace was made: subtract it to start at 0 */
    double pace_scale;              /* modelled seconds per second shown; 1 in a real trace */
    uint64_t born;                  /* when process `pid` was started, in the system's unit; 0: not known */
    char list[TRACE_LISTS][24];     /* names of the task lists: "train", "eval", ... */
    char role[TRACE_ROLES][16];     /* names of the tasks' roles: "forward", ... */
    char memory[TRACE_CLASSES][16]; /* names of the classes of memory: "parameters", ... */
    char model[240];                /* a line to be read by people: model, batch, devices */

    /* at TRACE_LIVE: these change while the trainer runs */
    uint64_t head;      /* the number of records begun so far; written last, atomically */
    uint64_t closed_ns; /* the clock when the trace was closed; 0: the run goes on, or it was killed */
    uint64_t alive_ns;  /* the clock of the last event: a task issued or ended, or a look during a pause */
    uint64_t held;      /* 0: tasks are issued; else 1 + the index of the task that a paused trainer would issue next */
    uint64_t spare_live[4];

    struct trace_control control; /* at TRACE_CONTROL */
};
enum { TRACE_LIVE = offsetof(struct trace_header, head), TRACE_CONTROL = offsetof(struct trace_header, control) };
struct trace_device {
    char id[24];     /* "0:0" */
    char name[80];   /* the name that its driver gives */
    uint64_t budget; /* the bytes that tensors may take */
    uint64_t spare;
};
struct trace_lane {
    char name[40]; /* "0:0 compute" */
    uint32_t kind; /* enum lane_kind */
    uint32_t device_index;
    double flops_per_s; /* the most that its device reaches, with fused multiply-adds; 0: not known */
    double bytes_per_s; /* the speed of its memory, or of the link that its copies take */
};
struct trace_task {
    char name[40]; /* "mlp.fc" */
    int32_t layer; /* -1: none */
    int32_t micro; /* the micro-batch; -1: none */
    uint32_t lane;
    uint32_t list;
    double flops;
    uint64_t bytes;      /* bytes read and written; a copy's: those that are moved */
    double predicted_ns; /* the time that it takes alone, by the costs; 0: not predicted */
    uint32_t first_edge, n_edges;
    uint32_t role; /* index in header.role */
    uint32_t spare;
    char shape[64]; /* the tensors that it writes, then those that it reads: "512x1024 <- 512x256, 1024x256" */
};
struct trace_edge {
    uint32_t from;          /* the producer's task index; the edge is listed at its consumer */
    uint16_t previous_step; /* 1: the producer ran one step before; 0: in the same step */
    uint16_t reuse;         /* 0: a data edge; 1: two tensors share bytes */
};
/* A tensor.  Each step that touches it holds its bytes from the start of the first such task to the end of the last. */
struct trace_tensor {
    char name[48];
    uint32_t device, class, list; /* class: index in header.memory */
    uint32_t first_use, n_uses;   /* the tasks of the list that touch it, ascending; none: it is kept across steps */
    uint32_t spare;
    uint64_t bytes;
};
struct trace_record {
    uint32_t step;  /* its number, which counts from 1 */
    uint32_t task;  /* the index in the task table */
    uint32_t flags; /* enum trace_flag */
    uint32_t spare;
    uint64_t queued, start, end;
};

/* ---- write.c --------------------------------------------------------------------------------------------------- */

struct trace;
struct trace_writer;
/* Creates (or replaces) the file, mode 0600, with room for `capacity` records: the last ones are kept.  What is known
 * before anything runs is copied from `given`: its tables, and its header's kind, pace scale, counts and names. */
struct trace_writer *trace_create(const char *path, const struct trace *given, uint64_t capacity);
/* First phase: returns the record's number for trace_end().  Only the issuing thread calls trace_begin().  trace_end()
 * may be called by any thread, in any order, once per record.  It does nothing when the ring has come round to the
 * record before it ended.  end < start is stored as start = end and TRACE_APPROXIMATE; end = 0, which only a virtual
 * clock shows, is stored as 1. */
uint64_t trace_begin(struct trace_writer *w, uint32_t step, uint32_t task, uint64_t queued);
void trace_end(struct trace_writer *w, uint64_t number, uint64_t start, uint64_t end, uint32_t flags);
/* Shows that the trainer is alive while nothing is issued; `held` as in the header.  If it is not 0, the next record
 * gets TRACE_HELD. */
void trace_alive(struct trace_writer *w, uint64_t held);
/* The viewers' request, in the file: it may change at any moment. */
const struct trace_control *trace_asked(const struct trace_writer *w);
/* Cuts the file to the part that was used and closes it. */
void trace_close(struct trace_writer *w);

/* ---- read.c, follow.c, index.c --------------------------------------------------------------------------------- */

struct bar {             /* a record on its lane */
    uint64_t start, end; /* the record's times */
    uint64_t busy;       /* nanoseconds of all bars before it on the lane */
    uint32_t record;     /* the index in trace->records */
    uint32_t task;       /* the record's task, here so that a bar's colour costs no look at the record */
};
struct bars { /* all bars of a lane, in the order of records */
    struct bar *bar;
    size_t n, cap;
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
    struct trace_step *step;
    size_t n, cap;
};
struct hold { /* a time in which a viewer held the trainer: nothing ran in [from, to) */
    uint64_t from, to;
    uint64_t before; /* nanoseconds of all holds before it */
    size_t record;   /* the record that was begun after it; SIZE_MAX: that one has not ended */
};
struct amount { /* the bytes of each class from this clock on, until the next amount */
    uint64_t clock, bytes[TRACE_CLASSES];
};
struct held { /* the amounts of a device, ascending; the first is at clock 0 */
    struct amount *amount;
    size_t n, cap;
};
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
    struct hold *holds; /* ascending, without overlap */
    size_t n_holds, cap_holds;
    struct held *held;  /* [devices] */
    uint32_t held_step; /* the whole_step for which `held` was made */
};
static inline bool has_role(const struct trace *t, const struct trace_task *k, const char *role)
{
    return strcmp(t->header.role[k->role], role) == 0;
}
struct trace *trace_open(const char *path); /* ends the program where trace_follow_open() would find a problem */
void trace_free(struct trace *t);

void trace_sort(struct trace_record *records, size_t n); /* into the order that struct trace has */
void trace_index(struct trace *t, size_t first); /* records from `first` on are new: updates bars, runs, steps, holds */
uint64_t trace_hold_before(const struct trace *t, uint64_t clock);       /* nanoseconds */
size_t first_bar_from(const struct bars *b, uint64_t clock);             /* the first that starts at `clock` or later */
size_t first_bar_in(const struct bars *b, uint64_t clock);               /* the first that ends after `clock` */
size_t bar_of(const struct trace *t, size_t record);                     /* the index of its bar on its lane */
uint64_t busy_between(const struct bars *b, uint64_t from, uint64_t to); /* ns of [from, to) that have a bar */
/* The same for a caller that knows the first and the last bar there. */
uint64_t busy_from_to(const struct bar *first, const struct bar *last, uint64_t from, uint64_t to);
/* The index of the record of (task, step) that is next to the index `at`: the last one below, or the first from there
 * on. */
enum { NO_RECORD = -1 };
int64_t trace_find_before(const struct trace *t, uint32_t task, uint32_t step, size_t at);
int64_t trace_find_from(const struct trace *t, uint32_t task, uint32_t step, size_t at);
/* The producer of that task in that step whose record ended last, and the edge from it.  Only records before `at`
 * count.  A producer that skipped the step is represented by its last record before it.  NO_RECORD: there is none. */
int64_t trace_last_producer(const struct trace *t, uint32_t task, uint32_t step, size_t at,
                            const struct trace_edge **edge);

/* ---- held.c, purpose.c ----------------------------------------------------------------------------------------- */

/* Updates t->held.  Records from `first` on are new; they are indexed, and whole_step is found. */
void trace_hold(struct trace *t, size_t first);
/* amount_at(): the amount that holds at that clock.  sum_amount(): the bytes of all classes together.  trace_peak():
 * the largest such sum. */
const struct amount *amount_at(const struct held *h, uint64_t clock);
uint64_t sum_amount(const struct amount *a);
uint64_t trace_peak(const struct held *h);
/* The tensors that are alive on the device at that clock, largest first: returns their number, and an array that the
 * caller frees. */
size_t trace_alive_at(const struct trace *t, uint32_t device, uint64_t clock, const struct trace_tensor ***tensors);
/* "0:0 swap out": the purpose of each lane's copies if they have only one, else the lane's name.  The caller frees. */
typedef char lane_purpose[56];
lane_purpose *trace_purposes(const struct trace *t);

/* ---- launch.c -------------------------------------------------------------------------------------------------- */

/* The path of a trace for which the user gave none, in $XDG_RUNTIME_DIR, $TMPDIR or /tmp.  The caller frees it. */
char *private_trace(void);
/* Starts `yard view` on the trace.  The program goes on even if that fails: a warning says why there is no window.
 * `remove`: the file's name is removed, since the viewer has the file open. */
void show_trace(const char *path, bool remove);

/* ---- stats.c: what a trace says ---------------------------------------------------------------------------------- */

/* Opens a trace for comparisons: times of a paced trace become modelled ones (x pace_scale, from start_ns), and the
 * time in which a pause held the trainer is cut out. */
struct trace *trace_open_modelled(const char *path);
const char *trace_kind_name(const struct trace *t); /* "real", "paced", "simulated" */
/* The index of the task list with that name; without a name, of the first that has records. */
uint32_t trace_list(const struct trace *t, const char *path, const char *name);

/* The steps of one task list.  The first one warms up (compilation, caches), so it does not count when there are more;
 * nor do steps at the end that are not whole. */
struct trace_steps {
    uint32_t list;
    const struct trace_step *steps; /* those of the trace */
    size_t n;
    size_t first, counted; /* the steps that count are steps[first .. first + counted) */
    uint64_t start, end;   /* the window they fill, which begins when the step before is done, or at the first start */
};
struct trace_steps trace_steps_of(const struct trace *t, uint32_t list);
bool trace_counts(const struct trace *t, const struct trace_steps *s, size_t record); /* is its step a counted one? */
/* Medians; 0 without steps.  The period of step n goes from where step n - 1 is done to where step n is done; without
 * step n - 1 it is the length of step n. */
double trace_period_ns(const struct trace_steps *s);
double trace_length_ns(const struct trace_steps *s);

/* A row for each layer, over the counted steps, on the layer's updates on the CPU: how many ran beside (at the same
 * time as) a backward or update of another layer in the same step, on a device; for how many no such work was left;
 * how many ran beside work of the next step; and for how much of their time they ran beside either. */
struct table *trace_beside(const struct trace *t, const struct trace_steps *s);
void print_beside(const struct table *beside); /* prints nothing for a table without rows */

/* The chain of tasks that the step waited for, found from its last end back to the end of the step before, always by
 * the predecessor (by edge or lane) that ended last.  Its hops, last first, fill that time without a hole: each waits,
 * then runs. */
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
/* The path's hops and waits by task and lane, the longest first.  A table must be shown before the next one is made. */
struct table *trace_path_table(const struct trace *t, const struct trace_path *path, const char *heading);
size_t trace_median_step(const struct trace_steps *s); /* index of the counted step with the median period */

/* ---- causes.c: why lanes were idle ------------------------------------------------------------------------------- */

/* They are defined in causes.c. */
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
    int64_t blocker;             /* the record of its producer that ended last, perhaps before the gap; or NO_RECORD */
    enum cause cause[GAP_PARTS]; /* the cause of part k, which goes from at[k] to at[k + 1] and may be empty */
    uint64_t at[GAP_PARTS + 1];  /* the clocks between the parts; the last is the start of the record */
};
/* The gap before bar i of a lane.  It begins where bar i - 1, of whatever list, ends, or at the trace's first start. */
struct trace_gap trace_gap_of_bar(const struct trace *t, const struct bars *b, size_t i);
/* causes: [n_lanes] nanoseconds of the window in which a lane had no record of the list.  In the rest it was busy. */
void trace_causes(const struct trace *t, const struct trace_steps *s, uint64_t (*causes)[CAUSES]);
/* An array with each lane's name, device, ms per step busy and idle, and ms by cause.  print_lane_use() prints those
 * that were busy, with the causes' shares of the window. */
json_t *trace_lanes_json(const struct trace *t, const struct trace_steps *s);
void print_lane_use(FILE *out, const char *heading, const json_t *lanes);

#endif

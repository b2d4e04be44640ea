/* trace_file.h - the trace file: how it is laid out, and its writer.
 * Implemented in write.c; follow.c and read.c read the file.
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
 * clock, which begins at 0.  Texts are UTF-8 without control characters.
 */
#ifndef TRACE_FILE_H
#define TRACE_FILE_H

#include "trainer/base/base.h"

enum { TRACE_VERSION = 4, TRACE_MAX_LANES = 4096, TRACE_LISTS = 8, TRACE_ROLES = 16, TRACE_CLASSES = 8 };
enum { TRACE_RING = 1 << 20 }; /* the number of records that a trace keeps, unless another one is given */
#define TRACE_MAGIC "YARDTRC1"
enum trace_kind { TRACE_REAL, TRACE_PACED, TRACE_SIMULATED };
enum trace_flag {
    TRACE_APPROXIMATE = 1,  /* the driver's times were missing or impossible; the host's times replace them */
    TRACE_AFTER_PAUSE = 2,  /* a viewer paused the trainer before it issued this task, and nothing ran meanwhile */
    TRACE_STEPPED_BACK = 4, /* approximate: it started before the last run on its lane ended, says the driver */
};

/* Requests of a viewer to the trainer.  The trainer looks before it issues a task, and trusts none of it (record.c). */
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
    uint64_t head;        /* the number of records begun so far; written last, atomically */
    uint64_t closed_ns;   /* the clock when the trace was closed; 0: the run goes on, or it was killed */
    uint64_t alive_ns;    /* the clock of the last event: a task issued or ended, or a look during a pause */
    uint64_t paused_task; /* 0: tasks are issued; else 1 + the index of the task that a paused trainer issues next */
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
    uint32_t role;       /* index in header.role */
    uint32_t of_weights; /* 1: a backward that makes only gradients of weights; 0: another task */
    char shape[64];      /* the tensors that it writes, then those that it reads: "512x1024 <- 512x256, 1024x256" */
};

struct trace_edge {
    uint32_t producer;      /* the producer's task index; the edge is listed at its consumer */
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
    float loss;     /* the step's mean loss in nats, in the record of the task that reports it; 0: not told */
    uint64_t queued, start, end;
};

/* ---- write.c ----------------------------------------------------------------------------------------------------- */

struct trace;
struct trace_writer;

/* The path of a trace for which the user gave none, in $XDG_RUNTIME_DIR, $TMPDIR or /tmp.  The caller frees it. */
char *private_trace_path(void);

/* Creates (or replaces) the file, mode 0600, with room for `capacity` records: the last ones are kept.  What is known
 * before anything runs is copied from `given`: its tables, and its header's kind, pace scale, counts and names. */
struct trace_writer *open_trace_writer(const char *path, const struct trace *given, uint64_t capacity);

/* First phase: returns the record's number for end_trace_record().  Only the issuing thread calls
 * begin_trace_record().  end_trace_record() may be called by any thread, in any order, once per record.  It does
 * nothing when the ring has come round to the record before it ended.  end < start is stored as start = end and
 * TRACE_APPROXIMATE; end = 0, which only a virtual clock shows, is stored as 1. */
uint64_t begin_trace_record(struct trace_writer *writer, uint32_t step, uint32_t task, uint64_t queued);
void end_trace_record(struct trace_writer *writer, uint64_t number, uint64_t start, uint64_t end, uint32_t flags);

/* Tells the loss of the record's step, before end_trace_record(). */
void tell_record_loss(struct trace_writer *writer, uint64_t number, double loss);

/* Shows that the trainer is alive while nothing is issued; `paused_task` as in the header.  If it is not 0, the next
 * record gets TRACE_AFTER_PAUSE. */
void show_trainer_alive(struct trace_writer *writer, uint64_t paused_task);

/* The viewers' request, in the file: it may change at any moment. */
const struct trace_control *request_in_file(const struct trace_writer *writer);

/* Cuts the file to the part that was used and closes it. */
void close_trace_writer(struct trace_writer *writer);

#endif

/* schedule.h - the step as a list of tasks: building it, ordering it, placing it, running it.
 *
 * One training iteration is a *step*: a list of tasks in an order that is correct when they simply run one after
 * another.  A task says which tensors it reads and writes, which lane it runs on and how much work it is.  Everything
 * else follows from the list:
 *
 *     depend   finds the edges: which task must wait for which, within the step and across its end (it is cyclic)
 *     place    gives every tensor an address; tensors whose lifetimes do not meet share bytes
 *     verify   proves that every read sees its own tensor's bytes and that every conflict is ordered
 *     execute  issues the tasks to OpenCL queues and host threads, and waits only where an edge crosses lanes
 *     print    shows all of it (yard plan)
 *
 * Protocol: new_pool, new_tensor / new_step, add tasks, then finish_steps() once for all lists that share the arena (it
 * calls place, depend and sets kernel arguments), then execute() any number of times, drain() before anything is read.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "../device/device.h" /* defines: device, lane, machine */
#include "trace.h"            /* defines: trace_writer */

#include <jansson.h>
#include <pthread.h>

/* ---- tensors (tensor.c) ---------------------------------------------------------------------------------------- */

enum memory_class { MEM_PARAMETERS, MEM_GRADIENTS, MEM_OPTIMIZER, MEM_ACTIVATIONS, MEM_WORK, MEM_CLASSES };
extern const char *const memory_class_name[MEM_CLASSES];
enum element { FLOAT32, INT32 }; /* both 4 bytes */
enum { ELEMENT_BYTES = 4, MAX_DIMS = 4 };

/* An array with a name, a shape, one place and one lifetime.  A *view* is a part of another tensor (its root) with a
 * name and shape of its own: the weights of a layer are views of the layer's one parameter tensor. */
struct tensor {
    int id; /* position in the pool */
    char name[48];
    enum element element;
    int rank;
    int64_t shape[MAX_DIMS];
    size_t bytes;
    struct device *device;
    enum memory_class class;
    bool persistent;     /* keeps its value from step to step (and its address in all lists) */
    struct tensor *root; /* itself, unless it is a view */
    size_t offset;       /* of a view: bytes from the root's start */

    /* set by place(), of roots: */
    struct step *step; /* the list it lives in; NULL while unused or persistent */
    int first, last;   /* positions in that list between which its bytes are held */
    int slab;          /* -1: not placed */
    size_t address;    /* bytes from the slab's start */

    cl_mem buffer; /* sub-buffer, made on first use */
};

/* All tensors that share the arenas of a machine. */
struct pool {
    struct machine *machine;
    struct tensor **tensors;
    size_t n, cap;
};
struct pool *new_pool(struct machine *m);
void free_pool(struct pool *p); /* tensors, their sub-buffers and the slabs */
/* The pool owns the tensor. */
struct tensor *new_tensor(struct pool *p, struct device *d, enum memory_class class, const char *name,
                          enum element element, int rank, const int64_t *shape);
/* `offset` counts elements of `of` and must keep the device's alignment where an OpenCL kernel takes the view. */
struct tensor *new_view(struct pool *p, struct tensor *of, const char *name, size_t offset, int rank,
                        const int64_t *shape);
size_t count_elements(const struct tensor *t);
cl_mem tensor_buffer(struct tensor *t);      /* after place: the sub-buffer of an OpenCL device's tensor */
void *tensor_memory(const struct tensor *t); /* after place: the bytes of a host tensor */
/* Blocking copies for set-up, checks and saving; nothing may be in flight. */
void write_tensor(struct tensor *t, const void *from);
void read_tensor(struct tensor *t, void *into);

/* ---- tasks (task.c) -------------------------------------------------------------------------------------------- */

enum access_mode { ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_BOTH = 3 };
struct access {
    struct tensor *tensor;
    enum access_mode mode;
};
enum arg_kind { ARG_TENSOR, ARG_INT, ARG_FLOAT, ARG_LOCAL };
struct arg { /* of a kernel */
    enum arg_kind kind;
    struct access given; /* what add_kernel() is handed and moves into the task's access list */
    int32_t i;           /* of a task's tensor argument: its index there, -1 for NO_TENSOR */
    float f;
};
#define IN(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_READ}})
#define OUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_WRITE}})
#define INOUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_BOTH}})
/* Adds to what is there, or starts anew: the first micro-batch of a gradient only writes. */
#define ACCUMULATE(t, more) ((struct arg){.kind = ARG_TENSOR, .given = {(t), (more) ? ACCESS_BOTH : ACCESS_WRITE}})
#define INT(n) ((struct arg){.kind = ARG_INT, .i = (int32_t)(n)})
#define FLOAT(x) ((struct arg){.kind = ARG_FLOAT, .f = (x)})
#define LOCAL(bytes) ((struct arg){.kind = ARG_LOCAL, .i = (int32_t)(bytes)}) /* local memory */
#define NO_TENSOR ((struct arg){.kind = ARG_TENSOR})                          /* a buffer the kernel will not touch */
struct grid { /* NDRange: work-items in all and per group; local[0] 0 leaves the group to the driver */
    int dims;
    size_t global[3], local[3];
};

struct task;
struct step;
/* Work of the host: `number` is the iteration (from 1 in training).  Runs on the lane's thread.  Tensors are those of
 * task->access; what it leaves elsewhere follows from them and `number`, since an audit runs it several times. */
typedef void host_function(void *context, const struct task *task, uint32_t number);
/* Issues the task's commands to its lane's queue; *done gets the event of the last one. */
typedef void issue_function(const struct task *task, cl_uint n_wait, const cl_event *wait, cl_event *done);

enum { MAX_ACCESS = 12, MAX_ARGS = 40 };
enum edge_kind { EDGE_DATA, EDGE_REUSE }; /* from tensors, or because two tensors share bytes */
struct edge {                             /* listed at the consumer */
    uint32_t from;                        /* the producer's position in the list */
    bool previous;                        /* the producer ran in the previous iteration */
    enum edge_kind kind;
    bool wait; /* crosses lanes and follows from no other wait: execute() waits for it */
};
struct task {
    char name[40]; /* "mlp.fc" */
    int layer;     /* -1: none */
    int micro;     /* micro-batch, -1: none */
    struct lane *lane;
    double flops;
    size_t bytes;                     /* read and written */
    struct access access[MAX_ACCESS]; /* all tensors it touches: addresses are taken from here only */
    int n_access;

    issue_function *issue;       /* NULL on host lanes */
    host_function *run;          /* host lanes */
    void *context;               /* of run; or the issue function's own description (freed with the task) */
    const char *file, *function; /* kernel tasks */
    struct arg *args;
    int n_args;
    struct grid grid;
    cl_kernel kernel; /* its own object: arguments are set once */
    bool copy;        /* access[1] to access[0], nothing else */
    bool partial;     /* leaves part of what it writes unwritten, and nothing reads that part (audit) */
    bool span;        /* the event covers only the last of several commands (CLBlast): draw from the lane's last end */

    /* set by depend(): */
    struct edge *edges;
    size_t n_edges, cap_edges;
    uint32_t lane_before;      /* wrapped lists: the task before it on its lane, ... */
    bool lane_before_previous; /* ... in the iteration before */
    unsigned notify;           /* bit set of contexts, other than its own, in which a task waits for it */
    bool flush;                /* another lane waits: submit at once */
};

struct slot {      /* one task in one iteration (two are kept: step parity) */
    cl_event work; /* the end of its commands */
    cl_event done; /* what others wait for: the same, unless the list is wrapped; of host tasks a user event */
    uint64_t queued, start, end; /* start, end: written by host threads */
    uint64_t record;             /* in the trace */
};
struct pace; /* simulate.h */
struct step {
    char name[24]; /* "train", "eval" */
    struct pool *pool;
    struct task *tasks;
    size_t n, cap;
    size_t peak[MAX_DEVICES + 1][MEM_CLASSES]; /* set by place: most bytes of a class held at a time */
    size_t high[MAX_DEVICES + 1];              /* and of all together */

    /* running */
    struct slot *slots[2];
    cl_event *foreign[2]; /* [task * n_contexts + context]: user events that stand for `done` elsewhere */
    uint32_t number[2];   /* iteration held by each parity; 0: none */
    uint64_t ended[4];    /* by iteration & 3, once it is collected: its last end on a device, on the host's clock */
    bool ready;
    struct pace *wrapper;                                         /* pace.c: pads or delays the end of every task */
    void (*finish)(struct step *s, uint32_t number, size_t task); /* of the wrapper; NULL: none */
    uint32_t first_trace_task;                                    /* index of task 0 in the trace's task table */
};
struct step *new_step(struct pool *p, const char *name);
void free_step(struct step *s);

/* Each adds a task at the end of the list; the pointer is valid until the next one is added. */
struct task *add_kernel(struct step *s, struct lane *lane, const char *name, const char *file, const char *function,
                        struct grid grid, const struct arg *args, int n_args);
/* Upload, download, or device to device within a context: whatever the two tensors' devices say. */
struct task *add_copy(struct step *s, struct lane *lane, const char *name, struct tensor *to, struct tensor *from);
struct task *add_host(struct step *s, struct lane *lane, const char *name, host_function *run, void *context);
struct task *add_issue(struct step *s, struct lane *lane, const char *name, issue_function *issue, void *context);
void add_access(struct task *t, struct tensor *tensor, enum access_mode mode);
/* Copy between any two devices: one task in a shared context, else a download and an upload through the host. */
void add_move(struct step *s, const char *name, struct tensor *to, struct tensor *from, int layer);

/* ---- depend.c, place.c, verify.c ------------------------------------------------------------------------------- */

/* Fill in every task's edges.  Data edges need no addresses; with addresses (after place) reuse edges are added, and
 * `wait`, `notify` and `flush` are set. */
void depend(struct step *s, bool with_addresses);

/* Lifetimes, then addresses for all tensors that the lists use, persistent ones first.  Fails with EXIT_USAGE, naming
 * task, tensor and bytes, when a device's budget is too small.  check_only: place, but allocate nothing. */
void place(struct pool *p, struct step *const *steps, size_t n, bool check_only);
/* place + depend + kernels and their arguments. */
void finish_steps(struct pool *p, struct step *const *steps, size_t n);

/* The values that flow through a list, numbered (values.c).  Taken of a list before passes, it is what verify() holds
 * the list behind them against. */
struct values;
struct values *number_values(const struct step *s);
void free_values(struct values *v);
/* NULL when every task of s reads the values that it read in the list `expected` was taken of, else a sentence. */
char *compare_values(const struct values *expected, const struct step *s);

/* Checks the finished list on its own, taking what tasks declare for true: every read sees bytes last written through
 * its own tensor, and every two accesses to the same bytes of which one writes are ordered by waits and lanes, within
 * an iteration and into the next (further apart follows, since lanes are in order); every tensor lies within its
 * device's budget; and, unless `expected` is NULL, every task reads the same values as in that list.  Returns NULL when
 * all is well, else the first violation as a sentence (the caller frees it). */
char *verify(const struct step *s, const struct values *expected);

/* ---- execute.c ------------------------------------------------------------------------------------------------- */

/* Called once per finished task, on the issuing thread, in list order per iteration. */
typedef void observer(void *context, const struct step *s, const struct task *t, uint32_t number, uint64_t start,
                      uint64_t end);
struct execution {
    bool serial, audit;
    struct trace_writer *trace;
    observer *observe;
    void *observe_context;
    double watchdog_seconds; /* 0: off */
};
/* Set for the whole process before the first execute(). */
extern struct execution execution;

/* Issue iteration `number` of the list (numbers rise by one from 1; two may be in flight).  Serial: run it, one task
 * after another, and create no thread. */
void execute(struct step *s, uint32_t number);
/* Wait until iteration `number` (issued, and at most one back) has ended, and collect its times. */
void wait_iteration(struct step *s, uint32_t number);
/* Run task i of iteration `number` on this thread and wait for it; the caller keeps the list to itself. */
void run_alone(struct step *s, uint32_t number, size_t i);
/* Wait until all that was issued has ended, without collecting it. */
void wait_lanes(struct step *s);
/* Wait for everything issued, and until no thread reads the list any more: after it, another list may run, tensors may
 * be read, and the list may be freed. */
void drain(struct step *s);

/* ---- hostlane.c: threads of host lanes and forwarders ---------------------------------------------------------- */

struct job { /* wait for events, run a host task (or nothing), complete user events */
    struct step *step;
    size_t task;
    uint32_t number; /* iteration */
    bool run;        /* the task is the host's: run it and write its times to the slot */
    cl_uint n_wait, n_complete;
    cl_event *wait, *complete; /* retained by submit_job, released when done */
};
void submit_job(struct host_thread **thread, const char *name, const struct job *job);
void wait_until_idle(struct host_thread *thread); /* every job submitted has been finished; NULL is idle */
void stop_thread(struct host_thread **thread);

/* ---- watchdog.c, audit.c, blame.c, print.c
 * ------------------------------------------------------------------------------ */

/* The watchdog's lock: held while slots change. */
extern pthread_mutex_t slots_lock;
/* Watch this list (a thread is started when execution.watchdog_seconds > 0): when no task ends for that long, print the
 * frontier; after five times as long, end the program with EXIT_FAILED.  NULL: nothing runs. */
void watch(struct step *s);
/* What is stuck: per lane the first task that has not ended and the edges it waits for. */
void print_frontier(FILE *out, struct step *s);

/* Checks what tasks declare, while nothing else runs: open, audit tasks in list order, close. */
struct audit *open_audit(struct step *s);
/* Runs task i of iteration `number` over several fillings of all that it does not declare to read.  NULL: it left the
 * same in its declared writes each time, and all else alone.  Otherwise a sentence (the caller frees it), and memory
 * stays as before the task. */
char *audit_task(struct audit *a, uint32_t number, size_t i);
void close_audit(struct audit *a);

/* Runs iteration `number` again, one task at a time, until one writes something that is not finite, or reads a
 * parameter or optimizer state that is not.  false: nothing found. */
struct blame {
    const struct task *task;
    const struct tensor *tensor;
    size_t element;
    bool before; /* it was not finite before the task ran */
};
bool find_not_finite(struct step *s, uint32_t number, struct blame *b);

/* yard plan: the list with edges and accesses, where its tensors lie and when, then bytes per device; or as JSON. */
void print_step(FILE *out, const struct step *s);
void print_map(FILE *out, const struct pool *p, const struct step *s);
void print_memory(FILE *out, const struct pool *p, struct step *const *steps, size_t n);
json_t *plan_json(const struct pool *p, struct step *const *steps, size_t n);

/* Fill trace tables from finished lists and create the trace file. */
struct trace_writer *start_trace(const char *path, const struct machine *m, struct step **steps, size_t n,
                                 const char *model, enum trace_kind kind, double pace_scale);

#endif

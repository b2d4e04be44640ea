/* step.h - the step as a list of tasks.
 *
 * One training iteration is a *step*: a list of tasks in an order that is correct when they simply run one after
 * another.  A task says which tensors it reads and writes, which lane it runs on and how much work it is:
 *
 *     task         lane           reads         writes      waits for
 *     0 forward    0:0 compute    weight, x     y           4'
 *     1 backward   0:0 compute    weight, y     gradient
 *     2 download   0:0 download   gradient      h           1
 *     3 update     host cpu       h, m          m, w        2
 *     4 upload     0:0 upload     w             weight      3          (4': of the step before)
 *
 * Everything else follows from the list.  place() gives every tensor an address: those whose lives do not meet share
 * bytes.  depend() finds the edges: which task must wait for which, within the step and across its end (the list is a
 * ring).
 *
 * Other folders rewrite a list, prove it, show it, run it on a virtual clock, or, in run/, for real.  Nothing here
 * calls a device, except for the buffers of tensors.
 *
 * Protocol: new_pool, new_tensor / new_step, add tasks; then run/'s finish_steps() for all lists that share the arena,
 * or place() and depend() where nothing is to run.
 */
#ifndef STEP_H
#define STEP_H

#include "trainer/device/device.h" /* defines: device, lane, machine */

/* ---- tensors (tensor.c) ---------------------------------------------------------------------------------------- */

/* What a tensor holds.  No tensor has the class MEM_BUFFERS: reports count those there that as_buffer() has marked. */
enum memory_class { MEM_PARAMETERS, MEM_GRADIENTS, MEM_OPTIMIZER, MEM_ACTIVATIONS, MEM_WORK, MEM_BUFFERS, MEM_CLASSES };
extern const char *const memory_class_name[MEM_CLASSES + 1]; /* NULL ends them */
enum element { FLOAT32, INT32 };                             /* both have 4 bytes */
/* Which other tensors may have a tensor's bytes before and after its life: any; only those that live far away in the
 * list; none. */
enum exclusive { EXCLUSIVE_NOT, EXCLUSIVE_SOME, EXCLUSIVE_ALWAYS };
enum { ELEMENT_BYTES = 4, MAX_DIMS = 4, SLABS_PER_DEVICE = 256 };

/* An array with a name, a shape, one place and one lifetime.  A *view* is a part of another tensor (its storage) with a
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
    bool persistent;      /* keeps its value from step to step, and its address in all lists */
    bool cheap;           /* an activation that takes little work to make again, for its size */
    bool choice;          /* a word that says which tasks run; no value follows from it (condition.needs) */
    bool is_buffer;       /* marked by as_buffer(); its class still says what it holds */
    bool shard;           /* holds one rank's part of `replica_of`; tasks read gathered copies of it (ZeRO-3) */
    struct tensor *later; /* if it is a gathered copy: the next copy of the same in this step; else NULL */
    enum exclusive exclusive;
    struct tensor *storage; /* the tensor that has the bytes: itself, unless it is a view */
    struct tensor *view;    /* a chain: a storage points to the last of its views, a view to the one before it */
    size_t offset;          /* bytes from the storage's start; 0 unless it is a view */

    /* Where a persistent storage gets its first bytes: from `replica_of`, at byte `replica_begin`.  A storage that is
     * no replica, nor a part of one, points to itself, with begin 0. */
    const struct tensor *replica_of;
    size_t replica_begin;
    /* A pass may add a replica that mirrors another tensor: set-up writes to both.  The mirrors of one `replica_of` are
     * a chain. */
    const struct tensor *mirrors;
    struct tensor *first_mirror, *next_mirror;

    /* Several tensors alike may be a ring (ring.c).  The accesses of tasks name only its first member. */
    struct ring *ring;          /* the ring whose first member this storage is; NULL: it is none */
    struct tensor *next_member; /* the same part of the next member; NULL: it is the last one, or in no ring */

    /* set by place(), for storages: */
    struct step *step;           /* the list it lives in; NULL while unused or persistent */
    int first, last;             /* positions in that list between which its bytes are held */
    const struct device *copier; /* a device whose task writes it, or else one that reads it; NULL: only the host */
    int slab;                    /* index in the device's slabs; -1: not placed */
    size_t address;              /* bytes from the slab's start */

    cl_mem buffer; /* sub-buffer, made on first use */
};

/* Which iteration has which member of the rings of a pool (ring.c).  Zero: there are no rings. */
enum { MOST_MEMBERS = 16 };
struct ring {
    int n;    /* number of members, which are numbered from 1 */
    int kept; /* the member with the newest iteration that is durable; 0: none */
    /* The iteration that has member k; 0: none.  Atomic, since running tasks look for their member meanwhile. */
    _Atomic uint32_t iteration[MOST_MEMBERS + 1];
};

/* All tensors that share the arenas of a machine. */
struct pool {
    struct machine *machine;
    struct ring ring;
    struct tensor **tensors;
    size_t n, cap;
    size_t looks; /* set by place(): how many ranges of addresses it looked at or moved, a measure of its work */
};
struct pool *new_pool(struct machine *m);
void free_pool(struct pool *p);              /* tensors, their sub-buffers and the slabs */
void drop_tensors(struct pool *p, size_t n); /* frees all but the first n; no list may use those that go */

/* The pool owns all tensors that these make. */
struct tensor *new_tensor(struct pool *p, struct device *d, enum memory_class class, const char *name,
                          enum element element, int rank, const int64_t *shape);
/* A new tensor on device d: name, class, shape and bytes are those of `like`. */
struct tensor *tensor_like(struct pool *p, struct device *d, const struct tensor *like);
/* A view of `of` that begins `offset` elements after its start.  Where an OpenCL kernel takes the view, the offset must
 * be a multiple of the device's alignment. */
struct tensor *new_view(struct pool *p, struct tensor *of, const char *name, size_t offset, int rank,
                        const int64_t *shape);

/* The same, in bytes: a view of `bytes` bytes from byte `begin` of `of` on; bytes 0: as many as the shape says. */
struct tensor *add_view(struct pool *p, struct tensor *of, const char *name, size_t begin, size_t bytes, int rank,
                        const int64_t *shape);

/* Marks t as a buffer: it holds only for a while a copy, or a partial sum, of another tensor.  Reports then count its
 * bytes as buffers, whatever its class: counted_as().  Returns t. */
struct tensor *as_buffer(struct tensor *t);
enum memory_class counted_as(const struct tensor *t);
bool share_bytes(const struct tensor *a, const struct tensor *b); /* are they overlapping parts of one storage? */
size_t count_elements(const struct tensor *t);
cl_mem tensor_buffer(struct tensor *t);      /* the sub-buffer of an OpenCL device's tensor; call it after place() */
void *tensor_memory(const struct tensor *t); /* the bytes of a host tensor; call it after place() */
/* Blocking copies for set-up, checks and saving; nothing may be in flight. */
void write_tensor(struct tensor *t, const void *from);
void read_tensor(struct tensor *t, void *into);
void write_bytes_of(struct tensor *t, size_t begin, size_t n, const void *from);
void read_bytes_of(struct tensor *t, size_t begin, size_t n, void *into);

/* ---- tasks (task.c) -------------------------------------------------------------------------------------------- */

enum access_mode { ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_BOTH = 3 };
struct access {
    struct tensor *tensor;
    enum access_mode mode;
};
enum arg_kind { ARG_TENSOR, ARG_INT, ARG_ELEMENTS, ARG_FLOAT, ARG_LOCAL };
struct arg { /* an argument of a kernel */
    enum arg_kind kind;
    struct access given; /* ARG_TENSOR: tensor and mode, only until add_kernel() has moved them to task->access */
    int32_t i;           /* ARG_TENSOR: from then on its index in task->access, or -1 for NO_TENSOR; else the number */
    float f;             /* ARG_FLOAT: the number */
};
#define IN(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_READ}})
#define OUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_WRITE}})
#define INOUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_BOTH}})
/* The kernel adds to what is in t, or, as for the first micro-batch of a gradient, starts anew and only writes. */
#define ACCUMULATE(t, more) ((struct arg){.kind = ARG_TENSOR, .given = {(t), (more) ? ACCESS_BOTH : ACCESS_WRITE}})
#define INT(n) ((struct arg){.kind = ARG_INT, .i = (int32_t)(n)})
/* An int of an elementwise task that counts elements from the task's first one on: a piece of the task gets less. */
#define ELEMENTS(n) ((struct arg){.kind = ARG_ELEMENTS, .i = (int32_t)(n)})
#define FLOAT(x) ((struct arg){.kind = ARG_FLOAT, .f = (x)})
#define LOCAL(bytes) ((struct arg){.kind = ARG_LOCAL, .i = (int32_t)(bytes)}) /* local memory */
#define NO_TENSOR ((struct arg){.kind = ARG_TENSOR})                          /* a buffer the kernel will not touch */
struct grid {                                                                 /* an NDRange of OpenCL */
    int dims;
    size_t global[3]; /* work-items in all */
    size_t local[3];  /* work-items of a group; local[0] 0 leaves that to the driver */
};

struct task;
struct step;
/* What a task of the host does in iteration `number` (from 1 in training), on the lane's thread.  It uses the tensors
 * of task->access.  It may be run several times, so whatever it leaves elsewhere must follow from them and `number`. */
typedef void host_function(void *context, const struct task *task, uint32_t number);
/* Issues the task's commands of iteration `number` to its lane's queue; *done gets the event of the last command. */
typedef void issue_function(const struct task *task, uint32_t number, cl_uint n_wait, const cl_event *wait,
                            cl_event *done);

/* The iterations in which a task runs: those that leave `rest` when divided by `every`.  In all others it is as if the
 * task were not in the list: nothing is issued, and a task that waits for it waits for its last run. */
struct when {
    uint32_t every, rest;
};

/* Whether a task runs in an iteration may be known only when all that it waits for has ended.  It runs if then both
 * `needs` and `member` are fulfilled.  Zero: it always runs. */
struct condition {
    /* Bits that the choice word must have, or the task does nothing in this iteration; 0: it needs none.  A task of the
     * same iteration has written the word, and this task reads it on the host. */
    int needs;
    bool member; /* the iteration must have a member of the rings; its first task whose `needs` hold asks for one */
    bool aside;  /* with `member`: only tasks of the same condition wait for this one, so training never does */
    bool ends;   /* with `member`: the iteration gives its member back when this task has ended */
};

/* What a task is for: passes and printers ask for this, never for names. */
enum role {
    ROLE_OTHER,
    ROLE_FORWARD,
    ROLE_BACKWARD,
    ROLE_REDUCE, /* sums gradients over ranks */
    ROLE_NORM,
    ROLE_UPDATE,
    ROLE_BROADCAST,               /* brings to all ranks what an update made, or, without ZeRO, a summed gradient */
    ROLE_SEND,                    /* copies activations or gradients between pipeline stages */
    ROLE_FEED,                    /* brings batches and settings in */
    ROLE_REPORT,                  /* takes results out */
    ROLES_BY_HAND,                /* roles before this one are words of step files; only passes use the others */
    ROLE_OFFLOAD = ROLES_BY_HAND, /* copies between an update on the CPU and its device */
    ROLE_SWAP,                    /* takes bytes from a device for a while, and brings them back */
    ROLE_SNAPSHOT,                /* stores what an update made */
    ROLES
};
extern const char *const role_name[ROLES];
/* Elements [begin, end) of what a rank has of a unit of the model, in its parameters and in Adam's m and v alike. */
struct state_range {
    int rank, unit;
    size_t begin, end;
};
/* Each task that is held waits for all tasks of the same iteration that hold (tools/lists/gate.c). */
enum gate { GATE_NONE, GATE_HOLDS, GATE_HELD };
struct tags {
    int layer; /* -1: none */
    int micro; /* micro-batch, -1: none */
    enum role role;
};

enum edge_kind { EDGE_DATA, EDGE_REUSE }; /* both touch one tensor; two tensors share bytes */
struct edge {                             /* it stands in the list of its consumer, the task that waits */
    uint32_t from;                        /* the producer's position in the list */
    bool previous;                        /* the producer ran in the previous iteration */
    enum edge_kind kind;
    bool wait; /* it crosses lanes and follows from no other wait, so execute() waits for it */
};
struct task {
    uint64_t origin; /* a number that a task shares with its pieces, its repeats and what stands in for it */
    char name[40];   /* "mlp.fc" */
    int layer;       /* -1: none */
    int micro;       /* micro-batch, -1: none */
    enum role role;
    /* A number that a copy shares with the others that bring the same bytes to other devices, see add_broadcast(), and
     * with its pieces, its repeats and what stands in for it; 0: none. */
    int message;
    struct lane *lane;
    size_t index;             /* position in the list */
    struct task *prev, *next; /* neighbours, while the list is edited */

    /* what it touches: addresses are taken from here only */
    struct access *access;
    int n_access;

    /* how much work it is */
    double flops;
    size_t bytes; /* read and written: each tensor once, as a whole, unless set_traffic() has said less */
    /* Seconds that it takes on its lane, and on the host, if a step file says so; -1: none does. */
    double seconds, host_seconds;

    /* when it runs */
    struct when when;
    struct condition condition;
    enum gate gate;

    /* what it does: one of four */
    bool copy;                   /* 1. it copies access[1] to access[0]; what else it reads it only waits for */
    host_function *run;          /* 2. it runs this function on the host */
    void *context;               /* the first argument of run or issue */
    const char *file, *function; /* 3. it launches this kernel: cl/FILE, the function's name */
    struct arg *args;
    int n_args;
    struct grid grid;
    issue_function *issue; /* 4. it issues commands of its own */
    size_t description;    /* size in bytes of issue's context, which the task owns; 0: it owns no context */
    void (*compile)(const struct task *t); /* called before the first run, so that issue need not compile; or NULL */

    /* what passes may do with it */
    host_function *host_run;  /* does the same on the host, with accesses and args in the same order; NULL: none does */
    bool elementwise;         /* may be cut into pieces: see set_elementwise() */
    size_t first;             /* if it is a piece of an elementwise task: bytes from the start of the uncut task */
    struct state_range state; /* the state that this update makes anew, or that this task stores */

    /* what its event and its bytes do not say */
    bool partial; /* leaves part of what it writes unwritten, and nothing reads that part */
    bool span;    /* the event covers only the last of several commands (CLBlast): draw from the lane's last end */

    /* set by depend(): */
    struct edge *edges; /* n_edges of the step's */
    size_t n_edges;
    unsigned notify; /* bit set of contexts, other than its own, in which a task waits for it */
    bool flush;      /* another lane waits for it: submit it at once */
};
bool runs(const struct task *t, uint32_t number); /* does it run in that iteration, as far as t->when says? */
bool is_conditional(const struct task *t);        /* are there iterations in which it does not run? */
bool chooses(const struct task *t);               /* does it write a choice word? */
struct tensor *choice_word(const struct task *t); /* the choice word that t reads or writes; NULL: none */
/* The bits of the choice word that t reads; and, has the word all bits of t->condition.needs?  Ask only after the tasks
 * that t waits for have ended.  Edges and proofs do not look at this: where a task does nothing, either its bytes have
 * been written already, or no task will read them. */
int choice_bits(const struct task *t);
bool has_needed(const struct task *t);
/* The number of iterations after which the same tasks run again, at most `most`. */
uint32_t repeat_of(const struct step *s, uint32_t most);

/* ---- ring.c: a member for each of a few iterations --------------------------------------------------------------- */

int take_member(struct ring *r, uint32_t iteration);                  /* returns its number, from 1; 0: none is free */
void return_member(struct ring *r, uint32_t iteration, bool durable); /* durable: kept until another one is durable */
int member_of(const struct ring *r, uint32_t iteration);              /* 0: the iteration has none */
struct tensor *nth_member(struct tensor *t, int k); /* t: the first member, or a part of it; k counts from 1 */
/* The tensor that t means in this iteration: t itself, or, where t is in a ring, the same part of the member that the
 * iteration has. */
struct tensor *tensor_at(struct tensor *t, uint32_t iteration);

struct level { /* from this position on, until its next level, a device holds so many bytes */
    int device, position;
    size_t bytes, of_class[MEM_CLASSES];
};
enum { MOST_TASKS = 1000000 }; /* in a list: gpt2 on 128 devices has 915,049, which take 1.4 GB */
enum { MOST_RUNS = 4 };        /* runs of one task that may be in flight */
struct step {
    char name[24]; /* "train", "eval" */
    struct pool *pool;
    struct task **task; /* in list order; a pointer is the task's identity, its position may change */
    size_t n, cap;
    uint64_t last_origin;
    int message;         /* the message number that copies get which are added now; 0: none */
    int last_message;    /* the highest number so far */
    struct tags tags;    /* put on every task that is added */
    struct task *head;   /* while the list is edited: stands before the first task */
    struct task *cursor; /* while the list is edited: new tasks come right after it; else NULL */

    /* set by depend(): the edges of task 0, of task 1 ... */
    struct edge *edges;
    size_t n_edges, cap_edges;

    /* set by place() */
    size_t (*peak)[MEM_CLASSES]; /* by device: most bytes of a class held at a time */
    size_t *high;                /* by device: most bytes of all classes together held at a time */
    struct level *level;         /* what is held from each position on, in list order */
    size_t n_levels, cap_levels;

    struct running *running;      /* what run/ needs to run it; NULL: it was never finished for running */
    void (*stop)(struct step *s); /* frees `running` */
    /* Brings state back to where it is looked for, if tasks of this list may leave it elsewhere; NULL: they do not.
     * drain() and its like call it with nothing in flight, after any number of iterations. */
    void (*settled)(struct step *s);
};
struct step *new_step(struct pool *p, const char *name);
void free_step(struct step *s); /* nothing of it may be in flight: see drain() in run.h */
/* " (layer 1, micro-batch 0)" for messages; it leaves out what the task has not, and is "" if it has neither. */
const char *layer_and_micro(char out[64], const struct task *t);

/* Each adds a task to the list, which owns it: at its end, or at the cursor. */
struct task *add_kernel(struct step *s, struct lane *lane, const char *name, const char *file, const char *function,
                        struct grid grid, const struct arg *args, int n_args);
/* An upload, a download, or a copy within a context: the two tensors' devices say which. */
struct task *add_copy(struct step *s, struct lane *lane, const char *name, struct tensor *to, struct tensor *from);
/* Does it copy bytes to themselves?  That takes no time: it makes the next task that touches them wait until its lane
 * has come to this point. */
bool copies_nothing(const struct task *t);
struct task *add_host(struct step *s, struct lane *lane, const char *name, host_function *run, void *context);
/* description: these `bytes` bytes are copied, and issue() is given the copy as its context. */
struct task *add_issue(struct step *s, struct lane *lane, const char *name, issue_function *issue,
                       const void *description, size_t bytes);
struct task *append_task(struct step *s);             /* an empty task, at the end, or at the cursor */
void link_behind(struct task *t, struct task *where); /* while the list is edited: puts t right after `where` */
void free_task(struct task *t);
void add_access(struct task *t, struct tensor *tensor, enum access_mode mode);
/* Declares that element i of what the task writes follows from element i of what it reads, so that a pass may cut it
 * into pieces.  This is said of operands with as many bytes as its first one; smaller ones are read as a whole.  Counts
 * of elements among a kernel's arguments must be ELEMENTS. */
void set_elementwise(struct task *t);
/* Says that the task reads and writes so many elements in all, where it needs only parts of its tensors. */
void set_traffic(struct task *t, double elements);
/* A copy up from the host, down to it, or within a context, on the device's lane for that purpose; between two devices
 * it is the sender's download lane. */
struct task *carry(struct step *s, const char *name, struct tensor *to, struct tensor *from, enum purpose purpose);
/* A copy down to the host.  Returns the host's tensor, which is new. */
struct tensor *add_download(struct step *s, const char *name, struct tensor *from, enum purpose purpose);

/* ---- depend.c, place.c ----------------------------------------------------------------------------------------- */

/* Fill in every task's edges.  Data edges need no addresses; with addresses (after place) reuse edges are added, and
 * `wait`, `notify` and `flush` are set. */
void depend(struct step *s, bool with_addresses);
int event_context(const struct task *t); /* the context of its event; a host task's is a user event of context 0 */

/* Finds lifetimes, then addresses for all tensors that the lists use, persistent ones first, and takes memory for them
 * unless check_only is set.  Returns NULL, or, when a budget is too small, a problem with task, tensor and bytes. */
struct problem *place(struct pool *p, struct step *const *steps, size_t n, bool check_only);

#endif

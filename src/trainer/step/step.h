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
 * Whoever is handed a list can rewrite it, prove it, show it, run it on a virtual clock, or, in run/, for real. Nothing
 * here calls a device, but for the buffers of tensors.
 *
 * Protocol: new_pool, new_tensor / new_step, add tasks; then run/'s finish_steps() for all lists that share the arena,
 * or place() and depend() where nothing is to run.
 */
#ifndef STEP_H
#define STEP_H

#include "trainer/device/device.h" /* defines: device, lane, machine */

/* ---- tensors (tensor.c) ---------------------------------------------------------------------------------------- */

/* What a tensor holds.  Buffers are no class of a tensor: counted_as() takes those that are marked for them. */
enum memory_class { MEM_PARAMETERS, MEM_GRADIENTS, MEM_OPTIMIZER, MEM_ACTIVATIONS, MEM_WORK, MEM_BUFFERS, MEM_CLASSES };
extern const char *const memory_class_name[MEM_CLASSES + 1]; /* NULL ends them */
enum element { FLOAT32, INT32 };                             /* both 4 bytes */
/* May other tensors have its bytes before and behind its life: any, those that live far away in the list, none? */
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
    bool is_buffer;       /* see as_buffer(); its class says what it holds */
    bool shard;           /* keeps its part of `replica_of`; tasks read copies that are gathered for them (ZeRO-3) */
    struct tensor *later; /* of what is gathered: the same, as it is gathered next in the step; or NULL */
    enum exclusive exclusive;
    struct tensor *storage; /* itself, unless it is a view */
    struct tensor *view;    /* of a storage: its views, a chain, the last one first; of a view: the next one */
    size_t offset;          /* of a view: bytes from the storage's start */

    /* Of a storage that persists.  A replica, or a part of one, names its original here: before the first iteration it
     * holds the same bytes as that, from `replica_begin` on.  Any other storage names itself, and 0. */
    const struct tensor *replica_of;
    size_t replica_begin;
    /* Replicas that passes make mirror another tensor: set-up writes to both.  A chain by `replica_of`. */
    const struct tensor *mirrors;
    struct tensor *first_mirror, *next_mirror;

    /* Of a ring, whose first member stands in the list: */
    struct ring *ring;          /* of its storage; NULL: it is in no ring, or is a member beside the first */
    struct tensor *next_member; /* the same part of the next member; NULL: it is the last one, or in no ring */

    /* set by place(), of storages: */
    struct step *step;           /* the list it lives in; NULL while unused or persistent */
    int first, last;             /* positions in that list between which its bytes are held */
    const struct device *copier; /* a device whose task writes it, or else one that reads it; NULL: only the host */
    int slab;                    /* -1: not placed */
    size_t address;              /* bytes from the slab's start */

    cl_mem buffer; /* sub-buffer, made on first use */
};

/* Which iterations have which members of the tensors that are rings (ring.c).  Zero: there are none. */
enum { MOST_MEMBERS = 16 };
struct ring {
    int n;                                        /* members, numbered from 1 */
    int kept;                                     /* the member with the newest iteration that counts; 0: none */
    _Atomic uint32_t iteration[MOST_MEMBERS + 1]; /* that has member k; 0: none.  Tasks look for theirs meanwhile */
};

/* All tensors that share the arenas of a machine. */
struct pool {
    struct machine *machine;
    struct ring ring;
    struct tensor **tensors;
    size_t n, cap;
    size_t looks; /* set by place(): its work, in ranges of addresses that it looked at or moved */
};
struct pool *new_pool(struct machine *m);
void free_pool(struct pool *p);              /* tensors, their sub-buffers and the slabs */
void drop_tensors(struct pool *p, size_t n); /* all but the first n, which no list may use */

/* All tensors are the pool's. */
struct tensor *new_tensor(struct pool *p, struct device *d, enum memory_class class, const char *name,
                          enum element element, int rank, const int64_t *shape);
struct tensor *tensor_like(struct pool *p, struct device *d, const struct tensor *like);
/* `offset` counts elements of `of`, and keeps the device's alignment where an OpenCL kernel takes the view. */
struct tensor *new_view(struct pool *p, struct tensor *of, const char *name, size_t offset, int rank,
                        const int64_t *shape);

/* From byte `begin` of the tensor on; bytes 0: as many as the shape says. */
struct tensor *add_view(struct pool *p, struct tensor *of, const char *name, size_t begin, size_t bytes, int rank,
                        const int64_t *shape);

/* The same tensor, made to hold for a while what another keeps, or a part of its sum. */
struct tensor *as_buffer(struct tensor *t);
enum memory_class counted_as(const struct tensor *t);
bool share_bytes(const struct tensor *a, const struct tensor *b); /* parts of one tensor that overlap */
size_t count_elements(const struct tensor *t);
cl_mem tensor_buffer(struct tensor *t);      /* after place: the sub-buffer of an OpenCL device's tensor */
void *tensor_memory(const struct tensor *t); /* after place: the bytes of a host tensor */
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
struct arg { /* of a kernel */
    enum arg_kind kind;
    struct access given; /* of a tensor, as add_kernel() is handed it; it moves into the task's access list, and ... */
    int32_t i;           /* ... this becomes its index there, -1 for NO_TENSOR; of ints and local memory: the number */
    float f;
};
#define IN(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_READ}})
#define OUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_WRITE}})
#define INOUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_BOTH}})
/* Adds to what is there, or starts anew: the first micro-batch of a gradient only writes. */
#define ACCUMULATE(t, more) ((struct arg){.kind = ARG_TENSOR, .given = {(t), (more) ? ACCESS_BOTH : ACCESS_WRITE}})
#define INT(n) ((struct arg){.kind = ARG_INT, .i = (int32_t)(n)})
/* Of elementwise tasks: an int that counts elements from the task's first one on. */
#define ELEMENTS(n) ((struct arg){.kind = ARG_ELEMENTS, .i = (int32_t)(n)})
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
 * task->access; what it leaves elsewhere follows from them and `number`, since it may be run several times. */
typedef void host_function(void *context, const struct task *task, uint32_t number);
/* Issues the task's commands of iteration `number` to its lane's queue; *done gets the event of the last one. */
typedef void issue_function(const struct task *task, uint32_t number, cl_uint n_wait, const cl_event *wait,
                            cl_event *done);

/* The iterations in which a task runs: those that leave `rest` when divided by `every`.  In all others it is as if the
 * task were not in the list: nothing is issued, and who waits for it waits for the last time that it ran. */
struct when {
    uint32_t every, rest;
};

/* Whether a task runs in an iteration may be known only when all that it waits for has ended: all of this must hold
 * then.  Zero: it runs. */
struct condition {
    int needs; /* bits of the choice, a word that a task of the iteration has written; the task reads it on the host */
    bool member; /* the iteration must have a member of the rings; it asks for one when a task's choice holds */
    bool aside;  /* with `member`: only tasks of the same condition wait for it, so training never does */
    bool ends;   /* with `member`: the iteration has its member until this task has ended */
};

/* What a task is for: passes and printers ask for this, never for names. */
enum role {
    ROLE_OTHER,
    ROLE_FORWARD,
    ROLE_BACKWARD,
    ROLE_REDUCE, /* sums gradients over ranks */
    ROLE_NORM,
    ROLE_UPDATE,
    ROLE_BROADCAST,               /* to all ranks: what an update made, or, without ZeRO, a summed gradient */
    ROLE_SEND,                    /* between pipeline stages */
    ROLE_FEED,                    /* brings batches and settings in */
    ROLE_REPORT,                  /* takes results out */
    ROLES_BY_HAND,                /* those before it are words of step files; the others are of passes */
    ROLE_OFFLOAD = ROLES_BY_HAND, /* between an update on the CPU and its device */
    ROLE_SWAP,                    /* leaves a device for a while, and comes back */
    ROLE_SNAPSHOT,                /* stores what an update made */
    ROLES
};
extern const char *const role_name[ROLES];
/* Elements [begin, end) of what a rank has of a unit of the model, in its parameters and in Adam's m and v alike. */
struct state_range {
    int rank, unit;
    size_t begin, end;
};
/* All held tasks wait for all that hold, of the same iteration (tools/lists/gate.c). */
enum gate { GATE_NONE, GATE_HOLDS, GATE_HELD };
struct tags {
    int layer; /* -1: none */
    int micro; /* micro-batch, -1: none */
    enum role role;
};

enum edge_kind { EDGE_DATA, EDGE_REUSE }; /* from tensors, or because two tensors share bytes */
struct edge {                             /* listed at the consumer */
    uint32_t from;                        /* the producer's position in the list */
    bool previous;                        /* the producer ran in the previous iteration */
    enum edge_kind kind;
    bool wait; /* crosses lanes and follows from no other wait: execute() waits for it */
};
struct task {
    uint64_t origin; /* the same for pieces and repeats of a task, and for what stands in for it */
    char name[40];   /* "mlp.fc" */
    int layer;       /* -1: none */
    int micro;       /* micro-batch, -1: none */
    enum role role;
    int message; /* copies of one number bring the same bytes to several devices, see add_broadcast(); 0: none.  Pieces
                  * and repeats of a task, and what stands in for it, have its number too */
    struct lane *lane;
    size_t index;             /* position in the list */
    struct task *prev, *next; /* neighbours, while the list is edited */

    /* what it touches: addresses are taken from here only */
    struct access *access;
    int n_access;

    /* how much work it is */
    double flops;
    size_t bytes; /* read and written: whole tensors, each once; set_traffic() says better where only parts are */
    /* How long it takes, and how long on the host, as a step file says; -1: it does not say. */
    double seconds, host_seconds;

    /* when it runs */
    struct when when;
    struct condition condition;
    enum gate gate;

    /* what it does: a copy, access[1] to access[0] (what else it reads it waits for); a function of the host; a kernel;
     * or commands of its own */
    bool copy;
    host_function *run;
    void *context; /* of run or issue */
    const char *file, *function;
    struct arg *args;
    int n_args;
    struct grid grid;
    issue_function *issue;
    size_t description;                    /* bytes of issue's context, which the task owns */
    void (*compile)(const struct task *t); /* before the first run: what issue would else compile in it; or NULL */

    /* what passes may do with it */
    host_function *host_run; /* the same on the host, of accesses and args in the same order; NULL: there is none */
    bool elementwise; /* element i of its writes follows from element i of its reads and from all of its small ones */
    size_t first;     /* of a piece of an elementwise task: bytes from the start of the task that was cut */
    struct state_range state; /* that an update makes anew, or that is stored */

    /* what its event and its bytes do not say */
    bool partial; /* leaves part of what it writes unwritten, and nothing reads that part */
    bool span;    /* the event covers only the last of several commands (CLBlast): draw from the lane's last end */

    /* set by depend(): */
    struct edge *edges; /* part of the step's */
    size_t n_edges;
    unsigned notify; /* bit set of contexts, other than its own, in which a task waits for it */
    bool flush;      /* another lane waits: submit at once */
};
bool runs(const struct task *t, uint32_t number); /* in that iteration? */
bool is_conditional(const struct task *t);        /* are there iterations in which it does not run? */
bool chooses(const struct task *t);               /* does it make a choice? */
struct tensor *choice_word(const struct task *t); /* that it reads, or makes; NULL: none */
/* The choice that a task reads, which needs some of it; and does it find what it needs?  To be asked when what it waits
 * for has ended.  Edges and proofs take no notice: what it would write is there already, or nobody will read it. */
int choice_bits(const struct task *t);
bool has_needed(const struct task *t);
/* Iterations after which the same tasks run again, or `most` where that takes more. */
uint32_t repeat_of(const struct step *s, uint32_t most);

/* ---- ring.c: a member for each of a few iterations --------------------------------------------------------------- */

int take_member(struct ring *r, uint32_t iteration);                 /* from 1 on; 0: none is free */
void return_member(struct ring *r, uint32_t iteration, bool counts); /* counts: it is kept until another one does */
int member_of(const struct ring *r, uint32_t iteration);             /* 0: the iteration has none */
int most_under_way(int members);                    /* iterations that can have one at once, beside one that is kept */
struct tensor *nth_member(struct tensor *t, int k); /* k from 1 on; t: the first member, or a part of it */
/* The tensor itself; of a ring, the same part of the member that the iteration has. */
struct tensor *tensor_at(struct tensor *t, uint32_t iteration);

struct level { /* from this position on, until its next level, a device holds so many bytes */
    int device, position;
    size_t bytes, of_class[MEM_CLASSES];
};
enum { MOST_TASKS = 1000000 }; /* of a list: gpt2 on 128 devices has 915,049, which take 1.4 GB; one more is refused */
enum { MOST_RUNS = 4 };        /* of a task that may be in flight */
struct step {
    char name[24]; /* "train", "eval" */
    struct pool *pool;
    struct task **task; /* in list order; a pointer is the task's identity, its position may change */
    size_t n, cap;
    uint64_t last_origin;
    int message, last_message;  /* the number that added copies get, 0: none; the highest that one has got */
    struct tags tags;           /* put on every task that is added */
    struct task *head, *cursor; /* while the list is edited: stands before the first; new tasks come behind it */

    /* set by depend(): the edges of task 0, of task 1 ... */
    struct edge *edges;
    size_t n_edges, cap_edges;

    /* set by place() */
    size_t (*peak)[MEM_CLASSES]; /* by device: most bytes of a class held at a time */
    size_t *high;                /* and of all together */
    struct level *level;         /* what is held from each position on, in list order */
    size_t n_levels, cap_levels;

    struct running *running;      /* what runs of it, which only run/ knows; NULL: it is not to run */
    void (*stop)(struct step *s); /* frees that */
    /* Of a list whose tasks may leave state elsewhere than where it is looked for: brings it back.  Called with nothing
     * in flight, by drain() and its like, after any number of iterations.  NULL: there is nothing to bring. */
    void (*settled)(struct step *s);
};
struct step *new_step(struct pool *p, const char *name);
void free_step(struct step *s); /* nothing of it may be in flight: see drain() in run.h */
/* " (layer 1, micro-batch 0)" for people, without what the task has none of; "" where it has neither. */
const char *layer_and_micro(char out[64], const struct task *t);

/* Each adds a task to the list, which owns it: at its end, or at the cursor. */
struct task *add_kernel(struct step *s, struct lane *lane, const char *name, const char *file, const char *function,
                        struct grid grid, const struct arg *args, int n_args);
/* Upload, download, or device to device within a context: whatever the two tensors' devices say. */
struct task *add_copy(struct step *s, struct lane *lane, const char *name, struct tensor *to, struct tensor *from);
/* A copy of bytes to themselves takes no time: who touches them next waits until its lane has come to it. */
bool copies_nothing(const struct task *t);
struct task *add_host(struct step *s, struct lane *lane, const char *name, host_function *run, void *context);
/* `description`: so many bytes, copied, that issue() finds as the task's context. */
struct task *add_issue(struct step *s, struct lane *lane, const char *name, issue_function *issue,
                       const void *description, size_t bytes);
struct task *append_task(struct step *s); /* empty, at the end, or at the cursor */
void link_behind(struct task *t, struct task *where);
void free_task(struct task *t);
void add_access(struct task *t, struct tensor *tensor, enum access_mode mode);
/* Declares the task elementwise.  Operands of as many bytes as its first one count element by element, all others are
 * read as a whole; counts of elements among a kernel's arguments must be ELEMENTS. */
void set_elementwise(struct task *t);
/* So many elements are read and written in all, of tensors of which it needs only parts. */
void set_traffic(struct task *t, double elements);
/* A copy up from the host, down to it, or within a context, on the device's lane for that purpose; between two devices
 * it is the sender's download lane. */
struct task *carry(struct step *s, const char *name, struct tensor *to, struct tensor *from, enum purpose purpose);
/* The way down: what the host gets. */
struct tensor *add_download(struct step *s, const char *name, struct tensor *from, enum purpose purpose);

/* ---- depend.c, place.c ----------------------------------------------------------------------------------------- */

/* Fill in every task's edges.  Data edges need no addresses; with addresses (after place) reuse edges are added, and
 * `wait`, `notify` and `flush` are set. */
void depend(struct step *s, bool with_addresses);
int event_context(const struct task *t); /* in which its event lives; a host task's is a user event of context 0 */

/* Lifetimes, then addresses for all tensors that the lists use, persistent ones first, and memory for them unless
 * check_only is set.  NULL, or the problem when a budget is too small: it names task, tensor and bytes. */
struct problem *place(struct pool *p, struct step *const *steps, size_t n, bool check_only);

#endif

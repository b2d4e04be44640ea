/* task.h - a task of a list: what it touches, what it does, how much work it is, when it runs, what it waits for.
 *
 * struct task, below, holds all of it.  The sections before it declare the types of its fields.  A list owns its tasks;
 * list.h has the functions that make them.  Implemented in task.c, and side words in condition.c.
 */
#ifndef TASK_H
#define TASK_H

#include "tensor.h"

struct task;
struct list;

/* ---- what a task is for ------------------------------------------------------------------------------------------ */

/* Passes and printers ask for a task's role, never for its name.  The roles of techniques are here too: a pass asks
 * for those of other folders (a snapshot looks for the copies of updates on the CPU), and a trace numbers them all. */
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

struct tags {  /* labels: passes and tools group tasks by them, and no edge follows from them */
    int layer; /* the layer of the model; NONE: no single one */
    int micro; /* the micro-batch; NONE: no single one */
    enum role role;
};

/* ---- what it touches, and the arguments of its kernel ------------------------------------------------------------ */

enum access_mode { ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_BOTH = 3 };
struct access {
    struct tensor *tensor; /* the one in slot 1, if it lies in slots */
    enum access_mode mode; /* ACCESS_NONE: an argument that is no tensor */
};
enum arg_kind { ARG_TENSOR, ARG_INT, ARG_ELEMENTS, ARG_FLOAT, ARG_STRUCT, ARG_LOCAL };
enum { MOST_STRUCT_BYTES = 24 };

struct arg { /* an argument of a kernel; the macros below make it */
    enum arg_kind kind;
    struct access given; /* ARG_TENSOR: tensor and mode, until add_kernel() moves both to task->accesses */
    int32_t i; /* ARG_TENSOR: after that the tensor's index in task->accesses, NONE for NO_TENSOR; else the number */
    float f;   /* ARG_FLOAT: the number */
    unsigned char bytes[MOST_STRUCT_BYTES]; /* ARG_STRUCT: the first `i` are those of the struct */
};
#define IN(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_READ}})
#define OUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_WRITE}})
#define INOUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_BOTH}})

/* The kernel adds to what is in t, or, as for the first micro-batch of a gradient, starts anew and only writes. */
#define ACCUMULATE(t, adds) ((struct arg){.kind = ARG_TENSOR, .given = {(t), (adds) ? ACCESS_BOTH : ACCESS_WRITE}})

/* A buffer that the kernel will not touch. */
#define NO_TENSOR ((struct arg){.kind = ARG_TENSOR})
#define INT(n) ((struct arg){.kind = ARG_INT, .i = (int32_t)(n)})

/* The number of elements of an elementwise task.  A slice of the task gets its own, smaller number. */
#define ELEMENTS(n) ((struct arg){.kind = ARG_ELEMENTS, .i = (int32_t)(n)})
#define FLOAT(x) ((struct arg){.kind = ARG_FLOAT, .f = (x)})

/* A struct of cl/shared.h: the variable x, which is copied. */
#define STRUCT(x) struct_arg(&(x), sizeof(x))
struct arg struct_arg(const void *value, size_t bytes);

/* `bytes` bytes of local memory. */
#define LOCAL(bytes) ((struct arg){.kind = ARG_LOCAL, .i = (int32_t)(bytes)})

/* ---- what it does ------------------------------------------------------------------------------------------------ */

/* A task of a step file that is no copy has ACT_HOST and no function: it can be planned, but not run. */
enum task_action {
    ACT_HOST,   /* it runs a function on the host */
    ACT_COPY,   /* it copies accesses[1] to accesses[0]; for the tensors of further accesses it only waits */
    ACT_KERNEL, /* it launches a kernel */
    ACT_ISSUE   /* it issues commands of its own */
};

/* What a task of the host does in `iteration` (from 1 in training), on the lane's thread.  The function uses the
 * tensors of task->accesses.  It may be called several times for one run, so whatever it changes beside the tensors
 * must follow from the tensors and `iteration`. */
typedef void host_function(void *argument, const struct task *task, uint32_t iteration);

/* Issues the task's commands of `iteration` to its lane's queue, after n_wait events; *done gets the event of the last
 * command, which the caller releases. */
typedef void issue_function(const struct task *task, uint32_t iteration, cl_uint n_wait, const cl_event *wait_list,
                            cl_event *done);

struct grid { /* an NDRange of OpenCL */
    int dims;
    size_t global[3]; /* work-items in all */
    size_t local[3];  /* work-items of a group; local[0] 0 leaves that to the driver */
};

/* ---- what it waits for ------------------------------------------------------------------------------------------- */

enum edge_kind {
    EDGE_DATA, /* both tasks touch one tensor, or the list says that one waits (enum gate, struct after) */
    EDGE_REUSE /* the tasks touch two tensors that share bytes */
};
enum { EDGE_KINDS = EDGE_REUSE + 1 };

struct edge {          /* it is in the list of its consumer, the task that waits */
    uint32_t producer; /* the producer's position in the list */
    bool previous;     /* the producer ran in the previous iteration */
    enum edge_kind kind;
    bool must_wait; /* it crosses lanes and follows from no other wait, so execute() waits for it */
};

/* ---- when it runs, what it stores.  A first reading skips this section. ------------------------------------------ */

/* The iterations in which a task runs: those that leave `remainder` when divided by `every`.  In all other iterations
 * nothing is issued, and a task that waits for this task waits for its last run. */
struct when {
    uint32_t every, remainder;
};

/* Whether a task runs in an iteration may be known only when all that it waits for has ended.  The task runs if then
 * both its bits (struct condition) and its slot (struct slot_use) are there.  Most tasks need neither, have zeros in
 * both structs, and always run. */

/* Bits of a *side word*, which says on which side, the device or the CPU, an update runs in this iteration.  A task of
 * the iteration has written the word, and each task that needs bits of it reads it on the host, just before it would
 * run.  A task whose bits are not all in the word does nothing in this iteration. */
struct condition {
    int needs;       /* the bits that it needs; 0: it needs none */
    bool unexpected; /* a forecast assumes that the word lacks these bits, and that the task does nothing */
};

/* A slot (slots.c).  A few iterations at a time have one.  An iteration asks for one at its first task that needs one
 * and whose bits are there.  If none is free, all tasks that need one do nothing in this iteration. */
struct slot_use {
    bool needed;  /* the iteration must have a slot */
    bool returns; /* with `needed`: the iteration gives its slot back when this task has ended */
    bool aside;   /* with `needed`: it waits outside of its lane, and only tasks that need a slot wait for it */
};

/* A gate.  Each task that waits at the gate waits for all tasks of its iteration that open it, as if it read what they
 * write. */
enum gate { GATE_NONE, GATE_OPENS, GATE_WAITS };

/* A stand-in on the host: how the host would do the task's work, with accesses and args in the same order. */
struct host_version {
    host_function *function; /* NULL: the host cannot do it, or, in a list of a step file, it is only planned */
    double seconds;          /* how long it would take there; NAN: not said */
};

/* Commands that a task issues by itself (ACT_ISSUE), such as those of CLBlast. */
struct own_commands {
    issue_function *issue;
    void (*compile)(const struct task *task); /* called before the first run, so that issue need not compile; or NULL */
    /* Its event is that of its last command alone, so its bar begins where the lane's task before it ended. */
    bool only_last_event;
};

/* A part of the model's state. */
struct state_range {
    int rank, unit;        /* a unit of the model, as far as the rank has it */
    struct range elements; /* which ones of its parameters, and of Adam's m and v alike */
};

/* ---- the task ---------------------------------------------------------------------------------------------------- */

/* The fields down to the line are those of every task, and all that a first reading needs.  Whoever adds the task sets
 * them, but for those of waiting, which depend() finds.  The fields below the line serve a few tasks each.  The structs
 * among them are above, and say what the trainer does with them. */
struct task {
    char name[40]; /* "mlp.fc" */
    struct lane *lane;
    size_t index; /* position in the list */

    /* what it is for, as in struct tags */
    int layer, micro;
    enum role role;

    /* what it touches: addresses are taken from here only */
    struct access *accesses;
    int n_accesses;

    /* how much work it is */
    double flops; /* floating point operations */
    size_t bytes; /* bytes read and written: each tensor once, as a whole, unless set_traffic() has said less */

    /* what it does */
    enum task_action action;
    host_function *function;   /* ACT_HOST: this function; a copy on a lane of the host has one too */
    void *argument;            /* the first argument of `function`; ACT_ISSUE: what its commands need to know */
    const char *file, *kernel; /* ACT_KERNEL: cl/FILE, and the name of a kernel there */
    struct arg *args;          /* ACT_KERNEL: n_args arguments */
    int n_args;
    struct grid grid; /* ACT_KERNEL */

    /* what it waits for, and what waits for it */
    struct edge *edges; /* n_edges of the list's */
    size_t n_edges;
    unsigned notify; /* bit set of contexts, other than its own, in which a task waits for it */
    bool flush;      /* another lane waits for it: it is submitted at once */

    /* ---- a first reading ends here ---- */

    /* Updates: what can be done with one. */
    bool elementwise;            /* it may be cut into slices: see set_elementwise() */
    size_t slice_begin;          /* a slice's: its bytes from the start of the uncut task */
    struct host_version on_host; /* it may move to the host */
    struct state_range state;    /* the state that this update makes anew, or that this task stores */

    /* Set when the task is added.  A task that takes another one's place gets both numbers from it. */
    uint64_t origin; /* a number that a task shares with its slices, its repeats and its stand-ins; proofs compare it */
    int message;     /* a number that all copies of the same bytes share, see add_broadcast(); 0: none */

    /* When it runs, and how long: the same for all that run, simulate or print a list. */
    struct when when;
    struct condition condition;
    struct slot_use slot;
    enum gate gate; /* depend() makes edges of it */
    double seconds; /* how long it takes on its lane, for the simulation; NAN: not said */

    /* Tasks that are no single kernel of cl/. */
    struct own_commands commands; /* ACT_ISSUE */
    size_t argument_bytes;        /* size in bytes of `argument`, if the task owns it and frees it; 0: it does not */
    bool partial; /* it leaves part of what it writes unwritten, and nothing reads that part; read by proofs */

    /* Neighbours in the list while it is edited: set by list.h's functions and the verbs of pass/edit.h. */
    struct task *prev, *next;
};

/* ---- task.c ------------------------------------------------------------------------------------------------------ */

static inline bool is_copy(const struct task *task) { return task->action == ACT_COPY; }

/* A copy writes the whole target, and reads the whole source. */
static inline struct tensor *copy_target(const struct task *task) { return task->accesses[0].tensor; }
static inline struct tensor *copy_source(const struct task *task) { return task->accesses[1].tensor; }
bool is_due(const struct task *task, uint32_t iteration); /* does it run then, as far as task->when says? */

/* The first of the task's accesses for which is_sought() returns true; NULL: there is none. */
const struct access *find_access(const struct task *task, bool (*is_sought)(const struct access *));

/* " (layer 1, micro-batch 0)" for messages, into `out`, which is returned.  What the task does not have is left out. */
const char *layer_and_micro(char out[64], const struct task *task);

/* ---- condition.c ------------------------------------------------------------------------------------------------- */

/* Do `when` or its slot leave it out in some iterations?  A side word does not count: what it leaves out ends only
 * after what it waits for. */
bool is_conditional(const struct task *task);

bool writes_side_word(const struct task *task);       /* does it write a side word? */
struct tensor *side_word_of(const struct task *task); /* the side word that it reads or writes; NULL: none */

/* Does it need bits of a side word, or a slot?  Then it is known only at the last moment whether it runs. */
bool is_decided_late(const struct task *task);

/* Call these two only after all that the task waits for has ended.  Edges and proofs do not ask them: where a task does
 * nothing, either its bytes have been written already, or no task will read them. */
int side_bits(const struct task *task);    /* the bits of the side word that it reads */
bool word_allows(const struct task *task); /* has this word all bits of task->condition.needs, if there are any? */

#endif

/* task.h - a task of a list: what it touches, what it does, how much work it is, when it runs, what it waits for.
 *
 * struct task, below, holds all of it.  The sections before it declare the parts, in the same order.  A list owns its
 * tasks; step.h has the functions that make them.  Implemented in task.c, and choice words in condition.c.
 */
#ifndef TASK_H
#define TASK_H

#include "tensor.h"

struct task;
struct step;

/* ---- what a task is for ------------------------------------------------------------------------------------------ */

/* Passes and printers ask for a task's role, never for its name. */
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
    struct tensor *tensor;
    enum access_mode mode;
};
enum arg_kind { ARG_TENSOR, ARG_INT, ARG_ELEMENTS, ARG_FLOAT, ARG_LOCAL };
struct arg { /* an argument of a kernel; the macros below make it */
    enum arg_kind kind;
    struct access given; /* ARG_TENSOR: tensor and mode, only until add_kernel() has moved them to task->access */
    int32_t i; /* ARG_TENSOR: from then on its index in task->access, or NONE for NO_TENSOR; else the number */
    float f;   /* ARG_FLOAT: the number */
};
#define IN(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_READ}})
#define OUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_WRITE}})
#define INOUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_BOTH}})
/* The kernel adds to what is in t, or, as for the first micro-batch of a gradient, starts anew and only writes. */
#define ACCUMULATE(t, more) ((struct arg){.kind = ARG_TENSOR, .given = {(t), (more) ? ACCESS_BOTH : ACCESS_WRITE}})
/* A buffer that the kernel will not touch. */
#define NO_TENSOR ((struct arg){.kind = ARG_TENSOR})
#define INT(n) ((struct arg){.kind = ARG_INT, .i = (int32_t)(n)})
/* An int of an elementwise task that counts elements from the task's first one on: a piece of the task gets less. */
#define ELEMENTS(n) ((struct arg){.kind = ARG_ELEMENTS, .i = (int32_t)(n)})
#define FLOAT(x) ((struct arg){.kind = ARG_FLOAT, .f = (x)})
/* So many bytes of local memory. */
#define LOCAL(bytes) ((struct arg){.kind = ARG_LOCAL, .i = (int32_t)(bytes)})

/* Elements [begin, end) of what a rank has of a unit of the model, in its parameters and in Adam's m and v alike. */
struct state_range {
    int rank, unit;
    size_t begin, end;
};

/* ---- when it runs ------------------------------------------------------------------------------------------------ */

/* The iterations in which a task runs: those that leave `remainder` when divided by `every`.  In all others it is as
 * if the task were not in the list: nothing is issued, and a task that waits for it waits for its last run. */
struct when {
    uint32_t every, remainder;
};

/* Whether a task runs in an iteration may be known only when all that it waits for has ended.  It runs if then both
 * `needs` and `member` are fulfilled.  Zero: it always runs. */
struct condition {
    /* Bits that the choice word must have, or the task does nothing in this iteration; 0: it needs none.  A task of the
     * same iteration has written the word, and this task reads it on the host. */
    int needs;
    bool unexpected; /* a forecast counts on it that the choice is the other one: the task does nothing */
    bool member;     /* the iteration must have a member of the rings; its first task whose `needs` hold asks for one */
    bool aside;      /* with `member`: only tasks of the same condition wait for this one, so training never does */
    bool returns_member; /* with `member`: the iteration gives its member back when this task has ended */
};
/* Each task that is held waits for all tasks of the same iteration that hold (tools/lists/gate.c). */
enum gate { GATE_NONE, GATE_HOLDS, GATE_HELD };

/* ---- what it does ------------------------------------------------------------------------------------------------ */

/* (A task of a step file that is no copy is an ACT_HOST without a function: it is only looked at.) */
enum task_action {
    ACT_HOST,   /* it runs a function on the host */
    ACT_COPY,   /* it copies access[1] to access[0]; what else it reads it only waits for */
    ACT_KERNEL, /* it launches a kernel */
    ACT_ISSUE   /* it issues commands of its own */
};
/* What a task of the host does in that iteration (from 1 in training), on the lane's thread.  It uses the tensors of
 * task->access.  It may be run several times, so whatever it leaves elsewhere must follow from them and `iteration`. */
typedef void host_function(void *context, const struct task *task, uint32_t iteration);
/* Issues the task's commands of that iteration to its lane's queue; *done gets the event of the last command. */
typedef void issue_function(const struct task *task, uint32_t iteration, cl_uint n_wait, const cl_event *wait,
                            cl_event *done);
struct grid { /* an NDRange of OpenCL */
    int dims;
    size_t global[3]; /* work-items in all */
    size_t local[3];  /* work-items of a group; local[0] 0 leaves that to the driver */
};

/* ---- what it waits for ------------------------------------------------------------------------------------------- */

/* Both touch one tensor, or the list says that one waits (struct gate, struct after); two tensors share bytes. */
enum edge_kind { EDGE_DATA, EDGE_REUSE };
struct edge {          /* it stands in the list of its consumer, the task that waits */
    uint32_t producer; /* the producer's position in the list */
    bool previous;     /* the producer ran in the previous iteration */
    enum edge_kind kind;
    bool wait; /* it crosses lanes and follows from no other wait, so execute() waits for it */
};

/* ---- the task ---------------------------------------------------------------------------------------------------- */

struct task {
    char name[40]; /* "mlp.fc" */
    struct lane *lane;
    size_t index;             /* position in the list */
    struct task *prev, *next; /* neighbours, while the list is edited */

    /* what it is for */
    int layer;       /* as in struct tags */
    int micro;       /* the same */
    enum role role;  /* the same */
    uint64_t origin; /* a number that a task shares with its pieces, its repeats and what stands in for it */
    /* A number that a copy shares with the others that bring the same bytes to other devices, see add_broadcast(), and
     * with its pieces, its repeats and what stands in for it; 0: none. */
    int message;

    /* what it touches: addresses are taken from here only */
    struct access *access;
    int n_access;
    bool partial;             /* it leaves part of what it writes unwritten, and nothing reads that part */
    struct state_range state; /* the state that this update makes anew, or that this task stores */

    /* how much work it is */
    double flops; /* floating point operations */
    size_t bytes; /* bytes read and written: each tensor once, as a whole, unless set_traffic() has said less */
    /* Seconds that it takes on its lane, and on the host, if a step file says so; -1: none does. */
    double seconds, host_seconds;

    /* when it runs */
    struct when when;
    struct condition condition;
    enum gate gate;

    /* what it does */
    enum task_action action;
    host_function *run;          /* ACT_HOST: this function; a copy on a lane of the host has one too */
    void *context;               /* the first argument of run, or of issue */
    const char *file, *function; /* ACT_KERNEL: cl/FILE, the function's name */
    struct arg *args;            /* ACT_KERNEL: n_args arguments */
    int n_args;
    struct grid grid;      /* ACT_KERNEL */
    issue_function *issue; /* ACT_ISSUE: this function */
    size_t context_bytes;  /* size in bytes of issue's context, which the task owns; 0: it owns no context */
    void (*compile)(const struct task *t); /* called before the first run, so that issue need not compile; or NULL */
    /* Its event is that of the last of several commands (CLBlast): it is drawn from the lane's last end on. */
    bool only_last_event;

    /* what passes may do with it */
    host_function *host_run; /* does the same on the host, with accesses and args in the same order; NULL: none does */
    bool elementwise;        /* it may be cut into pieces: see set_elementwise() */
    size_t piece_begin;      /* if it is a piece of an elementwise task: bytes from the start of the uncut task */

    /* what it waits for, set by depend() */
    struct edge *edges; /* n_edges of the step's */
    size_t n_edges;
    unsigned notify; /* bit set of contexts, other than its own, in which a task waits for it */
    bool flush;      /* another lane waits for it: it is submitted at once */
};
/* ---- task.c, condition.c ----------------------------------------------------------------------------------------- */

static inline bool is_copy(const struct task *t) { return t->action == ACT_COPY; }
bool runs(const struct task *t, uint32_t iteration); /* does it run in that iteration, as far as t->when says? */
bool is_conditional(const struct task *t);           /* are there iterations in which it does not run? */
bool chooses(const struct task *t);                  /* does it write a choice word? */
struct tensor *choice_word(const struct task *t);    /* the choice word that t reads or writes; NULL: none */
/* The bits of the choice word that t reads; and, has the word all bits of t->condition.needs?  Ask only after the tasks
 * that t waits for have ended.  Edges and proofs do not look at this: where a task does nothing, either its bytes have
 * been written already, or no task will read them. */
int choice_bits(const struct task *t);
bool has_needed(const struct task *t);
/* " (layer 1, micro-batch 0)" for messages; it leaves out what the task has not, and is "" if it has neither. */
const char *layer_and_micro(char out[64], const struct task *t);

#endif

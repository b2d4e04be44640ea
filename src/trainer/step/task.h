/* task.h - a task of a list: what it touches, what it does, how much work it is, what it waits for.
 *
 * struct task, below, holds all of it.  The sections before it declare the types of its fields; role.h says what a task
 * may be for, and task_extra.h what only passes and techniques ask of it.  A list owns its tasks; list.h has the
 * functions that make them.  Implemented in task.c.
 */
#ifndef TASK_H
#define TASK_H

#include "role.h"
#include "task_extra.h"
#include "tensor.h"

/* ---- what it touches, and the arguments of its kernel ------------------------------------------------------------ */

enum access_mode { ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_BOTH = 3 };

struct access {
    struct tensor *tensor; /* the one in slot 1, if it lies in slots */
    enum access_mode mode; /* ACCESS_NONE: an argument that is no tensor */
};

enum arg_kind { ARG_TENSOR, ARG_INT, ARG_ELEMENTS, ARG_FLOAT, ARG_STRUCT, ARG_LOCAL };
enum { MOST_STRUCT_BYTES = 24 };

struct arg { /* an argument of a kernel; the macros of kernel_args.h make it */
    enum arg_kind kind;
    struct access given; /* ARG_TENSOR: tensor and mode, until add_kernel() moves both to task->accesses */
    union {
        int access;       /* ARG_TENSOR: after that the tensor's index in task->accesses; NONE: NO_TENSOR */
        int32_t number;   /* ARG_INT, ARG_ELEMENTS */
        float real;       /* ARG_FLOAT */
        uint32_t n_bytes; /* ARG_STRUCT, ARG_LOCAL: how many bytes */
    };
    unsigned char bytes[MOST_STRUCT_BYTES]; /* ARG_STRUCT: the first n_bytes are those of the struct */
};

/* ---- what it does ------------------------------------------------------------------------------------------------ */

/* A task of a step file that is no copy has ACT_HOST and no function: it can be planned, but not run. */
enum task_action {
    ACT_HOST,   /* it runs a function on the host */
    ACT_COPY,   /* it copies accesses[1] to accesses[0]; for the tensors of further accesses it only waits */
    ACT_KERNEL, /* it launches a kernel */
    ACT_OWN     /* it has commands of its own */
};

/* What a task of the host does in `iteration` (from 1 in training), on the lane's thread.  The function uses the
 * tensors of task->accesses.  It may be called several times for one instance, so whatever it changes beside the
 * tensors must follow from the tensors and `iteration`. */
typedef void host_function(void *argument, const struct task *task, uint32_t iteration);

struct grid { /* an NDRange of OpenCL */
    int dims;
    size_t global[3]; /* work-items in all */
    size_t local[3];  /* work-items of a group; local[0] 0 leaves that to the driver */
};

/* ---- what it waits for ------------------------------------------------------------------------------------------- */

enum edge_kind {
    EDGE_DATA,  /* both tasks touch one tensor, or the list says that one waits (enum gate, struct listed_wait) */
    EDGE_REUSE, /* the tasks touch two tensors that share bytes */
    EDGE_KINDS
};

struct edge {          /* it is in the list of its consumer, the task that waits */
    uint32_t producer; /* the producer's position in the list */
    bool previous;     /* the producer ran in the previous iteration */
    enum edge_kind kind;
    bool needs_wait; /* it crosses lanes and follows from no other wait, so execute() waits for it */
};

/* ---- the task ---------------------------------------------------------------------------------------------------- */

/* Whoever adds the task sets its fields, but for those of waiting, which depend() finds. */
struct task {
    char name[TASK_NAME]; /* "mlp.fc" */
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
    void *argument;            /* the first argument of `function`; ACT_OWN: what its commands need to know */
    const char *file, *kernel; /* ACT_KERNEL: cl/FILE, and the name of a kernel there */
    struct arg *args;          /* ACT_KERNEL: n_args arguments */
    int n_args;
    struct grid grid; /* ACT_KERNEL */

    /* what it waits for, and what waits for it */
    struct edge *edges; /* n_edges of the list's */
    size_t n_edges;
    unsigned notify; /* bit set of contexts, other than its own, in which a task waits for it */
    bool flush;      /* another lane waits for it: it is submitted at once */

    struct task *prev, *next; /* its neighbours while the list is edited, kept by list.h and pass/edit.h */

    struct task_extra extra; /* what only a few tasks have: task_extra.h, which a first reading skips */
};

/* ---- task.c ------------------------------------------------------------------------------------------------------ */

static inline bool is_copy(const struct task *task) { return task->action == ACT_COPY; }

/* A copy writes the whole target, and reads the whole source. */
static inline struct tensor *copy_target(const struct task *task) { return task->accesses[0].tensor; }
static inline struct tensor *copy_source(const struct task *task) { return task->accesses[1].tensor; }

/* Says that the task touches the tensor, after the accesses that it has already. */
void add_access(struct task *task, struct tensor *tensor, enum access_mode mode);

/* Bytes: a larger operand is not read whole by an elementwise task.  The largest that is, the optimizer's control
 * block, has just as many: CONTROL_SIZE floats (cl/shared.h). */
enum { READ_WHOLE = 64 };

/* Declares that element i of what the task writes follows from element i of what it reads, so that a pass may cut it
 * into slices.  This holds for the operands that have as many bytes as the first.  The task reads the others whole,
 * and they have at most READ_WHOLE bytes.  Counts of elements among a kernel's arguments must be ELEMENTS. */
void set_elementwise(struct task *task);

/* Says that the task reads and writes `elements` elements in all, where it needs only parts of its tensors. */
void set_traffic(struct task *task, double elements);

int event_context(const struct task *task); /* the context of its event; a host task's is a user event of context 0 */

/* The first of the task's accesses for which is_sought() returns true; NULL: there is none. */
const struct access *find_access(const struct task *task, bool (*is_sought)(const struct access *));

/* " (layer 1, micro-batch 0)" for messages, into `out`, which is returned.  What the task does not have is left out. */
enum { LAYER_AND_MICRO = 64 }; /* the most bytes of it, and its end */
const char *layer_and_micro(char out[LAYER_AND_MICRO], const struct task *task);

#endif

/* build.h - building a step's list: operations add their tasks by a *builder*, and note on a *tape* what they did.
 *
 *     on_rank()                     the tasks that follow belong to this rank and micro-batch
 *     begin_unit()                  ... and the operations that follow to this unit
 *     y = linear(b, ..., x, ...)    an operation (ops.h): adds its forward's tasks, and records itself on b->tape
 *     backward()                    reads the tape from its end: each record's rules add the tasks of its gradients
 *
 * A builder is always called b, while other pointers are named after their struct: b stands in every line that
 * adds a task.
 *
 * A tensor's gradient is one tensor.  A rule takes the gradient of the operation's result, gradient(b, op->out).  It
 * adds to the gradients of the operands (accumulate_gradient()) and of the parameters (begin_contribution()).
 *
 * The tensors belong to the pool and the tasks to the list, as elsewhere; end_build() frees the builder's own arrays.
 */
#ifndef BUILD_H
#define BUILD_H

#include "params.h"
#include "trainer/step/kernel_args.h" /* brings: IN, OUT, INT ..., the arguments of LAUNCH() */
#include "trainer/step/list.h"

enum gemm_engine { GEMM_AUTO, GEMM_OWN, GEMM_CLBLAST };
enum attention { ATTENTION_PLAIN, ATTENTION_FLASH };

/* Which kernels are wanted; each device has its own answer to GEMM_AUTO. */
struct kernels {
    enum gemm_engine gemm;
    enum attention attention;
};

/* ---- what is recorded -------------------------------------------------------------------------------------------- */

struct builder;
struct op;
typedef void gradient_rule(struct builder *b, const struct op *op);

/* What an operation's gradients need of its forward. */
struct op {
    gradient_rule *weight_rule; /* adds tasks for the gradients of its parameters; NULL: it has no parameters */
    gradient_rule *input_rule;  /* adds tasks for the gradients of in[]; NULL: no operation needs them */
    char name[OP_NAME];
    int unit;
    struct tensor *out;      /* its result, whose gradient has arrived when a rule is called */
    struct tensor *in[2];    /* what it was computed from */
    struct tensor *saved[2]; /* what else its rules need of the forward */
    struct weight w, bias;
    double scale; /* cross_entropy(): the factor of the gradient */
    size_t end;   /* length of the list when its forward had been added */
};

/* A rank's forward of one stage and micro-batch. */
struct tape {
    int rank, micro;
    int grad_group; /* the gradient group (--grad-groups), from 0; from 1 on gradients go to the rank's second set */
    struct op *ops; /* the operations, in the order of the forward */
    size_t n, cap;
    struct tensor *in;  /* the residual stream as it came from the stage before; NULL in the first stage */
    struct tensor *out; /* the residual stream as it leaves */
};

/* ---- build.c, builder.c: the builder ----------------------------------------------------------------------------- */

struct reduction {         /* a unit's gradient, or a tensor-parallel rank's part of it, on all data-parallel ranks */
    struct tensor **parts; /* from send_unit() to reduce_unit(): what is to be summed, see add_reduce_moves() */
    struct tensor **sums;  /* after reduce_unit(): the sum of each shard */
    size_t *first_block;   /* after begin_norm(): by shard, where its block sums begin in the builder's `partials` */
};
struct rendezvous; /* tp_ranks.c */
struct builder {
    struct list *list; /* tasks are added to it */
    struct model *model;
    struct kernels kernels;
    int batch, seq; /* B, T of a micro-batch */

    /* set by on_rank(): the rank whose tasks are being added */
    struct replica *replica;
    struct device *device;
    int unit; /* set by begin_unit(): the unit whose operations are being added, or were last */

    /* forward and backward */
    bool backward_wanted;
    struct tape *tape;     /* operations are recorded there, if a backward is wanted */
    struct op unrecorded;  /* what record_op() returns if none is wanted: scratch, which nobody reads */
    struct tensor **grads; /* by id of a tensor: its gradient, as far as it has arrived */
    int *summed;           /* by id of a gradient: the gradient group, from 1, that has begun to sum it */
    size_t cap_grad, cap_summed;

    /* reduce.c, norm.c, optimizer.c */
    struct reduction *reductions; /* [unit, tp_rank]: see reduction_of() */
    struct tensor *partials;      /* the norm's block sums */
    bool released;                /* release_updates() has been called */

    /* tensor parallelism, tp_ranks.c: where the ranks of a group have met so far */
    int tp_rank;            /* set by on_rank(): the rank's tensor-parallel coordinate */
    struct rendezvous *met; /* those of rank 0, then those of rank 1 ...: all ranks have equally many */
    size_t n_met, cap_met;
    size_t n_rendezvous; /* how many one rank has */
    size_t met_end;      /* length of the list at the last rendezvous, or where the group begins */
};

/* batch, seq: B, T of a micro-batch.  Ends the program (EXIT_USAGE) if a device cannot compute B T tokens. */
struct builder make_builder(struct list *list, struct model *model, struct kernels kernels, int batch, int seq);

/* The tasks that follow belong to this rank and micro-batch (NONE: to none). */
void on_rank(struct builder *b, int rank, int micro, enum role role);

/* The operations that follow are of this unit, and their tasks are labelled with its layer. */
void begin_unit(struct builder *b, int unit);

void end_unit(struct builder *b);  /* the tasks that follow are of no layer */
void end_build(struct builder *b); /* the list is complete: frees the builder's arrays */

/* ---- engines.c --------------------------------------------------------------------------------------------------- */

/* May --gemm own be used on the device?  Not on a GPU, which would compute one work-item at a time. */
bool has_own_products(const struct device *device);

/* The engine of the device's products.  GEMM_AUTO: our own on CPUs whose vectors a kernel can use, else CLBlast.  Ends
 * the program (EXIT_USAGE) if the wanted one cannot be used there. */
enum gemm_engine choose_engine(const struct device *device, enum gemm_engine wanted);

/* ---- build.c, grids.c: adding tasks ------------------------------------------------------------------------------ */

/* Adds a kernel task on the device's compute lane.  The last arguments, of kernel_args.h, are those of the
 * kernel, in its order: a line for what it writes, one for what it reads, one for sizes. */
#define LAUNCH(b, name, file, kernel, grid, ...)                                                                       \
    add_kernel((b)->list, (b)->device->lanes[LANE_COMPUTE], name,                                                      \
               &(struct kernel_call){file, kernel, grid, (struct arg[]){__VA_ARGS__},                                  \
                                     (int)COUNT(((struct arg[]){__VA_ARGS__}))})
struct grid work_groups(const struct builder *b, int n);   /* n work-groups of WG work-items */
struct grid blocks(const struct builder *b, size_t n);     /* enough work-groups for n elements, BLOCK each */
struct grid column_blocks(const struct builder *b, int n); /* for n columns: CPU_COLUMNS or GPU_COLUMNS each */

/* A new tensor of floats on the rank's device, of class MEM_ACTIVATIONS: activation(b, name, SHAPE(rows, columns)) */
struct tensor *activation(struct builder *b, const char *name, struct shape shape);

int rows_of(const struct tensor *x);     /* product of all dimensions but the last */
int columns_of(const struct tensor *x);  /* the last dimension */
int rank_vocab(const struct builder *b); /* the number of words for which this rank has rows of the head */

/* ---- build.c: the tape, and gradients ---------------------------------------------------------------------------- */

/* What a pipeline's stage does with a micro-batch: forward; backward as a whole, or in two halves. */
enum computation { FORWARD, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, COMPUTATIONS };

/* Notes an operation of the unit that was begun.  Call it after the forward's tasks have been added.  The caller fills
 * in what else the rules need, before the next operation is recorded. */
struct op *record_op(struct builder *b, const char *name, gradient_rule *weight_rule, gradient_rule *input_rule,
                     struct tensor *out, struct tensor *in);

/* Calls the gradient rules of a unit's operations, the last operation first: BACKWARD both rules of each, else one. */
void backward(struct builder *b, int unit, enum computation which);

/* The gradient that has arrived at x so far; NULL when none has. */
struct tensor *gradient(const struct builder *b, const struct tensor *x);

/* Sets the gradient that has arrived at x so far to g, whatever it was. */
void set_gradient(struct builder *b, const struct tensor *x, struct tensor *g);

/* Adds g to the gradient that has arrived at x so far; `op` names the task. */
void accumulate_gradient(struct builder *b, const struct op *op, const struct tensor *x, struct tensor *g);

/* Call it before adding the tasks of a contribution to a parameter's gradient.  Returns whether `grad` has a sum
 * already: then the tasks add to it, else they write it.  It may add a task that clears the gradient first. */
bool begin_contribution(struct builder *b, const struct tensor *grad);

/* A new tensor shaped like x, for its gradient; its name is that of op and `suffix`. */
struct tensor *new_gradient(struct builder *b, const struct op *op, const char *suffix, const struct tensor *x);

/* ---- tp_ranks.c: the ranks of a tensor-parallel group ------------------------------------------------------------ */

/* They are built one after another, each as if alone:
 *
 *     for (int tp_rank = 0; tp_rank < tp; tp_rank++) {
 *         begin_tp_rank(b, tp_rank);
 *         ... the tasks of this rank, which meets the others in collectives
 *         end_tp_rank(b);
 *     }
 *
 * The end of the last rank puts the tasks of all into an order that is correct. */
void begin_tp_rank(struct builder *b, int tp_rank);
void end_tp_rank(struct builder *b);

/* all_reduce: this rank's x becomes the sum of the x of all ranks.  all_gather: x has `tp` parts, of which each rank
 * has computed its own, and becomes whole.  A part's size is a multiple of UNIT_ALIGN. */
void all_reduce(struct builder *b, const char *name, struct tensor *x);
void all_gather(struct builder *b, const char *name, struct tensor *x);

#endif

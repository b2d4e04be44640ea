/* model.h - GPT-2 as tasks: its table of parameters, its layers, its optimizer.
 *
 * A model is a pre-LayerNorm transformer with learned positions, GELU (tanh form) and a tied or untied head, in
 * float32. Everything about parameters follows from one table (params.c).  Building a step calls layer functions
 * (layers.c) that read like the equations; each operation (ops.c, linear.c) adds its forward tasks to the list and
 * leaves a note on a *tape*; backward() reads the tape from its end and adds the gradient tasks.
 *
 * Sizes: B sequences of T tokens in a micro-batch, N = B*T tokens, C channels, H heads, V vocabulary, L layers.
 */
#ifndef MODEL_H
#define MODEL_H

#include "../../../cl/shared.h" /* defines: BLOCK, CONTROL_*, STATE_* */
#include "trainer/file/file.h"
#include "trainer/mesh/mesh.h"
#include "trainer/step/step.h"

/* ---- params.c: configuration and the table of parameters ------------------------------------------------------- */

struct config {
    int layers, heads, channels, seq_len, vocab; /* L, H, C, the largest T, V */
    bool tied;                                   /* the head is the token embedding */
};
enum { MAX_LAYERS = 1000 };
void check_config(const struct config *c); /* refuses impossible sizes */
bool same_sizes(const struct config *a, const struct config *b);
const char *describe_sizes(char out[160], const struct config *c); /* "2 layers, 2 heads, ..." */

enum init { INIT_ZERO, INIT_ONE, INIT_NORMAL, INIT_RESIDUAL };

/* One parameter of one layer.  Linear weights are (out, in); Hugging Face's Conv1D has them transposed. */
struct param {
    char name[48]; /* Hugging Face's name: "h.3.attn.c_attn.weight" */
    int llmc;      /* its place in llm.c's file, where a parameter of all layers lies together; -1: not in it */
    int layer;     /* -1: it is of the embedding or of the final unit */
    int unit;      /* 0 embedding, 1..L layers, L+1 final */
    int rank;      /* 2: a matrix, with weight decay; 1: a vector, without */
    int64_t shape[2];
    int64_t rows;   /* rows in memory: shape[0], or, for the head, perhaps more */
    bool conv1d;    /* transposed in files with Hugging Face's names */
    struct cut cut; /* how tensor parallelism cuts it */
    int first;      /* if it is a rank's part: the row or column of the whole with which it begins */
    enum init init;
    size_t offset; /* elements from the unit's start */
};
/* A unit is what is updated, sent and stored at a time: a layer, the embedding, or the final LayerNorm (and head).  Its
 * parameters lie in one tensor, the decayed ones first, each on a multiple of UNIT_ALIGN elements.  The padding between
 * them is 0 and stays so. */
enum { UNIT_ALIGN = DEVICE_ALIGNMENT / ELEMENT_BYTES };
struct unit {
    size_t elements;  /* elements of all its parameters, padding included */
    size_t n_decay;   /* elements of the parameters with weight decay, which come first, padding included */
    size_t n_counted; /* how many of the first elements this rank adds to the norm; the first rank adds the others */
    int first, n;     /* its parameters in the table: param[first] and the n - 1 after it */
};
struct params {
    struct config config;
    struct param *param;
    struct unit *unit;
    int n, n_units;
};
/* The table of what rank k of a tensor-parallel group has: the same parameters, but only the rank's parts of them. */
struct params *new_params(const struct config *c, const struct mesh *m, int k);
struct problem *check_tp_ranks(const struct config *c,
                               const struct mesh *m); /* can the model be cut for m->tp ranks? */
int64_t padded_words(int64_t words);                  /* rows that a head of so many words has */
int layer_of_unit(const struct params *p, int unit);  /* -1: embedding or final */
void free_params(struct params *p);
size_t param_elements(const struct param *p);
/* A parameter's shape in files with Hugging Face's names: Conv1D weights are transposed there. */
void shape_in_file(const struct param *p, int64_t shape[2]);
/* Turns a parameter's values into those that files with Hugging Face's names have (for_file), or back: Conv1D weights
 * are transposed, others stay.  Takes `values` over; the caller frees what is returned. */
float *turn_conv1d(const struct param *p, float *values, bool for_file);
size_t count_parameters(const struct params *p);
/* Floating point operations of training per token by the usual count: 6 per multiplied parameter (look-ups are not
 * multiplied) and 12*L*C*T for attention. */
double flops_per_token(const struct params *p, int seq_len);
/* The parameters of a layer, and those of no layer, in the table's order; a tied model's table has no HEAD. */
enum layer_param { QKV_W, PROJ_W, FC_W, FCPROJ_W, LN1_W, LN1_B, QKV_B, PROJ_B, LN2_W, LN2_B, FC_B, FCPROJ_B };
enum other_param { WTE, WPE, HEAD, LNF_W, LNF_B, OTHER_PARAMS };

/* ---- replica.c: a rank's part of the state on its device --------------------------------------------------------- */

struct weight { /* a parameter, or a rank's part of it, with its gradient: what a layer function is given */
    struct tensor *value, *grad;
    struct cut cut;
    int first; /* if it is a part: the row or column of the whole with which it begins */
};
/* A rank has the units of its own stages only.  For all other units the tensors in these arrays are NULL. */
struct replica {
    int rank;
    struct device *device;
    struct tensor **value, **grad; /* per unit: parameters, gradients */
    struct tensor **m, **v;        /* per unit: Adam's state of the rank's shard (without ZeRO: of all); NULL: none */
    struct tensor **shard;         /* per unit: with ZeRO-3, the part of the parameters that it keeps; NULL: none */
    struct weight other[OTHER_PARAMS]; /* the parameters of no layer; a tied HEAD is WTE, or a copy on another device */
    struct weight *by_param;           /* all, in the table's order: those of a layer lie together */
    struct tensor *lookup_grad;        /* (V, C) the embedding's own gradient when the head has one too; else NULL */
    struct replica *group;             /* --grad-groups: the same parameters, gradients of another group of sequences */
    struct tensor *control;            /* (16) what changes per step: see adamw.cl */
    struct tensor *state;              /* (4) norm, clip scale, halted */
};
/* How a model's gradients are kept; zeros: one set, which is kept as long as the model. */
struct gradients {
    bool dropped; /* they need not outlive the reduction (ZeRO-2) */
    bool grouped; /* there is a second set, for a second group of sequences (--grad-groups) */
};
struct model {
    struct params *params; /* the table of the whole model */
    struct params **part;  /* by tensor-parallel coordinate: the table of what a rank has */
    struct pool *pool;
    const struct mesh *mesh;
    struct replica *replica; /* per rank: rank r lives on device r */
    bool training;           /* gradients and optimizer state exist */
    struct gradients gradients;
    int norm_rank; /* the rank on which losses and the norm are summed */
};
struct model *new_model(struct pool *p, const struct config *c, const struct mesh *mesh, bool training,
                        struct gradients gradients);
/* A model without devices and tensors, which says only which rank has what: replica is NULL. */
struct model *outline_model(const struct config *c, const struct mesh *mesh);
void free_model(struct model *m); /* the tensors belong to the pool */
int stage_of(const struct model *m, int unit);
int first_unit(const struct model *m, int stage);                /* stage n_stages(): the end of all units */
const struct params *params_of(const struct model *m, int rank); /* the table of what that rank has */
/* What is kept of a parameter: the tensors for each of these roles have the parameter's shape. */
enum kept { KEPT_VALUE, KEPT_M, KEPT_V, KEPT_ROLES, KEPT_GRADIENT = KEPT_ROLES };
bool is_shared_out(const struct mesh *mesh, enum kept role); /* does ZeRO keep it in shards? */
/* What a rank keeps of a unit for that role: its shard, or all of it.  And the tensor in which; NULL: it keeps none. */
struct shard held_by(const struct model *m, int unit, int rank, enum kept role);
struct tensor *tensor_of(const struct replica *r, int unit, enum kept role);
/* Copy a whole parameter between `values` and the devices; nothing may be in flight.  Writing gives each rank that has
 * a part of the parameter that part; reading puts it together from the first ranks that have the parts. */
void write_param(struct model *m, int param, enum kept role, const float *values);
void read_param(struct model *m, int param, enum kept role, float *values);

/* ---- init.c: first values, random or from files ----------------------------------------------------------------- */

void init_random(struct model *m, uint64_t seed);
/* Sizes of a file that --init or --from names: llm.c checkpoint or safetensors with GPT-2 names.  heads: the number
 * that --heads gives, for a file that does not say it; 0: not given. */
struct config read_config(const char *path, int heads);
void init_from_file(struct model *m, const char *path);
/* The name of the first parameter with an element that is not finite; NULL: there is none. */
const char *find_bad_parameter(struct model *m);
/* Fails with EXIT_FAILED when a file gave such a parameter. */
void refuse_bad_parameters(struct model *m, const char *path);

/* ---- save_model.c: a model as a file for other programs ---------------------------------------------------------- */

struct model_facts { /* what the file says of a model beside its sizes */
    uint32_t step;
    unsigned vector;       /* width of the devices' vectors; 0: the devices have different ones */
    const char *tokenizer; /* text that tokenizer_to_text() has made */
};
/* Begins a safetensors file with Hugging Face's names for the parameters in the table `all`.  The caller writes each of
 * them whole, in the table's order, and then publishes the file.  prefixed: all names but the head's begin with
 * "transformer.". */
struct st_writer *begin_model_file(const char *path, const struct params *all, const struct model_facts *facts,
                                   bool prefixed);
void write_to_model_file(struct st_writer *w, const struct param *p, float *values); /* frees the values */
/* Writes the whole model: reads a parameter at a time from the devices, with nothing in flight. */
void save_model(struct model *m, const char *path, uint32_t step, const char *tokenizer);

/* ---- import.c, find.c: models of other programs ----------------------------------------------------------------- */

/* read_config() and init_from_file() for safetensors with GPT-2 names, which are one file or, with an index, several.
 * What the file and a config.json beside it say is taken; what is not computed here, or contradicts the shapes, is
 * refused by its name. */
struct config read_weights_config(const char *path, int heads);
void init_from_weights(struct model *m, const char *path);
char *read_weights_metadata(const char *path, const char *key); /* NULL: it has none; the caller frees the text */
void claim_weights(const char *who, const char *path);          /* claim_input() for all files that belong to it */
char *file_beside(const char *path, const char *name);          /* NAME in the folder of PATH; the caller frees it */
#define MODEL_FILE "model.safetensors"
#define MODEL_INDEX "model.safetensors.index.json"
/* The path of the one of these two that a folder has; NULL: it has none.  The caller frees it. */
char *model_in_folder(const char *folder);
/* Fail with a sentence if the file is, or the folder has, a model in a form that is known but not read here, or under
 * another name. */
void refuse_foreign_file(const char *path);
void refuse_foreign_folder(const char *folder);
bool is_json(const char *path); /* does the file begin as a JSON object? */
/* The first bytes of a file, at most `most`, with a zero after them; *n says how many.  The caller frees them. */
char *read_first_bytes(const char *path, size_t most, size_t *n);
/* Do the first n bytes of a file begin a safetensors file, or a JSON object? */
bool fits_safetensors(const char *head, size_t n);
bool begins_json(const char *head);

/* ---- build.c, tp_ranks.c: the builder --------------------------------------------------------------------------- */

enum gemm_engine { GEMM_AUTO, GEMM_OWN, GEMM_CLBLAST };
enum attention { ATTENTION_PLAIN, ATTENTION_FLASH };
struct kernels { /* which kernels are wanted; each device has its own answer to GEMM_AUTO */
    enum gemm_engine gemm;
    enum attention attention;
};
struct op;
struct rendezvous; /* tp_ranks.c */
/* What backward needs to know of a rank's forward of one stage and micro-batch. */
struct tape {
    int rank, micro;
    int group;      /* group of sequences of --grad-groups, from 0; from 1 on gradients go to the rank's second set */
    struct op *ops; /* the operations, in the order of the forward */
    size_t n, cap;
    struct tensor *in;  /* the residual stream as it came from the stage before; NULL in the first stage */
    struct tensor *out; /* the residual stream as it leaves */
};
struct bucket {           /* a unit's gradient, or a tensor-parallel rank's part of it, on all data-parallel ranks */
    struct tensor **part; /* from send_unit() to reduce_unit(): what is to be summed, see add_reduce_moves() */
    struct tensor **sum;  /* after reduce_unit(): the sum of each shard */
};
struct build {
    struct step *step;
    struct model *model;
    struct replica *replica; /* the rank whose tasks are being added */
    struct device *device;   /* the device of that rank */
    struct kernels kernels;
    int batch, seq; /* B, T of a micro-batch */
    bool backward_wanted;
    struct tape *tape;    /* operations are recorded there, if a backward is wanted */
    struct tensor **grad; /* by id of a tensor: its gradient, as far as it has arrived */
    int *summed;          /* by id of a gradient: the group, from 1, that has begun to sum it */
    size_t cap_grad, cap_summed;
    struct bucket *bucket;   /* [unit, tp_rank]: see bucket_of() in optimizer.c */
    struct tensor *partials; /* the norm's block sums */
    bool released;           /* release_updates() has been called */
    int tp_rank;             /* tensor-parallel coordinate of the rank whose tasks are being added */

    /* tp_ranks.c: where the ranks of a tensor-parallel group have met so far */
    struct rendezvous *met; /* those of rank 0, then those of rank 1 ...: all ranks have equally many */
    size_t n_met, cap_met;
    size_t n_rendezvous; /* how many one rank has */
    size_t group_begin;  /* position in the list of the group's first task */
};
struct build new_build(struct step *s, struct model *m, struct kernels kernels, int batch, int seq);
/* The tasks that follow belong to this rank and micro-batch (-1: to none). */
void on_rank(struct build *b, int rank, int micro, enum role role);
void end_build(struct build *b);

/* The ranks of a tensor-parallel group are built one after another, each as if alone (tp_ranks.c):
 *
 *     for (int k = first_tp_rank(b); k >= 0; k = next_tp_rank(b))
 *         ... the tasks of rank k, which meets the others in collectives
 */
int first_tp_rank(struct build *b);
int next_tp_rank(struct build *b); /* -1: no more; their tasks are now in an order that is correct */
/* all_reduce: this rank's x becomes the sum of the x of all ranks.  all_gather: x has `tp` parts, of which each rank
 * has computed its own, and becomes whole.  A part's size is a multiple of UNIT_ALIGN. */
void all_reduce(struct build *b, const char *name, struct tensor *x);
void all_gather(struct build *b, const char *name, struct tensor *x);

/* May --gemm own be used on d?  Not on a GPU, which would compute one work-item at a time. */
bool has_own_products(const struct device *d);
enum gemm_engine choose_engine(const struct device *d, enum gemm_engine wanted);

/* Add a kernel task on the device's compute lane.  args: see step.h's IN, OUT, INT... */
#define LAUNCH(b, name, file, function, grid, ...)                                                                     \
    add_kernel((b)->step, (b)->device->lane[LANE_COMPUTE], name, file, function, grid, (struct arg[]){__VA_ARGS__},    \
               (int)COUNT(((struct arg[]){__VA_ARGS__})))
struct grid groups(const struct build *b, size_t n); /* n work-groups of WG work-items */
struct grid blocks(const struct build *b, size_t n); /* enough work-groups for n elements, BLOCK each */
struct grid column_blocks(const struct build *b, size_t n);
struct tensor *activation(struct build *b, const char *name, int rank, const int64_t *shape);
/* Gives two arguments at once, rank and shape: SHAPE(rows, columns) */
#define SHAPE(...)                                                                                                     \
    (int)COUNT(((int64_t[]){__VA_ARGS__})), (int64_t[]) { __VA_ARGS__ }
int rows_of(const struct tensor *t);    /* product of all dimensions but the last */
int columns_of(const struct tensor *t); /* the last dimension */
int words_of(const struct build *b);    /* the number of words for which this rank has rows of the head */

/* What a pipeline's stage does with a micro-batch: forward; backward as a whole, or in two halves. */
enum computation { FORWARD, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, COMPUTATIONS };

/* An operation notes on the tape what its gradients need; backward() calls the notes in reverse. */
typedef void gradient_rule(struct build *b, const struct op *op);
struct op {
    gradient_rule *weights; /* adds tasks for the gradients of its parameters; NULL: it has no parameters */
    gradient_rule *inputs;  /* adds tasks for the gradients of in[]; NULL: no operation wants them */
    char name[32];
    int unit;
    struct tensor *out;      /* its result, whose gradient has arrived when a rule is called */
    struct tensor *in[2];    /* what it was computed from */
    struct tensor *saved[2]; /* what else its rules need of the forward */
    struct weight w, bias;
    double scale; /* cross_entropy(): the factor of the gradient */
    size_t end;   /* length of the list when its forward had been added */
};
struct op *record(struct build *b, const char *name, gradient_rule *weights, gradient_rule *inputs, struct tensor *out,
                  struct tensor *in);
/* Calls the gradient rules of a unit's operations, the last operation first: BACKWARD both rules of each, else one. */
void backward(struct build *b, int unit, enum computation which);
/* The gradient that has arrived at t so far; NULL when none has. */
struct tensor *gradient(const struct build *b, const struct tensor *t);
void set_gradient(struct build *b, const struct tensor *t, struct tensor *g);
/* Adds g to what has arrived at t. */
void give_gradient(struct build *b, const struct op *op, const struct tensor *t, struct tensor *g);
/* Does this contribution to a parameter's gradient add to what is there?  The step's first one does not: it starts
 * anew.
 */
bool accumulates(struct build *b, const struct tensor *grad);
/* A new tensor shaped like t, for its gradient. */
struct tensor *like(struct build *b, const struct op *op, const char *suffix, const struct tensor *t);

/* ---- ops.c, linear.c, attention.c: the operations, each with its backward -------------------------------------- */

/* A micro-batch on the device: views of one uploaded tensor. */
struct batch {
    struct tensor *all, *tokens, *targets, *order, *start;
};
struct tensor *embed(struct build *b, const struct batch *batch); /* (N, C) */
struct tensor *layernorm(struct build *b, const char *name, struct tensor *x, struct weight w, struct weight bias);
struct tensor *gelu(struct build *b, const char *name, struct tensor *x);
struct tensor *add(struct build *b, const char *name, struct tensor *x, struct tensor *y);
/* x (N, in) * w(out, in)^T + bias(out): (N, out).  bias.value may be NULL. */
struct tensor *linear(struct build *b, const char *name, struct tensor *x, struct weight w, struct weight bias);
/* qkv (N, 3C): causal attention of H heads: (N, C).  With tensor parallelism H and C are those of the rank's heads. */
struct tensor *attention(struct build *b, const char *name, struct tensor *qkv);
/* The cross-entropy of each token: losses (N).  logits: a column for each word (or for each word of the rank's), and
 * padding.  total (1) accumulates the sum of losses over micro-batches; NULL: an evaluation.  The gradient is that of
 * the mean: it is scaled by 1/tokens_per_step. */
struct tensor *cross_entropy(struct build *b, struct tensor *logits, const struct batch *batch, struct tensor *total,
                             double tokens_per_step);

/* ---- gemm.c: matrix products, two engines and one function -------------------------------------------------- */

/* C(M,N) = start + op(A) op(B), row-major, batch*heads products. */
enum gemm_form { GEMM_NT, GEMM_NN, GEMM_TN }; /* A(M,K) B(N,K) | A(M,K) B(K,N) | A(K,M) B(K,N) */
enum gemm_start { START_ZERO, START_OLD, START_BIAS };
/* Which matrix is a lower triangle, whose other elements are not computed, or are 0: none, C, A, A transposed. */
enum gemm_causal { CAUSAL_NONE, CAUSAL_OUT, CAUSAL_A, CAUSAL_A_TRANSPOSED };
/* How much of its tensor C is: all; the first part that is written; a later part, so that what was written is kept. */
enum gemm_part { PART_WHOLE, PART_FIRST, PART_NEXT };
/* Matrix z = i*heads + h of an operand starts at element base + i*outer + h*inner; its rows are ld elements apart. */
struct operand {
    struct tensor *tensor;
    size_t base;
    int ld;
    size_t outer, inner;
};
struct gemm {
    enum gemm_form form;
    int m, n, k, batch, heads;
    struct operand a, b, c;
    enum gemm_start start;
    struct tensor *bias; /* (N) with START_BIAS */
    enum gemm_causal causal;
    enum gemm_part part;
};
extern const char *const gemm_form_name[3];
void gemm(struct build *b, const char *name, const struct gemm *g);
struct operand matrix(struct tensor *t, int ld); /* a whole tensor as one matrix */

/* ---- layers.c: the pages of the textbook ----------------------------------------------------------------------- */

/* One stage of the residual stream (N, C): the first one makes it of the batch's tokens (x is NULL then), the last one
 * ends with the final LayerNorm. */
struct tensor *gpt_stage(struct build *b, int stage, const struct batch *batch, struct tensor *x);
/* hidden (n, C): logits (n, V); each row ends in padding of 0. */
struct tensor *gpt_head(struct build *b, struct tensor *hidden);

/* ---- pipeline.c: the order of micro-batches -------------------------------------------------------------------- */

enum pipeline {
    PIPELINE_1F1B,
    PIPELINE_GPIPE,
    PIPELINE_INTERLEAVED,
    PIPELINE_ZBH1,
    PIPELINE_ZBH2,
    PIPELINE_DUALPIPEV,
    PIPELINES
};
extern const char *const pipeline_name[PIPELINES + 1]; /* NULL ends them */
struct turn {                                          /* one thing that a device does */
    enum computation computation;
    int stage, micro;
};
struct turns;
struct order {
    void (*take_turns)(struct turns *of_a_device);
    int chunks;  /* stages per device */
    bool folded; /* as in struct mesh */
};
extern const struct order pipeline_orders[PIPELINES];
/* The *n turns of the device with pipeline coordinate p, in its order; the caller frees them. */
struct turn *pipeline_order(enum pipeline kind, const struct mesh *m, int p, int micros, int *n);
/* The *n turns of all devices, in one order that is correct when they are taken one after another; the caller frees
 * them. */
struct turn *merge_orders(enum pipeline kind, const struct mesh *m, int micros, size_t *n);
/* The tasks that follow belong to the tape's rank and micro-batch. */
void on_tape(struct build *b, struct tape *tape, enum role role);
/* Adds one stage's forward of a micro-batch, for the rank with data-parallel coordinate k and tensor-parallel
 * coordinate b->tp_rank, and records it on `tape`.  before: the tape of the stage before it, or NULL. */
void forward_stage(struct build *b, struct tape *tape, const struct tape *before, int k, int stage, int micro,
                   int group, const struct batch *batch);
/* Call it after the stage's backward: sends the gradient of tape->in to the stage before. */
void send_gradient(struct build *b, struct tape *tape, const struct tape *before);

/* ---- optimizer.c, adamw_host.c --------------------------------------------------------------------------------- */

/* AdamW on the host, with the accesses and args of the kernel's task (adamw_host.c). */
host_function adamw_on_host;
double measure_adamw(size_t elements); /* seconds that it takes, alone on a core */
/* Call it after a group's last backward of a unit on all ranks.  With a tied head it adds up the embedding's two
 * gradients; the gradient of a second group (grouped) it then adds to the first's. */
void end_group(struct build *b, int unit, bool grouped);
/* After the last group: send_unit() sends the shards of a unit's gradient to the data-parallel ranks that sum them, and
 * reduce_unit() sums them. */
void send_unit(struct build *b, int unit);
void reduce_unit(struct build *b, int unit);
/* Call it after the last forward, and only without clipping.  From now on each unit is updated right after its reduce,
 * and its parameters are sent, unless the losses are not finite.  The norm is only reported.
 *
 * losses (dp * UNIT_ALIGN) is a tensor on the norm's rank.  rank_loss[k] (1) is the loss of data-parallel rank k, which
 * is moved to element k * UNIT_ALIGN of `losses`; that of the norm's rank lies there already. */
void release_updates(struct build *b, struct tensor *losses, struct tensor *const *rank_loss);
/* Call it when all units are reduced: adds the norm, and, unless they were released, the updates and what sends the
 * parameters back. */
void add_update(struct build *b, struct tensor *losses, struct tensor *const *rank_loss);

#endif

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
    int layers, heads, channels, seq_len, vocab; /* L, H, C, T at most, V */
    bool tied;                                   /* the head is the token embedding */
};
enum { MAX_LAYERS = 1000 };
void check_config(const struct config *c); /* refuses impossible sizes */
bool same_sizes(const struct config *a, const struct config *b);
const char *describe_sizes(char out[160], const struct config *c); /* "2 layers, 2 heads, ..." */

enum init { INIT_ZERO, INIT_ONE, INIT_NORMAL, INIT_RESIDUAL };

/* One parameter of one layer.  Linear weights are (out, in); Hugging Face's Conv1D has them transposed. */
struct param {
    char name[48]; /* Hugging Face's: "h.3.attn.c_attn.weight" */
    int llmc;      /* its place in llm.c's file, which has each for all layers together; -1: not in it */
    int layer;     /* -1: embedding or final */
    int unit;      /* 0 embedding, 1..L layers, L+1 final */
    int rank;      /* 2: a matrix, with weight decay */
    int64_t shape[2];
    int64_t rows;   /* in memory: shape[0], of the head perhaps more */
    bool conv1d;    /* transposed in files with Hugging Face's names */
    struct cut cut; /* by tensor parallelism */
    int first;      /* where its rows or columns begin, in those of the whole */
    enum init init;
    size_t offset; /* elements from the unit's start */
};
/* A unit is what is updated, sent and stored at a time: a layer, the embedding, or the final LayerNorm (and head).  Its
 * parameters lie in one tensor, the decayed ones first, each on a multiple of UNIT_ALIGN elements.  What lies between
 * is 0 and stays so. */
enum { UNIT_ALIGN = DEVICE_ALIGNMENT / ELEMENT_BYTES };
struct unit {
    size_t elements, n_decay; /* padding included */
    size_t n_counted;         /* so many belong to the norm: not what the first rank of a group counts already */
    int first, n;             /* its parameters in the table */
};
struct params {
    struct config config;
    struct param *param;
    struct unit *unit;
    int n, n_units;
};
/* The table of what rank k of a tensor-parallel group has: the same parameters, but parts of them. */
struct params *new_params(const struct config *c, const struct mesh *m, int k);
struct problem *check_tp_ranks(const struct config *c, const struct mesh *m); /* are there parts for tp of them? */
int64_t padded_words(int64_t words);                                          /* rows of a head for so many */
int layer_of_unit(const struct params *p, int unit);                          /* -1: embedding or final */
void free_params(struct params *p);
size_t param_elements(const struct param *p);
/* A parameter's values as files with Hugging Face's names have them, Conv1D weights transposed; or from there.  Takes
 * `values` over; the caller frees what is returned. */
float *turn_conv1d(const struct param *p, float *values, bool for_file);
size_t count_parameters(const struct params *p);
/* Floating point operations of training per token by the usual count: 6 per multiplied parameter (look-ups are not
 * multiplied) and 12*L*C*T for attention. */
double flops_per_token(const struct params *p, int seq_len);
/* Those of a layer, and those of no layer, in the table's order; a tied model's table has no HEAD. */
enum layer_param { QKV_W, PROJ_W, FC_W, FCPROJ_W, LN1_W, LN1_B, QKV_B, PROJ_B, LN2_W, LN2_B, FC_B, FCPROJ_B };
enum other_param { WTE, WPE, HEAD, LNF_W, LNF_B, OTHER_PARAMS };

/* ---- replica.c: a rank's part of the state on its device --------------------------------------------------------- */

struct weight { /* a parameter, or a rank's part of it, with its gradient: what a layer function is given */
    struct tensor *value, *grad;
    struct cut cut;
    int first; /* of its rows or columns, in the whole */
};
/* A rank has the units of its own stages only.  For all other units the tensors in these arrays are NULL. */
struct replica {
    int rank;
    struct device *device;
    struct tensor **value, **grad; /* per unit: parameters, gradients */
    struct tensor **m, **v;        /* per unit: Adam's state of the rank's shard (without ZeRO: of all); NULL: none */
    struct tensor **shard;         /* per unit: with ZeRO-3, the part of the parameters that it keeps; NULL: none */
    struct weight other[OTHER_PARAMS]; /* HEAD is WTE when tied: itself, or on another device than WTE a copy */
    struct weight *by_param;           /* as in the table: a layer's one behind another */
    struct tensor *lookup_grad;        /* (V, C) the embedding's own gradient when the head has one too; else NULL */
    struct replica *group;             /* --grad-groups: the same parameters, gradients of another group of sequences */
    struct tensor *control;            /* (16) what changes per step: see adamw.cl */
    struct tensor *state;              /* (4) norm, clip scale, halted */
};
/* How a model's gradients are kept; zeros: one set, as long as the model. */
struct gradients {
    bool dropped; /* they need not outlive the reduction (ZeRO-2) */
    bool grouped; /* those of a second group of sequences beside (--grad-groups) */
};
struct model {
    struct params *params; /* of the whole model */
    struct params **part;  /* what ranks have, by their tensor-parallel coordinate */
    struct pool *pool;
    const struct mesh *mesh;
    struct replica *replica; /* per rank: rank r lives on device r */
    bool training;           /* gradients and optimizer state exist */
    struct gradients gradients;
    int norm_rank; /* there losses and the norm are summed */
};
struct model *new_model(struct pool *p, const struct config *c, const struct mesh *mesh, bool training,
                        struct gradients gradients);
/* Who has what, without devices and tensors: replica is NULL. */
struct model *outline_model(const struct config *c, const struct mesh *mesh);
void free_model(struct model *m); /* the tensors belong to the pool */
int stage_of(const struct model *m, int unit);
int first_unit(const struct model *m, int stage);                /* of a stage; of the one behind the last: the end */
const struct params *params_of(const struct model *m, int rank); /* of what it has */
/* What is kept of a parameter, each shaped like it. */
enum kept { KEPT_VALUE, KEPT_M, KEPT_V, KEPT_ROLES, KEPT_GRADIENT = KEPT_ROLES };
bool is_shared_out(const struct mesh *mesh, enum kept role); /* in shards, by ZeRO */
/* What a rank keeps of a unit for that role: its shard, or all of it; and where, NULL: nowhere. */
struct shard held_by(const struct model *m, int unit, int rank, enum kept role);
struct tensor *tensor_of(const struct replica *r, int unit, enum kept role);
/* Set-up and saving, nothing in flight, whole parameters: cut for every rank that has a part of it; put together from
 * the first ones. */
void write_param(struct model *m, int param, enum kept role, const float *values);
void read_param(struct model *m, int param, enum kept role, float *values);

/* ---- init.c: first values, random or from files ----------------------------------------------------------------- */

void init_random(struct model *m, uint64_t seed);
/* Sizes of a file that --init or --from names: llm.c checkpoint or safetensors with GPT-2 names.  heads: of --heads,
 * for a file that does not say it, 0: not given. */
struct config read_config(const char *path, int heads);
void init_from_file(struct model *m, const char *path);
/* The name of the first parameter with an element that is not finite; NULL: there is none. */
const char *find_bad_parameter(struct model *m);
/* Fails with EXIT_FAILED when a file gave such a parameter. */
void refuse_bad_parameters(struct model *m, const char *path);

/* ---- save_model.c: a model as a file for other programs ---------------------------------------------------------- */

struct model_facts { /* what the file says of it beside its sizes */
    uint32_t step;
    unsigned vector;       /* width of the devices' vectors, 0: unlike */
    const char *tokenizer; /* tokenizer_to_text() */
};
/* safetensors with Hugging Face's names of these parameters, whole ones.  Each is to be written, in the table's order,
 * then the file is published.  prefixed: the names begin with "transformer.", but the head's. */
struct st_writer *begin_model_file(const char *path, const struct params *all, const struct model_facts *facts,
                                   bool prefixed);
void write_to_model_file(struct st_writer *w, const struct param *p, float *values); /* frees the values */
/* All of it, read from the devices, with nothing in flight: a parameter at a time. */
void save_model(struct model *m, const char *path, uint32_t step, const char *tokenizer);

/* ---- import.c, find.c: models of other programs ----------------------------------------------------------------- */

/* The same of safetensors with GPT-2 names, in one file or, by their index, in several.  What they and a config.json
 * beside them say is taken; what is not computed here, or contradicts the shapes, is refused by its name. */
struct config read_weights_config(const char *path, int heads);
void init_from_weights(struct model *m, const char *path);
char *read_weights_metadata(const char *path, const char *key); /* NULL: there are none; the caller frees them */
void claim_weights(const char *who, const char *path);          /* what is read beside it: see claim_input() */
char *file_beside(const char *path, const char *name);          /* in the same folder; the caller frees it */
#define MODEL_FILE "model.safetensors"
#define MODEL_INDEX "model.safetensors.index.json"
/* The one of them that a folder has, a model or the index of its shards; NULL: there is none.  The caller frees it. */
char *model_in_folder(const char *folder);
/* Fail with a sentence if it is, or has, a model in a form that is known, but not read here, or of another name. */
void refuse_foreign_file(const char *path);
void refuse_foreign_folder(const char *folder);
bool is_json(const char *path); /* does it begin as a JSON object? */
/* The first bytes, at most `most`, which the caller frees; *n of them, and a zero behind them. */
char *read_first_bytes(const char *path, size_t most, size_t *n);
bool fits_safetensors(const char *head, size_t n);
bool begins_json(const char *head);

/* ---- build.c, tp_ranks.c: the builder --------------------------------------------------------------------------- */

enum gemm_engine { GEMM_AUTO, GEMM_OWN, GEMM_CLBLAST };
enum attention { ATTENTION_PLAIN, ATTENTION_FLASH };
struct kernels { /* which ones are wanted; each device has its own answer to GEMM_AUTO */
    enum gemm_engine gemm;
    enum attention attention;
};
struct op;
struct rendezvous; /* tp_ranks.c */
/* What backward needs to know of a rank's forward of one stage and micro-batch. */
struct tape {
    int rank, micro;
    int group; /* of --grad-groups; from the second one on gradients go to the rank's second set */
    struct op *ops;
    size_t n, cap;
    struct tensor *in, *out; /* the residual stream as it came from the stage before, and as it leaves; NULL at ends */
};
struct bucket {           /* a unit's gradient, or a tensor-parallel rank's part of it, on all data-parallel ranks */
    struct tensor **part; /* from send_unit() to reduce_unit(): what is to be summed, see add_reduce_moves() */
    struct tensor **sum;  /* after reduce_unit(): the sum of each shard */
};
struct build {
    struct step *step;
    struct model *model;
    struct replica *replica; /* whose tasks are being added */
    struct device *device;
    struct kernels kernels;
    int batch, seq; /* B, T of a micro-batch */
    bool backward_wanted;
    struct tape *tape;    /* operations go there, if a backward is wanted */
    struct tensor **grad; /* gradient of each tensor, by id */
    int *summed;          /* by id: the group, from 1, that has begun to sum it */
    size_t cap_grad, cap_summed;
    struct bucket *bucket;   /* [unit, tp_rank]: see bucket_of() in optimizer.c */
    struct tensor *partials; /* the norm's block sums */
    bool released;           /* see release_updates() */
    int tp_rank;             /* tensor-parallel coordinate of the rank whose tasks are being added */
    struct rendezvous *met;  /* of the ranks of a group so far, one after another; each as often */
    size_t n_met, cap_met, n_rendezvous /* of one tp_rank */, group_begin /* in the list */;
};
struct build new_build(struct step *s, struct model *m, struct kernels kernels, int batch, int seq);
/* The tasks that follow are of this rank and micro-batch (-1: of none). */
void on_rank(struct build *b, int rank, int micro, enum role role);
void end_build(struct build *b);

/* The ranks of a tensor-parallel group are built one after another, each as if alone (tp_ranks.c):
 *
 *     for (int k = first_tp_rank(b); k >= 0; k = next_tp_rank(b))
 *         ... the tasks of rank k, which meets the others in collectives
 */
int first_tp_rank(struct build *b);
int next_tp_rank(struct build *b); /* -1: no more; their tasks are now in an order that is correct */
/* This rank's x becomes the sum of what all ranks bring; x, in `tp` parts of which each brings its own, becomes
 * whole.  A part's size is a multiple of UNIT_ALIGN. */
void all_reduce(struct build *b, const char *name, struct tensor *x);
void all_gather(struct build *b, const char *name, struct tensor *x);

bool has_own_products(const struct device *d); /* can it, and may it: one work-item at a time is none for a GPU */
enum gemm_engine choose_engine(const struct device *d, enum gemm_engine wanted);

/* Add a kernel task on the device's compute lane.  args: see step.h's IN, OUT, INT... */
#define LAUNCH(b, name, file, function, grid, ...)                                                                     \
    add_kernel((b)->step, (b)->device->lane[LANE_COMPUTE], name, file, function, grid, (struct arg[]){__VA_ARGS__},    \
               (int)COUNT(((struct arg[]){__VA_ARGS__})))
struct grid groups(const struct build *b, size_t n); /* n work-groups of WG work-items */
struct grid blocks(const struct build *b, size_t n); /* enough work-groups for n elements, BLOCK each */
struct grid column_blocks(const struct build *b, size_t n);
struct tensor *activation(struct build *b, const char *name, int rank, const int64_t *shape);
/* rank and shape at once: SHAPE(rows, columns) */
#define SHAPE(...)                                                                                                     \
    (int)COUNT(((int64_t[]){__VA_ARGS__})), (int64_t[]) { __VA_ARGS__ }
int rows_of(const struct tensor *t);    /* product of all dimensions but the last */
int columns_of(const struct tensor *t); /* the last dimension */
int words_of(const struct build *b);    /* of which the rank has the head's rows */

/* What a pipeline's stage does with a micro-batch: backward as a whole, or in halves. */
enum computation { FORWARD, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, COMPUTATIONS };

/* An operation notes on the tape what its gradients need; backward() calls the notes in reverse. */
typedef void gradient_rule(struct build *b, const struct op *op);
struct op {
    gradient_rule *weights; /* adds the gradients of its parameters; NULL: it has none */
    gradient_rule *inputs;  /* those of in[]; NULL: nobody wants them */
    char name[32];
    int unit;
    struct tensor *out, *in[2]; /* gradient of out is given; of in[] wanted */
    struct tensor *saved[2];
    struct weight w, bias;
    double scale; /* a number of its own */
    size_t end;   /* of the list, when its forward had been added */
};
struct op *record(struct build *b, const char *name, gradient_rule *weights, gradient_rule *inputs, struct tensor *out,
                  struct tensor *in);
/* The unit's operations, the last one first: both halves of each, or one half of all. */
void backward(struct build *b, int unit, enum computation which);
/* The gradient that has arrived at t so far; NULL when none has. */
struct tensor *gradient(const struct build *b, const struct tensor *t);
void set_gradient(struct build *b, const struct tensor *t, struct tensor *g);
/* Another contribution: added to what has arrived. */
void give_gradient(struct build *b, const struct op *op, const struct tensor *t, struct tensor *g);
/* Does this contribution to a parameter's gradient add to what is there?  Not the step's first one: that starts anew.
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
/* qkv (N, 3C): causal attention of H heads: (N, C).  Of a rank's heads: as many channels as these have. */
struct tensor *attention(struct build *b, const char *name, struct tensor *qkv);
/* Mean cross-entropy's parts, of logits for all words or a rank's, and padding: losses (N); total (1) accumulates their
 * sum over micro-batches; its gradient is scaled by 1/tokens_per_step.  total NULL: evaluation. */
struct tensor *cross_entropy(struct build *b, struct tensor *logits, const struct batch *batch, struct tensor *total,
                             double tokens_per_step);

/* ---- gemm.c: matrix products, two engines behind one function -------------------------------------------------- */

/* C(M,N) = start + op(A) op(B), row-major, batch*heads products.  Matrix z = i*heads + h of an operand starts at
 * element base + i*outer + h*inner; rows are ld elements apart. */
enum gemm_form { GEMM_NT, GEMM_NN, GEMM_TN }; /* A(M,K) B(N,K) | A(M,K) B(K,N) | A(K,M) B(K,N) */
enum gemm_start { START_ZERO, START_OLD, START_BIAS };
enum gemm_causal { CAUSAL_NONE, CAUSAL_OUT, CAUSAL_A, CAUSAL_A_TRANSPOSED }; /* lower triangles: C, A, A^T */
enum gemm_part { PART_WHOLE, PART_FIRST, PART_NEXT }; /* the first part to be written, or one more: the rest is kept */
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
    enum gemm_part part; /* C is only part of its tensor's elements */
};
extern const char *const gemm_form_name[3];
void gemm(struct build *b, const char *name, const struct gemm *g);
struct operand matrix(struct tensor *t, int ld); /* a whole tensor as one matrix */

/* ---- layers.c: the pages of the textbook ----------------------------------------------------------------------- */

/* One stage of the residual stream (N, C): the first one makes it of the batch's tokens (x: NULL), the last one puts
 * the final LayerNorm behind it. */
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
struct turn {                                          /* what a device does next */
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
/* The order in which pipeline coordinate p takes its *n turns; the caller frees it. */
struct turn *pipeline_order(enum pipeline kind, const struct mesh *m, int p, int micros, int *n);
/* All devices' turns in one order that is correct one after another; *n of them. */
struct turn *merge_orders(enum pipeline kind, const struct mesh *m, int micros, size_t *n);
/* The tasks that follow are of the tape's rank and micro-batch. */
void on_tape(struct build *b, struct tape *tape, enum role role);
/* One stage's forward of a micro-batch on data-parallel rank k, on the rank that is being built; it goes on the tape.
 * `before`: that of the stage before it, or NULL.  The last stage's hidden state is tape->out. */
void forward_stage(struct build *b, struct tape *tape, const struct tape *before, int k, int stage, int micro,
                   int group, const struct batch *batch);
/* Behind its backward the gradient of what came in goes to the stage before. */
void send_gradient(struct build *b, struct tape *tape, const struct tape *before);

/* ---- optimizer.c, adamw_host.c --------------------------------------------------------------------------------- */

/* AdamW of a task on the host, of the kernel's accesses and args (adamw_host.c). */
host_function adamw_on_host;
double measure_adamw(size_t elements); /* seconds of one, alone on a core */
/* Behind a group's last backward of a unit on all ranks: the gradient is whole; a second group's is added to it. */
void end_group(struct build *b, int unit, bool grouped);
/* Behind the last group: a unit's gradient goes, in shards, to the data-parallel ranks that sum it; and is summed. */
void send_unit(struct build *b, int unit);
void reduce_unit(struct build *b, int unit);
/* Without clipping, behind the last forward: from now on each unit is updated right behind its reduce, and its
 * parameters sent, unless the losses are not finite.  The norm is only reported.  losses (dp * UNIT_ALIGN), on the
 * norm's rank: the others' rank_loss (1), per data-parallel rank, are moved to it, at k * UNIT_ALIGN; its own lies
 * there.
 */
void release_updates(struct build *b, struct tensor *losses, struct tensor *const *rank_loss);
/* When all are reduced: the norm; and where it held them, the updates, and parameters back. */
void add_update(struct build *b, struct tensor *losses, struct tensor *const *rank_loss);

#endif

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

#include "../file/file.h"
#include "../schedule/schedule.h"

/* ---- params.c: configuration and the table of parameters ------------------------------------------------------- */

struct config {
    int layers, heads, channels, seq_len, vocab; /* L, H, C, T at most, V */
    bool tied;                                   /* the head is the token embedding */
};
void check_config(const struct config *c); /* refuses impossible sizes */

enum partition { SPLIT_NONE, SPLIT_ROWS, SPLIT_COLUMNS }; /* how tensor parallelism cuts it */
enum init { INIT_ZERO, INIT_ONE, INIT_NORMAL, INIT_RESIDUAL };

/* One parameter of one layer.  Linear weights are (out, in); Hugging Face's Conv1D has them transposed. */
struct param {
    char name[48];    /* Hugging Face's: "h.3.attn.c_attn.weight" */
    const char *llmc; /* llm.c's: "qkvw" */
    int layer;        /* -1: embedding or final */
    int unit;         /* 0 embedding, 1..L layers, L+1 final */
    int rank;
    int64_t shape[2];
    bool conv1d; /* transposed in files with Hugging Face's names */
    bool decay;  /* weight decay: matrices */
    enum partition split;
    enum init init;
    size_t offset; /* elements from the unit's start */
};
/* A unit is what is updated, sent and stored at a time: a layer, the embedding, or the final LayerNorm (and head).  Its
 * parameters lie in one tensor, the decayed ones first, each on a multiple of UNIT_ALIGN elements. */
enum { UNIT_ALIGN = 128 }; /* 512 bytes: as devices' base alignment */
struct unit {
    size_t elements, n_decay; /* padding included */
    int first, n;             /* its parameters in the table */
};
struct params {
    struct config config;
    struct param *param;
    struct unit *unit;
    int n, n_units;
};
struct params *new_params(const struct config *c);
void free_params(struct params *p);
size_t count_parameters(const struct params *p);
/* Floating point operations of training per token by the usual count: 6 per multiplied parameter (look-ups are not
 * multiplied) and 12*L*C*T for attention. */
double flops_per_token(const struct params *p, int seq_len);
/* Indices into params->param, by role. */
enum layer_param {
    LN1_W,
    LN1_B,
    QKV_W,
    QKV_B,
    PROJ_W,
    PROJ_B,
    LN2_W,
    LN2_B,
    FC_W,
    FC_B,
    FCPROJ_W,
    FCPROJ_B,
    LAYER_PARAMS
};
enum other_param { WTE, WPE, LNF_W, LNF_B, HEAD, OTHER_PARAMS };

/* ---- replica.c: a rank's copy of the state on its device ------------------------------------------------------- */

struct weight { /* a parameter with its gradient: what a layer function is given */
    struct tensor *value, *grad;
};
struct layer { /* views of one layer's unit */
    struct weight w[LAYER_PARAMS];
};
struct replica {
    int rank;
    struct device *device;
    struct tensor **value, **grad; /* per unit: parameters, gradients */
    struct tensor **m, **v;        /* per unit: Adam's state, NULL where another rank owns the unit */
    struct layer *layer;
    struct weight other[OTHER_PARAMS]; /* HEAD is WTE when tied */
    struct weight *by_param;           /* as in the table */
    struct tensor *lookup_grad;        /* (V, C) the embedding's own gradient when the head has one too; else NULL */
    struct tensor *control;            /* (16) what changes per step: see adamw.cl */
    struct tensor *state;              /* (4) norm, clip scale, halted */
};
struct model {
    struct params *params;
    struct pool *pool;
    int n_ranks;
    struct replica *replica; /* per rank */
    bool training;           /* gradients and optimizer state exist */
};
/* Rank r lives on device r.  Unit u is owned (updated) by rank u % ranks. */
struct model *new_model(struct pool *p, const struct config *c, int n_ranks, bool training);
void free_model(struct model *m); /* the tensors belong to the pool */
int owner_of(const struct model *m, int unit);
/* Set-up and saving, nothing in flight: the same values go to every rank; read from rank 0 (parameters) or the owner.
 */
void write_param(struct model *m, int param, const float *values);
void read_param(struct model *m, int param, float *values);
void clear_optimizer(struct model *m); /* Adam's state of every rank to zero, as before the first step */
void read_gradient(struct model *m, int param, float *values); /* of rank 0; the tied embedding's two are summed */

/* ---- init.c: first values, import, export ---------------------------------------------------------------------- */

void init_random(struct model *m, uint64_t seed);
/* to (columns, rows) = from (rows, columns) transposed: Conv1D weights are, in files with Hugging Face's names. */
void transpose(float *to, const float *from, int64_t rows, int64_t columns);
/* Sizes of a file that --init or --from names: llm.c checkpoint or safetensors with GPT-2 names. */
struct config read_config(const char *path);
void init_from_file(struct model *m, const char *path);
/* All parameters as safetensors with Hugging Face's GPT-2 names, published atomically. */
void save_model(struct model *m, const char *path, const char *tokenizer, uint32_t step);

/* ---- build.c: the builder -------------------------------------------------------------------------------------- */

enum gemm_engine { GEMM_AUTO, GEMM_OWN, GEMM_CLBLAST };
struct op; /* on the tape */
struct build {
    struct step *step;
    struct model *model;
    struct replica *replica; /* whose tasks are being added */
    struct device *device;
    enum gemm_engine wanted, engine; /* as asked for; of this device, never GEMM_AUTO */
    int layer, micro;                /* stamped on tasks */
    bool backward_wanted;            /* operations go on the tape */
    int batch, seq;                  /* B, T of this micro-batch */
    struct op *tape;
    size_t n_tape, cap_tape;
    struct tensor **grad; /* gradient of each tensor, by id */
    size_t n_grad, cap_grad;
    bool *summed; /* parameter gradients that this step has begun on this rank, by id */
    size_t n_summed, cap_summed;
};
struct build new_build(struct step *s, struct model *m, enum gemm_engine engine, bool backward_wanted);
void start_micro_batch(struct build *b, int rank, int micro, int batch, int seq);
void end_build(struct build *b);
enum gemm_engine choose_engine(const struct device *d, enum gemm_engine wanted);

/* Add a kernel task on the device's compute lane.  args: see schedule.h's IN, OUT, INT... */
#define LAUNCH(b, name, file, function, grid, ...)                                                                     \
    launch((b), name, file, function, grid, (struct arg[]){__VA_ARGS__}, (int)COUNT(((struct arg[]){__VA_ARGS__})))
struct task *launch(struct build *b, const char *name, const char *file, const char *function, struct grid grid,
                    const struct arg *args, int n_args);
struct grid groups(const struct build *b, size_t n); /* n work-groups of WG work-items */
struct grid blocks(const struct build *b, size_t n); /* enough work-groups for n elements, BLOCK each */
struct grid column_blocks(const struct build *b, size_t n);
struct tensor *activation(struct build *b, const char *name, int rank, const int64_t *shape);
/* rank and shape at once: SHAPE(rows, columns) */
#define SHAPE(...)                                                                                                     \
    (int)COUNT(((int64_t[]){__VA_ARGS__})), (int64_t[]) { __VA_ARGS__ }
int rows_of(const struct tensor *t);    /* product of all dimensions but the last */
int columns_of(const struct tensor *t); /* the last dimension */

/* The tape.  An operation notes what its gradient needs; backward() calls the notes in reverse. */
struct op {
    void (*backward)(struct build *b, const struct op *op);
    char name[32];
    int layer;
    struct tensor *out, *in[2]; /* gradient of out is given; of in[] wanted */
    struct tensor *saved[2];
    struct weight w, bias;
    double scale;
};
struct op *record(struct build *b, const char *name, void (*rule)(struct build *, const struct op *),
                  struct tensor *out, struct tensor *in);
void backward(struct build *b);
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
/* qkv (N, 3C): causal attention of H heads: (N, C) */
struct tensor *attention(struct build *b, const char *name, struct tensor *qkv);
/* Mean cross-entropy's parts: losses (N); total (1) accumulates their sum over micro-batches; its gradient is scaled by
 * 1/tokens_per_step.  total NULL: evaluation. */
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

struct tensor *gpt_forward(struct build *b, const struct batch *batch); /* logits (N, V) */
struct tensor *gpt_hidden(struct build *b, const struct batch *batch);  /* (N, C), behind the last LayerNorm */

/* ---- optimizer.c ----------------------------------------------------------------------------------------------- */

/* After the last micro-batch: sum the ranks' gradients at their owners, take the norm, update, send parameters back. */
void add_update(struct build *b);

#endif

/* params.h - a model's sizes, and the table of its parameters, from which all that concerns parameters follows.
 *
 *     items[0] wte   items[1] wpe | items[2] h.0.attn.c_attn.weight ... | ... | ln_f.weight, ln_f.bias
 *     units[0]                    | units[1]: layer 0                   | ... | units[n_units - 1]
 *
 * Sizes and offsets are in elements, which are floats.  Implemented in params.c, config.c, params_asked.c.
 *
 * Protocol: check_config(), new_params(), then only looks at the table, free_params().
 */
#ifndef PARAMS_H
#define PARAMS_H

#include "trainer/mesh/mesh.h"

struct config {
    int layers, heads, channels, seq_len, vocab; /* L, H, C, the largest T, V */
    bool tied;                                   /* the head is the token embedding */
};

enum { MOST_LAYERS = 1000 };
void check_config(const struct config *config); /* ends the program (EXIT_USAGE) if sizes are impossible */
bool same_sizes(const struct config *a, const struct config *b); /* tied or untied counts too */

/* Writes "2 layers, 2 heads, ..." to `out`, which is returned. */
enum { SIZES_BYTES = 160 }; /* the most bytes of it, and its end */
const char *describe_sizes(char out[SIZES_BYTES], const struct config *config);

enum init { INIT_ZERO, INIT_ONE, INIT_NORMAL, INIT_RESIDUAL };

/* One parameter of one layer.  Linear weights are (out, in); Hugging Face's Conv1D has them transposed. */
struct param {
    char name[TENSOR_NAME]; /* Hugging Face's name: "h.3.attn.c_attn.weight" */
    int llmc;   /* its place in llm.c's file, where a parameter of all layers lies together; NONE: not in it */
    int layer;  /* NONE: it is of the embedding or of the final unit */
    int unit;   /* 0 embedding, 1..L layers, L+1 final */
    int n_dims; /* 2: a matrix, with weight decay; 1: a vector, without */
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
    int first_param, n_params; /* its parameters in the table: n_params of them, from items[first_param] on */
};

struct params {
    struct config config; /* the whole model's */
    struct param *items;  /* n of them, unit by unit */
    struct unit *units;   /* n_units of them: the embedding, the layers, the final unit */
    int n, n_units;
};

/* The table of what rank tp_rank of a tensor-parallel group has: the same parameters, but only the rank's parts of
 * them.  The caller frees it with free_params(). */
struct params *new_params(const struct config *config, const struct mesh *mesh, int tp_rank);

/* Why the model cannot be cut for mesh->tp ranks; NULL: it can. */
struct problem *tp_problem(const struct config *config, const struct mesh *mesh);

int64_t padded_vocab(int64_t words);                      /* rows that a head of `words` words has */
int layer_of_unit(const struct params *params, int unit); /* NONE: embedding or final */
void free_params(struct params *params);

/* The elements of a parameter, and those of all parameters, without padding. */
size_t param_elements(const struct param *param);
size_t count_parameters(const struct params *params);

/* A parameter's shape in files with Hugging Face's names: Conv1D weights are transposed there. */
void shape_in_file(const struct param *param, int64_t shape[2]);
enum layout_change { OURS_TO_FILE, FILE_TO_OURS };

/* The values of a parameter as files with Hugging Face's names have them, or back: Conv1D weights are transposed,
 * others stay.  Takes `values` over; the caller frees what is returned. */
float *transpose_conv1d(const struct param *param, float *values, enum layout_change change);

/* Floating point operations of training per token by the usual count: 6 per multiplied parameter (look-ups are not
 * multiplied) and 12*L*C*T for attention. */
double flops_per_token(const struct params *params, int seq_len);

/* The parameters of a layer, and those of no layer, in the table's order; a tied model's table has no HEAD.  The table
 * begins with the embedding, so WTE and WPE are also the numbers of these two in it. */
enum layer_param { QKV_W, PROJ_W, FC_W, FCPROJ_W, LN1_W, LN1_B, QKV_B, PROJ_B, LN2_W, LN2_B, FC_B, FCPROJ_B };
enum unlayered_param { WTE, WPE, HEAD, LNF_W, LNF_B, UNLAYERED_PARAMS };

struct weight { /* a parameter, or a rank's part of it, with its gradient: what a layer function is given */
    struct tensor *value, *grad;
    struct cut cut;
    int first; /* if it is a part: the row or column of the whole with which it begins */
};

#endif

/* params.c - the one table of parameters.  Placement, initial values, names in files, sharding, import and export all
 * follow from it; no other file knows a parameter by its number in a file.
 */
#include "model.h"

/* The sizes of a dimension, with the letters of model.h; C3 is 3 C, and C4 is 4 C. */
enum size { NO_SIZE, V, T, C, C3, C4 };

/* A row of the table.  Where it says nothing of share or init, these are WHOLE and INIT_ZERO. */
struct param_row {
    const char *name; /* that of a layer's parameter is what follows "h.3." */
    int llmc;         /* as in struct param */
    enum size shape[2];
    enum {
        WHOLE,   /* every rank of a tensor-parallel group has all of it */
        ROWS,    /* some rows: outputs, words */
        COLUMNS, /* some columns: inputs */
        QKV,     /* of each of three sections, the rows of some heads */
        HEADS    /* the columns of some heads */
    } share;
    enum init init;
};

/* In each unit the matrices (which decay) come first.  File formats have orders of their own. */
static const struct param_row embedding_rows[] = {
    [WTE] = {.name = "wte.weight", .llmc = 0, .shape = {V, C}, .share = ROWS, .init = INIT_NORMAL},
    [WPE] = {.name = "wpe.weight", .llmc = 1, .shape = {T, C}, .init = INIT_NORMAL},
};
static const struct param_row layer_rows[] = {
    [QKV_W] = {.name = "attn.c_attn.weight", .llmc = 4, .shape = {C3, C}, .share = QKV, .init = INIT_NORMAL},
    [PROJ_W] = {.name = "attn.c_proj.weight", .llmc = 6, .shape = {C, C}, .share = HEADS, .init = INIT_RESIDUAL},
    [FC_W] = {.name = "mlp.c_fc.weight", .llmc = 10, .shape = {C4, C}, .share = ROWS, .init = INIT_NORMAL},
    [FCPROJ_W] = {.name = "mlp.c_proj.weight", .llmc = 12, .shape = {C, C4}, .share = COLUMNS, .init = INIT_RESIDUAL},
    [LN1_W] = {.name = "ln_1.weight", .llmc = 2, .shape = {C}, .init = INIT_ONE},
    [LN1_B] = {.name = "ln_1.bias", .llmc = 3, .shape = {C}},
    [QKV_B] = {.name = "attn.c_attn.bias", .llmc = 5, .shape = {C3}, .share = QKV},
    [PROJ_B] = {.name = "attn.c_proj.bias", .llmc = 7, .shape = {C}},
    [LN2_W] = {.name = "ln_2.weight", .llmc = 8, .shape = {C}, .init = INIT_ONE},
    [LN2_B] = {.name = "ln_2.bias", .llmc = 9, .shape = {C}},
    [FC_B] = {.name = "mlp.c_fc.bias", .llmc = 11, .shape = {C4}, .share = ROWS},
    [FCPROJ_B] = {.name = "mlp.c_proj.bias", .llmc = 13, .shape = {C}},
};
static const struct param_row final_rows[] = {
    /* HEAD, LNF_W, LNF_B */
    {.name = "lm_head.weight", .llmc = NONE, .shape = {V, C}, .share = ROWS, .init = INIT_NORMAL},
    {.name = "ln_f.weight", .llmc = 14, .shape = {C}, .init = INIT_ONE},
    {.name = "ln_f.bias", .llmc = 15, .shape = {C}},
};

/* ---- a parameter, and its place ---------------------------------------------------------------------------------- */

/* Turns a whole parameter into the part of one of tp ranks. */
static void cut_param(struct param *param, int tp_rank, int tp)
{
    struct part part = part_of(&param->cut, param->shape, tp_rank, tp);
    if (param->cut.split == SPLIT_ROWS) {
        size_t row = (size_t)param->shape[1]; /* elements */
        param->first = (int)(part.begin / row);
        param->shape[0] = param->cut.sections * (int64_t)((part.end - part.begin) / row);
    }
    if (param->cut.split == SPLIT_COLUMNS) {
        param->first = (int)part.begin;
        param->shape[1] = param->cut.sections * (int64_t)(part.end - part.begin);
    }
}

/* Adds a parameter, or the part of one of tp ranks. */
static void add_param(struct params *params, const struct param_row *row, int unit, int tp_rank, int tp)
{
    int layer = layer_of_unit(params, unit);
    const struct config *config = &params->config;
    const int64_t sizes[] = {[NO_SIZE] = 1,          [V] = config->vocab,         [T] = config->seq_len,
                             [C] = config->channels, [C3] = 3 * config->channels, [C4] = 4 * config->channels};
    int head = config->channels / config->heads; /* channels of a head */
    const struct cut cuts[] = {[WHOLE] = {SPLIT_NONE, 1, 1},
                               [ROWS] = {SPLIT_ROWS, 1, 1},
                               [COLUMNS] = {SPLIT_COLUMNS, 1, 1},
                               [QKV] = {SPLIT_ROWS, 3, head},
                               [HEADS] = {SPLIT_COLUMNS, 1, head}};
    struct param *param = &params->items[params->n];
    struct unit *its_unit = &params->units[unit];
    *param = (struct param){.llmc = row->llmc,
                            .layer = layer,
                            .unit = unit,
                            .n_dims = row->shape[1] == NO_SIZE ? 1 : 2,
                            .shape = {sizes[row->shape[0]], sizes[row->shape[1]]},
                            .conv1d = layer != NONE && row->shape[1] != NO_SIZE, /* all matrices of layers */
                            .cut = cuts[row->share],
                            .init = row->init};
    if (layer == NONE)
        snprintf(param->name, sizeof param->name, "%s", row->name);
    else
        snprintf(param->name, sizeof param->name, "h.%d.%s", layer, row->name);
    if (its_unit->n_params == 0)
        its_unit->first_param = params->n;
    its_unit->n_params++;
    params->n++;
    cut_param(param, tp_rank, tp);
    bool is_head = row->shape[0] == V && (config->tied || unit > 0);
    param->rows = is_head ? padded_vocab(param->shape[0]) : param->shape[0];
}

/* Which parameters lay_out_some() places. */
enum dimensions { VECTORS = 1, MATRICES = 2 };
enum division { DIVIDED, UNDIVIDED };

/* Gives some parameters of a rank's unit their places, after those that have one: those with this number of dimensions
 * that are, or are not, divided among the tp ranks. */
static void lay_out_some(struct params *params, struct unit *unit, enum dimensions dimensions, enum division division,
                         int tp_rank, int tp)
{
    for (int i = unit->first_param; i < unit->first_param + unit->n_params; i++) {
        struct param *param = &params->items[i];
        bool is_divided = tp > 1 && param->cut.split != SPLIT_NONE;
        if (param->n_dims != (int)dimensions || is_divided != (division == DIVIDED))
            continue;
        param->offset = unit->elements;
        unit->elements += round_up((size_t)(param->rows * param->shape[1]), UNIT_ALIGN);
        if (param->n_dims == 2)
            unit->n_decay = unit->elements;
        if (is_divided || tp_rank == 0)
            unit->n_counted = unit->elements;
    }
}

/* Lays a unit out.  In each unit the matrices (which decay) come first.  Those that all ranks of a group have whole
 * come last among the matrices, and last among the vectors.  Without tensor parallelism that is the table's order. */
static void lay_out_unit(struct params *params, struct unit *unit, int tp_rank, int tp)
{
    lay_out_some(params, unit, MATRICES, DIVIDED, tp_rank, tp);
    lay_out_some(params, unit, MATRICES, UNDIVIDED, tp_rank, tp);
    lay_out_some(params, unit, VECTORS, DIVIDED, tp_rank, tp);
    lay_out_some(params, unit, VECTORS, UNDIVIDED, tp_rank, tp);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

struct params *new_params(const struct config *config, const struct mesh *mesh, int tp_rank)
{
    struct params *params = allocate(1, sizeof *params);
    params->config = *config;
    params->n_units = config->layers + 2;
    params->units = allocate_each(params->n_units, sizeof *params->units);
    params->items = allocate((size_t)config->layers * COUNT(layer_rows) + COUNT(embedding_rows) + COUNT(final_rows),
                             sizeof *params->items);
    for (size_t i = 0; i < COUNT(embedding_rows); i++)
        add_param(params, &embedding_rows[i], 0, tp_rank, mesh->tp);
    for (int l = 0; l < config->layers; l++)
        for (size_t i = 0; i < COUNT(layer_rows); i++)
            add_param(params, &layer_rows[i], 1 + l, tp_rank, mesh->tp);
    for (size_t i = config->tied ? 1 : 0; i < COUNT(final_rows); i++) /* a tied head is no row of its own */
        add_param(params, &final_rows[i], 1 + config->layers, tp_rank, mesh->tp);
    for (int i = 0; i < params->n_units; i++)
        lay_out_unit(params, &params->units[i], tp_rank, mesh->tp);
    return params;
}

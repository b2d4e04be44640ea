/* init.c - gives a model its first values, random or from files, and checks that values are finite. */
#include "model.h"

#include <math.h>

/* ---- random ---------------------------------------------------------------------------------------------------- */

/* The first value of element k of the parameter, which is number i of the table. */
static float first_value(const struct param *param, double deviation, uint64_t seed, int i, size_t k)
{
    if (param->init == INIT_ZERO)
        return 0;
    if (param->init == INIT_ONE)
        return 1;
    return (float)(deviation * random_normal(seed, STREAM_INIT, (uint32_t)i, k));
}

void init_random(struct model *model, uint64_t seed)
{
    for (int i = 0; i < model->params->n; i++) {
        const struct param *param = &model->params->params[i];
        size_t n = param_elements(param);
        float *values = allocate(n, sizeof *values);
        double deviation = 0.02;
        if (param->init == INIT_RESIDUAL) /* what is added to the residual stream 2L times keeps its variance */
            deviation /= sqrt(2.0 * model->params->config.layers);
        for (size_t k = 0; k < n; k++)
            values[k] = first_value(param, deviation, seed, i, k);
        write_param(model, i, KEPT_VALUE, values);
        free(values);
    }
}

/* ---- are they numbers? ----------------------------------------------------------------------------------------- */

const char *find_bad_parameter(struct model *model)
{
    const char *bad = NULL;
    for (int i = 0; i < model->params->n && !bad; i++) {
        const struct param *param = &model->params->params[i];
        size_t n = param_elements(param);
        float *values = allocate(n, sizeof *values);
        read_param(model, i, KEPT_VALUE, values);
        for (size_t k = 0; k < n; k++)
            if (!isfinite(values[k]))
                bad = param->name;
        free(values);
    }
    return bad;
}

void refuse_bad_parameters(struct model *model, const char *path)
{
    const char *name = find_bad_parameter(model);
    if (name)
        fail(EXIT_FAILED,
             "%s: tensor %s holds a value that is not finite: the file is damaged, or its training diverged; take "
             "another file",
             path, name);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

/* llm.c's parameters come in its own order, each for all layers.  The padding of its words' rows is left out. */
static void init_from_llmc(struct model *model, const char *path)
{
    struct llmc_model *file = open_llmc_model(path);
    uint64_t at = LLMC_HEADER_BYTES;
    for (int k = 0; k < LLMC_PARAMETERS; k++)
        for (int i = 0; i < model->params->n; i++) {
            const struct param *param = &model->params->params[i];
            size_t n = param_elements(param);
            if (param->llmc != k)
                continue;
            float *values = allocate(n, sizeof *values);
            read_at(file->file, values, n * sizeof *values, at);
            write_param(model, i, KEPT_VALUE, values);
            free(values);
            int64_t rows = i == WTE ? file->padded_vocab : param->shape[0];
            at += 4 * (uint64_t)param->shape[1] * (uint64_t)rows;
        }
    close_llmc_model(file);
}

struct config read_config(const char *path, int heads)
{
    if (!has_magic(path, LLMC_MODEL_MAGIC))
        return read_weights_config(path, heads);
    struct llmc_model *f = open_llmc_model(path);
    struct config config = {.layers = f->layers,
                            .heads = f->heads,
                            .channels = f->channels,
                            .seq_len = f->max_seq_len,
                            .vocab = f->vocab,
                            .tied = true};
    check_config(&config);
    close_llmc_model(f);
    return config;
}

void init_from_file(struct model *model, const char *path)
{
    if (has_magic(path, LLMC_MODEL_MAGIC))
        init_from_llmc(model, path);
    else
        init_from_weights(model, path);
}

/* read_model.c - finds a model by the names in a folder, and reads a model's file: a checkpoint of llm.c here,
 * safetensors in read_weights.c.
 */
#include "model_files.h"
#include "trainer/model/model.h"

char *model_in_folder(const char *folder)
{
    static const char *const models[] = {MODEL_FILE, MODEL_INDEX};
    for (size_t i = 0; i < COUNT(models); i++) {
        char *path = join_path(folder, models[i]);
        if (exists(path)) /* also a link to what has not been fetched: opening it says so */
            return path;
        free(path);
    }
    return NULL;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* llm.c's parameters come in its own order, each for all layers.  The padding of its words' rows is left out. */
static void init_from_llmc(struct model *model, const char *path)
{
    struct llmc_model *file = open_llmc_model(path);
    uint64_t at = LLMC_HEADER_BYTES;
    for (int k = 0; k < LLMC_PARAMETERS; k++)
        for (int i = 0; i < model->params->n; i++) {
            const struct param *param = &model->params->items[i];
            size_t n = param_elements(param);
            if (param->llmc != k)
                continue;
            float *values = allocate(n, sizeof *values);
            read_at(file->file, values, n * sizeof *values, at);
            write_param_of_file(model, i, values, path);
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
    struct llmc_model *file = open_llmc_model(path);
    struct config config = {.layers = file->layers,
                            .heads = file->heads,
                            .channels = file->channels,
                            .seq_len = file->max_seq_len,
                            .vocab = file->vocab,
                            .tied = true};
    check_config(&config);
    close_llmc_model(file);
    return config;
}

void init_from_file(struct model *model, const char *path)
{
    if (has_magic(path, LLMC_MODEL_MAGIC))
        init_from_llmc(model, path);
    else
        init_from_weights(model, path);
}

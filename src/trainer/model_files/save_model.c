/* save_model.c - a trained model as one file for other programs: safetensors with Hugging Face's GPT-2 names.
 *
 * Parameters are whole in this file, whatever devices they were trained on, and Conv1D weights are (in, out).  The
 * metadata say what the shapes do not: the configuration, the step, and what another run needs to go on with the same
 * bits and to read tokens.  read_weights.c reads such files.
 */
#include "model_files.h"
#include "trainer/model/model.h"

struct st_writer *begin_model_file(const char *path, const struct params *params, const struct model_facts *facts,
                                   enum tensor_names names)
{
    const struct config *config = &params->config;
    struct st_writer *writer = new_st_writer(path);
    char *text = format_string("{\"n_layer\": %d, \"n_head\": %d, \"n_embd\": %d, \"n_ctx\": %d, \"vocab_size\": %d, "
                               "\"tie_word_embeddings\": %s}",
                               config->layers, config->heads, config->channels, config->seq_len, config->vocab,
                               config->tied ? "true" : "false");
    char *number = format_string("%u", facts->step);
    char *vector = format_string("%u", facts->vector);
    st_metadata(writer, "format", "pt"); /* what transformers expects to find */
    st_metadata(writer, "config", text);
    st_metadata(writer, "yard.step", number);
    st_metadata(writer, "yard.vector", vector); /* the bits depend on it */
    st_metadata(writer, "yard.tokenizer", facts->tokenizer);
    for (const struct param *param = params->items; param < params->items + params->n; param++) {
        int64_t shape[2];
        shape_in_file(param, shape);
        bool bare = names == PLAIN_NAMES || strcmp(param->name, "lm_head.weight") == 0;
        st_declare(writer, bare ? param->name : JOINED("transformer.", param->name), DTYPE_F32, param->n_dims, shape);
    }
    st_begin(writer);
    free(text);
    free(number);
    free(vector);
    return writer;
}

void write_to_model_file(struct st_writer *writer, const struct param *param, float *values)
{
    values = transpose_conv1d(param, values, OURS_TO_FILE);
    st_write(writer, values, param_elements(param) * sizeof *values);
    free(values);
}

void save_model(struct model *model, const char *path, uint32_t step, const char *tokenizer)
{
    const struct model_facts facts = {
        .step = step, .vector = vector_width(model->pool->machine), .tokenizer = tokenizer};
    struct st_writer *writer = begin_model_file(path, model->params, &facts, PLAIN_NAMES);
    for (int i = 0; i < model->params->n; i++) {
        const struct param *param = &model->params->items[i];
        float *values = allocate(param_elements(param), sizeof *values);
        read_param(model, i, KEPT_VALUE, values);
        write_to_model_file(writer, param, values);
    }
    st_publish(writer);
}

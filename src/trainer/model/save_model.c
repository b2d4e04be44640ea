/* save_model.c - a trained model as one file for other programs: safetensors with Hugging Face's GPT-2 names.
 *
 * Parameters are whole in this file, whatever devices they were trained on, and Conv1D weights are (in, out).  The
 * metadata say what the shapes do not: the configuration, the step, and what another run needs to go on with the same
 * bits and to read tokens.  import.c reads such files.
 */
#include "model.h"

struct st_writer *begin_model_file(const char *path, const struct params *all, const struct model_facts *facts,
                                   enum tensor_names names)
{
    const struct config *m = &all->config;
    struct st_writer *writer = new_st_writer(path);
    char *config = format_string("{\"n_layer\": %d, \"n_head\": %d, \"n_embd\": %d, \"n_ctx\": %d, \"vocab_size\": %d, "
                                 "\"tie_word_embeddings\": %s}",
                                 m->layers, m->heads, m->channels, m->seq_len, m->vocab, m->tied ? "true" : "false");
    char *number = format_string("%u", facts->step);
    char *vector = format_string("%u", facts->vector);
    st_metadata(writer, "format", "pt"); /* what transformers expects to find */
    st_metadata(writer, "config", config);
    st_metadata(writer, "yard.step", number);
    st_metadata(writer, "yard.vector", vector); /* the bits depend on it */
    st_metadata(writer, "yard.tokenizer", facts->tokenizer);
    for (const struct param *p = all->param; p < all->param + all->n; p++) {
        int64_t shape[2];
        shape_in_file(p, shape);
        bool bare = names == PLAIN_NAMES || strcmp(p->name, "lm_head.weight") == 0;
        st_declare(writer, bare ? p->name : JOINED("transformer.", p->name), DTYPE_F32, p->n_dims, shape);
    }
    st_begin(writer);
    free(config);
    free(number);
    free(vector);
    return writer;
}

void write_to_model_file(struct st_writer *writer, const struct param *p, float *values)
{
    values = transpose_conv1d(p, values, OURS_TO_FILE);
    st_write(writer, values, param_elements(p) * sizeof *values);
    free(values);
}

void save_model(struct model *m, const char *path, uint32_t step, const char *tokenizer)
{
    const struct model_facts facts = {.step = step, .vector = vector_width(m->pool->machine), .tokenizer = tokenizer};
    struct st_writer *writer = begin_model_file(path, m->params, &facts, PLAIN_NAMES);
    for (int i = 0; i < m->params->n; i++) {
        const struct param *p = &m->params->param[i];
        float *values = allocate(param_elements(p), sizeof *values);
        read_param(m, i, KEPT_VALUE, values);
        write_to_model_file(writer, p, values);
    }
    st_publish(writer);
}

/* model_forms.c - the model alone, whole, for programs that know nothing of checkpoints.
 *
 *     Hugging Face   FOLDER/model.safetensors, linear weights (in, out), and FOLDER/config.json; the tokenizer in
 *                    FOLDER/tokenizer.json and what transformers is to make of it in FOLDER/tokenizer_config.json
 *     llm.c          one file: its header, then its 16 parameters, each for all layers together, weights (out, in)
 */
#include "model_forms.h"
#include "techniques/checkpoint/files.h"

enum { LLMC_VERSION = 3, VOCAB_MULTIPLE = 128 /* as llm.c pads its own */ };

/* A parameter's values, followed by `padding` zeros; the caller frees them. */
static float *read_value(struct checkpoint *checkpoint, int param, size_t padding)
{
    size_t i = 0;
    while (checkpoint->cut->tensors[i].param != param || checkpoint->cut->tensors[i].role != KEPT_VALUE)
        i++;
    float *values = allocate(tensor_elements(&checkpoint->cut->tensors[i]) + padding, sizeof *values);
    read_kept(checkpoint, i, values);
    return values;
}

void export_safetensors(struct checkpoint *checkpoint, const char *path, enum tensor_names names)
{
    const struct model_facts facts = {checkpoint->step, checkpoint->vector, checkpoint->tokenizer};
    struct params *params = new_params(&checkpoint->cut->config, &one_rank, 0);
    struct st_writer *writer = begin_model_file(path, params, &facts, names);
    for (int i = 0; i < params->n; i++)
        write_to_model_file(writer, &params->items[i], read_value(checkpoint, i, 0));
    st_publish(writer);
    free_params(params);
}

static void write_json(struct folder *folder, const char *name, const json_t *json)
{
    char *text = dump_json(json, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    append_text(&text, "\n");
    publish_text(file_in(folder, name), text);
    free(text);
}

/* What config.json says of the model.  end: the number of the token that ends a text; below 0: there is none. */
static json_t *config_json(const struct config *config, int end)
{
    json_t *all = json_object();
    json_object_set_new(all, "architectures", json_pack("[s]", "GPT2LMHeadModel"));
    json_object_set_new(all, "bos_token_id", json_null());
    json_object_set_new(all, "eos_token_id", end < 0 ? json_null() : json_integer(end));
    set_json_text(all, "model_type", "gpt2");
    set_json_integer(all, "n_layer", config->layers);
    set_json_integer(all, "n_head", config->heads);
    set_json_integer(all, "n_embd", config->channels);
    set_json_integer(all, "n_ctx", config->seq_len);
    set_json_integer(all, "n_positions", config->seq_len);
    set_json_integer(all, "vocab_size", config->vocab);
    set_json_text(all, "activation_function", "gelu_new");
    json_object_set_new(all, "layer_norm_epsilon", json_real(1e-5));
    set_json_truth(all, "tie_word_embeddings", config->tied);
    set_json_text(all, "torch_dtype", "float32");
    json_object_set_new(all, "attn_pdrop", json_real(0));
    json_object_set_new(all, "embd_pdrop", json_real(0));
    json_object_set_new(all, "resid_pdrop", json_real(0));
    return all;
}

static void write_tokenizer(struct folder *folder, const json_t *tokenizer, int seq_len)
{
    json_t *about = json_pack("{s:s, s:i, s:b}", "tokenizer_class", "PreTrainedTokenizerFast", "model_max_length",
                              seq_len, "clean_up_tokenization_spaces", false);
    write_json(folder, "tokenizer.json", tokenizer);
    write_json(folder, "tokenizer_config.json", about);
    json_decref(about);
}

void export_huggingface(struct checkpoint *checkpoint, const char *path, const json_t *tokenizer, int end)
{
    const struct config *config = &checkpoint->cut->config;
    struct folder *folder = open_folder(path, 4);
    export_safetensors(checkpoint, file_in(folder, MODEL_FILE), config->tied ? PLAIN_NAMES : PREFIXED_NAMES);
    json_t *about_model = config_json(config, end);
    write_json(folder, "config.json", about_model);
    json_decref(about_model);
    if (tokenizer)
        write_tokenizer(folder, tokenizer, config->seq_len);
    publish_folder(folder);
}

/* Writes parameter i.  The token embedding gets rows of zeros in addition, up to `rows` rows in all. */
static void write_padded(struct writer *writer, struct checkpoint *checkpoint, const struct param *param, int i,
                         int rows)
{
    size_t padding = i == WTE ? (size_t)((rows - param->shape[0]) * param->shape[1]) : 0;
    float *values = read_value(checkpoint, i, padding);
    write_bytes(writer, values, (param_elements(param) + padding) * sizeof *values);
    free(values);
}

void export_llmc(struct checkpoint *checkpoint, const char *path)
{
    const struct config *config = &checkpoint->cut->config;
    int padded = (int)round_up((size_t)config->vocab, VOCAB_MULTIPLE);
    int32_t header[LLMC_HEADER_BYTES / 4] = {LLMC_MODEL_MAGIC, LLMC_VERSION,  config->seq_len,  config->vocab,
                                             config->layers,   config->heads, config->channels, padded};
    if (!config->tied)
        fail(EXIT_USAGE, "%s has a head of its own, which llm.c's format has no place for: choose a name without .bin",
             checkpoint->path);
    struct params *params = new_params(config, &one_rank, 0);
    struct writer *writer = open_writer(path);
    write_bytes(writer, header, sizeof header);
    for (int k = 0; k < LLMC_PARAMETERS; k++)
        for (int i = 0; i < params->n; i++) /* by layer, as the table is */
            if (params->items[i].llmc == k)
                write_padded(writer, checkpoint, &params->items[i], i, padded);
    must(publish(writer));
    free_params(params);
}

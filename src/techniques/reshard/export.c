/* export.c - the model alone, whole, for programs that know nothing of checkpoints.
 *
 *     Hugging Face   FOLDER/model.safetensors, linear weights (in, out), and FOLDER/config.json; the tokenizer in
 *                    FOLDER/tokenizer.json and what transformers is to make of it in FOLDER/tokenizer_config.json
 *     llm.c          one file: its header, then its 16 parameters, each for all layers together, weights (out, in)
 */
#include "export.h"
#include "folder.h"
#include "transfer.h"

enum { LLMC_VERSION = 3, VOCAB_MULTIPLE = 128 /* as llm.c pads its own */ };

/* A parameter's values, followed by `padding` zeros; the caller frees them. */
static float *read_value(const struct checkpoint *c, int param, size_t padding)
{
    size_t i = 0;
    while (c->pieces->tensor[i].param != param || c->pieces->tensor[i].role != KEPT_VALUE)
        i++;
    float *values = allocate(tensor_elements(&c->pieces->tensor[i]) + padding, sizeof *values);
    read_kept(c, i, values);
    return values;
}

void export_safetensors(const struct checkpoint *c, const char *path, enum tensor_names names)
{
    const struct model_facts facts = {c->step, c->vector, c->tokenizer};
    struct params *all = new_params(&c->pieces->config, &one_rank, 0);
    struct st_writer *w = begin_model_file(path, all, &facts, names);
    for (int i = 0; i < all->n; i++)
        write_to_model_file(w, &all->param[i], read_value(c, i, 0));
    st_publish(w);
    free_params(all);
}

static void write_json(struct folder *folder, const char *name, const json_t *json)
{
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    append_text(&text, "\n");
    publish_text(file_in(folder, name), text);
    free(text);
}

void export_huggingface(const struct checkpoint *c, const char *path, const json_t *tokenizer, int end)
{
    const struct config *m = &c->pieces->config;
    struct folder *folder = open_folder(path, 4);
    export_safetensors(c, file_in(folder, MODEL_FILE), m->tied ? PLAIN_NAMES : PREFIXED_NAMES);
    json_t *config =
        json_pack("{s:[s], s:n, s:o, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:f, s:b, s:s, s:f, s:f, s:f}",
                  "architectures", "GPT2LMHeadModel", "bos_token_id", "eos_token_id",
                  end < 0 ? json_null() : json_integer(end), "model_type", "gpt2", "n_layer", m->layers, "n_head",
                  m->heads, "n_embd", m->channels, "n_ctx", m->seq_len, "n_positions", m->seq_len, "vocab_size",
                  m->vocab, "activation_function", "gelu_new", "layer_norm_epsilon", 1e-5, "tie_word_embeddings",
                  m->tied, "torch_dtype", "float32", "attn_pdrop", 0.0, "embd_pdrop", 0.0, "resid_pdrop", 0.0);
    write_json(folder, "config.json", config);
    if (tokenizer) {
        json_t *about = json_pack("{s:s, s:i, s:b}", "tokenizer_class", "PreTrainedTokenizerFast", "model_max_length",
                                  m->seq_len, "clean_up_tokenization_spaces", false);
        write_json(folder, "tokenizer.json", tokenizer);
        write_json(folder, "tokenizer_config.json", about);
        json_decref(about);
    }
    publish_folder(folder);
    json_decref(config);
}

void export_llmc(const struct checkpoint *c, const char *path)
{
    const struct config *m = &c->pieces->config;
    int padded = (int)round_up((size_t)m->vocab, VOCAB_MULTIPLE);
    int32_t header[LLMC_HEADER_BYTES / 4] = {LLMC_MODEL_MAGIC, LLMC_VERSION, m->seq_len,  m->vocab,
                                             m->layers,        m->heads,     m->channels, padded};
    if (!m->tied)
        fail(EXIT_USAGE, "%s has a head of its own, which llm.c's format has no place for: choose a name without .bin",
             c->path);
    struct params *all = new_params(m, &one_rank, 0);
    struct writer *w = open_writer(path);
    write_bytes(w, header, sizeof header);
    for (int k = 0; k < LLMC_PARAMETERS; k++)
        for (int i = 0; i < all->n; i++) { /* by layer, as the table is */
            const struct param *p = &all->param[i];
            size_t padding = i == WTE ? (size_t)((padded - p->shape[0]) * p->shape[1]) : 0;
            if (p->llmc != k)
                continue;
            float *values = read_value(c, i, padding);
            write_bytes(w, values, (param_elements(p) + padding) * sizeof *values);
            free(values);
        }
    publish(w);
    free_params(all);
}

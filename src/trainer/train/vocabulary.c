/* vocabulary.c - which tokenizer a run has.
 *
 *     the run begins from a model that says its tokenizer       that one; another --tokens is refused
 *     from a model that does not                                that of a FILE that --tokens names, else bytes or
 *                                                               numbers, as many as the model has, with a warning
 *     from no model                                             that of --tokens and the data: data.c
 */
#include "train_parts.h"
#include "trainer/model_files/model_files.h"
#include "trainer/settings/archive.h"

#include <glob.h>
#include <unistd.h>

/* The tokenizer of the model with which a run begins; without tokens: the model does not say it.  Programs that write a
 * model anew leave our metadata out, but a tokenizer may lie beside the model. */
static struct tokenizer source_tokenizer(const struct source *source)
{
    struct tokenizer tokenizer = {0};
    char *text = NULL;
    if (!source->path)
        return tokenizer;
    if (source->checkpoint)
        text = copy_string(source->tokenizer);
    else if (!has_magic(source->path, LLMC_MODEL_MAGIC))
        text = read_weights_metadata(source->path, "yard.tokenizer");
    if (text)
        tokenizer = tokenizer_from_text(text, source->path);
    else
        tokenizer = tokenizer_beside(source->path);
    free(text);
    return tokenizer;
}

/* Does --tokens repeat the word with which the resumed run was begun?  A FILE does not count, since it may have
 * changed. */
static bool is_recorded_tokens(const struct settings *settings)
{
    const json_t *word = settings->resumed ? json_object_get(settings->resumed->options, "tokens") : NULL;
    return word && !file_of_tokens(settings->data.tokens) &&
           strcmp(json_string_value(word), settings->data.tokens) == 0;
}

/* The model's tokenizer, or the one that --tokens says where the model knows none.  vocab: the model's. */
static struct tokenizer model_tokenizer(const struct settings *settings, const struct source *model, int vocab)
{
    struct tokenizer tokenizer = source_tokenizer(model);
    const char *word = settings->data.tokens;
    bool is_known = tokenizer.n && !tokenizer.takes_ids;
    if (!is_known && model->path && was_given("tokens") && file_of_tokens(word)) {
        free_tokenizer(&tokenizer);
        tokenizer = make_tokenizer(word, NULL, NULL);
    } else if (is_known && was_given("tokens") && !is_recorded_tokens(settings) && !is_tokenizer(&tokenizer, word)) {
        fail(EXIT_USAGE, "--tokens %s: %s was trained on %s, and knows only its own tokens: leave --tokens out", word,
             model->path, tokenizer.kind->noun);
    }
    if (vocab)
        fit_tokenizer(&tokenizer, vocab, model->path);
    return tokenizer;
}

static void warn_of_bytes(const char *model)
{
    warn("%s does not say what its %d tokens are: they are taken for bytes", model, BYTE_TOKENS);
}

struct dataset *open_vocabulary(const struct settings *settings, int vocab)
{
    const struct source *model = &settings->source;
    struct dataset *dataset = allocate(1, sizeof *dataset);
    dataset->vocab = vocab;
    dataset->tokenizer = model_tokenizer(settings, model, vocab);
    if (!dataset->tokenizer.n && vocab == BYTE_TOKENS)
        warn_of_bytes(model->path);
    if (!dataset->tokenizer.n)
        dataset->tokenizer = vocab == BYTE_TOKENS ? byte_tokenizer() : id_tokenizer(vocab);
    return dataset;
}

/* A run that goes on reads the data that it was begun with.  Their paths hold in the folder where it was begun. */
static void expect_recorded_data(const struct settings *settings, const char *option, const char *path)
{
    const char *file = path ? file_of_data(path) : NULL;
    if (!settings->resumed || !file || was_given(option))
        return;
    glob_t found = {0};
    if (access(file, F_OK) != 0 && glob(file, 0, NULL, &found) != 0)
        fail(EXIT_IO,
             "%s was trained with --%s %s, and no such file is here: give --%s PATH, or go on in the folder where the "
             "training was begun",
             settings->resumed->path, option, path, option);
    globfree(&found);
}

struct dataset *open_training_data(const struct settings *settings, int vocab)
{
    struct data_options options = settings->data;
    options.batch = settings->batch;
    options.seq_len = settings->seq_len;
    options.tokenizer = model_tokenizer(settings, &settings->source, vocab);
    options.vocab = vocab;
    expect_recorded_data(settings, "data", options.path);
    expect_recorded_data(settings, "val-data", options.val_data);
    struct dataset *data = open_dataset(&options);
    bool unsaid = settings->source.path && !options.tokenizer.n && data->tokenizer.kind == &token_bytes;
    if (unsaid && vocab == data->tokenizer.n)
        warn_of_bytes(settings->source.path);
    else if (unsaid)
        warn("%s does not say what its %d tokens stand for, so the text is taken as bytes, which is not what the model "
             "has learnt; to train on its own tokens, give --tokens the FILE of its tokenizer, or --data token files "
             "(.bin)",
             settings->source.path, vocab);
    return data;
}

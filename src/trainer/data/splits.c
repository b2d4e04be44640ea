/* splits.c - texts and files of token numbers become the two splits of a data set: tokens to train on, and tokens to
 * validate on.
 *
 *     texts     cut, then encoded by the model's tokenizer, or by one that is made of the training part
 *     .bin      read, then cut
 */
#include "data_parts.h"
#include "trainer/file/file.h"

enum {
    VAL_PARTS = 64,  /* parts at most into which the data are cut for validation */
    VAL_PART = 1000, /* bytes or tokens of a part at least, so that rounding does not matter */
};

/* Are the last tokens of the training data for validation?  llm.c's shards come as separate train and val files, and
 * its loader reads all of a file in order: so does ORDER_FILE. */
static bool shares_validation(const struct data_options *options, const struct files *train)
{
    return !options->val_data && !(train->format == FILE_SHARD && options->window_order == ORDER_FILE);
}

static size_t count_parts(const struct files *train, size_t n_tokens)
{
    bool several = train->n > 1 || strcmp(train->given, "self") == 0;
    return several ? MIN(VAL_PARTS, 1 + n_tokens / VAL_PART) : 1;
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

/* Appends n tokens to the split, which takes them over. */
static void append_tokens(struct split *split, uint16_t *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++)
        split->used = MAX(split->used, 1 + tokens[i]);
    if (!split->tokens) {
        split->tokens = tokens;
        split->n = n;
        return;
    }
    split->tokens = reallocate(split->tokens, split->n + n, sizeof *tokens);
    memcpy(split->tokens + split->n, tokens, n * sizeof *tokens);
    split->n += n;
    free(tokens);
}

static void encode_texts(struct split *split, const struct tokenizer *tokenizer, const struct texts *texts)
{
    for (size_t i = 0; i < texts->n; i++) {
        size_t n;
        uint16_t *tokens = encode_text(tokenizer, &texts->items[i], &n);
        append_tokens(split, tokens, n);
    }
}

/* Asks the maker of a text for its information and its floor.  It counts bytes, so every token must be one byte:
 * characters of several bytes would make fewer tokens. */
static void measure_made_text(struct dataset *dataset, const struct files *files, const struct data_options *options,
                              const struct texts *val)
{
    const struct token_kind *kind = dataset->tokenizer.kind;
    if (!files->maker || options->val_data)
        return;
    dataset->nats_per_byte = files->maker->nats_per_byte(files->made);
    bool counts_bytes =
        dataset->train.n + dataset->val.n == MADE_BYTES && (kind == &token_bytes || kind == &token_chars);
    if (!counts_bytes || val->n == 0 || dataset->val.n <= (size_t)options->seq_len)
        return;
    uint16_t *bytes = allocate(dataset->val.n, sizeof *bytes);
    for (size_t i = 0; i < dataset->val.n; i++)
        bytes[i] = (unsigned char)val->items->bytes[i];
    dataset->floor = files->maker->floor(files->made, bytes, dataset->val.n, options->seq_len);
    free(bytes);
}

static const char *word_of_tokens(const struct data_options *options)
{
    return options->tokens ? options->tokens : "bytes";
}

void load_texts(struct dataset *dataset, const struct data_options *options, const struct files *train,
                const struct files *val)
{
    const char *word = word_of_tokens(options);
    const struct tokenizer *known = options->tokenizer.n ? &options->tokenizer : NULL;
    bool as_bytes = known ? known->kind != &token_chars : strcmp(word, "chars") != 0;
    if (known && known->takes_ids)
        fail(EXIT_USAGE, "the model was trained on token numbers, but %s is text; give .bin files, or --tokens FILE",
             train->given);
    struct texts to_train = open_texts(train, as_bytes), to_validate = open_texts(val, as_bytes);
    struct texts texts[2] = {0}; /* to train, to validate */
    if (options->val_share > 0 && shares_validation(options, train))
        cut_texts(&to_train, options->val_share, count_parts(train, count_bytes(&to_train)), &texts[0], &texts[1]);
    else
        add_text_range(&texts[0], &to_train, 0, SIZE_MAX);
    add_text_range(&texts[1], &to_validate, 0, SIZE_MAX);
    dataset->tokenizer = known ? *known : make_tokenizer(word, &texts[0], &texts[1]);
    if (dataset->tokenizer.takes_ids)
        fail(EXIT_USAGE,
             "--tokens %s: this tokenizer can only decode, so the text %s cannot become tokens; give .bin "
             "files",
             word, train->given);
    encode_texts(&dataset->train, &dataset->tokenizer, &texts[0]);
    encode_texts(&dataset->val, &dataset->tokenizer, &texts[1]);
    measure_made_text(dataset, train, options, &texts[1]);
    close_texts(&to_train);
    close_texts(&to_validate);
    free(texts[0].items);
    free(texts[1].items);
}

/* Does to token numbers what cut_texts() does to texts.  In memory the numbers to validate lie behind those to
 * train. */
static void cut_tokens(struct dataset *dataset, double share, size_t parts)
{
    uint16_t *tokens = dataset->train.tokens;
    size_t n = dataset->train.n;
    uint16_t *val = allocate((size_t)((double)n * share) + parts + 1, sizeof *val);
    dataset->train.n = 0;
    for (size_t p = 0; p < parts; p++) {
        size_t begin = n * p / parts;
        size_t size = n * (p + 1) / parts - begin;
        size_t n_train = (size_t)((double)size * (1 - share));
        memcpy(val + dataset->val.n, tokens + begin + n_train, (size - n_train) * sizeof *tokens);
        memmove(tokens + dataset->train.n, tokens + begin, n_train * sizeof *tokens);
        dataset->train.n += n_train;
        dataset->val.n += size - n_train;
    }
    dataset->val.tokens = tokens + dataset->train.n;
    dataset->val.shares_memory = true;
    memcpy(dataset->val.tokens, val, dataset->val.n * sizeof *val);
    free(val);
}

static void load_ids(struct split *split, const struct files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        const char *path = files->paths[i];
        size_t n;
        uint16_t *tokens = files->format == FILE_SHARD ? read_token_shard(path, &n) : read_headerless_tokens(path, &n);
        append_tokens(split, tokens, n);
    }
}

/* The tokenizer of token numbers, where no model says what they mean: that of --tokens FILE, if this is given. */
static struct tokenizer tokenizer_of_ids(const struct data_options *options, const char *given, int used)
{
    const char *word = word_of_tokens(options);
    if (!file_of_tokens(word)) {
        if (strcmp(word, "bytes") != 0)
            warn("--tokens %s has no effect: %s holds token numbers; --tokens FILE says what they mean", word, given);
        return id_tokenizer(used);
    }
    struct tokenizer tokenizer = make_tokenizer(word, NULL, NULL);
    if (used > tokenizer.n)
        fail(EXIT_USAGE, "%s has token %d, but --tokens %s has only %d tokens: name the file of its tokenizer", given,
             used - 1, word, tokenizer.n);
    return tokenizer;
}

void load_tokens(struct dataset *dataset, const struct data_options *options, const struct files *train,
                 const struct files *val)
{
    bool known = options->tokenizer.n > 0;
    if (known && options->tokenizer.kind == &token_chars)
        fail(EXIT_USAGE, "the model was trained on characters, but %s holds token numbers; give it text", train->given);
    load_ids(&dataset->train, train);
    load_ids(&dataset->val, val);
    if (known)
        dataset->tokenizer = options->tokenizer;
    else
        dataset->tokenizer = tokenizer_of_ids(options, train->given, MAX(dataset->train.used, dataset->val.used));
    if (shares_validation(options, train))
        cut_tokens(dataset, options->val_share, count_parts(train, dataset->train.n));
}

/* data.c - opens a data set: finds its files, makes its tokens, and checks that there are enough.  The steps are in
 * data_parts.h.
 */
#include "data_parts.h"

#include <math.h>

/* option: what may be made smaller, so that fewer than `needed` tokens are enough. */
static void expect_tokens(const struct files *files, const char *use, size_t n, const char *option, size_t needed)
{
    if (n < needed)
        fail(EXIT_USAGE, "%s has %zu tokens for %s, which needs %zu: use more data, or a smaller %s", files->given, n,
             use, needed, option);
}

/* The mean length of the tokens that a validation loss is of: all but the first. */
static double measure_tokens(const struct dataset *dataset)
{
    const struct split *split = dataset->val.n > 1 ? &dataset->val : &dataset->train;
    double bytes = 0;
    if (split->n < 2 || dataset->tokenizer.kind == &token_ids)
        return NAN;
    for (size_t i = 1; i < split->n; i++) {
        char own[DECODED_BYTES];
        size_t n;
        decode_token(&dataset->tokenizer, split->tokens[i], own, &n);
        bytes += (double)n;
    }
    return bytes / (double)(split->n - 1);
}

double bits_per_byte(const struct dataset *dataset, double loss) { return loss / M_LN2 / dataset->bytes_per_token; }

static void expect_enough(const struct dataset *dataset, const struct data_options *options, const struct files *train,
                          const struct files *val)
{
    size_t window = (size_t)options->seq_len + 1;
    size_t batch = (size_t)options->batch * (size_t)options->seq_len + 1;
    expect_tokens(train, "training", dataset->train.n, "--seq-len", window);
    if (options->window_order == ORDER_FILE)
        expect_tokens(train, "training", dataset->train.n, "--batch or --seq-len, or another --order", batch);
    if (options->val_data)
        expect_tokens(val, "validation", dataset->val.n, "--seq-len", window);
    else if (dataset->val.n)
        expect_tokens(train, "validation", dataset->val.n, "--seq-len", window);
}

struct dataset *open_dataset(const struct data_options *given)
{
    struct dataset *dataset = allocate(1, sizeof *dataset);
    const struct data_options options = use_nanogpt_folders(dataset, given);
    struct files train = find_files(options.path ? options.path : default_data());
    struct files val = {0};
    if (options.val_data)
        val = find_files(options.val_data);
    if (options.val_data && (val.format == FILE_TEXT) != (train.format == FILE_TEXT))
        fail(EXIT_USAGE, "--val-data %s is %s, but the training data %s is %s; both must be text or both tokens",
             val.given, format_name[val.format], train.given, format_name[train.format]);
    dataset->nats_per_byte = NAN;
    dataset->floor = NAN;
    if (train.format == FILE_TEXT)
        load_texts(dataset, &options, &train, &val);
    else
        load_tokens(dataset, &options, &train, &val);
    int used = MAX(dataset->train.used, dataset->val.used);
    if (options.vocab && used > options.vocab)
        fail(EXIT_USAGE, "%s has token %d, but the model's vocabulary is %d; use data of its tokenizer", train.given,
             used - 1, options.vocab);
    dataset->vocab = options.vocab ? options.vocab : dataset->tokenizer.n;
    dataset->bytes_per_token = measure_tokens(dataset);
    expect_enough(dataset, &options, &train, &val);
    free_files(&train);
    free_files(&val);
    return dataset;
}

void close_dataset(struct dataset *dataset)
{
    free_tokenizer(&dataset->tokenizer);
    free(dataset->train.tokens);
    if (!dataset->val.shares_memory)
        free(dataset->val.tokens);
    free(dataset->own_path[0]);
    free(dataset->own_path[1]);
    free(dataset);
}

/* data.c - opens a data set: finds its files, makes its tokens, and checks that there are enough.  The steps are in
 * open_data.h.
 */
#include "open_data.h"

#include <math.h>

static void expect_tokens(const struct files *f, const char *use, size_t n, const char *option, size_t needed)
{
    if (n < needed)
        fail(EXIT_USAGE, "%s has %zu tokens for %s, but %s needs %zu: use more data or smaller numbers", f->given, n,
             use, option, needed);
}

/* The mean length of the tokens that a validation loss is of: all but the first. */
static double measure_tokens(const struct dataset *d)
{
    const struct split *split = d->val.n > 1 ? &d->val : &d->train;
    double bytes = 0;
    if (split->n < 2 || d->tokenizer.kind == &token_ids)
        return NAN;
    for (size_t i = 1; i < split->n; i++) {
        char own[DECODED_BYTES];
        size_t n;
        decode_token(&d->tokenizer, split->tokens[i], own, &n);
        bytes += (double)n;
    }
    return bytes / (double)(split->n - 1);
}

double bits_per_byte(const struct dataset *d, double loss) { return loss / M_LN2 / d->bytes_per_token; }

static void expect_enough(const struct dataset *d, const struct data_options *o, const struct files *train,
                          const struct files *val)
{
    const size_t window = (size_t)o->seq_len + 1;
    const size_t batch = (size_t)o->batch * (size_t)o->seq_len + 1;
    expect_tokens(train, "training", d->train.n, "a window of --seq-len", window);
    if (o->order == ORDER_FILE)
        expect_tokens(train, "training", d->train.n, "--order file, by --batch and --seq-len,", batch);
    if (o->val_data)
        expect_tokens(val, "validation", d->val.n, "a window of --seq-len", window);
    else if (d->val.n)
        expect_tokens(train, "validation", d->val.n, "a window of --seq-len", window);
}

struct dataset *open_dataset(const struct data_options *given)
{
    struct dataset *d = allocate(1, sizeof *d);
    const struct data_options o = name_files(d, given);
    struct files train = find_files(o.path ? o.path : default_data());
    struct files val = {0};
    if (o.val_data)
        val = find_files(o.val_data);
    if (o.val_data && (val.format == FILE_TEXT) != (train.format == FILE_TEXT))
        fail(EXIT_USAGE, "--val-data %s is %s, but the training data %s is %s; both must be text or both tokens",
             val.given, format_name[val.format], train.given, format_name[train.format]);
    d->rate = d->floor = NAN;
    if (train.format == FILE_TEXT)
        load_texts(d, &o, &train, &val);
    else
        load_tokens(d, &o, &train, &val);
    const int used = MAX(d->train.used, d->val.used);
    if (o.vocab && used > o.vocab)
        fail(EXIT_USAGE, "%s has token %d, but the model's vocabulary is %d; use data of its tokenizer", train.given,
             used - 1, o.vocab);
    d->vocab = o.vocab ? o.vocab : d->tokenizer.n;
    d->bytes_per_token = measure_tokens(d);
    expect_enough(d, &o, &train, &val);
    free_files(&train);
    free_files(&val);
    return d;
}

void close_dataset(struct dataset *d)
{
    free_tokenizer(&d->tokenizer);
    free(d->train.tokens);
    if (!d->val.shares_memory)
        free(d->val.tokens);
    free(d->own_path[0]);
    free(d->own_path[1]);
    free(d);
}

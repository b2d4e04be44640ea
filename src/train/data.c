/* data.c - data sets: which files, which tokens, which part is for validation; and the windows cut from them.
 *
 *     --data ─ find_sources ─▶ paths ─ load_texts ─▶ texts ─ tokenizer ─▶ tokens ─ cut_validation ─▶ train | val
 *                                └──── read_*_tokens (.bin) ──────────────▶ tokens
 */
#include "data.h"
#include "../base/embedded.h"
#include "../file/file.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <sys/stat.h>

/* ---- which files ----------------------------------------------------------------------------------------------- */

enum source_kind { SOURCE_TEXT, SOURCE_SHARD, SOURCE_HEADERLESS };

struct sources {
    const char *given; /* what the user wrote, for messages */
    enum source_kind kind;
    char **paths; /* sorted; none for the embedded text */
    size_t n, cap;
};

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The visible files of a folder; folders inside it are left out. */
static void list_folder(struct sources *s)
{
    DIR *folder = opendir(s->given);
    if (!folder)
        fail(EXIT_IO, "cannot open the folder %s: %s", s->given, strerror(errno));
    for (struct dirent *entry; (entry = readdir(folder));) {
        char *path = format_string("%s/%s", s->given, entry->d_name);
        if (entry->d_name[0] == '.' || is_folder(path))
            free(path);
        else
            *APPEND(s->paths, s->n, s->cap) = path;
    }
    closedir(folder);
    if (s->n == 0)
        fail(EXIT_IO, "the folder %s has no files; expected text files or .bin token shards", s->given);
}

static void list_glob(struct sources *s)
{
    glob_t found;
    if (glob(s->given, 0, NULL, &found) != 0 || found.gl_pathc == 0)
        fail(EXIT_IO, "no file matches %s; expected a file, a folder or a pattern such as 'data/*.txt'", s->given);
    for (size_t i = 0; i < found.gl_pathc; i++)
        *APPEND(s->paths, s->n, s->cap) = copy_string(found.gl_pathv[i]);
    globfree(&found);
}

static enum source_kind kind_of_file(const char *path)
{
    size_t n = strlen(path);
    if (n < 4 || strcmp(path + n - 4, ".bin") != 0)
        return SOURCE_TEXT;
    return has_magic(path, LLMC_TOKENS_MAGIC) ? SOURCE_SHARD : SOURCE_HEADERLESS;
}

static const char *kind_name(enum source_kind kind)
{
    return kind == SOURCE_TEXT ? "text" : kind == SOURCE_SHARD ? "an llm.c token shard" : "headerless 16-bit tokens";
}

static void check_same_kind(struct sources *s)
{
    s->kind = kind_of_file(s->paths[0]);
    for (size_t i = 1; i < s->n; i++) {
        enum source_kind kind = kind_of_file(s->paths[i]);
        if (kind != s->kind)
            fail(EXIT_USAGE,
                 "%s mixes kinds of data: %s is %s, %s is %s; name the files of one kind, such as '%s/*.bin'", s->given,
                 s->paths[0], kind_name(s->kind), s->paths[i], kind_name(kind), s->given);
    }
}

/* A file of that very name wins over a pattern, so that "a[1].txt" can be read. */
static struct sources find_sources(const char *given)
{
    struct stat status;
    struct sources s = {.given = given};
    if (!given) {
        s.given = "the built-in text";
        return s;
    }
    if (is_folder(given))
        list_folder(&s);
    else if (stat(given, &status) == 0)
        *APPEND(s.paths, s.n, s.cap) = copy_string(given);
    else
        list_glob(&s);
    SORT(s.paths, s.n, by_name);
    for (size_t i = 0; i < s.n; i++)
        claim_input("--data", s.paths[i]);
    check_same_kind(&s);
    return s;
}

static void free_sources(struct sources *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->paths[i]);
    free(s->paths);
}

/* ---- from files to tokens -------------------------------------------------------------------------------------- */

/* Into `to`; how many there are, which is one at least. */
static size_t load_texts(struct text *to, const struct sources *s)
{
    for (size_t i = 0; i < s->n; i++) {
        to[i].name = copy_string(s->paths[i]);
        to[i].bytes = read_whole(s->paths[i], &to[i].n);
    }
    if (s->n)
        return s->n;
    *to = (struct text){copy_string(s->given), allocate(embedded_text_size + 1, 1), embedded_text_size};
    memcpy(to->bytes, embedded_text, to->n);
    return 1;
}

/* Append and free `tokens`; the first ones, mostly all there are, are taken without a copy. */
static void append_tokens(struct split *split, uint16_t *tokens, size_t n)
{
    if (!split->tokens) {
        *split = (struct split){.tokens = tokens, .n = n};
        return;
    }
    split->tokens = reallocate(split->tokens, split->n + n, sizeof *tokens);
    memcpy(split->tokens + split->n, tokens, n * sizeof *tokens);
    split->n += n;
    free(tokens);
}

static void encode_texts(struct split *split, const struct tokenizer *t, const struct text *texts, size_t n_texts)
{
    for (size_t i = 0; i < n_texts; i++) {
        size_t n;
        uint16_t *tokens = encode_text(t, &texts[i], &n);
        append_tokens(split, tokens, n);
    }
}

static struct tokenizer text_tokenizer(const struct data_options *o, const struct text *texts, size_t n)
{
    if (o->tokenizer && o->tokenizer->kind == TOKENS_IDS)
        fail(EXIT_USAGE,
             "the model was trained on token numbers, but %s is text; give it .bin files of the same tokenizer",
             o->data ? o->data : "the built-in text");
    if (o->tokenizer)
        return copy_tokenizer(o->tokenizer);
    if (o->chars)
        return char_tokenizer(texts, n);
    return (struct tokenizer){TOKENS_BYTES, 256, NULL};
}

/* The characters of --val-data belong to the vocabulary too: it must be possible to score them. */
static void load_text_data(struct dataset *d, const struct data_options *o, const struct sources *train,
                           const struct sources *val)
{
    struct text *texts = allocate(1 + train->n + val->n, sizeof *texts);
    size_t n_train = load_texts(texts, train), n = n_train + (o->val_data ? load_texts(texts + n_train, val) : 0);
    d->tokenizer = text_tokenizer(o, texts, n);
    encode_texts(&d->train, &d->tokenizer, texts, n_train);
    encode_texts(&d->val, &d->tokenizer, texts + n_train, n - n_train);
    for (size_t i = 0; i < n; i++)
        free(texts[i].name), free(texts[i].bytes);
    free(texts);
}

/* A model file without a tokenizer gives only its vocabulary; then ids below it are all that is asked. */
static void check_ids(const struct data_options *o, const char *path, const uint16_t *tokens, size_t n)
{
    for (size_t i = 0; o->vocab && i < n; i++)
        if (tokens[i] >= o->vocab)
            fail(EXIT_USAGE, "%s: token %zu is %d, but the model's vocabulary is %d; use data of its tokenizer", path,
                 i, tokens[i], o->vocab);
}

static void load_ids(struct split *split, const struct data_options *o, const struct sources *s)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t n;
        uint16_t *tokens =
            s->kind == SOURCE_SHARD ? read_token_shard(s->paths[i], &n) : read_headerless_tokens(s->paths[i], &n);
        check_ids(o, s->paths[i], tokens, n);
        append_tokens(split, tokens, n);
    }
}

static int largest_id(const struct split *split)
{
    int largest = -1;
    for (size_t i = 0; i < split->n; i++)
        largest = MAX(largest, split->tokens[i]);
    return largest;
}

static void load_id_data(struct dataset *d, const struct data_options *o, const struct sources *train,
                         const struct sources *val)
{
    if (o->tokenizer && o->tokenizer->kind == TOKENS_CHARS)
        fail(EXIT_USAGE, "the model was trained on characters, but %s holds token numbers; give it text", train->given);
    load_ids(&d->train, o, train);
    load_ids(&d->val, o, val);
    int n = 1 + MAX(largest_id(&d->train), largest_id(&d->val));
    d->tokenizer = o->tokenizer ? copy_tokenizer(o->tokenizer) : (struct tokenizer){TOKENS_IDS, n, NULL};
}

/* ---- splits ---------------------------------------------------------------------------------------------------- */

/* The last val_share of the tokens.  llm.c's shards come as separate train and val files, and its loader reads all of
 * a file in order: so does ORDER_FILE. */
static void cut_validation(struct dataset *d, const struct data_options *o, enum source_kind kind)
{
    if (kind == SOURCE_SHARD && o->order == ORDER_FILE)
        return;
    size_t n_train = (size_t)((double)d->train.n * (1 - o->val_share));
    d->val.n = d->train.n - n_train;
    d->val.tokens = allocate(d->val.n, sizeof *d->val.tokens);
    memcpy(d->val.tokens, d->train.tokens + n_train, d->val.n * sizeof *d->val.tokens);
    d->train.n = n_train;
}

static void check_lengths(const struct dataset *d, const struct data_options *o, const struct sources *train,
                          const struct sources *val)
{
    size_t window = (size_t)o->seq_len + 1, batch = (size_t)o->batch * (size_t)o->seq_len + 1;
    if (d->train.n + d->val.n == 0)
        fail(EXIT_USAGE, "%s is empty; give --data a text or token file with at least %zu tokens", train->given,
             window);
    if (d->train.n < window)
        fail(EXIT_USAGE,
             "%s has %zu tokens for training and %zu for validation, but a window of --seq-len %d needs %zu; "
             "use more data, a shorter --seq-len or a smaller --val-share",
             train->given, d->train.n, d->val.n, o->seq_len, window);
    if (o->order == ORDER_FILE && d->train.n < batch)
        fail(
            EXIT_USAGE,
            "%s has %zu tokens for training, but --order file takes %zu at a time (--batch %d times --seq-len %d, plus "
            "1); use more data, a smaller --batch or --order shuffle",
            train->given, d->train.n, batch, o->batch, o->seq_len);
    if (d->val.n == 0 && o->val_data)
        fail(EXIT_USAGE, "%s is empty; give --val-data a file with at least %zu tokens", val->given, window);
    if (d->val.n && d->val.n < window)
        fail(EXIT_USAGE,
             "%s has %zu tokens for validation, but a window of --seq-len %d needs %zu; use more data, a shorter "
             "--seq-len%s",
             o->val_data ? val->given : train->given, d->val.n, o->seq_len, window,
             o->val_data ? "" : ", a larger --val-share, or --val-share 0 for none");
}

/* The model's vocabulary wins, when there is a model and the data fits. */
static int choose_vocab(const struct dataset *d, const struct data_options *o, const struct sources *train)
{
    if (!o->vocab)
        return d->tokenizer.n;
    int used = 1 + MAX(largest_id(&d->train), largest_id(&d->val));
    if (used > o->vocab)
        fail(EXIT_USAGE, "%s needs a vocabulary of %d, but that of the model is %d; use data of its tokenizer",
             train->given, used, o->vocab);
    return o->vocab;
}

struct dataset *open_dataset(const struct data_options *o)
{
    struct dataset *d = allocate(1, sizeof *d);
    struct sources train = find_sources(o->data), val = {0};
    if (o->val_data)
        val = find_sources(o->val_data);
    if (o->val_data && (val.kind == SOURCE_TEXT) != (train.kind == SOURCE_TEXT))
        fail(EXIT_USAGE, "--val-data %s is %s, but the training data %s is %s; both must be text or both tokens",
             val.given, kind_name(val.kind), train.given, kind_name(train.kind));
    if (train.kind == SOURCE_TEXT)
        load_text_data(d, o, &train, &val);
    else
        load_id_data(d, o, &train, &val);
    if (!o->val_data)
        cut_validation(d, o, train.kind);
    check_lengths(d, o, &train, &val);
    d->vocab = choose_vocab(d, o, &train);
    free_sources(&train);
    free_sources(&val);
    return d;
}

void close_dataset(struct dataset *d)
{
    free_tokenizer(&d->tokenizer);
    free(d->train.tokens);
    free(d->val.tokens);
    free(d);
}

/* ---- windows --------------------------------------------------------------------------------------------------- */

static void copy_window(const struct split *split, size_t offset, int seq_len, int32_t *tokens, int32_t *targets)
{
    CHECK(offset + (size_t)seq_len < split->n, "window at %zu of %d tokens, split of %zu", offset, seq_len, split->n);
    const uint16_t *from = split->tokens + offset;
    for (int t = 0; t < seq_len; t++) {
        tokens[t] = from[t];
        targets[t] = from[t + 1];
    }
}

/* A batch moves by batch * seq_len tokens but reads one more, the last target. */
static size_t file_offset(const struct split *split, int64_t step, int sample, int batch, int seq_len)
{
    size_t stride = (size_t)batch * (size_t)seq_len;
    size_t batches = (split->n - 1) / stride; /* whole ones, before the start comes again */
    CHECK(batches > 0, "%zu tokens for batches of %zu", split->n, stride);
    return (size_t)step % batches * stride + (size_t)sample * (size_t)seq_len;
}

/* The place of card i after shuffling n of them: a Feistel network permutes the numbers of an even count of bits, and
 * is applied again until the result is below n.  Nothing is stored, so any step can be asked for directly. */
static uint64_t shuffled(uint64_t i, uint64_t n, uint64_t seed, uint32_t epoch)
{
    unsigned half = 1;
    while (half < 32 && (UINT64_C(1) << 2 * half) < n)
        half++;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t mixed = left ^ (random_words(seed, STREAM_DATA, epoch, round << 32 | right).word[0] & mask);
            left = right;
            right = mixed;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* Windows are drawn without replacement.  An epoch cuts the text, taken as a ring of all possible offsets, into windows
 * side by side from a random place, and goes through them in random order: every token is seen about once per epoch
 * (drawn with replacement, a third of them would not be), and the cuts fall elsewhere in every epoch. */
static size_t random_offset(const struct split *split, uint64_t seed, uint64_t counter, int seq_len)
{
    uint64_t choices = split->n - (size_t)seq_len, windows = MAX(choices / (uint64_t)seq_len, 1);
    uint32_t epoch = (uint32_t)(counter / windows);
    uint64_t start = (uint64_t)(random_uniform(seed, STREAM_DATA, epoch, UINT64_MAX) * (double)choices);
    return (start + shuffled(counter % windows, windows, seed, epoch) * (uint64_t)seq_len) % choices;
}

void dataset_window(const struct dataset *d, enum data_order order, uint64_t seed, int64_t step, int sample, int batch,
                    int seq_len, int32_t *tokens, int32_t *targets)
{
    CHECK(step >= 0 && sample >= 0 && sample < batch, "step %lld, sample %d of %d", (long long)step, sample, batch);
    uint64_t counter = (uint64_t)step * (uint64_t)batch + (uint64_t)sample;
    size_t offset = order == ORDER_FILE ? file_offset(&d->train, step, sample, batch, seq_len)
                                        : random_offset(&d->train, seed, counter, seq_len);
    copy_window(&d->train, offset, seq_len, tokens, targets);
}

size_t validation_windows(const struct dataset *d, int seq_len)
{
    return d->val.n ? ceil_div(d->val.n - 1, (size_t)seq_len) : 0;
}

int validation_count(const struct dataset *d, size_t i, int seq_len)
{
    CHECK(i < validation_windows(d, seq_len), "window %zu of %zu", i, validation_windows(d, seq_len));
    return (int)MIN((size_t)seq_len, d->val.n - 1 - i * (size_t)seq_len);
}

int validation_window(const struct dataset *d, size_t i, int seq_len, int32_t *tokens, int32_t *targets)
{
    int count = validation_count(d, i, seq_len);
    copy_window(&d->val, i * (size_t)seq_len - (size_t)(seq_len - count), seq_len, tokens, targets);
    return count;
}

/* A counting sort, stable.  While positions are dealt out, start[v] is where the next position of v goes; in the end it
 * is where v + 1 begins, so the whole array moves up by one. */
void sort_positions(const int32_t *tokens, int n, int vocab, int32_t *order, int32_t *start)
{
    memset(start, 0, ((size_t)vocab + 1) * sizeof *start);
    for (int i = 0; i < n; i++)
        start[tokens[i] + 1]++;
    for (int v = 0; v < vocab; v++)
        start[v + 1] += start[v];
    for (int i = 0; i < n; i++)
        order[start[tokens[i]]++] = i;
    memmove(start + 1, start, (size_t)vocab * sizeof *start);
    start[0] = 0;
}

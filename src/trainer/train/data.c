/* data.c - opens data sets: finds the files, makes tokens, sets a part aside for validation; and cuts windows from
 * them.
 *
 *     --data ─ find_files ─▶ paths ─▶ texts ─── cut ── tokenizer ─▶ train | val
 *                              └──── .bin ─▶ tokens ─ cut ─▶ train | val
 *
 * A text is cut into training and validation before it becomes tokens, at a byte that does not depend on the tokens.
 * So a tokenizer can learn from the training part alone, and losses of several tokenizers are of the same text.
 */
#include "data.h"
#include "trainer/base/embedded.h"
#include "trainer/base/module.h"
#include "trainer/file/file.h"

#include <glob.h>
#include <math.h>
#include <unistd.h>

enum data_format { FILE_TEXT, FILE_SHARD, FILE_HEADERLESS };
static const char *const format_name[] = {
    [FILE_TEXT] = "text", [FILE_SHARD] = "an llm.c token shard", [FILE_HEADERLESS] = "headerless 16-bit tokens"};

struct files {         /* the files of --data or --val-data, all of one format */
    const char *given; /* the user's words, for messages */
    enum data_format format;
    char **paths; /* sorted; NULL stands for a text that is no file: the program's own sources, or a made one */
    size_t n, cap;
    const struct text_maker *maker; /* it makes the text; NULL: the text is read */
    void *made;                     /* what its open() returned */
};

enum {
    MADE_BYTES = 2 << 20, /* how long a made text is */
    VAL_PARTS = 64,       /* parts at most into which the data are cut for validation */
    VAL_PART = 1000,      /* bytes or tokens of a part at least, so that rounding does not matter */
};

/* ---- which files ----------------------------------------------------------------------------------------------- */

static enum data_format format_of(const char *path)
{
    if (has_magic(path, LLMC_TOKENS_MAGIC))
        return FILE_SHARD;
    return ends_with(path, ".bin") ? FILE_HEADERLESS : FILE_TEXT;
}

/* Refuses a file that says of itself that it is something else than text or tokens.  A text that is packed with gzip is
 * read only if it is named itself: in a folder it may lie beside the same text unpacked. */
static void refuse_foreign(const char *path, enum data_format format, bool named)
{
    const struct file_kind *found = kind_of_file(path);
    const char *other = format == FILE_TEXT ? llmc_kind(path) : NULL;
    if (found && found->kind == KIND_GZIP && format == FILE_TEXT) {
        if (named)
            return;
        fail(EXIT_USAGE, "%s is %s: a folder or pattern takes none, so name it itself, or unpack it with gunzip first",
             path, found->name);
    }
    if (found && found->kind == KIND_SHORT_MARK && format == FILE_HEADERLESS)
        return;
    if (is_foreign(found))
        fail(EXIT_USAGE, "%s is %s, not %s to train on: %s%s", path, found->name,
             format == FILE_TEXT ? "a text" : "token numbers", found->way,
             named ? "" : "; a quoted pattern, such as 'folder/*.txt', takes what you mean");
    if (other)
        fail(EXIT_FAILED, "%s is %s, not a text to train on", path, other);
}

static char *file_of(const char *folder, const char *name)
{
    return format_string(ends_with(folder, "/") ? "%s%s" : "%s/%s", folder, name);
}

static bool holds_file(const char *folder, const char *name)
{
    char *path = file_of(folder, name);
    bool there = access(path, F_OK) == 0 && !is_folder(path);
    free(path);
    return there;
}

/* nanoGPT's scripts write train.bin and val.bin into a folder, beside what they were made from. */
static bool is_nanogpt(const char *given)
{
    return is_folder(given) && holds_file(given, "train.bin") && holds_file(given, "val.bin");
}

/* A pattern such as '*.bin' takes all of them, also what nanoGPT keeps for validation. */
static void warn_of_validation(const struct files *f)
{
    const char *train = NULL, *val = NULL;
    for (size_t i = 0; i < f->n; i++) {
        if (ends_with(f->paths[i], "/train.bin"))
            train = f->paths[i];
        if (ends_with(f->paths[i], "/val.bin"))
            val = f->paths[i];
    }
    if (train && val)
        warn("%s takes %s too, which is trained on; to validate on it: --data %s --val-data %s", f->given, val, train,
             val);
}

/* The maker of --data NAME or NAME:FILE; NULL: `given` is a path. */
static const struct text_maker *find_maker(const char *given)
{
    for (size_t i = 0; i < n_modules; i++) {
        const struct text_maker *maker = modules[i]->text;
        if (!maker)
            continue;
        size_t length = strlen(maker->name);
        bool begins = strncmp(given, maker->name, length) == 0;
        if (begins && (given[length] == '\0' || given[length] == ':'))
            return maker;
    }
    return NULL;
}

const char *default_data(void)
{
    for (size_t i = 0; i < n_modules; i++)
        if (modules[i]->text)
            return modules[i]->text->name;
    return "self";
}

const char *file_of_data(const char *given)
{
    if (strcmp(given, "self") == 0)
        return NULL;
    if (!find_maker(given))
        return given;
    const char *colon = strchr(given, ':');
    return colon ? colon + 1 : NULL;
}

static void add_path(struct files *f, const char *path) { *APPEND(f->paths, f->n, f->cap) = copy_string(path); }

/* Adds the files that match the pattern.  Returns how many folders do, which are not read. */
static size_t match_files(struct files *f, const char *pattern)
{
    glob_t found = {0};
    size_t folders = 0;
    glob(pattern, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (is_folder(found.gl_pathv[i]))
            folders++;
        else
            add_path(f, found.gl_pathv[i]);
    }
    globfree(&found);
    return folders;
}

/* named: the user has named the one file itself. */
static void check_files(struct files *f, bool named)
{
    f->format = format_of(f->paths[0]);
    for (size_t i = 0; i < f->n; i++) {
        enum data_format format = format_of(f->paths[i]);
        claim_input("--data", f->paths[i]);
        refuse_foreign(f->paths[i], format, named);
        if (format != f->format)
            fail(EXIT_USAGE,
                 "%s mixes kinds of data: %s is %s, %s is %s; name the files of one kind, such as '%s/*.bin'", f->given,
                 f->paths[0], format_name[f->format], f->paths[i], format_name[format], f->given);
    }
}

/* A file of that very name wins over a pattern, so that "a[1].txt" can be read.  A folder stands for the visible files
 * in it, but not for those of folders inside it. */
static void find_paths(struct files *f)
{
    const char *given = f->given;
    const bool folder = is_folder(given);
    const bool is_file = !folder && access(given, F_OK) == 0;
    char *pattern = folder ? format_string("%s/*", given) : copy_string(given);
    size_t folders = 0;
    if (is_file)
        add_path(f, given);
    else
        folders = match_files(f, pattern);
    if (folder && f->n > 0 && folders > 0)
        warn("%s has %zu folder%s, whose files are not read; the quoted pattern '%s/*/*' takes them", given, folders,
             folders == 1 ? "" : "s", given);
    if (f->n == 0 && is_left_out(given))
        fail(EXIT_USAGE, "--data %s: this yard was built without%s", given, left_out);
    if (f->n == 0)
        fail(EXIT_IO,
             "no file matches %s; expected a file, a folder with files or a pattern such as 'data/*.txt'; of "
             "a folder the files are read, but not those of folders inside it",
             pattern);
    check_files(f, is_file);
    if (!is_file && !folder)
        warn_of_validation(f);
    free(pattern);
}

static struct files find_files(const char *given)
{
    struct files f = {.given = given, .maker = find_maker(given)};
    if (f.maker)
        f.made = f.maker->open(file_of_data(given));
    if (f.maker || strcmp(given, "self") == 0)
        *APPEND(f.paths, f.n, f.cap) = NULL;
    else
        find_paths(&f);
    return f;
}

static void free_files(struct files *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->paths[i]);
    free(f->paths);
    if (f->maker)
        f->maker->close(f->made);
}

/* ---- from files to tokens -------------------------------------------------------------------------------------- */

/* Anything can be trained on byte by byte, so this only warns.  At its end a text may be cut off within a character. */
static void warn_of_encoding(const struct text *text, bool as_bytes)
{
    if (memchr(text->bytes, '\0', text->n)) {
        warn("%s holds zero bytes, and texts have none: it is trained on all the same; if it holds token numbers, name "
             "it .bin, if it is UTF-16, convert it with iconv",
             text->name);
        return;
    }
    size_t valid = as_bytes ? valid_utf8(text->bytes, text->n) : text->n;
    if (text->n - valid >= UTF8_BYTES)
        warn("%s is not UTF-8 from byte %zu on, and is trained on byte by byte; if it is in another encoding, such as "
             "Latin-1 or CP1251, convert it with iconv -f ENCODING -t UTF-8",
             text->name, valid);
}

static void unpack_text(struct text *text)
{
    char *packed = text->memory;
    text->memory = unpack_gzip(text->name, packed, &text->n);
    free(packed);
    const struct file_kind *kind = kind_of_bytes(text->memory, text->n);
    if (kind && kind->kind == KIND_GZIP)
        fail(EXIT_USAGE, "%s is packed with gzip twice: unpack it with gunzip first", text->name);
    if (is_foreign(kind))
        fail(EXIT_USAGE, "%s is %s, packed with gzip, not a text to train on: unpack it with gunzip, then %s",
             text->name, kind->name, kind->way);
    if (ends_with(text->name, ".bin.gz") || llmc_kind_of_bytes(text->memory, text->n))
        fail(EXIT_USAGE, "%s is packed with gzip and holds tokens: unpack it with gunzip first", text->name);
}

/* Reads a file, and leaves out what is no part of its text: gzip's packing, a byte order mark. */
static void read_text_file(struct text *text, bool as_bytes)
{
    const struct file_kind *kind = kind_of_file(text->name);
    const bool packed = kind && kind->kind == KIND_GZIP;
    if (!packed)
        text->mapped = map_large(text->name, &text->memory);
    text->n = text->mapped;
    if (!text->mapped)
        text->memory = read_whole(text->name, &text->n);
    if (packed)
        unpack_text(text);
    const size_t mark = byte_order_mark(text->memory, text->n);
    text->bytes = text->memory + mark;
    text->n -= mark;
    text->before = mark;
    warn_of_encoding(text, as_bytes);
}

/* The text of a file, a made one, or the program's own sources. */
static struct text open_text(const struct files *f, const char *path, bool as_bytes)
{
    struct text text = {.name = path ? path : f->given};
    if (path) {
        read_text_file(&text, as_bytes);
    } else if (f->maker) {
        text.memory = f->maker->make(f->made, MADE_BYTES);
        text.bytes = text.memory;
        text.n = MADE_BYTES;
    } else {
        text.bytes = (const char *)embedded_text;
        text.n = embedded_text_size;
    }
    return text;
}

static struct texts open_texts(const struct files *f, bool as_bytes)
{
    struct texts all = {0};
    for (size_t i = 0; i < f->n; i++)
        *APPEND(all.text, all.n, all.cap) = open_text(f, f->paths[i], as_bytes);
    return all;
}

static void close_texts(struct texts *all)
{
    for (const struct text *t = all->text; t < all->text + all->n; t++) {
        if (t->mapped)
            unmap(t->memory, t->mapped);
        else
            free(t->memory);
    }
    free(all->text);
}

/* ---- cutting texts ---------------------------------------------------------------------------------------------- */

/* Are the last tokens of the training data for validation?  llm.c's shards come as separate train and val files, and
 * its loader reads all of a file in order: so does ORDER_FILE. */
static bool shares_validation(const struct data_options *o, const struct files *train)
{
    return !o->val_data && !(train->format == FILE_SHARD && o->order == ORDER_FILE);
}

static size_t count_parts(const struct files *train, size_t n_tokens)
{
    bool several = train->n > 1 || strcmp(train->given, "self") == 0;
    return several ? MIN(VAL_PARTS, 1 + n_tokens / VAL_PART) : 1;
}

static size_t count_bytes(const struct texts *all)
{
    size_t bytes = 0;
    for (size_t i = 0; i < all->n; i++)
        bytes += all->text[i].n;
    return bytes;
}

/* Adds bytes [begin, end) of all texts together, as a text for each file in which they lie. */
static void add_range(struct texts *to, const struct texts *all, size_t begin, size_t end)
{
    size_t at = 0; /* where text t begins in all texts together */
    for (const struct text *t = all->text; t < all->text + all->n; t++) {
        const size_t from = MAX(begin, at), until = MIN(end, at + t->n);
        if (from < until)
            *APPEND(to->text, to->n, to->cap) = (struct text){
                .name = t->name, .bytes = t->bytes + (from - at), .n = until - from, .before = t->before + (from - at)};
        at += t->n;
    }
}

/* The place, a byte of all texts together, moved back to the first byte of its character.  Where the text is no UTF-8,
 * it moves by at most three bytes. */
static size_t first_byte(const struct texts *all, size_t place)
{
    size_t i = 0, at = place;
    while (i < all->n && at >= all->text[i].n) {
        at -= all->text[i].n;
        i++;
    }
    if (i == all->n)
        return place;
    size_t back = 0;
    while (back < MIN(at, UTF8_BYTES - 1) && (all->text[i].bytes[at - back] & 0xC0) == 0x80)
        back++;
    return place - back;
}

/* The texts together are cut into `parts` of about the same size, and the last share of each is for validation.
 * Several files may be of several kinds, so one part would not do: all of C would be trained on and only Markdown be
 * validated. */
static void cut_texts(const struct texts *all, double share, size_t parts, struct texts *train, struct texts *val)
{
    const size_t bytes = count_bytes(all);
    size_t from = 0; /* where the part begins: where the one before it has ended */
    for (size_t p = 0; p < parts; p++) {
        const size_t begin = bytes * p / parts;
        const size_t end = bytes * (p + 1) / parts;
        const size_t kept = (size_t)((double)(end - begin) * (1 - share));
        const size_t cut = first_byte(all, begin + kept);
        const size_t until = first_byte(all, end);
        add_range(train, all, from, cut);
        add_range(val, all, cut, until);
        from = until;
    }
}

/* ---- encoding --------------------------------------------------------------------------------------------------- */

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
        uint16_t *tokens = encode_text(tokenizer, &texts->text[i], &n);
        append_tokens(split, tokens, n);
    }
}

/* Asks the maker of a text for its rate and floor.  It counts bytes, so every token must be one byte: characters of
 * several bytes would make fewer tokens. */
static void measure_made_text(struct dataset *d, const struct files *f, const struct data_options *o,
                              const struct texts *val)
{
    const struct token_kind *kind = d->tokenizer.kind;
    if (!f->maker || o->val_data)
        return;
    d->rate = f->maker->rate(f->made);
    bool counts_bytes = d->train.n + d->val.n == MADE_BYTES && (kind == &token_bytes || kind == &token_chars);
    if (!counts_bytes || val->n == 0 || d->val.n <= (size_t)o->seq_len)
        return;
    uint16_t *bytes = allocate(d->val.n, sizeof *bytes);
    for (size_t i = 0; i < d->val.n; i++)
        bytes[i] = (unsigned char)val->text->bytes[i];
    d->floor = f->maker->floor(f->made, bytes, d->val.n, o->seq_len);
    free(bytes);
}

static const char *word_of_tokens(const struct data_options *o) { return o->tokens ? o->tokens : "bytes"; }

static void load_texts(struct dataset *d, const struct data_options *o, const struct files *train,
                       const struct files *val)
{
    const char *word = word_of_tokens(o);
    const struct tokenizer *known = o->tokenizer.n ? &o->tokenizer : NULL;
    const bool as_bytes = known ? known->kind != &token_chars : strcmp(word, "chars") != 0;
    if (known && known->takes_numbers)
        fail(EXIT_USAGE, "the model was trained on token numbers, but %s is text; give .bin files, or --tokens FILE",
             train->given);
    struct texts to_train = open_texts(train, as_bytes), to_validate = open_texts(val, as_bytes);
    struct texts texts[2] = {0}; /* to train, to validate */
    if (o->val_share > 0 && shares_validation(o, train))
        cut_texts(&to_train, o->val_share, count_parts(train, count_bytes(&to_train)), &texts[0], &texts[1]);
    else
        add_range(&texts[0], &to_train, 0, SIZE_MAX);
    add_range(&texts[1], &to_validate, 0, SIZE_MAX);
    d->tokenizer = known ? *known : make_tokenizer(word, &texts[0], &texts[1]);
    if (d->tokenizer.takes_numbers)
        fail(EXIT_USAGE, "--tokens %s: it only decodes, so %s cannot become its tokens", word, train->given);
    encode_texts(&d->train, &d->tokenizer, &texts[0]);
    encode_texts(&d->val, &d->tokenizer, &texts[1]);
    measure_made_text(d, train, o, &texts[1]);
    close_texts(&to_train);
    close_texts(&to_validate);
    free(texts[0].text);
    free(texts[1].text);
}

/* Does to token numbers what cut_texts() does to texts.  In memory the numbers to validate lie behind those to
 * train. */
static void cut_tokens(struct dataset *d, double share, size_t parts)
{
    uint16_t *tokens = d->train.tokens;
    const size_t n = d->train.n;
    uint16_t *val = allocate((size_t)((double)n * share) + parts + 1, sizeof *val);
    d->train.n = 0;
    for (size_t p = 0; p < parts; p++) {
        const size_t begin = n * p / parts;
        const size_t size = n * (p + 1) / parts - begin;
        const size_t kept = (size_t)((double)size * (1 - share));
        memcpy(val + d->val.n, tokens + begin + kept, (size - kept) * sizeof *tokens);
        memmove(tokens + d->train.n, tokens + begin, kept * sizeof *tokens);
        d->train.n += kept;
        d->val.n += size - kept;
    }
    d->val.tokens = tokens + d->train.n;
    d->val.shares_memory = true;
    memcpy(d->val.tokens, val, d->val.n * sizeof *val);
    free(val);
}

static void load_ids(struct split *split, const struct files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const char *path = f->paths[i];
        size_t n;
        uint16_t *tokens = f->format == FILE_SHARD ? read_token_shard(path, &n) : read_headerless_tokens(path, &n);
        append_tokens(split, tokens, n);
    }
}

/* The tokenizer of token numbers, where no model says what they mean: that of --tokens FILE, if this is given. */
static struct tokenizer tokenizer_of_ids(const struct data_options *o, const char *given, int used)
{
    const char *word = word_of_tokens(o);
    if (!file_of_tokens(word)) {
        if (strcmp(word, "bytes") != 0)
            warn("--tokens %s has no effect: %s holds token numbers; --tokens FILE says what they mean", word, given);
        return id_tokenizer(used);
    }
    struct tokenizer t = make_tokenizer(word, NULL, NULL);
    if (used > t.n)
        fail(EXIT_USAGE, "%s has token %d, but --tokens %s has only %d tokens: name the file of its tokenizer", given,
             used - 1, word, t.n);
    return t;
}

static void load_tokens(struct dataset *d, const struct data_options *o, const struct files *train,
                        const struct files *val)
{
    const bool known = o->tokenizer.n > 0;
    if (known && o->tokenizer.kind == &token_chars)
        fail(EXIT_USAGE, "the model was trained on characters, but %s holds token numbers; give it text", train->given);
    load_ids(&d->train, train);
    load_ids(&d->val, val);
    if (known)
        d->tokenizer = o->tokenizer;
    else
        d->tokenizer = tokenizer_of_ids(o, train->given, MAX(d->train.used, d->val.used));
    if (shares_validation(o, train))
        cut_tokens(d, o->val_share, count_parts(train, d->train.n));
}

/* ---- splits ---------------------------------------------------------------------------------------------------- */

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

/* A folder as nanoGPT lays it out becomes its two files; val.bin is for validation if nothing else is named.  The paths
 * last as long as d. */
static struct data_options name_files(struct dataset *d, const struct data_options *o)
{
    struct data_options named = *o;
    const char *val_folder = o->val_data && is_nanogpt(o->val_data) ? o->val_data : NULL;
    if (o->path && is_nanogpt(o->path)) {
        d->own_path[0] = file_of(o->path, "train.bin");
        named.path = d->own_path[0];
        if (!o->val_data)
            val_folder = o->path;
    }
    if (val_folder) {
        d->own_path[1] = file_of(val_folder, "val.bin");
        named.val_data = d->own_path[1];
    }
    if (d->own_path[0])
        note("data: %s is laid out as nanoGPT's: %s to train, %s to validate; its other files are not read", o->path,
             named.path, o->val_data ? o->val_data : named.val_data);
    return named;
}

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

/* The place of number i after shuffling the numbers below n.  A Feistel network permutes the numbers of an
 * even count of bits, and is applied again until the result is below n.  Nothing is stored, so any step can
 * be asked for directly. */
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

/* In the order of the file a batch moves by batch * seq_len tokens but reads one more, the last target.
 *
 * At random, windows are drawn without replacement.  An epoch cuts the text, taken as a ring of all possible offsets,
 * into windows side by side from a random place, and goes through them in random order: every token is seen about once
 * per epoch (drawn with replacement, a third of them would not be), and the cuts fall elsewhere in every epoch. */
void dataset_window(const struct dataset *d, const struct window *w, int32_t *tokens, int32_t *targets)
{
    CHECK(w->step >= 0 && w->sample >= 0 && w->sample < w->batch, "step %lld, sample %d of %d", (long long)w->step,
          w->sample, w->batch);
    const uint64_t length = (uint64_t)w->seq_len, batch = (uint64_t)w->batch, n = d->train.n;
    if (w->order == ORDER_FILE) {
        uint64_t stride = batch * length;
        uint64_t batches = (n - 1) / stride; /* batches until the file's beginning comes again */
        uint64_t offset = (uint64_t)w->step % batches * stride + (uint64_t)w->sample * length;
        copy_window(&d->train, offset, w->seq_len, tokens, targets);
        return;
    }
    uint64_t counter = (uint64_t)w->step * batch + (uint64_t)w->sample;
    uint64_t choices = n - length;
    uint64_t windows = MAX(choices / length, 1); /* in an epoch */
    uint32_t epoch = (uint32_t)(counter / windows);
    uint64_t start = (uint64_t)(random_uniform(w->seed, STREAM_DATA, epoch, UINT64_MAX) * (double)choices);
    uint64_t nth = shuffled(counter % windows, windows, w->seed, epoch);
    copy_window(&d->train, (start + nth * length) % choices, w->seq_len, tokens, targets);
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
    for (int i = 0; i < n; i++) {
        int32_t *next = &start[tokens[i]];
        order[*next] = i;
        (*next)++;
    }
    memmove(start + 1, start, (size_t)vocab * sizeof *start);
    start[0] = 0;
}

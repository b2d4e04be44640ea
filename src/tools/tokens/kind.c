/* kind.c - byte pair encoding as a kind of tokenizer: --tokens bpe:N or a FILE, and files beside a model. */
#include "bpe.h"
#include "trainer/base/module.h"

enum { LEAST_N = 257 };
static const char end_of_texts[] = "<|endoftext|>";

static const struct bpe *bpe_of(const struct tokenizer *t) { return t->own; }

static struct tokenizer tokenizer_of(struct bpe *b);

/* The N of "bpe:N"; 0: it is none. */
static int number_in(const char *word)
{
    int64_t n;
    const char *colon = strchr(word, ':');
    if (!colon || !parse_int(colon + 1, &n) || n < LEAST_N || n > MOST_TOKENS)
        return 0;
    return (int)n;
}

static void check(const char *word)
{
    if (!number_in(word))
        fail(EXIT_USAGE, "--tokens %s: expected bpe:N, where N is how many tokens to learn, from %d to %d", word,
             LEAST_N, MOST_TOKENS);
}

/* Where the training text has <|endoftext|>, that is one token. */
static struct tokenizer learn(const char *word, const struct texts *train, const struct texts *val)
{
    (void)val;
    static const char *const added[] = {end_of_texts, NULL};
    const char *found = NULL;
    for (size_t i = 0; i < train->n && !found; i++)
        found = memmem(train->text[i].bytes, train->text[i].n, end_of_texts, strlen(end_of_texts));
    return tokenizer_of(learn_bpe(train->text, train->n, number_in(word), found ? added : NULL));
}

static struct tokenizer read(const char *path) { return tokenizer_of(read_bpe(path)); }

static uint16_t *encode(const struct tokenizer *t, const struct text *text, size_t *n)
{
    return t->takes_numbers ? encode_numbers(t, text, n) : bpe_encode(bpe_of(t), text, n);
}

static const char *decode(const struct tokenizer *t, int32_t token, char own[DECODED_BYTES], size_t *n)
{
    (void)own;
    return bpe_decode(bpe_of(t), token, n);
}

static int end(const struct tokenizer *t) { return find_added(bpe_of(t), end_of_texts); }

static char *to_text(const struct tokenizer *t)
{
    json_t *json = bpe_to_json(bpe_of(t));
    char *compact = json_dumps(json, JSON_COMPACT), *text = format_string(" %s", compact);
    json_decref(json);
    free(compact);
    return text;
}

static struct tokenizer from_text(const char *text, const char *path)
{
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    struct tokenizer t = {0};
    if (json_is_object(json))
        t = tokenizer_of(bpe_from_json(json, path));
    json_decref(json);
    return t;
}

static json_t *to_json(const struct tokenizer *t) { return t->takes_numbers ? NULL : bpe_to_json(bpe_of(t)); }

static void forget(struct tokenizer *t) { free_bpe(t->own); }

static const char *const files[] = {"vocab.json", "gpt2_tokenizer.bin", NULL};
static const struct token_kind token_bpe = {.name = "bpe",
                                            .word = "bpe:N",
                                            .noun = "byte pairs",
                                            .check = check,
                                            .make = learn,
                                            .read = read,
                                            .files = files,
                                            .encode = encode,
                                            .decode = decode,
                                            .end = end,
                                            .to_text = to_text,
                                            .from_text = from_text,
                                            .to_json = to_json,
                                            .free = forget};

static struct tokenizer tokenizer_of(struct bpe *b)
{
    return (struct tokenizer){.kind = &token_bpe, .n = b->n, .takes_numbers = b->decodes_only, .own = b};
}

const struct module module_tokens = {.name = "tokens", .tokens = &token_bpe};

/* kind.c - byte pair encoding as a kind of tokenizer: --tokens bpe:N or a FILE, and files beside a model. */
#include "inner.h"
#include "trainer/base/module.h"
#include "trainer/file/file.h"
#include "trainer/model/import.h"

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

static void check_word(const char *word)
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
    const int wanted = number_in(word);
    struct tokenizer t = tokenizer_of(learn_bpe(train->text, train->n, wanted, found ? added : NULL));
    if (t.n < wanted)
        warn("--tokens %s: the training text gives %d tokens, since then no two stand side by side twice", word, t.n);
    return t;
}

static struct tokenizer read_file_of(const char *path)
{
    json_t *json = json_load_file(path, 0, NULL); /* it may be no JSON */
    struct tokenizer t = single_from_json(json);
    json_decref(json);
    if (t.n == 0)
        t = tokenizer_of(read_bpe(path));
    if (t.takes_numbers)
        note("%s only decodes: a prompt is token numbers, and there is no training on text", path);
    return t;
}

struct neighbour { /* a file beside a model; the argument of read_this(), for attempt() */
    const char *path;
    struct tokenizer t;
};

static void read_this(void *neighbour)
{
    struct neighbour *r = neighbour;
    r->t = read_file_of(r->path);
}

static struct tokenizer read_beside(const char *model)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "gpt2_tokenizer.bin"};
    struct neighbour r = {0};
    for (size_t i = 0; i < COUNT(names) && !r.path; i++) {
        char *path = file_beside(model, names[i]);
        if (exists(path))
            r.path = path;
        else
            free(path);
    }
    if (!r.path)
        return r.t;
    struct problem *problem = attempt(read_this, &r);
    if (problem)
        print_problem(stderr, "yard: warning: the tokenizer beside the model is not taken: ", problem);
    free((char *)r.path);
    return r.t;
}

static uint16_t *encode_bpe(const struct tokenizer *t, const struct text *text, size_t *n)
{
    return t->takes_numbers ? encode_numbers(t, text, n) : bpe_encode(bpe_of(t), text, n);
}

static const char *decode_bpe(const struct tokenizer *t, int32_t token, char own[DECODED_BYTES], size_t *n)
{
    (void)own;
    return bpe_decode(bpe_of(t), token, n);
}

static int find_end(const struct tokenizer *t) { return find_added(bpe_of(t), end_of_texts); }

static char *to_text(const struct tokenizer *t)
{
    json_t *json = bpe_to_json(bpe_of(t));
    char *compact = json_dumps(json, JSON_COMPACT), *text = format_string(" %s", compact);
    json_decref(json);
    free(compact);
    return text;
}

static struct tokenizer from_text(const char *text)
{
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    struct tokenizer t = {0};
    if (json_is_object(json))
        t = tokenizer_of(bpe_from_json(json, "the tokenizer of the model"));
    json_decref(json);
    return t;
}

static const struct token_kind token_bpe;
static json_t *to_json(const struct tokenizer *t)
{
    if (t->kind != &token_bpe)
        return single_to_json(t);
    return t->takes_numbers ? NULL : bpe_to_json(bpe_of(t));
}

static bool drop_bpe_tokens(struct tokenizer *t, int n)
{
    if (!drop_tokens(t->own, n))
        return false;
    t->n = n;
    return true;
}

static void free_bpe_tokenizer(struct tokenizer *t) { free_bpe(t->own); }

static const struct token_kind token_bpe = {
    .name = "bpe",
    .word = "bpe:N",
    .noun = "byte pairs",
    .learns = true,
    .check = check_word,
    .make = learn,
    .encode = encode_bpe,
    .decode = decode_bpe,
    .end = find_end,
    .to_text = to_text,
    .from_text = from_text,
    .drop = drop_bpe_tokens,
    .free = free_bpe_tokenizer,
    .read = read_file_of,
    .beside = read_beside,
    .to_json = to_json,
};

static struct tokenizer tokenizer_of(struct bpe *b)
{
    return (struct tokenizer){.kind = &token_bpe, .n = b->n, .takes_numbers = b->decodes_only, .own = b};
}

const struct module module_tokens = {
    .name = "tokens",
    .sole.tokens = &token_bpe,
};

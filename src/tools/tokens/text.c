/* text.c - a tokenizer as tokenizer.json, and as one line of ASCII, which is read back too. */
#include "inner.h"

/* ---- tokenizer.json --------------------------------------------------------------------------------------------- */

/* How tokenizer.json writes a token; the caller frees it. */
static char *name_of_token(const struct bpe *b, int token)
{
    const struct token *t = &b->token[token];
    for (size_t i = 0; i < b->n_added; i++)
        if (b->added[i].token == token)
            return format_string("%.*s", (int)t->n, t->bytes);
    return name_of_bytes(t->bytes, t->n);
}

static json_t *vocabulary_json(const struct bpe *b)
{
    json_t *vocab = json_object();
    for (int i = 0; i < b->n; i++) {
        char *name = name_of_token(b, i);
        if (json_object_get(vocab, name))
            fail(EXIT_FAILED, "the tokenizer has two tokens that a tokenizer.json would write \"%.80s\"", name);
        json_object_set_new(vocab, name, json_integer(i));
        free(name);
    }
    return vocab;
}

static json_t *merges_json(const struct bpe *b)
{
    json_t *merges = json_array();
    for (size_t i = 0; i < b->n_merges; i++) {
        char *left = name_of_token(b, b->merges[i].left), *right = name_of_token(b, b->merges[i].right);
        char *both = format_string("%s %s", left, right);
        json_array_append_new(merges, json_string(both));
        free(left);
        free(right);
        free(both);
    }
    return merges;
}

static json_t *added_json(const struct bpe *b)
{
    json_t *added = json_array();
    for (size_t i = 0; i < b->n_added; i++) {
        const struct added *a = &b->added[i];
        char *content = name_of_token(b, a->token);
        json_array_append_new(added, json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", a->token, "content",
                                               content, "single_word", false, "lstrip", false, "rstrip", false,
                                               "normalized", a->normalized, "special", a->special));
        free(content);
    }
    return added;
}

json_t *bpe_to_json(const struct bpe *b)
{
    if (b->decodes_only)
        return NULL;
    json_t *level = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", false, "trim_offsets",
                              true, "use_regex", true);
    json_t *model =
        json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout", "unk_token",
                  "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", false, "byte_fallback", false,
                  "ignore_merges", false, "vocab", vocabulary_json(b), "merges", merges_json(b));
    return json_pack("{s:s, s:n, s:n, s:o, s:n, s:O, s:n, s:o, s:o}", "version", "1.0", "truncation", "padding",
                     "added_tokens", added_json(b), "normalizer", "pre_tokenizer", level, "post_processor", "decoder",
                     level, "model", model);
}

/* ---- writing a line --------------------------------------------------------------------------------------------- */

/* Tokens that neither bytes nor merges make. */
enum other_kind { ONLY_DECODED = 0, IS_ADDED = 1, IS_NORMALIZED = 2, IS_SPECIAL = 4, OTHER_KINDS = 8 };

/* [n] what each token is besides; NOT_OTHER: nothing */
enum { NOT_OTHER = 255 };
static uint8_t *kinds_of(const struct bpe *b)
{
    uint8_t *kind = allocate((size_t)b->n, sizeof *kind);
    for (int i = 0; i < 256 && !b->decodes_only; i++)
        kind[b->of_byte[i]] = NOT_OTHER;
    for (size_t i = 0; i < b->n_merges; i++)
        kind[b->merges[i].result] = NOT_OTHER;
    for (size_t i = 0; i < b->n_added; i++) {
        const struct added *a = &b->added[i];
        kind[a->token] = IS_ADDED | (a->normalized ? IS_NORMALIZED : 0) | (a->special ? IS_SPECIAL : 0);
    }
    return kind;
}

char *bpe_to_text(const struct bpe *b)
{
    char *text = NULL;
    size_t size;
    uint8_t *kind = kinds_of(b);
    FILE *out = open_memstream(&text, &size);
    CHECK(out, "no memory");
    fprintf(out, "bpe %d", b->n);
    if (!b->decodes_only) {
        fputs(" bytes", out);
        for (int i = 0; i < 256; i++)
            fprintf(out, " %d", b->of_byte[i]);
        fputs(" merges", out);
        for (size_t i = 0; i < b->n_merges; i++)
            fprintf(out, " %d %d %d", b->merges[i].left, b->merges[i].right, b->merges[i].result);
    }
    fputs(" others", out);
    for (int i = 0; i < b->n; i++) {
        if (kind[i] == NOT_OTHER)
            continue;
        fprintf(out, " %d %d ", i, kind[i]);
        for (size_t k = 0; k < b->token[i].n; k++)
            fprintf(out, "%02x", (unsigned)(unsigned char)b->token[i].bytes[k]);
    }
    CHECK(fclose(out) == 0, "no memory");
    free(kind);
    return text;
}

/* ---- reading it ------------------------------------------------------------------------------------------------- */

struct line {
    const char *path;
    char *rest;
    char *word;    /* the next one; NULL: there is none */
    size_t number; /* of words before it */
};

static void next_word(struct line *l)
{
    l->word = strtok_r(NULL, " ", &l->rest);
    l->number++;
}

static _Noreturn void refuse_line(const struct line *l, const char *why)
{
    fail(EXIT_FAILED, "%s is damaged: its tokenizer, \"bpe ...\", %s at word %zu, \"%.40s\"", l->path, why, l->number,
         l->word ? l->word : "");
}

static bool has_word_here(const struct line *l, const char *word) { return l->word && strcmp(l->word, word) == 0; }

static void take_word(struct line *l, const char *word)
{
    if (!has_word_here(l, word))
        refuse_line(l, "lacks a word");
    next_word(l);
}

static int take_number(struct line *l, int below)
{
    int64_t number;
    if (!l->word || !parse_int(l->word, &number) || number < 0 || number >= below)
        refuse_line(l, "has no number of a token");
    next_word(l);
    return (int)number;
}

static void expect_none(const struct line *l, const char *problem)
{
    if (problem)
        refuse_line(l, problem);
}

static void take_bytes(struct line *l, struct bpe *b)
{
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        b->of_byte[i] = take_number(l, b->n);
        expect_none(l, set_token(b, b->of_byte[i], &byte, 1));
    }
}

static void take_merge(struct line *l, struct bpe *b)
{
    const int left = take_number(l, b->n);
    const int right = take_number(l, b->n);
    const int result = take_number(l, b->n);
    expect_none(l, add_merge(b, left, right, result));
}

static void take_other(struct line *l, struct bpe *b)
{
    char bytes[MOST_TOKEN_BYTES];
    size_t n = 0;
    const int token = take_number(l, b->n);
    const int kind = take_number(l, OTHER_KINDS);
    const struct added a = {
        .token = token, .special = (kind & IS_SPECIAL) != 0, .normalized = (kind & IS_NORMALIZED) != 0};
    unsigned byte;
    for (const char *at = l->word; at && n < sizeof bytes && sscanf(at, "%2x", &byte) == 1; at += 2) {
        bytes[n] = (char)byte;
        n++;
    }
    if (!l->word || strlen(l->word) != 2 * n)
        refuse_line(l, "has no bytes");
    next_word(l);
    expect_none(l, kind & IS_ADDED ? add_added(b, &a, bytes, n) : set_token(b, token, bytes, n));
}

struct bpe *bpe_from_text(const char *text, const char *path)
{
    char *copy = copy_string(text);
    struct line l = {.path = path, .rest = copy};
    next_word(&l);
    take_word(&l, "bpe");
    struct bpe *b = new_bpe(take_number(&l, MOST_TOKENS + 1));
    b->decodes_only = !has_word_here(&l, "bytes");
    if (!b->decodes_only) {
        take_word(&l, "bytes");
        take_bytes(&l, b);
        take_word(&l, "merges");
        while (l.word && !has_word_here(&l, "others"))
            take_merge(&l, b);
    }
    take_word(&l, "others");
    while (l.word)
        take_other(&l, b);
    for (int i = 0; i < b->n; i++)
        if (!b->token[i].bytes)
            refuse_line(&l, "leaves out a token and ends");
    free(copy);
    return b;
}

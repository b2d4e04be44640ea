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
        json_array_append_new(added,
                              json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", a->token, "content", content,
                                        "single_word", false, "lstrip", false, "rstrip", false, "normalized",
                                        (a->kinds & IS_NORMALIZED) != 0, "special", (a->kinds & IS_SPECIAL) != 0));
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

/* Numbers with a space between, and tokens in hexadecimal:
 *
 *     bpe 50257                                          tokens
 *     256  188 189 ...                                   the tokens of the bytes; 0: it only decodes
 *     50000  220 83 256  220 64 257 ...                  merges: left, right, result
 *     1  50256 1 3c7c656e646f66746578747c3e ...          tokens that are no bytes and no merge's, or that are added:
 *                                                        number, enum added_kind or NOT_ADDED, bytes
 */
enum { NOT_ADDED = 4, KINDS };

static bool *made_tokens(const struct bpe *b) /* [n] by bytes and merges */
{
    bool *made = allocate((size_t)b->n, sizeof *made);
    for (int i = 0; i < 256 && !b->decodes_only; i++)
        made[b->of_byte[i]] = true;
    for (size_t i = 0; i < b->n_merges; i++)
        made[b->merges[i].result] = true;
    return made;
}

static void write_other(FILE *out, const struct bpe *b, int token, unsigned kinds)
{
    fprintf(out, " %d %u ", token, kinds);
    for (size_t i = 0; i < b->token[token].n; i++)
        fprintf(out, "%02x", (unsigned)(unsigned char)b->token[token].bytes[i]);
}

static void write_others(FILE *out, const struct bpe *b)
{
    bool *others = made_tokens(b);
    size_t n = b->n_added;
    for (size_t i = 0; i < b->n_added; i++)
        others[b->added[i].token] = true;
    for (int i = 0; i < b->n; i++) {
        others[i] = !others[i];
        n += others[i];
    }
    fprintf(out, " %zu", n);
    for (size_t i = 0; i < b->n_added; i++)
        write_other(out, b, b->added[i].token, b->added[i].kinds);
    for (int i = 0; i < b->n; i++)
        if (others[i])
            write_other(out, b, i, NOT_ADDED);
    free(others);
}

char *bpe_to_text(const struct bpe *b)
{
    char *text = NULL;
    size_t size;
    const int bytes = b->decodes_only ? 0 : 256;
    FILE *out = open_memstream(&text, &size);
    CHECK(out, "no memory");
    fprintf(out, "bpe %d %d", b->n, bytes);
    for (int i = 0; i < bytes; i++)
        fprintf(out, " %d", b->of_byte[i]);
    fprintf(out, " %zu", b->n_merges);
    for (size_t i = 0; i < b->n_merges; i++)
        fprintf(out, " %d %d %d", b->merges[i].left, b->merges[i].right, b->merges[i].result);
    write_others(out, b);
    CHECK(fclose(out) == 0, "no memory");
    return text;
}

/* ---- reading it ------------------------------------------------------------------------------------------------- */

struct line_reader {
    const char *path;
    char *rest;
    int words; /* that were taken */
};

static _Noreturn void refuse_line(const struct line_reader *l, const char *problem)
{
    fail(EXIT_FAILED, "%s is damaged: word %d of its tokenizer, \"bpe ...\", %s", l->path, l->words, problem);
}

static void expect_none(const struct line_reader *l, const char *problem)
{
    if (problem)
        refuse_line(l, problem);
}

static char *take_word(struct line_reader *l)
{
    char *word = strsep(&l->rest, " ");
    l->words++;
    if (!word)
        refuse_line(l, "is missing");
    return word;
}

static int take_number(struct line_reader *l, int below)
{
    int64_t number;
    if (!parse_int(take_word(l), &number) || number < 0 || number >= below)
        refuse_line(l, "is not the number that must be there");
    return (int)number;
}

static void take_merge(struct line_reader *l, struct bpe *b)
{
    const int left = take_number(l, b->n);
    const int right = take_number(l, b->n);
    const int result = take_number(l, b->n);
    expect_none(l, add_merge(b, left, right, result));
}

static void take_other(struct line_reader *l, struct bpe *b)
{
    const int token = take_number(l, b->n);
    const unsigned kinds = (unsigned)take_number(l, KINDS);
    const struct added a = {.token = token, .kinds = kinds};
    char *word = take_word(l);
    const size_t n = strlen(word) / 2;
    if (strspn(word, "0123456789abcdef") != 2 * n || word[2 * n])
        refuse_line(l, "is not bytes in hexadecimal");
    for (size_t i = 0; i < n; i++) {
        const char two[] = {word[2 * i], word[2 * i + 1], '\0'};
        word[i] = (char)strtoul(two, NULL, 16); /* the bytes replace their digits */
    }
    expect_none(l, kinds == NOT_ADDED ? set_token(b, token, word, n) : add_added(b, &a, word, n));
}

struct bpe *bpe_from_text(const char *text, const char *path)
{
    char *copy = copy_string(text);
    struct line_reader l = {.path = path, .rest = copy};
    if (strcmp(take_word(&l), "bpe") != 0)
        refuse_line(&l, "is another");
    struct bpe *b = new_bpe(take_number(&l, MOST_TOKENS + 1));
    const int bytes = take_number(&l, 257);
    b->decodes_only = bytes < 256;
    for (int i = 0; i < bytes; i++) {
        b->of_byte[i] = take_number(&l, b->n);
        expect_none(&l, set_token(b, b->of_byte[i], &(char){(char)i}, 1));
    }
    for (int left = take_number(&l, INT32_MAX); left > 0; left--)
        take_merge(&l, b);
    for (int left = take_number(&l, INT32_MAX); left > 0; left--)
        take_other(&l, b);
    for (int i = 0; i < b->n; i++)
        if (!b->token[i].bytes)
            refuse_line(&l, "ends it, but not all tokens were there");
    free(copy);
    return b;
}

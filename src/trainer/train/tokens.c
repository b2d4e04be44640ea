/* tokens.c - the two built-in tokenizers, bytes and characters, and the one that leaves token numbers as they are. */
#include "data.h"

enum { MAX_TOKENS = 65536 }; /* tokens are kept as uint16_t */

/* ---- UTF-8 ----------------------------------------------------------------------------------------------------- */

static size_t utf8_encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t length = 2;
    if (c >= 0x800)
        length++;
    if (c >= 0x10000)
        length++;
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3F)); /* 10...... has the next lowest six bits */
        c >>= 6;
    }
    out[0] = (char)((0xF00u >> length & 0xFF) | c); /* 110....., 1110.... or 11110... */
    return length;
}

/* The character at byte *at of the text; *at moves on to the next one. */
static uint32_t next_character(const struct text *text, size_t *at)
{
    uint32_t c = 0;
    size_t length = utf8_decode(text->bytes + *at, text->n - *at, &c);
    if (length == 0)
        fail(EXIT_USAGE, "%s is not valid UTF-8 at byte %zu (0x%02X); use --tokens bytes, or convert it to UTF-8",
             text->name, *at, (unsigned)(unsigned char)text->bytes[*at]);
    *at += length;
    return c;
}

/* ---- making tokenizers ----------------------------------------------------------------------------------------- */

struct tokenizer char_tokenizer(const struct text *texts, size_t n_texts)
{
    bool *seen = allocate(CODE_POINTS, sizeof *seen);
    int n = 0;
    for (size_t i = 0; i < n_texts; i++)
        for (size_t at = 0; at < texts[i].n;) {
            uint32_t c = next_character(&texts[i], &at);
            n += !seen[c];
            seen[c] = true;
        }
    if (n > MAX_TOKENS)
        fail(EXIT_USAGE, "the text has %d different characters, at most %d can be tokens; use --tokens bytes", n,
             MAX_TOKENS);
    struct tokenizer t = {.kind = TOKENS_CHARS, .characters = allocate((size_t)n, sizeof *t.characters)};
    for (uint32_t c = 0; c < CODE_POINTS; c++)
        if (seen[c])
            t.characters[t.n++] = c;
    free(seen);
    return t;
}

void free_tokenizer(struct tokenizer *t)
{
    free(t->characters);
    t->characters = NULL;
}

/* ---- encoding -------------------------------------------------------------------------------------------------- */

static size_t encode_bytes(const struct text *text, uint16_t *tokens)
{
    for (size_t i = 0; i < text->n; i++)
        tokens[i] = (unsigned char)text->bytes[i];
    return text->n;
}

static size_t encode_characters(const struct tokenizer *t, const struct text *text, uint16_t *tokens)
{
    int32_t *token_of = allocate(CODE_POINTS, sizeof *token_of); /* 1 + token; 0: no token */
    size_t n = 0;
    for (int i = 0; i < t->n; i++)
        token_of[t->characters[i]] = 1 + i;
    for (size_t at = 0; at < text->n;) {
        size_t start = at;
        uint32_t c = next_character(text, &at);
        char shown[5] = "";
        if (!token_of[c] && c >= 0x20)
            utf8_encode(c, shown);
        if (!token_of[c])
            fail(EXIT_USAGE,
                 "%s has the character '%s' (U+%04X) at byte %zu, which is none of the %d characters of the model's "
                 "vocabulary; leave it out, or train on text that has it",
                 text->name, shown, (unsigned)c, start, t->n);
        tokens[n++] = (uint16_t)(token_of[c] - 1);
    }
    free(token_of);
    return n;
}

static size_t encode_numbers(const struct tokenizer *t, const struct text *text, uint16_t *tokens)
{
    char *copy = copy_string(text->bytes), *rest = copy;
    size_t n = 0;
    for (char *word; (word = strtok_r(rest, " \t\r\n,", &rest));) {
        int64_t id;
        if (!parse_int(word, &id) || id < 0 || id >= t->n)
            fail(EXIT_USAGE,
                 "%s has \"%s\", but this model knows only token numbers: give numbers from 0 to %d, separated by "
                 "spaces",
                 text->name, word, t->n - 1);
        tokens[n++] = (uint16_t)id;
    }
    free(copy);
    return n;
}

uint16_t *encode_text(const struct tokenizer *t, const struct text *text, size_t *n)
{
    uint16_t *tokens = allocate(text->n, sizeof *tokens); /* a token takes a byte at least */
    switch (t->kind) {
    case TOKENS_BYTES:
        *n = encode_bytes(text, tokens);
        break;
    case TOKENS_CHARS:
        *n = encode_characters(t, text, tokens);
        break;
    case TOKENS_IDS:
        *n = encode_numbers(t, text, tokens);
        break;
    }
    return tokens;
}

/* ---- decoding -------------------------------------------------------------------------------------------------- */

size_t decode_token(const struct tokenizer *t, int32_t token, char out[DECODED_BYTES])
{
    if (t->kind == TOKENS_IDS)
        return (size_t)snprintf(out, DECODED_BYTES, "%d ", token);
    if (token < 0 || token >= t->n) /* a model may have more tokens than its tokenizer: padding */
        return utf8_encode(0xFFFD, out);
    if (t->kind == TOKENS_CHARS)
        return utf8_encode(t->characters[token], out);
    out[0] = (char)token;
    return 1;
}

/* ---- as text --------------------------------------------------------------------------------------------------- */

char *tokenizer_to_text(const struct tokenizer *t)
{
    if (!t || t->kind == TOKENS_BYTES)
        return copy_string("bytes");
    if (t->kind == TOKENS_IDS)
        return format_string("ids %d", t->n);
    char *text = allocate(8 + 7 * (size_t)t->n, 1), *end = text; /* " 10ffff" is the longest */
    end += sprintf(end, "chars");
    for (int i = 0; i < t->n; i++)
        end += sprintf(end, " %x", (unsigned)t->characters[i]);
    return text;
}

/* Hexadecimal code points, ascending, each after a space.  A tokenizer without tokens: the text has something else. */
static struct tokenizer read_characters(const char *text)
{
    struct tokenizer t = {.kind = TOKENS_CHARS, .characters = allocate(strlen(text), sizeof *t.characters)};
    const char *at = text;
    while (*at) {
        if (at[0] != ' ' || at[1] == ' ')
            return (struct tokenizer){0};
        char *end;
        unsigned long c = strtoul(at + 1, &end, 16);
        bool ascends = t.n == 0 || c > t.characters[t.n - 1];
        if (end == at + 1 || c >= CODE_POINTS || !ascends || t.n == MAX_TOKENS)
            return (struct tokenizer){0};
        t.characters[t.n++] = (uint32_t)c;
        at = end;
    }
    return t;
}

struct tokenizer tokenizer_from_text(const char *text, const char *path)
{
    int64_t n;
    struct tokenizer t = {0};
    if (strcmp(text, "bytes") == 0)
        t = (struct tokenizer){.kind = TOKENS_BYTES, .n = 256};
    else if (strncmp(text, "ids ", 4) == 0 && parse_int(text + 4, &n) && n >= 1 && n <= INT32_MAX)
        t = (struct tokenizer){.kind = TOKENS_IDS, .n = (int)n};
    else if (strncmp(text, "chars ", 6) == 0)
        t = read_characters(text + strlen("chars"));
    if (t.n == 0)
        fail(EXIT_FAILED,
             "%s is damaged: its tokenizer \"%.40s\" is wrong; expected \"bytes\", \"ids N\" or \"chars\" and "
             "ascending hexadecimal code points",
             path, text);
    return t;
}

/* ---- as Hugging Face's tokenizer.json --------------------------------------------------------------------------- */

/* Bytes are written as GPT-2 does it: those that Latin-1 shows as themselves, the others, in ascending order, as the
 * characters from 256 on ("ByteLevel" knows which). */
static void fill_byte_characters(uint32_t character[256])
{
    uint32_t other = 256;
    for (uint32_t byte = 0; byte < 256; byte++) {
        bool is_shown = (byte > ' ' && byte < 127) || (byte > 160 && byte != 173);
        if (is_shown) {
            character[byte] = byte;
        } else {
            character[byte] = other;
            other++;
        }
    }
}

/* {"a": 0, ...}: character i of n is token i. */
static json_t *vocabulary_json(const uint32_t *character, int n)
{
    json_t *vocab = json_object();
    for (int i = 0; i < n; i++) {
        char token[5];
        size_t length = utf8_encode(character[i], token);
        token[length] = '\0';
        json_object_set_new(vocab, token, json_integer(i));
    }
    return vocab;
}

/* Byte pair encoding that merges nothing, so that tokens are single characters. */
json_t *tokenizer_to_json(const struct tokenizer *t)
{
    json_t *vocab, *level, *decoder;
    if (t->kind == TOKENS_IDS)
        return NULL;
    if (t->kind == TOKENS_CHARS) {
        vocab = vocabulary_json(t->characters, t->n);
        level = json_null();
        decoder = json_pack("{s:s}", "type", "Fuse");
    } else {
        uint32_t character[256];
        fill_byte_characters(character);
        vocab = vocabulary_json(character, t->n);
        level = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", false, "trim_offsets", true,
                          "use_regex", false);
        decoder = json_incref(level);
    }
    return json_pack("{s:s, s:n, s:n, s:[], s:n, s:o, s:n, s:o, s:{s:s, s:b, s:o, s:[]}}", "version", "1.0",
                     "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", level, "post_processor",
                     "decoder", decoder, "model", "type", "BPE", "byte_fallback", false, "vocab", vocab, "merges");
}

/* A tokenizer whose tokens are single characters, numbered from 0 as their code points ascend; one without tokens: the
 * vocabulary has others. */
static struct tokenizer characters_from_json(const json_t *vocab)
{
    const size_t n = json_object_size(vocab);
    struct tokenizer t = {.kind = TOKENS_CHARS, .characters = allocate(n + 1, sizeof *t.characters)};
    bool ours = true;
    const char *token;
    json_t *number;
    json_object_foreach((json_t *)vocab, token, number)
    {
        uint32_t c = 0;
        size_t length = strlen(token);
        bool is_single = length > 0 && utf8_decode(token, length, &c) == length;
        json_int_t i = json_is_integer(number) ? json_integer_value(number) : -1;
        bool is_free = i >= 0 && (size_t)i < n && !t.characters[i]; /* 0 is free: NUL cannot be a key */
        if (is_single && is_free)
            t.characters[i] = c;
        else
            ours = false;
    }
    for (size_t i = 1; i < n; i++)
        ours &= t.characters[i - 1] < t.characters[i];
    if (!ours) {
        free_tokenizer(&t);
        return (struct tokenizer){0};
    }
    t.n = (int)n;
    return t;
}

struct tokenizer tokenizer_from_json(const json_t *json)
{
    const struct tokenizer bytes = {.kind = TOKENS_BYTES, .n = 256};
    const json_t *model = json_object_get(json, "model");
    const json_t *vocab = json_object_get(model, "vocab");
    const json_t *merges = json_object_get(model, "merges");
    const json_t *added = json_object_get(json, "added_tokens");
    const json_t *level = json_object_get(json_object_get(json, "pre_tokenizer"), "type");
    const size_t n = json_object_size(vocab);
    if (n == 0 || n > MAX_TOKENS || json_array_size(merges) > 0 || json_array_size(added) > 0)
        return (struct tokenizer){0};
    if (!level)
        return characters_from_json(vocab);
    if (!json_is_string(level) || strcmp(json_string_value(level), "ByteLevel") != 0)
        return (struct tokenizer){0};
    json_t *ours = tokenizer_to_json(&bytes);
    bool same = json_equal(json_object_get(json_object_get(ours, "model"), "vocab"), vocab);
    json_decref(ours);
    return same ? bytes : (struct tokenizer){0};
}

/* tokens.c - has the trainer's three kinds of tokenizers: bytes, characters, and numbers that were made elsewhere; and
 * finds the kind that a word of --tokens, or a checkpoint's text, names.
 */
#include "tokens.h"
#include "trainer/base/additions.h"
#include "trainer/file/file.h"

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

struct tokenizer byte_tokenizer(void) { return (struct tokenizer){.kind = &token_bytes, .n = BYTE_TOKENS}; }

static struct tokenizer make_bytes(const char *word, const struct texts *train, const struct texts *val)
{
    (void)word;
    (void)train;
    (void)val;
    return byte_tokenizer();
}

static uint16_t *encode_bytes(const struct tokenizer *tokenizer, const struct text *text, size_t *n)
{
    (void)tokenizer;
    uint16_t *tokens = allocate(text->n, sizeof *tokens);
    for (size_t i = 0; i < text->n; i++)
        tokens[i] = (unsigned char)text->bytes[i];
    *n = text->n;
    return tokens;
}

static const char *decode_byte(const struct tokenizer *tokenizer, int32_t token, char own[DECODED_BYTES], size_t *n)
{
    (void)tokenizer;
    own[0] = (char)token;
    *n = 1;
    return own;
}

static struct tokenizer bytes_from_text(const char *text) { return *text ? (struct tokenizer){0} : byte_tokenizer(); }

/* ---- characters -------------------------------------------------------------------------------------------------- */

/* `own` is their code points, ascending: [n] of them. */
static const uint32_t *characters_of(const struct tokenizer *tokenizer) { return tokenizer->own; }

/* The character at byte *at of the text; *at moves on to the next one. */
static uint32_t next_character(const struct text *text, size_t *at)
{
    uint32_t c = 0;
    size_t length = utf8_decode(text->bytes + *at, text->n - *at, &c);
    if (length == 0)
        fail(EXIT_USAGE, "%s is not valid UTF-8 at byte %zu (0x%02X); use --tokens bytes, or convert it to UTF-8",
             text->name, text->before + *at, (unsigned)(unsigned char)text->bytes[*at]);
    *at += length;
    return c;
}

static void see_characters(const struct texts *texts, bool *seen) /* [CODE_POINTS] */
{
    for (size_t i = 0; i < texts->n; i++) {
        size_t at = 0;
        while (at < texts->items[i].n)
            seen[next_character(&texts->items[i], &at)] = true;
    }
}

static struct tokenizer make_characters(const char *word, const struct texts *train, const struct texts *val)
{
    (void)word;
    bool *seen = allocate(CODE_POINTS, sizeof *seen);
    int n = 0;
    see_characters(train, seen);
    see_characters(val, seen);
    for (uint32_t c = 0; c < CODE_POINTS; c++)
        n += seen[c];
    if (n > MOST_TOKENS)
        fail(EXIT_USAGE, "the text has %d different characters, at most %d can be tokens; use --tokens bytes", n,
             MOST_TOKENS);
    uint32_t *characters = allocate_each(n, sizeof *characters);
    struct tokenizer tokenizer = {.kind = &token_chars, .own = characters};
    for (uint32_t c = 0; c < CODE_POINTS; c++)
        if (seen[c])
            characters[tokenizer.n++] = c;
    free(seen);
    return tokenizer;
}

static uint16_t *encode_characters(const struct tokenizer *tokenizer, const struct text *text, size_t *n)
{
    uint16_t *tokens = allocate(text->n, sizeof *tokens);        /* a character takes a byte at least */
    int32_t *token_of = allocate(CODE_POINTS, sizeof *token_of); /* 1 + token; 0: no token */
    *n = 0;
    for (int i = 0; i < tokenizer->n; i++)
        token_of[characters_of(tokenizer)[i]] = 1 + i;
    for (size_t at = 0; at < text->n;) {
        size_t start = at;
        uint32_t c = next_character(text, &at);
        char shown[5] = "";
        if (!token_of[c] && c >= 0x20)
            utf8_encode(c, shown);
        if (!token_of[c])
            fail(EXIT_USAGE,
                 "%s has the character \"%s\" (U+%04X) at byte %zu, which is none of the %d characters of the model's "
                 "vocabulary; leave this character out, or train a model on text that has it",
                 text->name, shown, (unsigned)c, text->before + start, tokenizer->n);
        tokens[*n] = (uint16_t)(token_of[c] - 1);
        *n += 1;
    }
    free(token_of);
    return tokens;
}

static const char *decode_character(const struct tokenizer *tokenizer, int32_t token, char own[DECODED_BYTES],
                                    size_t *n)
{
    *n = utf8_encode(characters_of(tokenizer)[token], own);
    return own;
}

/* Hexadecimal code points, ascending, each after a space. */
static char *characters_to_text(const struct tokenizer *tokenizer)
{
    char *text = allocate(1 + 7 * (size_t)tokenizer->n, 1), *end = text; /* " 10ffff" is the longest */
    for (int i = 0; i < tokenizer->n; i++)
        end += sprintf(end, " %x", (unsigned)characters_of(tokenizer)[i]);
    return text;
}

static struct tokenizer characters_from_text(const char *text)
{
    uint32_t *characters = allocate(strlen(text) + 1, sizeof *characters);
    struct tokenizer tokenizer = {.kind = &token_chars, .own = characters};
    const char *at = text;
    while (*at) {
        char *end;
        bool is_separate = at[0] == ' ' && at[1] != ' ';
        unsigned long c = strtoul(at + 1, &end, 16);
        bool ascends = tokenizer.n == 0 || c > characters[tokenizer.n - 1];
        if (!is_separate || end == at + 1 || c >= CODE_POINTS || !ascends || tokenizer.n == MOST_TOKENS) {
            free(characters);
            return (struct tokenizer){0};
        }
        characters[tokenizer.n++] = (uint32_t)c;
        at = end;
    }
    return tokenizer;
}

static void free_own(struct tokenizer *tokenizer) { free(tokenizer->own); }

/* ---- ids: the numbers of tokens, without a meaning --------------------------------------------------------------- */

struct tokenizer id_tokenizer(int n) { return (struct tokenizer){.kind = &token_ids, .n = n, .takes_ids = true}; }

uint16_t *encode_ids(const struct tokenizer *tokenizer, const struct text *text, size_t *n)
{
    static const char separators[] = " \t\r\n,";
    char *copy = format_string("%.*s", (int)text->n, text->bytes), *rest = NULL;
    uint16_t *tokens = allocate(text->n, sizeof *tokens);
    *n = 0;
    for (char *word = strtok_r(copy, separators, &rest); word; word = strtok_r(NULL, separators, &rest)) {
        int64_t id;
        if (!parse_int(word, &id) || id < 0 || id >= tokenizer->n)
            fail(EXIT_USAGE,
                 "%s has \"%s\", but this model knows only token numbers: give numbers from 0 to %d, separated by "
                 "spaces, or its tokenizer with --tokens FILE",
                 text->name, word, tokenizer->n - 1);
        tokens[*n] = (uint16_t)id;
        *n += 1;
    }
    free(copy);
    return tokens;
}

static const char *decode_id(const struct tokenizer *tokenizer, int32_t token, char own[DECODED_BYTES], size_t *n)
{
    (void)tokenizer;
    *n = (size_t)snprintf(own, DECODED_BYTES, "%d ", token);
    return own;
}

static char *ids_to_text(const struct tokenizer *tokenizer) { return format_string(" %d", tokenizer->n); }

static struct tokenizer ids_from_text(const char *text)
{
    int64_t n;
    if (*text != ' ' || !parse_int(text + 1, &n) || n < 1 || n > INT32_MAX)
        return (struct tokenizer){0};
    return id_tokenizer((int)n);
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

const struct token_kind token_bytes = {
    .name = "bytes",
    .word = "bytes",
    .noun = "bytes",
    .make = make_bytes,
    .encode = encode_bytes,
    .decode = decode_byte,
    .from_text = bytes_from_text,
};
const struct token_kind token_chars = {
    .name = "chars",
    .word = "chars",
    .noun = "characters",
    .make = make_characters,
    .encode = encode_characters,
    .decode = decode_character,
    .to_text = characters_to_text,
    .from_text = characters_from_text,
    .free = free_own,
};
const struct token_kind token_ids = {
    .name = "ids",
    .noun = "ids",
    .encode = encode_ids,
    .decode = decode_id,
    .to_text = ids_to_text,
    .from_text = ids_from_text,
};

static const struct token_kind *const own_kinds[] = {&token_bytes, &token_chars, &token_ids};

/* Kind number i, of the trainer's own kinds and then the folder's; NULL: there are fewer kinds. */
static const struct token_kind *kind_at(size_t i)
{
    if (i < COUNT(own_kinds))
        return own_kinds[i];
    return i == COUNT(own_kinds) ? find_further_tokens() : NULL;
}

/* The folder of the option --tokens has the further kind. */
static const char *without_folder(void) { return is_left_out("tokens") ? "; this yard was built without tokens" : ""; }

/* Does the text begin with the kind's name, and then end or have one of these characters? */
static bool begins_with_name(const struct token_kind *kind, const char *text, const char *next)
{
    size_t length = strlen(kind->name);
    return strncmp(text, kind->name, length) == 0 && (!text[length] || strchr(next, text[length]));
}

/* The kind of a word of --tokens; NULL: the word is a file's name, or wrong. */
static const struct token_kind *kind_of_word(const char *word)
{
    for (size_t i = 0; kind_at(i); i++) {
        const struct token_kind *kind = kind_at(i);
        if (kind->make && begins_with_name(kind, word, kind->check ? ":" : ""))
            return kind;
    }
    return NULL;
}

const char *file_of_tokens(const char *word) { return kind_of_word(word) ? NULL : word; }

void check_tokens(const char *word)
{
    const struct token_kind *kind = kind_of_word(word);
    if (kind && kind->check)
        kind->check(word);
    if (kind || (exists(word) && !is_folder(word)))
        return;
    char *words = copy_string("");
    for (size_t i = 0; kind_at(i); i++)
        if (kind_at(i)->word)
            append_text(&words, "%s, ", kind_at(i)->word);
    const char *why = is_folder(word) ? "since it is a folder: name the file in it" : "and no such file is here";
    fail(EXIT_USAGE, "--tokens takes %sor the FILE of a tokenizer: \"%s\" is none of these, %s%s", words, word, why,
         without_folder());
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static struct tokenizer read_tokenizer(const char *path)
{
    const struct token_kind *further = find_further_tokens();
    if (!further)
        fail(EXIT_USAGE, "--tokens %s: this program cannot read the file of a tokenizer%s", path, without_folder());
    return further->files->read(path);
}

struct tokenizer make_tokenizer(const char *word, const struct texts *train, const struct texts *val)
{
    const struct token_kind *kind = kind_of_word(word);
    if (kind)
        return kind->make(word, train, val);
    return read_tokenizer(word);
}

/* Does the file have just these tokens? */
static bool is_in_file(const struct tokenizer *tokenizer, const char *path)
{
    struct tokenizer other = read_tokenizer(path);
    char *ours = tokenizer_to_text(tokenizer);
    char *theirs = tokenizer_to_text(&other);
    bool same = strcmp(ours, theirs) == 0;
    free(ours);
    free(theirs);
    free_tokenizer(&other);
    return same;
}

bool is_tokenizer(const struct tokenizer *tokenizer, const char *word)
{
    if (file_of_tokens(word))
        return is_in_file(tokenizer, word);
    return kind_of_word(word) == tokenizer->kind && !tokenizer->kind->learns;
}

struct tokenizer tokenizer_beside(const char *model)
{
    const struct token_kind *further = find_further_tokens();
    return further ? further->files->read_beside(model) : (struct tokenizer){0};
}

void fit_tokenizer(struct tokenizer *tokenizer, int vocab, const char *model)
{
    int n = tokenizer->n;
    if (n <= vocab)
        return;
    if (!tokenizer->kind->drop || !tokenizer->kind->drop(tokenizer, vocab))
        fail(EXIT_FAILED,
             "%s: the tokenizer has %d tokens and the model only %d, so they do not belong together; put the model's "
             "own tokenizer there, or remove the tokenizer and give token numbers",
             model, n, vocab);
    warn("%s: the tokenizer has %d tokens and the model only %d; the tokens beyond these stand for special texts, "
         "which are read like any other text",
         model, n, vocab);
}

void free_tokenizer(struct tokenizer *tokenizer)
{
    if (tokenizer->n && tokenizer->kind->free)
        tokenizer->kind->free(tokenizer);
    *tokenizer = (struct tokenizer){0};
}

/* ---- using ------------------------------------------------------------------------------------------------------- */

uint16_t *encode_text(const struct tokenizer *tokenizer, const struct text *text, size_t *n)
{
    return tokenizer->kind->encode(tokenizer, text, n);
}

const char *decode_token(const struct tokenizer *tokenizer, int32_t token, char own[DECODED_BYTES], size_t *n)
{
    bool is_known = token >= 0 && token < tokenizer->n;
    if (is_known || tokenizer->kind == &token_ids)
        return tokenizer->kind->decode(tokenizer, token, own, n);
    *n = utf8_encode(0xFFFD, own); /* a model may have more tokens than its tokenizer: padding */
    return own;
}

int end_of_text(const struct tokenizer *tokenizer)
{
    return tokenizer->kind->end ? tokenizer->kind->end(tokenizer) : -1;
}

char *tokenizer_to_text(const struct tokenizer *tokenizer)
{
    if (!tokenizer)
        return copy_string("bytes");
    char *rest = tokenizer->kind->to_text ? tokenizer->kind->to_text(tokenizer) : copy_string("");
    char *text = format_string("%s%s", tokenizer->kind->name, rest);
    free(rest);
    return text;
}

struct tokenizer tokenizer_from_text(const char *text, const char *path)
{
    struct tokenizer tokenizer = {0};
    size_t i = 0;
    while (kind_at(i) && !begins_with_name(kind_at(i), text, " "))
        i++;
    const struct token_kind *kind = kind_at(i);
    if (kind)
        tokenizer = kind->from_text(text + strlen(kind->name));
    if (!kind && is_left_out("tokens"))
        fail(EXIT_USAGE, "%s has a tokenizer of the kind \"%.*s\", which this program cannot read%s", path,
             (int)MIN(strcspn(text, " "), 40), text, without_folder());
    if (tokenizer.n == 0)
        fail(EXIT_FAILED,
             "%s is damaged: its tokenizer \"%.40s\" is wrong; expected \"bytes\", \"ids N\" or \"chars\" and "
             "ascending hexadecimal code points",
             path, text);
    return tokenizer;
}

json_t *tokenizer_to_json(const struct tokenizer *tokenizer)
{
    const struct token_kind *further = find_further_tokens();
    return further ? further->files->to_json(tokenizer) : NULL;
}

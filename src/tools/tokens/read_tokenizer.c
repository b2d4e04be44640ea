/* read_tokenizer.c - reads the files in which other programs keep tokenizers.
 *
 *     tokenizer.json              Hugging Face's: {"model": {"type": "BPE", "vocab": {"Ġthe": 262, ...},
 *                                 "merges": ["Ġ t", ...]}, "added_tokens": [{"content": "<|endoftext|>", ...}], ...}
 *     vocab.json, merges.txt      GPT-2's own: the same vocabulary, and the same merges, one per line
 *     gpt2_tokenizer.bin          llm.c's: the bytes of each token, no merges
 *
 * In the first two, bytes are written as characters (byte_names.c).
 */
#include "tokens_parts.h"
#include "trainer/base/json.h"
#include "trainer/file/file.h"
#include "trainer/model_files/model_files.h"

/* ---- refusing what is not computed here -------------------------------------------------------------------------- */

/* A field of tokenizer.json that changes which tokens a text becomes, and the values of it that are computed here. */
struct field_rule {
    const char *part, *field; /* field NULL: the rule is about the part as a whole */
    const char *allowed;      /* a JSON array of values; null among them: the field may be missing */
};
static const struct field_rule rules_of_all[] = {
    {"normalizer", "type", "[null]"},
    {"normalizer", NULL, "[null]"},
    {"model", "type", "[\"BPE\"]"},
    {"model", "dropout", "[null, 0, 0.0]"},
    {"model", "unk_token", "[null]"},
    {"model", "continuing_subword_prefix", "[null, \"\"]"},
    {"model", "end_of_word_suffix", "[null, \"\"]"},
    {"model", "byte_fallback", "[null, false]"},
    {"model", "ignore_merges", "[null, false]"},
    {"post_processor", "type", "[null, \"ByteLevel\", \"TemplateProcessing\"]"},
    {"post_processor", "single", "[null, [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}]]"}};
/* Further rules for a tokenizer that has merges. */
static const struct field_rule rules_with_merges[] = {{"pre_tokenizer", "type", "[\"ByteLevel\"]"},
                                                      {"pre_tokenizer", "add_prefix_space", "[false]"},
                                                      {"pre_tokenizer", "use_regex", "[null, true]"},
                                                      {"decoder", "type", "[null, \"ByteLevel\"]"}};

/* A part of tokenizer.json.  Where the part is a sequence of a single step, this step. */
static const json_t *step_or_part(const json_t *top, const char *name)
{
    const json_t *part = json_object_get(top, name);
    const json_t *steps = json_object_get(part, "pretokenizers");
    return json_array_size(steps) == 1 ? json_array_get(steps, 0) : part;
}

static bool is_among(const json_t *value, const json_t *allowed)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)allowed, i, one)
    {
        bool both_missing = json_is_null(one) && (!value || json_is_null(value));
        if (both_missing || json_equal(one, value))
            return true;
    }
    return false;
}

/* The value that the rule is about.  Where a part should be an object and is not, this is the part: no rule allows
 * it. */
static const json_t *value_of_rule(const json_t *top, const struct field_rule *rule)
{
    const json_t *part = step_or_part(top, rule->part);
    bool has_fields = !part || json_is_null(part) || json_is_object(part);
    if (!rule->field || !has_fields)
        return part;
    return json_object_get(part, rule->field);
}

/* The first rule that the file does not keep; NULL: it keeps all. */
static const struct field_rule *broken_rule(const json_t *top, const struct field_rule *rules, size_t n)
{
    for (const struct field_rule *rule = rules; rule < rules + n; rule++) {
        json_t *allowed = json_loads(rule->allowed, 0, NULL);
        bool keeps = is_among(value_of_rule(top, rule), allowed);
        json_decref(allowed);
        if (!keeps)
            return rule;
    }
    return NULL;
}

bool asks_for_more(const json_t *top) { return broken_rule(top, rules_of_all, COUNT(rules_of_all)) != NULL; }

static void refuse_if_unsupported(const char *path, const json_t *top)
{
    const struct field_rule *rule = broken_rule(top, rules_of_all, COUNT(rules_of_all));
    if (!rule)
        rule = broken_rule(top, rules_with_merges, COUNT(rules_with_merges));
    if (!rule)
        return;
    const json_t *value = value_of_rule(top, rule);
    fail(EXIT_USAGE,
         "%s asks for %s%s%s %.80s, but only byte-level BPE as GPT-2 has it is computed here, and a text would "
         "become other tokens; take the tokenizer of another model",
         path, rule->part, rule->field ? "." : "", rule->field ? rule->field : "",
         value ? dump_json(value, JSON_COMPACT) : "null");
}

/* Fails where the value is there and is no list. */
static void expect_list(const char *path, const char *name, const json_t *value)
{
    if (value && !json_is_null(value) && !json_is_array(value))
        fail(EXIT_FAILED, "%s: its %s must be a list; get a fresh copy of the file", path, name);
}

/* ---- the vocabulary ---------------------------------------------------------------------------------------------- */

struct vocabulary {
    const char *path;
    json_t *numbers;   /* {"Ġthe": 262, ...}, with added tokens too; by name */
    const char **name; /* [n] by token; the strings belong to `numbers` */
    int n;
};

static int number_in_vocabulary(const struct vocabulary *vocabulary, const char *name)
{
    const json_t *number = json_object_get(vocabulary->numbers, name);
    return number ? (int)json_integer_value(number) : NONE;
}

/* An added token may be in the vocabulary too; then it must have the same number there. */
static void add_to_vocabulary(struct vocabulary *vocabulary, size_t i, const json_t *added)
{
    const char *content = json_string_value(json_object_get(added, "content"));
    json_t *id = json_object_get(added, "id");
    if (!content || !json_is_integer(id))
        fail(EXIT_FAILED, "%s: added token %zu must have a content and a number as id", vocabulary->path, i);
    const json_t *known = json_object_get(vocabulary->numbers, content);
    if (known && !json_equal(known, id))
        fail(EXIT_FAILED, "%s: added token %zu, \"%.80s\", has two numbers; expected one", vocabulary->path, i,
             content);
    json_object_set(vocabulary->numbers, content, id);
}

static struct vocabulary number_tokens(const char *path, const json_t *vocab, const json_t *added)
{
    struct vocabulary vocabulary = {.path = path, .numbers = json_object()};
    size_t i;
    const char *name;
    json_t *one;
    json_object_update(vocabulary.numbers, (json_t *)vocab);
    json_array_foreach((json_t *)added, i, one) { add_to_vocabulary(&vocabulary, i, one); }
    size_t n = json_object_size(vocabulary.numbers);
    if (n > MOST_TOKENS)
        fail(EXIT_USAGE,
             "%s has %zu tokens, but token numbers are kept in 16 bits: take a tokenizer of at most %d tokens", path, n,
             MOST_TOKENS);
    vocabulary.n = (int)n;
    vocabulary.name = allocate(n, sizeof *vocabulary.name);
    json_object_foreach(vocabulary.numbers, name, one)
    {
        json_int_t id = json_is_integer(one) ? json_integer_value(one) : -1;
        if (id < 0 || id >= vocabulary.n || vocabulary.name[id])
            fail(EXIT_FAILED, "%s: the token \"%.80s\" must have a number of its own from 0 to %d", path, name,
                 vocabulary.n - 1);
        vocabulary.name[id] = name;
    }
    return vocabulary;
}

static void free_vocabulary(struct vocabulary *vocabulary)
{
    json_decref(vocabulary->numbers);
    free(vocabulary->name);
}

/* ---- a tokenizer from a vocabulary ------------------------------------------------------------------------------- */

static void set_byte_tokens(struct bpe *bpe, const struct vocabulary *vocabulary)
{
    for (int byte = 0; byte < 256; byte++) {
        char one = (char)byte;
        char *name = name_of_bytes(&one, 1);
        int token = number_in_vocabulary(vocabulary, name);
        if (token < 0)
            fail(EXIT_USAGE, "%s has no token \"%s\" for the byte 0x%02X; expected one for each of the 256 bytes",
                 vocabulary->path, name, (unsigned)byte);
        free(name);
        bpe->of_byte[byte] = token;
        must(set_token(bpe, token, &one, 1));
    }
}

struct named_merge { /* merge i of a file: two tokens by their names, which become one */
    const char *path;
    size_t i;
    const char *left, *right;
};

/* why: what follows the name of the merge, "needs ...". */
static _Noreturn void fail_in_merge(const struct named_merge *merge, const char *why)
{
    fail(EXIT_FAILED, "%s: merge %zu, \"%.80s %.80s\", %s", merge->path, merge->i, merge->left, merge->right, why);
}

/* The token of that name, which the merge has or makes. */
static int token_of_merge(const struct named_merge *merge, const struct vocabulary *vocabulary, const char *name)
{
    int token = number_in_vocabulary(vocabulary, name);
    if (token < 0)
        fail_in_merge(merge, format_string("needs \"%.80s\", which is not a token of %s", name, vocabulary->path));
    return token;
}

static void add_named_merge(struct bpe *bpe, const struct vocabulary *vocabulary, const struct named_merge *merge)
{
    char *both = format_string("%s%s", merge->left, merge->right);
    int left = token_of_merge(merge, vocabulary, merge->left);
    int right = token_of_merge(merge, vocabulary, merge->right);
    int result = token_of_merge(merge, vocabulary, both);
    struct problem *problem = add_merge(bpe, left, right, result);
    if (problem)
        fail_in_merge(merge, problem->sentence);
    free(both);
}

/* Reads merge i of the file, which is ["a", "b"] or "a b". */
static void read_merge(struct bpe *bpe, const struct vocabulary *vocabulary, const char *path, size_t i,
                       const json_t *merge)
{
    struct named_merge named = {.path = path,
                                .i = i,
                                .left = json_string_value(json_array_get(merge, 0)),
                                .right = json_string_value(json_array_get(merge, 1))};
    char *copy = NULL;
    if (json_is_string(merge)) {
        copy = copy_string(json_string_value(merge));
        char *rest = copy;
        named.left = strsep(&rest, " ");
        named.right = rest;
    }
    if (!named.left || !named.right || json_array_size(merge) > 2)
        fail(EXIT_FAILED, "%s: merge %zu must have two tokens, as \"a b\" or [\"a\", \"b\"]", path, i);
    add_named_merge(bpe, vocabulary, &named);
    free(copy);
}

static void add_added_token(struct bpe *bpe, const struct vocabulary *vocabulary, const json_t *added)
{
    static const char *const not_computed[] = {"single_word", "lstrip", "rstrip"};
    const char *content = json_string_value(json_object_get(added, "content"));
    for (size_t i = 0; i < COUNT(not_computed); i++)
        if (json_is_true(json_object_get(added, not_computed[i])))
            fail(EXIT_USAGE,
                 "%s asks for %s with the added token \"%.80s\", which is not computed here, and a text would "
                 "become other tokens; take the tokenizer of another model",
                 vocabulary->path, not_computed[i], content);
    struct added_token token = {.token = number_in_vocabulary(vocabulary, content)};
    if (json_is_true(json_object_get(added, "special")))
        token.kinds |= IS_SPECIAL;
    if (json_is_true(json_object_get(added, "normalized")))
        token.kinds |= IS_NORMALIZED;
    struct problem *problem = add_added(bpe, &token, content, strlen(content));
    if (problem)
        fail(EXIT_FAILED, "%s: the added token \"%.80s\" %s", vocabulary->path, content, problem->sentence);
}

/* Sets the bytes of tokens that no merge makes and that are not added.  No text becomes them, but they can be
 * decoded. */
static void set_other_tokens(struct bpe *bpe, const struct vocabulary *vocabulary)
{
    for (int i = 0; i < vocabulary->n; i++) {
        if (bpe->tokens[i].bytes)
            continue;
        size_t n;
        char *bytes = bytes_of_name(vocabulary->name[i], &n);
        if (!bytes)
            fail(EXIT_USAGE, "%s: the token \"%.80s\" has a character that stands for no byte, and is not added",
                 vocabulary->path, vocabulary->name[i]);
        struct problem *problem = set_token(bpe, i, bytes, n);
        if (problem)
            fail(EXIT_FAILED, "%s: the token \"%.80s\" %s", vocabulary->path, vocabulary->name[i], problem->sentence);
        free(bytes);
    }
}

/* path, merges_path: the files of the vocabulary and of the merges, for error messages.  merges NULL: it only
 * decodes. */
static struct bpe *build_bpe(const char *path, const json_t *vocab, const char *merges_path, const json_t *merges,
                             const json_t *added)
{
    expect_list(merges_path, "merges", merges);
    expect_list(path, "added_tokens", added);
    struct vocabulary vocabulary = number_tokens(path, vocab, added);
    if (vocabulary.n == 0)
        fail(EXIT_FAILED, "%s has no tokens; get a fresh copy of the file", path);
    struct bpe *bpe = new_bpe(vocabulary.n);
    size_t i;
    json_t *one;
    bpe->decodes_only = !merges || json_is_null(merges);
    if (!bpe->decodes_only)
        set_byte_tokens(bpe, &vocabulary);
    json_array_foreach((json_t *)merges, i, one) { read_merge(bpe, &vocabulary, merges_path, i, one); }
    json_array_foreach((json_t *)added, i, one) { add_added_token(bpe, &vocabulary, one); }
    set_other_tokens(bpe, &vocabulary);
    free_vocabulary(&vocabulary);
    return bpe;
}

struct bpe *bpe_from_json(const json_t *json, const char *path)
{
    const json_t *model = json_object_get(json, "model");
    const json_t *vocab = json_object_get(model, "vocab");
    refuse_if_unsupported(path, json);
    if (!json_is_object(vocab))
        fail(EXIT_FAILED, "%s: its vocab must be an object, {\"a\": 0, ...}; get a fresh copy of the file", path);
    return build_bpe(path, vocab, path, json_object_get(model, "merges"), json_object_get(json, "added_tokens"));
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static json_t *read_merges(const char *path)
{
    char *text = read_text(path), *rest = text;
    json_t *merges = json_array();
    while (rest) {
        const char *line = trim_text(strsep(&rest, "\n"));
        if (!*line || strncmp(line, "#version", strlen("#version")) == 0)
            continue;
        json_t *merge = json_string(line);
        if (!merge)
            fail(EXIT_FAILED, "%s: merge %zu is not UTF-8", path, json_array_size(merges));
        json_array_append_new(merges, merge);
    }
    free(text);
    return merges;
}

/* The path with the ending `other` instead of `end`. */
static char *path_beside(const char *path, const char *end, const char *other)
{
    return format_string("%.*s%s", (int)(strlen(path) - strlen(end)), path, other);
}

/* GPT-2's two files do not say which tokens are added.  As in other programs, <|endoftext|> is. */
static struct bpe *read_two_files(const char *path, const char *merges_path, const json_t *vocab)
{
    static const char end[] = "<|endoftext|>";
    json_t *added = json_array(), *number = json_object_get(vocab, end);
    json_t *merges = read_merges(merges_path);
    if (number)
        json_array_append_new(added, json_pack("{s:s, s:O, s:b}", "content", end, "id", number, "special", true));
    struct bpe *bpe = build_bpe(path, vocab, merges_path, merges, added);
    json_decref(merges);
    json_decref(added);
    return bpe;
}

/* ---- gpt2_tokenizer.bin of llm.c --------------------------------------------------------------------------------- */

/* A header of 256 int32: magic, version 1 or 2, how many tokens, from version 2 on the end-of-text token; then a byte
 * with the length of each token, and its bytes. */
enum { LLMC_MAGIC = 20240328, GPT2_END = 50256 };

struct llmc_header {
    int32_t magic, version, n_tokens, end;
};

static struct llmc_header read_tokenizer_header(const char *path, const char *file, size_t size)
{
    struct llmc_header header = {0};
    memcpy(&header, file, MIN(size, sizeof header));
    if (size < LLMC_HEADER_BYTES)
        fail(EXIT_FAILED, "%s is cut off: it has %zu bytes, and its header alone %d; get a fresh copy of the file",
             path, size, LLMC_HEADER_BYTES);
    bool is_known = header.version == 1 || header.version == 2;
    if (!is_known || header.n_tokens < 1 || header.n_tokens > MOST_TOKENS)
        fail(EXIT_FAILED, "%s: its header says version %d and %d tokens; expected version 1 or 2 and at most %d", path,
             header.version, header.n_tokens, MOST_TOKENS);
    if (header.version == 1)
        header.end = GPT2_END;
    return header;
}

static struct bpe *read_llmc(const char *path)
{
    size_t size, at = LLMC_HEADER_BYTES;
    char *file = read_whole(path, &size);
    const struct llmc_header header = read_tokenizer_header(path, file, size);
    json_t *vocab = json_object(), *added = json_array();
    for (int i = 0; i < header.n_tokens; i++) {
        size_t n = at < size ? (unsigned char)file[at] : 0;
        if (n == 0 || n > size - at - 1)
            fail(EXIT_FAILED, "%s is damaged: token %d has no bytes, or the file ends before them", path, i);
        char *name = name_of_bytes(file + at + 1, n);
        set_json_integer(vocab, name, i);
        if (i == header.end)
            json_array_append_new(added, json_pack("{s:s, s:i, s:b}", "content", name, "id", i, "special", true));
        free(name);
        at += 1 + n;
    }
    if (at != size)
        fail(EXIT_FAILED, "%s is damaged: it goes on after its last token, at byte %zu of %zu", path, at, size);
    struct bpe *bpe = build_bpe(path, vocab, path, NULL, added);
    json_decref(vocab);
    json_decref(added);
    free(file);
    return bpe;
}

/* ---- any of them ------------------------------------------------------------------------------------------------- */

static _Noreturn void fail_in_tokenizer(const char *path, const char *why)
{
    fail(EXIT_USAGE,
         "%s is not a tokenizer: it %s; expected Hugging Face's tokenizer.json, or vocab.json with merges.txt beside "
         "it, or llm.c's gpt2_tokenizer.bin",
         path, why);
}

struct bpe *read_bpe(const char *path)
{
    static const char vocab[] = "vocab.json", merges[] = "merges.txt";
    if (has_magic(path, LLMC_MAGIC))
        return read_llmc(path);
    bool is_merges = ends_with(path, merges);
    char *vocab_path = is_merges ? path_beside(path, merges, vocab) : copy_string(path);
    refuse_if_other_kind(vocab_path, KIND_OTHER, "a tokenizer");
    char *text = read_text(vocab_path);
    if (!begins_json(text))
        fail_in_tokenizer(path, "is no JSON object");
    json_t *json = parse_json(vocab_path, text);
    free(text);
    struct bpe *bpe = NULL;
    if (json_is_object(json_object_get(json, "model"))) { /* in vocab.json it may be a token: a number */
        bpe = bpe_from_json(json, vocab_path);
    } else if (ends_with(vocab_path, vocab)) {
        char *merges_path = path_beside(vocab_path, vocab, merges);
        bpe = read_two_files(vocab_path, merges_path, json);
        free(merges_path);
    } else {
        fail_in_tokenizer(path, "has no \"model\"");
    }
    json_decref(json);
    free(vocab_path);
    return bpe;
}

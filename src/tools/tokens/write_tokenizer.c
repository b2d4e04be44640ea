/* write_tokenizer.c - writes a tokenizer as tokenizer.json, which read_tokenizer.c describes. */
#include "tokens_parts.h"
#include "trainer/base/json.h"

/* How tokenizer.json writes a token; the caller frees it. */
static char *name_of_token(const struct bpe *bpe, int id)
{
    const struct token *token = &bpe->tokens[id];
    if (token->is_added)
        return format_string("%.*s", (int)token->n, token->bytes);
    return name_of_bytes(token->bytes, token->n);
}

static json_t *vocabulary_json(const struct bpe *bpe)
{
    json_t *vocab = json_object();
    for (int i = 0; i < bpe->n; i++) {
        char *name = name_of_token(bpe, i);
        if (json_object_get(vocab, name))
            fail(EXIT_FAILED, "the tokenizer has two tokens that a tokenizer.json would write \"%.80s\"", name);
        set_json_integer(vocab, name, i);
        free(name);
    }
    return vocab;
}

static json_t *merges_json(const struct bpe *bpe)
{
    if (bpe->decodes_only)
        return json_null();
    json_t *merges = json_array();
    for (size_t i = 0; i < bpe->n_merges; i++) {
        char *left = name_of_token(bpe, bpe->merges[i].left), *right = name_of_token(bpe, bpe->merges[i].right);
        char *both = format_string("%s %s", left, right);
        json_array_append_new(merges, json_string(both));
        free(left);
        free(right);
        free(both);
    }
    return merges;
}

static json_t *added_json(const struct bpe *bpe)
{
    json_t *list = json_array();
    for (size_t i = 0; i < bpe->n_added; i++) {
        const struct added_token *added = &bpe->added[i];
        char *content = name_of_token(bpe, added->token);
        json_t *token = json_object();
        set_json_integer(token, "id", added->token);
        set_json_text(token, "content", content);
        set_json_truth(token, "single_word", false);
        set_json_truth(token, "lstrip", false);
        set_json_truth(token, "rstrip", false);
        set_json_truth(token, "normalized", (added->kinds & IS_NORMALIZED) != 0);
        set_json_truth(token, "special", (added->kinds & IS_SPECIAL) != 0);
        json_array_append_new(list, token);
        free(content);
    }
    return list;
}

json_t *byte_level_json(enum cutting_of_text cutting)
{
    json_t *level = json_object();
    set_json_text(level, "type", "ByteLevel");
    set_json_truth(level, "add_prefix_space", false);
    set_json_truth(level, "trim_offsets", true);
    set_json_truth(level, "use_regex", cutting == CUTS_WORDS);
    return level;
}

json_t *tokenizer_json(json_t *added, json_t *before, json_t *decoder, json_t *model)
{
    json_t *tokenizer = json_object();
    set_json_text(tokenizer, "version", "1.0");
    json_object_set_new(tokenizer, "truncation", json_null());
    json_object_set_new(tokenizer, "padding", json_null());
    json_object_set_new(tokenizer, "added_tokens", added);
    json_object_set_new(tokenizer, "normalizer", json_null());
    json_object_set_new(tokenizer, "pre_tokenizer", before);
    json_object_set_new(tokenizer, "post_processor", json_null());
    json_object_set_new(tokenizer, "decoder", decoder);
    json_object_set_new(tokenizer, "model", model);
    return tokenizer;
}

json_t *bpe_to_json(const struct bpe *bpe)
{
    json_t *level = byte_level_json(CUTS_WORDS);
    json_t *model = json_object();
    set_json_text(model, "type", "BPE");
    json_object_set_new(model, "dropout", json_null());
    json_object_set_new(model, "unk_token", json_null());
    json_object_set_new(model, "continuing_subword_prefix", json_null());
    json_object_set_new(model, "end_of_word_suffix", json_null());
    set_json_truth(model, "fuse_unk", false);
    set_json_truth(model, "byte_fallback", false);
    set_json_truth(model, "ignore_merges", false);
    json_object_set_new(model, "vocab", vocabulary_json(bpe));
    json_object_set_new(model, "merges", merges_json(bpe));
    return tokenizer_json(added_json(bpe), level, json_incref(level), model);
}

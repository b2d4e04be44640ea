/* write_tokenizer.c - writes a tokenizer as tokenizer.json, which read_tokenizer.c describes. */
#include "tokens_parts.h"

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
        json_object_set_new(vocab, name, json_integer(i));
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
        const struct added *added = &bpe->added[i];
        char *content = name_of_token(bpe, added->token);
        json_array_append_new(list, json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", added->token, "content",
                                              content, "single_word", false, "lstrip", false, "rstrip", false,
                                              "normalized", (added->kinds & IS_NORMALIZED) != 0, "special",
                                              (added->kinds & IS_SPECIAL) != 0));
        free(content);
    }
    return list;
}

json_t *byte_level_json(enum cutting_of_text cutting)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", false, "trim_offsets", true,
                     "use_regex", cutting == CUTS_WORDS);
}

json_t *tokenizer_json(json_t *added, json_t *before, json_t *decoder, json_t *model)
{
    return json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:n, s:o, s:o}", "version", "1.0", "truncation", "padding",
                     "added_tokens", added, "normalizer", "pre_tokenizer", before, "post_processor", "decoder", decoder,
                     "model", model);
}

json_t *bpe_to_json(const struct bpe *bpe)
{
    json_t *level = byte_level_json(CUTS_WORDS);
    json_t *model =
        json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout", "unk_token",
                  "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", false, "byte_fallback", false,
                  "ignore_merges", false, "vocab", vocabulary_json(bpe), "merges", merges_json(bpe));
    return tokenizer_json(added_json(bpe), level, json_incref(level), model);
}

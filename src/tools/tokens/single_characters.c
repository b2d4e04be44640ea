/* single_characters.c - writes and reads the tokenizers of bytes and of characters as tokenizer.json.  There they are
 * byte pair encodings that merge nothing, so each token is a single character. */
#include "tokens_parts.h"
#include "trainer/base/json.h"

/* {"a": 0, ...}: character i of n is token i. */
static json_t *single_vocabulary(const uint32_t *character, int n)
{
    json_t *vocab = json_object();
    for (int i = 0; i < n; i++) {
        char token[5];
        size_t length = utf8_encode(character[i], token);
        token[length] = '\0';
        set_json_integer(vocab, token, i);
    }
    return vocab;
}

static json_t *single_json(json_t *vocab, json_t *before, json_t *decoder)
{
    json_t *model = json_object();
    set_json_text(model, "type", "BPE");
    json_object_set_new(model, "byte_fallback", json_false());
    json_object_set_new(model, "vocab", vocab);
    json_object_set_new(model, "merges", json_array());
    return tokenizer_json(json_array(), before, decoder, model);
}

static json_t *bytes_to_json(const struct tokenizer *tokenizer)
{
    uint32_t character[256];
    byte_characters(character);
    json_t *level = byte_level_json(CUTS_NOTHING);
    return single_json(single_vocabulary(character, tokenizer->n), level, json_incref(level));
}

static json_t *characters_to_json(const struct tokenizer *tokenizer)
{
    return single_json(single_vocabulary(tokenizer->own, tokenizer->n), json_null(),
                       json_pack("{s:s}", "type", "Fuse"));
}

/* The tokenizer of this vocabulary, if its tokens are single characters, numbered from 0 in the order of their code
 * points; else a tokenizer without tokens. */
static struct tokenizer characters_from_json(const json_t *vocab)
{
    size_t n = json_object_size(vocab);
    uint32_t *characters = allocate(n + 1, sizeof *characters);
    bool is_ours = true;
    const char *token;
    json_t *number;
    json_object_foreach((json_t *)vocab, token, number)
    {
        uint32_t c = 0;
        size_t length = strlen(token);
        bool is_single = length > 0 && utf8_decode(token, length, &c) == length;
        json_int_t i = json_is_integer(number) ? json_integer_value(number) : -1;
        bool is_free = i >= 0 && (size_t)i < n && !characters[i]; /* 0 means free, since NUL cannot be a key */
        if (is_single && is_free)
            characters[i] = c;
        else
            is_ours = false;
    }
    for (size_t i = 1; i < n; i++)
        is_ours &= characters[i - 1] < characters[i];
    if (!is_ours) {
        free(characters);
        return (struct tokenizer){0};
    }
    return (struct tokenizer){.kind = &token_chars, .n = (int)n, .own = characters};
}

struct tokenizer single_from_json(const json_t *json)
{
    const struct tokenizer none = {0}, bytes = byte_tokenizer();
    const json_t *model = json_object_get(json, "model");
    const json_t *vocab = json_object_get(model, "vocab");
    const json_t *before = json_object_get(json, "pre_tokenizer");
    size_t n = json_object_size(vocab);
    bool has_more = json_array_size(json_object_get(model, "merges")) > 0 ||
                    json_array_size(json_object_get(json, "added_tokens")) > 0 || asks_for_more(json);
    if (n == 0 || n > MOST_TOKENS || has_more)
        return none;
    if (!before || json_is_null(before))
        return characters_from_json(vocab);
    json_t *ours = bytes_to_json(&bytes);
    bool same = json_equal(json_object_get(ours, "pre_tokenizer"), before) &&
                json_equal(json_object_get(json_object_get(ours, "model"), "vocab"), vocab);
    json_decref(ours);
    return same ? bytes : none;
}

json_t *single_to_json(const struct tokenizer *tokenizer)
{
    if (tokenizer->kind == &token_bytes)
        return bytes_to_json(tokenizer);
    return tokenizer->kind == &token_chars ? characters_to_json(tokenizer) : NULL;
}

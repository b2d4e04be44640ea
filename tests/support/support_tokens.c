/* support_tokens.c - texts and tokenizers for the tests of src/tools/tokens. */
#include "support_tokens.h"

struct text text_of(const char *bytes) { return (struct text){.name = "a text", .bytes = bytes, .n = strlen(bytes)}; }

const char *const two_added[] = {"<|end|>", "<|end|>ing", NULL};

struct bpe *only_bytes(int n)
{
    struct text nothing = text_of("");
    return learn_bpe(&nothing, 1, n, two_added);
}

struct text random_text(struct draws *draws, size_t n)
{
    static const char *const parts[] = {"a",      "b",      "ab",     "ba",   "Z",       "7",          "12",
                                        " ",      " ",      "  ",     "\n",   "\t",      "\r\n",       "'s",
                                        "'ll",    "'",      "!",      "...",  "é",       "ß",          "я",
                                        "漢",     "\xC3",   "\xFF",   "٣",    "😀",       "\u00A0",     "\u2003",
                                        "\u3000", "\u200D", "\u0301", "<|en", "<|end|>", "<|end|>ing", "\xED\xA0\x80"};
    char *bytes = allocate(n + 16, 1);
    struct text text = {.name = "a random text", .bytes = bytes};
    /* A few parts make long words, and many equal ones. */
    size_t most = draw_below(draws, 2) ? COUNT(parts) + 1 : 8;
    while (text.n < n) {
        size_t i = draw_below(draws, most);
        char byte[2] = {(char)draw_below(draws, 256)};
        const char *part = i < COUNT(parts) ? parts[i] : byte;
        size_t length = i < COUNT(parts) ? strlen(part) : 1;
        memcpy(bytes + text.n, part, length);
        text.n += length;
    }
    return text;
}

struct bpe *random_bpe(struct draws *draws, int n)
{
    static const char few[] = "aabbZ7  \xC3\xA9'";
    struct bpe *bpe = only_bytes(n);
    size_t letters = COUNT(few) - 1;
    while (bpe->n < n) {
        int pair[2];
        for (int i = 0; i < 2; i++) {
            size_t k = draw_below(draws, letters + (size_t)bpe->n - 258);
            pair[i] = k < letters ? bpe->of_byte[(unsigned char)few[k]] : 258 + (int)(k - letters);
        }
        const struct token *left = &bpe->tokens[pair[0]], *right = &bpe->tokens[pair[1]];
        char *both = format_string("%.*s%.*s", (int)left->n, left->bytes, (int)right->n, right->bytes);
        bool known = strlen(both) > 12;
        for (int i = 258; i < bpe->n; i++)
            known |= bpe->tokens[i].n == strlen(both) && memcmp(bpe->tokens[i].bytes, both, strlen(both)) == 0;
        free(both);
        if (known)
            continue;
        assert_null(add_merge(bpe, pair[0], pair[1], bpe->n));
        bpe->n++;
    }
    return bpe;
}

void expect_decoded(const struct bpe *bpe, const struct text *text, const uint16_t *tokens, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const char *bytes = bpe_decode(bpe, tokens[i], &length);
        assert_at_most(at + length, text->n);
        assert_memory_equal(bytes, text->bytes + at, length);
        at += length;
    }
    assert_int_equal(at, text->n);
}

/* test_tokenizer.c - tokenizers whose tokens are bytes, characters or numbers.
 *
 * It tests tokens.c (src/trainer/data) and utf8.c (src/trainer/base).  It checks that decoding gives the text back that
 * was encoded, that what is not UTF-8 is refused at its first wrong byte, and that a tokenizer which is written as text
 * and read again is the same.  It catches a code point that is read too long or past the end of the text, tokens in
 * another order than their characters, and a line of a checkpoint that is believed although it is damaged.
 *
 * To see it fail: in utf8.c, let surrogates pass (0xD800 to 0xDFFF).
 *
 * RFC 3629 says what UTF-8 is.  The texts are in this program.  test_tokens.c tests BPE.
 */
#include "tests/support/child.h"
#include "trainer/data/data.h"

static struct text prompt_of(const char *bytes)
{
    return (struct text){.name = "--prompt", .bytes = bytes, .n = strlen(bytes)};
}

/* ---- characters -------------------------------------------------------------------------------------------------- */

static struct tokenizer char_tokenizer(const struct text *text)
{
    const struct texts train = {.items = (struct text *)text, .n = 1};
    const struct texts val = {0};
    return make_tokenizer("chars", &train, &val);
}

/* Writes what the token stands for to `out`, and returns its length. */
static size_t decode(const struct tokenizer *tokenizer, int32_t token, char out[DECODED_BYTES])
{
    char own[DECODED_BYTES];
    size_t n;
    const char *bytes = decode_token(tokenizer, token, own, &n);
    assert_in_range(n, 1, DECODED_BYTES);
    memcpy(out, bytes, n);
    return n;
}

TEST(characters_are_code_points_in_order)
{
    struct text text = prompt_of("z\xF0\x9F\x98\x80"
                                 "a\xC3\xA9\xE6\xBC\xA2\n"
                                 "az\xF4\x8F\xBF\xBF");
    struct tokenizer tokenizer = char_tokenizer(&text);
    static const uint32_t expected[] = {'\n', 'a', 'z', 0xE9, 0x6F22, 0x1F600, 0x10FFFF};
    static const uint16_t expected_tokens[] = {2, 5, 1, 3, 4, 0, 1, 2, 6};
    assert_int_equal(tokenizer.n, COUNT(expected));
    assert_memory_equal(tokenizer.own, expected, sizeof expected);
    size_t n, at = 0;
    uint16_t *tokens = encode_text(&tokenizer, &text, &n);
    assert_int_equal(n, COUNT(expected_tokens));
    assert_memory_equal(tokens, expected_tokens, sizeof expected_tokens);
    for (size_t i = 0; i < n; i++) { /* decoding gives the text back */
        char out[DECODED_BYTES];
        size_t length = decode(&tokenizer, tokens[i], out);
        assert_memory_equal(text.bytes + at, out, length);
        at += length;
    }
    assert_int_equal(at, text.n);
    free(tokens);
    free_tokenizer(&tokenizer);
}

static void make_char_tokenizer(void *text) { char_tokenizer(text); }

TEST(invalid_utf8_is_refused)
{
    static const char *const invalid[] = {
        "ab\x80",  /* a continuation byte alone */
        "ab\xC3",  /* cut short by the end */
        "ab\xC3z", /* cut short by another character */
        "ab\xE6\xBC",
        "ab\xF0\x9F\x98",
        "ab\xC0\x80", /* longer than necessary */
        "ab\xC1\xBF",
        "ab\xE0\x9F\xBF",
        "ab\xF0\x8F\xBF\xBF",
        "ab\xED\xA0\x80", /* surrogates */
        "ab\xED\xBF\xBF",
        "ab\xF4\x90\x80\x80", /* beyond U+10FFFF */
        "ab\xF8\x88\x80\x80\x80",
        "ab\xFF",
    };
    for (size_t i = 0; i < COUNT(invalid); i++) {
        struct text text = prompt_of(invalid[i]);
        expect_refusal(make_char_tokenizer, &text, EXIT_USAGE, "--prompt is not valid UTF-8 at byte 2 (0x");
    }
    struct text cut = {.name = "--prompt", .bytes = "ab\xC3\xA9", .n = 3}; /* no byte after its end may be read */
    expect_refusal(make_char_tokenizer, &cut, EXIT_USAGE, "at byte 2 (0xC3)");
}

/* The first and the last code point of each length, and those beside the surrogates. */
TEST(characters_at_the_borders_of_utf8_are_kept)
{
    static const char *const borders[] = {"\x7F",         "\xC2\x80",         "\xDF\xBF",
                                          "\xE0\xA0\x80", "\xED\x9F\xBF",     "\xEE\x80\x80",
                                          "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"};
    for (size_t i = 0; i < COUNT(borders); i++) {
        struct text text = prompt_of(borders[i]);
        struct tokenizer tokenizer = char_tokenizer(&text);
        char out[DECODED_BYTES];
        assert_int_equal(decode(&tokenizer, 0, out), text.n);
        assert_memory_equal(out, text.bytes, text.n);
        free_tokenizer(&tokenizer);
    }
}

/* ---- prompts ----------------------------------------------------------------------------------------------------- */

struct prompt {
    struct tokenizer tokenizer;
    struct text text;
};

static void encode_prompt(void *argument)
{
    struct prompt *prompt = argument;
    size_t n;
    free(encode_text(&prompt->tokenizer, &prompt->text, &n));
}

TEST(bytes_are_their_own_tokens)
{
    struct tokenizer bytes = tokenizer_from_text("bytes", "here");
    struct text text = prompt_of("\xC3\xA9 17,99\n0");
    size_t n;
    uint16_t *tokens = encode_text(&bytes, &text, &n);
    assert_int_equal(n, text.n);
    assert_int_equal(tokens[0], 0xC3);
    free(tokens);
    char out[DECODED_BYTES];
    assert_int_equal(decode(&bytes, 0xFF, out), 1);
    assert_int_equal(decode(&bytes, 300, out), 3); /* U+FFFD, of 3 bytes, for what has no meaning */
}

TEST(a_prompt_may_be_token_numbers)
{
    static const uint16_t expected[] = {17, 99, 0};
    struct tokenizer ids = tokenizer_from_text("ids 100", "here");
    struct text text = prompt_of(" 17, 99\n0");
    size_t n;
    uint16_t *tokens = encode_text(&ids, &text, &n);
    assert_int_equal(n, COUNT(expected));
    assert_memory_equal(tokens, expected, sizeof expected);
    free(tokens);
    char out[DECODED_BYTES];
    assert_int_equal(decode(&ids, 17, out), 3);
    assert_memory_equal(out, "17 ", 3);
}

TEST(prompts_of_what_the_model_does_not_know_are_refused)
{
    struct prompt wrong = {tokenizer_from_text("ids 100", "here"), prompt_of("5 100")};
    expect_refusal(encode_prompt, &wrong, EXIT_USAGE, "--prompt has \"100\", but this model knows only token numbers");
    wrong.text = prompt_of("hello");
    expect_refusal(encode_prompt, &wrong, EXIT_USAGE, "numbers from 0 to 99");
    wrong = (struct prompt){tokenizer_from_text("chars 61 62", "here"), prompt_of("ab\xC3\xA9")};
    expect_refusal(encode_prompt, &wrong, EXIT_USAGE, "--prompt has the character \"\xC3\xA9\" (U+00E9) at byte 2");
    free_tokenizer(&wrong.tokenizer);
}

/* ---- the line of a checkpoint ------------------------------------------------------------------------------------ */

static void read_tokenizer(void *text) { tokenizer_from_text(text, "ckpt"); }

TEST(a_tokenizer_comes_back_from_its_line)
{
    static const char *const good[] = {"bytes", "ids 50257", "chars a 20 61 e9 6f22 10ffff", "chars 0"};
    for (size_t i = 0; i < COUNT(good); i++) {
        struct tokenizer tokenizer = tokenizer_from_text(good[i], "ckpt");
        char *text = tokenizer_to_text(&tokenizer);
        assert_string_equal(text, good[i]);
        free(text);
        free_tokenizer(&tokenizer);
    }
}

TEST(damaged_lines_are_refused)
{
    static const char *const bad[] = {
        "",          "byte",        "bytes ",    "ids",         "ids 0",       "ids x",     "ids 99999999999",
        "chars",     "chars ",      "chars  61", "chars 61 61", "chars 62 61", "chars 61 ", "chars 110000",
        "chars 61x", "chars 61 zz", "chars -61", "chars 61\t62"};
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_refusal(read_tokenizer, (void *)bad[i], EXIT_FAILED, "ckpt is damaged: its tokenizer");
}

/* test_text.c - numbers as text and back, bytes that are shown as text, and lines that are folded.
 *
 * It tests text.c and utf8.c of src/trainer/base.  It checks that a text which is no number is refused as a whole, and
 * that whatever bytes come, what is shown is UTF-8 that a terminal does not obey.  It catches a number that is read
 * although letters follow it, a character that is lost where a stream is cut, and a line that is wider than asked for.
 *
 * To see it fail: in text.c, let parse_bytes() leave out toupper().
 *
 * Expected texts and numbers stand beside what gives them.
 */
#include "tests/support/child.h"
#include "trainer/base/base.h"

#include <math.h>

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

TEST(bytes_have_three_digits_and_a_unit)
{
    char out[NUMBER_TEXT];
    assert_string_equal(format_bytes(out, 0), "0 B");
    assert_string_equal(format_bytes(out, 17), "17 B");
    assert_string_equal(format_bytes(out, 1023), "1023 B");
    assert_string_equal(format_bytes(out, 1024), "1.00 KiB");
    assert_string_equal(format_bytes(out, 12595.2), "12.3 KiB");
    assert_string_equal(format_bytes(out, 1.5 * (1 << 30)), "1.50 GiB");
    assert_string_equal(format_bytes(out, 1048575), "1.00 MiB");
}

TEST(numbers_too_long_have_an_exponent)
{
    char out[NUMBER_TEXT];
    assert_string_equal(format_number(out, 5.48781, 4), "5.4878");
    assert_string_equal(format_number(out, -999999.4, 0), "-999999");
    assert_string_equal(format_number(out, 190269026897756160.0, 4), "1.903e+17");
    assert_string_equal(format_number(out, NAN, 3), "nan");
    assert_string_equal(format_number(out, -NAN, 3), "nan");
    assert_string_equal(format_number(out, -INFINITY, 3), "-inf");
}

TEST(seconds_are_told_as_a_clock_does)
{
    char out[NUMBER_TEXT];
    assert_string_equal(format_seconds(out, 12), "12 s");
    assert_string_equal(format_seconds(out, 190), "3 min 10 s");
    assert_string_equal(format_seconds(out, 3720), "1 h 02 min");
    assert_string_equal(format_seconds(out, 59.7), "1 min 00 s");
    assert_string_equal(format_seconds(out, NAN), "?");
    assert_string_equal(format_seconds(out, -1), "?");
}

TEST(bytes_are_parsed_with_units)
{
    size_t n = 1;
    assert_true(parse_bytes("0", &n));
    assert_int_equal(n, 0);
    assert_true(parse_bytes("512M", &n));
    assert_int_equal(n, (size_t)512 << 20);
    assert_true(parse_bytes("3k", &n));
    assert_int_equal(n, 3072);
    assert_true(parse_bytes("16G", &n));
    assert_int_equal(n, (size_t)16 << 30);
    assert_true(parse_bytes("1.5G", &n));
    assert_int_equal(n, (size_t)3 << 29);
    assert_true(parse_bytes("2.4k", &n));
    assert_int_equal(n, 2457); /* 2457.6 */
    const char *const wrong[] = {"",       "M",   "-1",   " 1",           "1 ",
                                 "1.5",    "1.M", ".5M",  "1..5",         "1.5.",
                                 "1.5e3M", "1MB", "0x10", "17179869184G", "99999999999999999999"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (parse_bytes(wrong[i], &n))
            test_failed("\"%s\" was taken as %zu bytes\n", wrong[i], n);
}

TEST(numbers_are_parsed_whole_or_not_at_all)
{
    int64_t n;
    double x;
    assert_true(parse_int("-9223372036854775808", &n));
    assert_int_equal(n, INT64_MIN);
    assert_true(parse_int("+7", &n));
    assert_int_equal(n, 7);
    assert_false(parse_int("", &n));
    assert_false(parse_int(" 7", &n));
    assert_false(parse_int("7x", &n));
    assert_false(parse_int("7.0", &n));
    assert_false(parse_int("9223372036854775808", &n));
    assert_false(parse_int("-", &n));
    assert_false(parse_int("0x7", &n));
    assert_true(parse_double("1e-3", &x));
    assert_close(x, 1e-3, 0);
    assert_true(parse_double("-.5", &x));
    assert_close(x, -.5, 0);
    assert_false(parse_double("", &x));
    assert_false(parse_double("nan", &x));
    assert_false(parse_double("inf", &x));
    assert_false(parse_double("1e999", &x));
    assert_false(parse_double("0x1p3", &x));
    assert_false(parse_double(" 1", &x));
    assert_false(parse_double("1e", &x));
}

/* ---- characters -------------------------------------------------------------------------------------------------- */

TEST(what_a_terminal_would_obey_is_a_question_mark)
{
    static const struct {
        const char *text, *shown;
        bool lines;
    } cases[] = {
        {"plain \t text", "plain \t text", false},
        {"gr\xC3\xBC\xC3\x9F, \xE2\x82\xAC, \xF0\x9F\x98\x80", "gr\xC3\xBC\xC3\x9F, \xE2\x82\xAC, \xF0\x9F\x98\x80",
         false},
        {"\033[31m", "?[31m", false},
        {"a\nyard: b\r", "a?yard: b?", false},
        {"a\nb\r\033", "a\nb??", true},
        {"\xC2\x9B, \x9B, \x7F", "??, ?, ?", false}, /* CSI as a character, as a byte; delete */
        {"cut \xE2\x82", "cut ??", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = make_printable(copy_string(cases[i].text), cases[i].lines ? MANY_LINES : ONE_LINE);
        assert_string_equal(text, cases[i].shown);
        free(text);
    }
}

/* The text that a stream shows, given `each` bytes at a time; the caller frees it. */
static char *streamed(const char *bytes, size_t each)
{
    char *text = NULL;
    size_t size, n = strlen(bytes);
    FILE *out = open_memstream(&text, &size);
    struct text_stream stream = {0};
    for (size_t i = 0; i < n; i += each)
        show_bytes(&stream, out, bytes + i, MIN(each, n - i));
    end_stream(&stream, out);
    fclose(out);
    return text;
}

/* U+FFFD stands where Unicode recommends it: once for the longest beginning of a character, else for a byte. */
TEST(bytes_are_shown_as_they_come)
{
#define UNKNOWN "\uFFFD"
    static const char *const cases[][2] = {
        {"\u0416\u0438\u043B\u0438 \u20AC \U0001F600\n", "\u0416\u0438\u043B\u0438 \u20AC \U0001F600\n"},
        {"a\tb\rc\033[31m\177", "a\tb.c.[31m."},
        {"\xC2\x80\xC2\x9B\xC2\xA0", "..\u00A0"}, /* U+0080, and U+009B that begins a command */
        {"\xD0", UNKNOWN},                        /* the end comes too early */
        {"\xD0\xD0\x96", UNKNOWN "\u0416"},       /* a beginning, and a character */
        {"\x96\xD0\x96", UNKNOWN "\u0416"},       /* the second byte of a character, whose first is missing */
        {"\xE2\x82"
         "a",
         UNKNOWN "a"}, /* two bytes of three */
        {"\xF0\x9F\x98"
         "a\xF0\x9F",
         UNKNOWN "a" UNKNOWN},         /* three bytes of four, then two of four */
        {"\xC0\xAF", UNKNOWN UNKNOWN}, /* longer than needed */
        {"\xE0\x80\xAF", UNKNOWN UNKNOWN UNKNOWN},
        {"\xED\xA0\x80", UNKNOWN UNKNOWN UNKNOWN},             /* a surrogate */
        {"\xF4\x90\x80\x80", UNKNOWN UNKNOWN UNKNOWN UNKNOWN}, /* beyond U+10FFFF */
        {"\xFF\xFE"
         "a",
         UNKNOWN UNKNOWN "a"},
        {"\xE2\x1B[m", UNKNOWN ".[m"}}; /* what a terminal obeys is not a part of a character */
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t each = 1; each <= 5; each++) {
            char *text = streamed(cases[i][0], each);
            if (strcmp(text, cases[i][1]) != 0)
                test_failed("case %zu, %zu bytes at a time: got \"%s\", expected \"%s\"\n", i, each, text, cases[i][1]);
            free(text);
        }
}

/* Whatever comes, what is shown is UTF-8, and of its control characters there are the two that are harmless. */
TEST(any_bytes_are_shown_as_utf8)
{
    for (uint32_t i = 0; i < 2000; i++) {
        char bytes[13] = "";
        for (size_t k = 0; k < 12; k++) { /* most of them of multi-byte characters */
            uint32_t word = random_words(5, STREAM_TEST, i, k).word[0];
            bool is_of_many = word % 4 != 0;
            uint32_t any = word >> 8 & 0xFF;
            bytes[k] = (char)(is_of_many ? 0x80 | any : MAX(any, 1));
        }
        char *text = streamed(bytes, 1 + i % 3);
        for (size_t at = 0, n = strlen(text); at < n;) {
            uint32_t c = 0;
            size_t length = utf8_decode(text + at, n - at, &c);
            assert_above(length, 0);
            assert_true(c >= 0xA0 || (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t');
            at += length;
        }
        free(text);
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Folding changes nothing but blanks, and no line is too long but for a single word. */
TEST(folding_changes_only_blanks)
{
    static const char text[] = "memory      parameters 141 KiB, gradients \303\274ber 141 KiB\n"
                               "  a paragraph that is indented, with_one_word_that_is_too_long_for_a_line of it\n\nend";
    for (int columns = 24; columns <= 60; columns++) {
        char *folded = fold_text(text, columns);
        const char *a = text, *b = folded;
        while (*a || *b) {
            a += strspn(a, " \n");
            b += strspn(b, " \n");
            size_t n = strcspn(a, " \n");
            assert_int_equal(n, strcspn(b, " \n"));
            assert_memory_equal(a, b, n);
            a += n;
            b += n;
        }
        for (char *line = strtok(folded, "\n"); line; line = strtok(NULL, "\n")) {
            size_t wide = strlen(line) - (strstr(line, "\303\274") ? 1 : 0);
            if (wide > (size_t)columns)
                assert_null(strchr(line + strspn(line, " "), ' '));
        }
        free(folded);
    }
    char *folded = fold_text(text, 30);
    assert_non_null(
        strstr(folded, "memory      parameters 141\n            KiB, gradients\n            \303\274ber 141 KiB\n"));
    free(folded);
}

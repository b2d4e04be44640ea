/* utf8.c - characters out of bytes, and texts that a terminal can be shown. */
#include "base.h"

/* How long the character is that begins with this byte; 0: none begins with it. */
static size_t utf8_length(unsigned char first)
{
    if (first < 0x80) /* 0xxxxxxx */
        return 1;
    if (first >> 5 == 6) /* 110xxxxx */
        return 2;
    if (first >> 4 == 14) /* 1110xxxx */
        return 3;
    if (first >> 3 == 30) /* 11110xxx */
        return 4;
    return 0;
}

size_t utf8_decode(const char *text, size_t left, uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* [n]: the first character that needs n bytes */
    const unsigned char *p = (const unsigned char *)text;
    size_t length = utf8_length(p[0]);
    if (length == 0 || length > left)
        return 0;
    uint32_t c = length == 1 ? p[0] : p[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        c = c << 6 | (p[i] & 0x3Fu);
    }
    if (c < least[length] || (c >= 0xD800 && c <= 0xDFFF) || c >= CODE_POINTS)
        return 0;
    *character = c;
    return length;
}

size_t utf8_encode(uint32_t c, char out[UTF8_BYTES])
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

size_t valid_utf8(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n) {
        uint32_t c;
        size_t length = utf8_decode(text + at, n - at, &c);
        if (length == 0)
            return at;
        at += length;
    }
    return n;
}

int count_characters(const char *text, size_t n)
{
    int characters = 0;
    for (size_t i = 0; i < n; i++)
        if ((text[i] & 0xc0) != 0x80) /* each byte of a character after its first is 10xxxxxx in binary */
            characters++;
    return characters;
}

size_t bytes_that_fit(const char *text, int columns)
{
    size_t n = 0;
    while (text[n] && count_characters(text, n + 1) <= columns)
        n++;
    return n;
}

/* Can these n bytes be the beginning of a valid character?  They can if the least bytes that may follow, 0x80, complete
 * one, or the greatest, 0xBF.  No others need be tried: after 0xE0 low bytes make a longer form than needed, and after
 * 0xED high ones a surrogate, but never both. */
static bool may_be_continued(const char *begun, size_t n)
{
    char low[UTF8_BYTES], high[UTF8_BYTES];
    uint32_t c;
    memset(low, 0x80, sizeof low);
    memset(high, 0xBF, sizeof high);
    memcpy(low, begun, n);
    memcpy(high, begun, n);
    return utf8_decode(low, sizeof low, &c) > n || utf8_decode(high, sizeof high, &c) > n;
}

/* A terminal obeys some control characters, also some of the second group, U+0080 to U+009F. */
static bool is_control(uint32_t c) { return c < 0x20 || (c >= 0x7F && c <= 0x9F); }

static void show_character(FILE *out, const char *bytes, size_t n, uint32_t c)
{
    if (is_control(c) && c != '\n' && c != '\t')
        fputc('.', out);
    else
        fwrite(bytes, 1, n, out);
}

static void show_replacement(FILE *out) { fputs("\xEF\xBF\xBD", out); } /* U+FFFD */

static void show_byte(struct text_stream *stream, FILE *out, char byte)
{
    uint32_t c = 0;
    stream->begun[stream->n++] = byte;
    size_t length = utf8_decode(stream->begun, stream->n, &c);
    if (length > 0) {
        show_character(out, stream->begun, length, c);
        stream->n = 0;
        return;
    }
    if (may_be_continued(stream->begun, stream->n))
        return;
    bool was_begun = stream->n > 1;
    show_replacement(out);
    stream->n = 0;
    if (was_begun) /* the byte does not continue that character, but it may begin another one */
        show_byte(stream, out, byte);
}

void show_bytes(struct text_stream *stream, FILE *out, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        show_byte(stream, out, bytes[i]);
}

void end_stream(struct text_stream *stream, FILE *out)
{
    if (stream->n > 0)
        show_replacement(out);
    stream->n = 0;
}

char *make_printable(char *text, enum text_lines lines)
{
    size_t left = strlen(text);
    char *at = text;
    while (left > 0) {
        uint32_t c = 0;
        size_t n = utf8_decode(at, left, &c);
        bool allowed = !is_control(c) || c == '\t' || (c == '\n' && lines == MANY_LINES);
        bool is_shown = n > 0 && allowed;
        n = MAX(n, 1);
        if (!is_shown)
            memset(at, '?', n);
        at += n;
        left -= n;
    }
    return text;
}

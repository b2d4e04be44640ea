/* utf8.c - characters out of bytes, and texts that a terminal can be shown. */
#include "base.h"

size_t utf8_decode(const char *text, size_t left, uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* by length */
    const unsigned char *p = (const unsigned char *)text;
    size_t length = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
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

char *make_printable(char *text, bool lines)
{
    size_t left = strlen(text);
    for (char *at = text; left;) {
        uint32_t c = 0;
        size_t n = utf8_decode(at, left, &c);
        bool kept = n && (c >= 0x20 ? c < 0x7F || c > 0x9F : c == '\t' || (lines && c == '\n'));
        n = MAX(n, 1);
        if (!kept)
            memset(at, '?', n);
        at += n;
        left -= n;
    }
    return text;
}

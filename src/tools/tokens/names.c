/* names.c - bytes as characters that can be shown, and back: GPT-2's files write tokens so. */
#include "inner.h"

/* Characters from U+0100 on stand for the bytes up to the space, for 127 to 160, and for 173, in this order. */
enum { OTHERS = 256, FIRST = 33, SECOND = 34 };

static uint32_t character_of_byte(unsigned char byte)
{
    if (byte <= ' ')
        return OTHERS + byte;
    if (byte >= 127 && byte <= 160)
        return OTHERS + FIRST + (byte - 127u);
    if (byte == 173)
        return OTHERS + FIRST + SECOND;
    return byte;
}

int byte_of_character(uint32_t character)
{
    for (int byte = 0; byte < 256; byte++)
        if (character_of_byte((unsigned char)byte) == character)
            return byte;
    return -1;
}

char *name_of_bytes(const char *bytes, size_t n)
{
    char *name = allocate(2 * n + 1, 1);
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t c = character_of_byte((unsigned char)bytes[i]);
        if (c < 0x80) {
            name[length] = (char)c;
            length++;
        } else {
            name[length] = (char)(0xC0 | c >> 6);
            name[length + 1] = (char)(0x80 | (c & 0x3F));
            length += 2;
        }
    }
    return name;
}

char *bytes_of_name(const char *name, size_t *n)
{
    const size_t length = strlen(name);
    char *bytes = allocate(length, 1);
    size_t at = 0;
    *n = 0;
    while (at < length) {
        uint32_t c = 0;
        const size_t taken = utf8_decode(name + at, length - at, &c);
        const int byte = taken > 0 ? byte_of_character(c) : -1;
        if (byte < 0) {
            free(bytes);
            return NULL;
        }
        bytes[*n] = (char)byte;
        *n += 1;
        at += taken;
    }
    return bytes;
}

/* byte_names.c - writes bytes as characters that can be shown, and reads them back: GPT-2's files write tokens so.
 *
 *     bytes   ' ' 't' 'h' 'e' 0xA0       characters   U+0120 't' 'h' 'e' U+0142,  shown: Ġtheł
 */
#include "tokens_parts.h"

void byte_characters(uint32_t character[256])
{
    uint32_t other = 256;
    for (uint32_t byte = 0; byte < 256; byte++) {
        bool is_shown = (byte > ' ' && byte < 127) || (byte > 160 && byte != 173);
        if (is_shown) {
            character[byte] = byte;
        } else {
            character[byte] = other;
            other++;
        }
    }
}

void bytes_of_characters(int byte_of[BYTE_CHARACTERS])
{
    uint32_t characters[256];
    byte_characters(characters);
    for (int c = 0; c < BYTE_CHARACTERS; c++)
        byte_of[c] = NONE;
    for (int byte = 0; byte < 256; byte++)
        byte_of[characters[byte]] = byte;
}

char *name_of_bytes(const char *bytes, size_t n)
{
    uint32_t characters[256];
    char *name = allocate(UTF8_BYTES * n + 1, 1);
    size_t length = 0;
    byte_characters(characters);
    for (size_t i = 0; i < n; i++)
        length += utf8_encode(characters[(unsigned char)bytes[i]], name + length);
    return name;
}

char *bytes_of_name(const char *name, size_t *n)
{
    size_t length = strlen(name);
    char *bytes = allocate(length, 1);
    int byte_of[BYTE_CHARACTERS];
    size_t at = 0;
    *n = 0;
    bytes_of_characters(byte_of);
    while (at < length) {
        uint32_t c = 0;
        size_t taken = utf8_decode(name + at, length - at, &c);
        int byte = taken > 0 && c < BYTE_CHARACTERS ? byte_of[c] : NONE;
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

/* png.c - a picture as a PNG file: 8 bits per channel, no alpha, each row unfiltered, compressed by zlib. */
#include "canvas.h"
#include "trainer/file/file.h"

#include <strings.h>
#include <zlib.h>

static void put_number(unsigned char *to, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(n >> (24 - 8 * i));
}

/* Length, type, content, and a checksum of the latter two. */
static void write_chunk(struct writer *writer, const char *type, const void *content, size_t n)
{
    unsigned char length[4], sum[4];
    uLong crc = crc32(crc32(0, (const Bytef *)type, 4), content, (uInt)n);
    put_number(length, (uint32_t)n);
    put_number(sum, (uint32_t)crc);
    write_bytes(writer, length, 4);
    write_bytes(writer, type, 4);
    write_bytes(writer, content, n);
    write_bytes(writer, sum, 4);
}

/* The pixels as bytes, as PNG has them: in front of each row the number of its filter, 0 for none. */
static unsigned char *make_rows(const uint32_t *pixels, size_t width, size_t height)
{
    unsigned char *rows = allocate(height, 3 * width + 1);
    unsigned char *to = rows;
    for (size_t y = 0; y < height; y++) {
        *to++ = 0;
        for (size_t x = 0; x < width; x++) {
            uint32_t pixel = pixels[y * width + x];
            *to++ = (unsigned char)(pixel >> 16);
            *to++ = (unsigned char)(pixel >> 8);
            *to++ = (unsigned char)pixel;
        }
    }
    return rows;
}

/* Ends the program if the name says that the picture has another form. */
static void refuse_if_ending_is_other(const char *path)
{
    static const char *const others[] = {".jpg", ".jpeg", ".gif", ".bmp", ".svg", ".pdf", ".webp", ".ppm"};
    const char *ending = strrchr(last_part(path), '.');
    for (size_t i = 0; ending && i < COUNT(others); i++)
        if (strcasecmp(ending, others[i]) == 0)
            fail(EXIT_USAGE, "--png writes a PNG picture, and %s names another form: let it end with .png, not %s",
                 path, ending);
}

void write_png(const char *path, const uint32_t *pixels, int width, int height)
{
    refuse_if_ending_is_other(path);
    expect_replaceable("--png", path, KIND_PNG, "PNG picture");
    unsigned char head[13] = {[8] = 8, [9] = 2}; /* width, height, bits, red-green-blue */
    size_t n = (size_t)height * (3 * (size_t)width + 1);
    unsigned char *rows = make_rows(pixels, (size_t)width, (size_t)height);
    uLongf size = compressBound(n);
    unsigned char *small = allocate(size, 1);
    int code = compress(small, &size, rows, n);
    CHECK(code == Z_OK, "compressing %zu bytes gives the code %d", n, code);
    put_number(head, (uint32_t)width);
    put_number(head + 4, (uint32_t)height);
    struct writer *writer = open_writer(path);
    write_bytes(writer, "\x89PNG\r\n\x1a\n", 8);
    write_chunk(writer, "IHDR", head, sizeof head);
    write_chunk(writer, "IDAT", small, size);
    write_chunk(writer, "IEND", "", 0); /* NULL would reset the checksum */
    must(publish(writer));
    free(rows);
    free(small);
}

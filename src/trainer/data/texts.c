/* texts.c - what is in files of text, without gzip's packing and byte order marks; and how the texts are cut into a
 * part to train on and one to validate on.
 *
 * A text is cut before it becomes tokens, at a byte that does not depend on the tokens.  So a tokenizer can learn from
 * the training part alone, and losses of several tokenizers are of the same text.
 */
#include "data_parts.h"
#include "trainer/base/embedded.h"
#include "trainer/file/file.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Anything can be trained on byte by byte, so this only warns.  At its end a text may be cut off within a character. */
static void warn_of_encoding(const struct text *text, bool as_bytes)
{
    if (memchr(text->bytes, '\0', text->n)) {
        warn("%s holds zero bytes, which a text does not have; the run trains on this file all the same. If it holds "
             "token numbers, give it a name that ends in .bin; if it is UTF-16, convert it with iconv",
             text->name);
        return;
    }
    size_t valid = as_bytes ? valid_utf8(text->bytes, text->n) : text->n;
    if (text->n - valid >= UTF8_BYTES)
        warn("%s is not UTF-8 from byte %zu on, and is trained on byte by byte; if it is in another encoding, such as "
             "Latin-1 or CP1251, convert it with iconv -f ENCODING -t UTF-8",
             text->name, valid);
}

static void unpack_text(struct text *text)
{
    char *packed = text->memory;
    text->memory = unpack_gzip(text->name, packed, &text->n);
    free(packed);
    const struct file_kind *kind = kind_of_bytes(text->memory, text->n);
    if (kind && kind->kind == KIND_GZIP)
        fail(EXIT_USAGE, "%s is packed with gzip twice: unpack it with gunzip first", text->name);
    if (is_foreign(kind))
        fail(EXIT_USAGE, "%s is %s, packed with gzip, not a text to train on: unpack it with gunzip, then %s",
             text->name, kind->name, kind->way);
    if (ends_with(text->name, ".bin.gz") || llmc_kind_of_bytes(text->memory, text->n))
        fail(EXIT_USAGE, "%s is packed with gzip and holds tokens: unpack it with gunzip first", text->name);
}

/* Reads a file, and leaves out what is not a part of its text: gzip's packing, a byte order mark. */
static void read_text_file(struct text *text, bool as_bytes)
{
    const struct file_kind *kind = kind_of_file(text->name);
    bool packed = kind && kind->kind == KIND_GZIP;
    if (!packed)
        text->mapped = map_large(text->name, &text->memory);
    text->n = text->mapped;
    if (!text->mapped)
        text->memory = read_whole(text->name, &text->n);
    if (packed)
        unpack_text(text);
    size_t mark = byte_order_mark(text->memory, text->n);
    text->bytes = text->memory + mark;
    text->n -= mark;
    text->before = mark;
    warn_of_encoding(text, as_bytes);
}

/* The text of a file, a made one, or the program's own sources. */
static struct text open_text(const struct files *files, const char *path, bool as_bytes)
{
    struct text text = {.name = path ? path : files->given};
    if (path) {
        read_text_file(&text, as_bytes);
    } else if (files->maker) {
        text.memory = files->maker->make(files->made, MADE_BYTES);
        text.bytes = text.memory;
        text.n = MADE_BYTES;
    } else {
        text.bytes = (const char *)embedded_text;
        text.n = embedded_text_size;
    }
    return text;
}

struct texts open_texts(const struct files *files, bool as_bytes)
{
    struct texts all = {0};
    for (size_t i = 0; i < files->n; i++) {
        GROW(all.items, all.cap, all.n + 1);
        all.items[all.n++] = open_text(files, files->paths[i], as_bytes);
    }
    return all;
}

void close_texts(struct texts *all)
{
    for (const struct text *text = all->items; text < all->items + all->n; text++) {
        if (text->mapped)
            unmap_bytes(text->memory, text->mapped);
        else
            free(text->memory);
    }
    free(all->items);
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

size_t count_bytes(const struct texts *all)
{
    size_t bytes = 0;
    for (size_t i = 0; i < all->n; i++)
        bytes += all->items[i].n;
    return bytes;
}

void add_text_range(struct texts *to, const struct texts *all, size_t begin, size_t end)
{
    size_t at = 0; /* where the text begins in all texts together */
    for (const struct text *text = all->items; text < all->items + all->n; text++) {
        size_t from = MAX(begin, at), until = MIN(end, at + text->n);
        if (from < until) {
            GROW(to->items, to->cap, to->n + 1);
            to->items[to->n++] = (struct text){.name = text->name,
                                               .bytes = text->bytes + (from - at),
                                               .n = until - from,
                                               .before = text->before + (from - at)};
        }
        at += text->n;
    }
}

/* The place, a byte of all texts together, moved back to the first byte of its character.  Where the text is not UTF-8,
 * it moves by at most three bytes. */
static size_t first_byte(const struct texts *all, size_t place)
{
    size_t i = 0, at = place;
    while (i < all->n && at >= all->items[i].n) {
        at -= all->items[i].n;
        i++;
    }
    if (i == all->n)
        return place;
    size_t back = 0;
    while (back < MIN(at, UTF8_BYTES - 1) && (all->items[i].bytes[at - back] & 0xC0) == 0x80)
        back++;
    return place - back;
}

void cut_texts(const struct texts *all, double share, size_t parts, struct texts *train, struct texts *val)
{
    size_t bytes = count_bytes(all);
    size_t from = 0; /* where the part begins: where the one before it has ended */
    for (size_t p = 0; p < parts; p++) {
        size_t begin = bytes * p / parts;
        size_t end = bytes * (p + 1) / parts;
        size_t n_train = (size_t)((double)(end - begin) * (1 - share));
        size_t cut = first_byte(all, begin + n_train);
        size_t until = first_byte(all, end);
        add_text_range(train, all, from, cut);
        add_text_range(val, all, cut, until);
        from = until;
    }
}

/* kinds.c - the kind of a file: formats are known by their first bytes, some by their last ones too.
 *
 * Functions that read text or token numbers ask for the kind first, so that an archive or a picture is not trained on
 * as if it were text.  Functions that write ask too: if the file that would be replaced is of another kind, the path is
 * probably a mistake.  This file knows the kinds that the trainer reads or writes; those of other programs are known by
 * another folder (struct formats).
 */
#include "file.h"
#include "trainer/base/additions.h"

#include <sys/stat.h>

enum { LOOKED_AT = 4096, MOST_TEXT_BYTES = 16 << 20 };

bool glimpse_has(const struct glimpse *glimpse, size_t at, const char *text, size_t n)
{
    return glimpse->n >= at + n && memcmp(glimpse->bytes + at, text, n) == 0;
}

/* After the signature come flags, with three bits never set, a time, how the file was packed, and on which system. */
static bool is_gzip_header(const struct glimpse *glimpse)
{
    if (glimpse->n < 10)
        return false;
    const unsigned char *byte = (const unsigned char *)glimpse->bytes;
    unsigned char flags = byte[3], packing = byte[8];
    unsigned char system = byte[9];
    bool known_packing = packing == 0 || packing == 2 || packing == 4;
    bool known_system = system <= 13 || system == 255;
    return flags < 0x20 && known_packing && known_system;
}

#define SIGNATURE(text) (text), sizeof(text) - 1
static const struct {
    const char *text;
    size_t n;
    struct file_kind kind;
} signatures[] = {
    {SIGNATURE("\x1f\x8b\x08"), {KIND_GZIP, "a gzip file", "unpack it with gunzip first"}},
    {SIGNATURE("\x1f\x9d"), {KIND_SHORT_MARK, "a file of compress", "unpack it with uncompress first"}},
    {SIGNATURE("\x89PNG\r\n\x1a\n"), {KIND_PNG, "a PNG picture", "it holds no text; name another file"}},
    {SIGNATURE("YARDTRC"), {KIND_TRACE, "a trace that yard wrote", "`yard view` and `yard trace` show it"}},
    {SIGNATURE("YARDSNAP"), {KIND_SNAPSHOT, "a snapshot that yard wrote", "--resume goes on from it"}},
    {SIGNATURE("{\"run\":{\"model\":"), {KIND_LOG, "a log that yard wrote", "`yard plot` draws it"}},
    {SIGNATURE("{\"displayTimeUnit\""), {KIND_CHROME, "a trace for browsers", "ui.perfetto.dev shows it"}},
    {SIGNATURE("# A profile of Trainyard"), {KIND_PROFILE, "a profile that yard wrote", "--profile takes it"}},
    {SIGNATURE("\xff\xfe\0\0"), {KIND_SHORT_MARK, "text in UTF-32", "convert it with iconv -f UTF-32 -t UTF-8"}},
    {SIGNATURE("\xff\xfe"), {KIND_SHORT_MARK, "text in UTF-16", "convert it with iconv -f UTF-16 -t UTF-8"}},
    {SIGNATURE("\xfe\xff"), {KIND_SHORT_MARK, "text in UTF-16", "convert it with iconv -f UTF-16 -t UTF-8"}},
};

/* A safetensors file begins with the length of its header, 8 bytes, and the header, an object of JSON. */
static const struct file_kind *find_safetensors(const struct glimpse *glimpse)
{
    static const struct file_kind kind = {KIND_SAFETENSORS, "a safetensors file",
                                          "--init and `yard sample --from` take a model"};
    uint64_t length = 0;
    if (!glimpse_has(glimpse, 8, "{\"", 2) && !glimpse_has(glimpse, 8, "{}", 2))
        return NULL;
    memcpy(&length, glimpse->bytes, sizeof length);
    if (length < 2 || length > glimpse->size - 8)
        return NULL;
    return &kind;
}

/* ---- finding it -------------------------------------------------------------------------------------------------- */

static const struct file_kind *kind_of_glimpse(const struct glimpse *glimpse)
{
    for (size_t i = 0; i < COUNT(signatures); i++) {
        const struct file_kind *kind = &signatures[i].kind;
        bool has_it = glimpse_has(glimpse, 0, signatures[i].text, signatures[i].n);
        if (has_it && (kind->kind != KIND_GZIP || is_gzip_header(glimpse)))
            return kind;
    }
    const struct file_kind *weights = find_safetensors(glimpse);
    const struct formats *formats = find_formats();
    if (weights || !formats)
        return weights;
    return formats->kind(glimpse);
}

const struct file_kind *kind_of_bytes(const char *bytes, size_t n)
{
    struct glimpse glimpse = {.bytes = bytes, .n = MIN(n, (size_t)LOOKED_AT), .size = n};
    size_t last = MIN(n, (size_t)GLIMPSE_LAST);
    memcpy(glimpse.last + GLIMPSE_LAST - last, bytes + n - last, last);
    return kind_of_glimpse(&glimpse);
}

const struct file_kind *kind_of_file(const char *path)
{
    char bytes[LOOKED_AT];
    struct reader *reader = open_reader(path);
    struct glimpse glimpse = {
        .bytes = bytes, .n = (size_t)MIN(reader->size, (uint64_t)LOOKED_AT), .size = reader->size};
    read_at(reader, bytes, glimpse.n, 0);
    size_t last = (size_t)MIN(reader->size, (uint64_t)GLIMPSE_LAST);
    read_at(reader, glimpse.last + GLIMPSE_LAST - last, last, reader->size - last);
    close_reader(reader);
    return kind_of_glimpse(&glimpse);
}

bool is_foreign(const struct file_kind *kind) { return kind && kind->kind < KINDS_OF_TEXT; }

void refuse_if_folder(const char *path, const char *wanted)
{
    if (is_folder(path))
        fail(EXIT_IO, "%s is a folder; expected %s", path, wanted);
}

void refuse_if_other_kind(const char *path, enum known_kind kind, const char *wanted)
{
    refuse_if_folder(path, wanted);
    const struct file_kind *found = kind_of_file(path);
    if (found && found->kind != kind)
        fail(EXIT_USAGE, "%s is %s, not %s: %s", path, found->name, wanted, found->way);
}

/* ---- text files -------------------------------------------------------------------------------------------------- */

char *read_text(const char *path)
{
    struct stat status;
    char size[NUMBER_TEXT];
    size_t n;
    refuse_if_folder(path, "a text file");
    if (stat(path, &status) == 0 && status.st_size > MOST_TEXT_BYTES)
        fail(EXIT_USAGE, "%s has %s; expected a text of at most 16 MiB", path,
             format_bytes(size, (double)status.st_size));
    char *text = read_whole(path, &n);
    const struct file_kind *kind = kind_of_bytes(text, n);
    if (is_foreign(kind))
        fail(EXIT_USAGE, "%s is %s; expected a plain text file", path, kind->name);
    int line = 1;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n')
            line++;
        if (text[i] == '\0')
            fail(EXIT_USAGE, "%s, line %d holds a zero byte; expected a text file", path, line);
    }
    size_t mark = byte_order_mark(text, n);
    memmove(text, text + mark, n - mark + 1);
    return text;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

enum { FIRST_BYTES = 512 }; /* where a file's JSON must begin: white space may come before it */

bool begins_json(const char *head) { return head[strspn(head, " \t\r\n")] == '{'; }

bool is_json(const char *path)
{
    size_t n;
    char *head = read_first_bytes(path, FIRST_BYTES, &n);
    bool yes = begins_json(head) && !fits_safetensors(head, n);
    free(head);
    return yes;
}

json_t *parse_json(const char *path, const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        fail(EXIT_FAILED, "%s is not valid JSON: line %d: %s; get a fresh copy", path, error.line, error.text);
    if (!json_is_object(json))
        fail(EXIT_FAILED, "%s is damaged: expected a JSON object, {...}; get a fresh copy", path);
    return json;
}

json_t *read_json(const char *path)
{
    char *text = read_text(path);
    json_t *json = parse_json(path, text);
    free(text);
    return json;
}

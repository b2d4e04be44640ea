/* safetensors.c - a strict reader and a writer of https://github.com/huggingface/safetensors.
 *
 *     uint64 N | N bytes of JSON | data                              little endian
 *     {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *
 * Offsets count from the end of the JSON; the second one is the first byte after the tensor.  The tensors tile the
 * data: no hole, no overlap, nothing after the last one.
 *
 * The reader refuses more than the reference does, because a checkpoint that can be read in two ways is one that can be
 * read wrongly: duplicate names (the reference lets the last win), unknown fields, leading or trailing junk, and shapes
 * whose product overflows although one dimension is 0.
 */
#include "file.h"
#include "trainer/base/json.h"

enum { MOST_HEADER_BYTES = 100000000, MOST_NAME_BYTES = 4096, DATA_ALIGNMENT = 4096 };

static const struct {
    const char *name;
    unsigned bits;
    enum dtype dtype;
} dtypes[] = {
    {"F32", 32, DTYPE_F32},      {"I32", 32, DTYPE_I32},      {"F16", 16, DTYPE_F16},      {"BF16", 16, DTYPE_BF16},
    {"F64", 64, DTYPE_F64},      {"BOOL", 8, DTYPE_OTHER},    {"I8", 8, DTYPE_OTHER},      {"U8", 8, DTYPE_OTHER},
    {"I16", 16, DTYPE_OTHER},    {"U16", 16, DTYPE_OTHER},    {"U32", 32, DTYPE_OTHER},    {"I64", 64, DTYPE_OTHER},
    {"U64", 64, DTYPE_OTHER},    {"C64", 64, DTYPE_OTHER},    {"F8_E5M2", 8, DTYPE_OTHER}, {"F8_E4M3", 8, DTYPE_OTHER},
    {"F8_E8M0", 8, DTYPE_OTHER}, {"F6_E2M3", 6, DTYPE_OTHER}, {"F6_E3M2", 6, DTYPE_OTHER}, {"F4", 4, DTYPE_OTHER},
};

char *format_shape(char out[SHAPE_TEXT], int n_dims, const int64_t *shape)
{
    int n = snprintf(out, SHAPE_TEXT, "[");
    for (int i = 0; i < n_dims && n < SHAPE_TEXT; i++)
        n += snprintf(out + n, (size_t)(SHAPE_TEXT - n), "%s%lld", i ? ", " : "", (long long)shape[i]);
    if (n < SHAPE_TEXT)
        snprintf(out + n, (size_t)(SHAPE_TEXT - n), "]");
    return out;
}

/* ---- reading: the header ----------------------------------------------------------------------------------------- */

bool fits_safetensors(const char *head, size_t n)
{
    uint64_t length;
    if (n < 9)
        return false;
    memcpy(&length, head, sizeof length);
    return length <= MOST_HEADER_BYTES && head[8] == '{';
}

/* All errors about a file's content begin in the same way and name the file. */
#define REFUSE(path, ...) refuse_safetensors(path, format_string(__VA_ARGS__))
static _Noreturn void refuse_safetensors(const char *path, const char *reason)
{
    fail(EXIT_FAILED, "%s is not a valid safetensors file: %s; get a fresh copy or write it anew", path, reason);
}

/* Names come from the file, so an error shows at most 80 bytes of one.  The result is never freed, since the program
 * ends with the error. */
static const char *shown(const char *name) { return format_string("%.80s%s", name, strlen(name) > 80 ? "..." : ""); }

static uint64_t whole_number(const char *path, const char *name, const char *field, const json_t *value)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        REFUSE(path, "%s of tensor \"%s\" must hold whole numbers", field, shown(name));
    return (uint64_t)json_integer_value(value);
}

/* The bytes that a tensor of this shape takes.  The product without the zeros must not overflow either. */
static uint64_t shape_bytes(const char *path, const struct st_tensor *stored, unsigned bits)
{
    uint64_t nonzero = bits;
    bool empty = false;
    for (int i = 0; i < stored->n_dims; i++) {
        uint64_t size = (uint64_t)MAX(stored->shape[i], 1);
        empty |= stored->shape[i] == 0;
        if (nonzero > (uint64_t)INT64_MAX / size)
            REFUSE(path, "the shape of tensor \"%s\" overflows 63 bits", shown(stored->name));
        nonzero *= size;
    }
    if (!empty && nonzero % 8)
        REFUSE(path, "tensor \"%s\" takes %llu bits, which is not a whole number of bytes", shown(stored->name),
               (unsigned long long)nonzero);
    return empty ? 0 : nonzero / 8;
}

static void read_shape(const char *path, struct st_tensor *stored, const json_t *shape)
{
    stored->n_dims = (int)MIN(json_array_size(shape), MOST_FILE_DIMS);
    if (!json_is_array(shape) || json_array_size(shape) > MOST_FILE_DIMS)
        REFUSE(path, "the shape of tensor \"%s\" must be a list of at most %d numbers", shown(stored->name),
               MOST_FILE_DIMS);
    for (int i = 0; i < stored->n_dims; i++)
        stored->shape[i] = (int64_t)whole_number(path, stored->name, "shape", json_array_get(shape, (size_t)i));
}

/* bits: the size of one element.  stored->offset counts from the start of the data at first; check_tiling() makes it
 * count from the start of the file. */
static void read_offsets(const char *path, struct st_tensor *stored, const json_t *offsets, unsigned bits)
{
    if (!json_is_array(offsets) || json_array_size(offsets) != 2)
        REFUSE(path, "data_offsets of tensor \"%s\" must be a list of two numbers", shown(stored->name));
    stored->offset = whole_number(path, stored->name, "data_offsets", json_array_get(offsets, 0));
    uint64_t end = whole_number(path, stored->name, "data_offsets", json_array_get(offsets, 1));
    if (stored->offset > end)
        REFUSE(path, "tensor \"%s\" ends at byte %llu of the data, before it begins at %llu", shown(stored->name),
               (unsigned long long)end, (unsigned long long)stored->offset);
    stored->bytes = end - stored->offset;
    uint64_t expected = shape_bytes(path, stored, bits);
    if (stored->bytes == expected)
        return;
    char text[SHAPE_TEXT];
    REFUSE(path, "tensor \"%s\", %s %s, needs %llu bytes, but its data_offsets give it %llu", shown(stored->name),
           stored->dtype_name, format_shape(text, stored->n_dims, stored->shape), (unsigned long long)expected,
           (unsigned long long)stored->bytes);
}

/* The tensor that an entry of the header describes. */
static struct st_tensor parse_tensor(const char *path, const char *name, json_t *entry)
{
    const char *type;
    json_t *shape, *offsets;
    size_t row = 0; /* in dtypes */
    if (!*name)
        REFUSE(path, "a tensor has an empty name");
    if (strlen(name) > MOST_NAME_BYTES)
        REFUSE(path, "the tensor name \"%s\" is longer than %d bytes", shown(name), MOST_NAME_BYTES);
    if (json_unpack_ex(entry, NULL, JSON_STRICT, "{s:s, s:o, s:o}", "dtype", &type, "shape", &shape, "data_offsets",
                       &offsets) != 0)
        REFUSE(path, "the entry of tensor \"%s\" must have exactly the fields dtype, a text, shape and data_offsets",
               shown(name));
    while (row < COUNT(dtypes) && strcmp(type, dtypes[row].name) != 0)
        row++;
    if (row == COUNT(dtypes))
        REFUSE(path, "tensor \"%s\" has dtype \"%s\"; expected one such as F32 or I32, in capitals", shown(name),
               shown(type));
    struct st_tensor stored = {.name = copy_string(name), .dtype = dtypes[row].dtype, .dtype_name = dtypes[row].name};
    read_shape(path, &stored, shape);
    read_offsets(path, &stored, offsets, dtypes[row].bits);
    return stored;
}

/* Where several tensors begin at the same byte, the empty ones come first. */
static int by_offset(const void *left, const void *right)
{
    const struct st_tensor *a = left;
    const struct st_tensor *b = right;
    return BY(a->offset, b->offset, COMPARE(a->bytes, b->bytes));
}

/* The tensors, sorted by offset, must cover the data exactly once.  data: the byte of the file where the data begin. */
static void check_tiling(struct safetensors *st, uint64_t data)
{
    uint64_t at = 0; /* end of the tensors so far, from the start of the data */
    for (size_t i = 0; i < st->n; i++) {
        struct st_tensor *stored = &st->tensors[i];
        if (stored->offset != at)
            REFUSE(st->file->path, "tensor \"%s\" begins at byte %llu of the data, but the one before ends at %llu: %s",
                   shown(stored->name), (unsigned long long)stored->offset, (unsigned long long)at,
                   stored->offset > at ? "a hole" : "they overlap");
        at += stored->bytes; /* this cannot overflow: both are below 2^63 */
        stored->offset += data;
    }
    if (at != st->file->size - data)
        REFUSE(st->file->path, "its tensors take %llu bytes of data, but %llu follow the header: it is %s",
               (unsigned long long)at, (unsigned long long)(st->file->size - data),
               at > st->file->size - data ? "cut short" : "too long");
}

/* Reads and parses the header; *data becomes the byte of the file where the data begin. */
static json_t *read_json_header(struct reader *file, uint64_t *data)
{
    uint64_t length;
    if (file->size < 8)
        REFUSE(file->path, "it has %llu bytes, expected at least 8", (unsigned long long)file->size);
    read_at(file, &length, 8, 0);
    if (length > MOST_HEADER_BYTES)
        REFUSE(file->path, "its first 8 bytes announce a header of %llu bytes, expected at most %d",
               (unsigned long long)length, MOST_HEADER_BYTES);
    if (length > file->size - 8)
        REFUSE(file->path, "its first 8 bytes announce a header of %llu bytes, but only %llu follow: it is cut short",
               (unsigned long long)length, (unsigned long long)(file->size - 8));
    char *text = allocate((size_t)length + 1, 1);
    read_at(file, text, (size_t)length, 8);
    if (text[0] != '{')
        REFUSE(file->path, "its JSON header must start with { at byte 8");
    json_error_t error;
    /* jansson refuses text that is not JSON, invalid UTF-8, and names that, without their escapes, occur twice. */
    json_t *header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!header)
        REFUSE(file->path, "its JSON header is wrong near byte %d: %s", error.position + 8, shown(error.text));
    free(text);
    *data = 8 + length;
    return header;
}

static void check_metadata(const char *path, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        REFUSE(path, "__metadata__ must be an object of strings");
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            REFUSE(path, "__metadata__ must hold strings only, but \"%s\" is none", shown(key));
    }
}

struct safetensors *open_safetensors(const char *path)
{
    struct safetensors *st = allocate(1, sizeof *st);
    uint64_t data;
    const char *name;
    json_t *entry;
    st->file = open_reader(path);
    json_t *header = read_json_header(st->file, &data);
    st->tensors = allocate(json_object_size(header), sizeof *st->tensors);
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) {
            check_metadata(path, entry);
            st->metadata = json_incref(entry);
        } else {
            st->tensors[st->n++] = parse_tensor(path, name, entry);
        }
    }
    SORT(st->tensors, st->n, by_offset);
    check_tiling(st, data);
    json_decref(header);
    return st;
}

void close_safetensors(struct safetensors *st)
{
    for (size_t i = 0; i < st->n; i++)
        free(st->tensors[i].name);
    json_decref(st->metadata);
    free(st->tensors);
    close_reader(st->file);
    free(st);
}

const struct st_tensor *find_tensor(const struct safetensors *st, const char *name)
{
    for (size_t i = 0; i < st->n; i++)
        if (strcmp(st->tensors[i].name, name) == 0)
            return &st->tensors[i];
    return NULL;
}

const char *find_metadata(const struct safetensors *st, const char *key)
{
    return json_string_value(json_object_get(st->metadata, key));
}

/* ---- reading: values --------------------------------------------------------------------------------------------- */

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* IEEE half: 1 sign, 5 exponent (bias 15) and 10 fraction bits. */
static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half >> 15) << 31;
    uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 0) { /* zero and subnormals: fraction * 2^-24 */
        float size = (float)fraction * 0x1p-24f;
        return sign ? -size : size;
    }
    uint32_t wide_exponent = exponent == 31 ? 255 : exponent + 112; /* 31 and 255: infinities and NaN */
    return float_of_bits(sign | wide_exponent << 23 | fraction << 13);
}

/* bfloat16 is the upper half of a float. */
static float float_of_bfloat(uint16_t upper) { return float_of_bits((uint32_t)upper << 16); }

size_t st_elements(const struct st_tensor *stored)
{
    size_t n = 1;
    for (int i = 0; i < stored->n_dims; i++)
        n *= (size_t)stored->shape[i];
    return n;
}

static void need_dtype(const struct safetensors *st, const struct st_tensor *stored, bool fits, const char *expected)
{
    if (!fits)
        fail(EXIT_FAILED, "%s: tensor \"%s\" is %s; expected %s", st->file->path, shown(stored->name),
             stored->dtype_name, expected);
}

void read_floats(const struct safetensors *st, const struct st_tensor *stored, float *into)
{
    bool direct = stored->dtype == DTYPE_F32; /* the file's bytes are the floats */
    bool fits = direct || stored->dtype == DTYPE_F16 || stored->dtype == DTYPE_BF16 || stored->dtype == DTYPE_F64;
    need_dtype(st, stored, fits, "floating point: F32, F16, BF16 or F64");
    if (direct) {
        read_at(st->file, into, (size_t)stored->bytes, stored->offset);
        return;
    }
    void *raw = allocate((size_t)stored->bytes, 1); /* aligned for all types */
    const double *doubles = raw;
    const uint16_t *halves = raw;
    size_t n = st_elements(stored);
    read_at(st->file, raw, (size_t)stored->bytes, stored->offset);
    for (size_t i = 0; i < n; i++) {
        if (stored->dtype == DTYPE_F64)
            into[i] = (float)doubles[i];
        else if (stored->dtype == DTYPE_F16)
            into[i] = float_of_half(halves[i]);
        else
            into[i] = float_of_bfloat(halves[i]);
    }
    free(raw);
}

void read_ints(const struct safetensors *st, const struct st_tensor *stored, int32_t *into)
{
    need_dtype(st, stored, stored->dtype == DTYPE_I32, "whole numbers: I32");
    read_at(st->file, into, (size_t)stored->bytes, stored->offset);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct st_writer {
    struct writer *file;
    json_t *header, *metadata;  /* metadata: a part of header, which owns it */
    uint64_t declared, written; /* bytes of data */
};

struct st_writer *new_st_writer(const char *path)
{
    struct st_writer *writer = allocate(1, sizeof *writer);
    writer->file = open_writer(path);
    writer->metadata = json_object(); /* the first entry, so that people who look at the raw file see it */
    writer->header = json_pack("{s:o}", "__metadata__", writer->metadata);
    return writer;
}

void st_metadata(struct st_writer *writer, const char *key, const char *value)
{
    if (json_object_set_new(writer->metadata, key, json_string(value)) != 0)
        fail(EXIT_USAGE, "cannot write \"%s\" into the metadata of %s: \"%s\" is not valid UTF-8", key,
             writer->file->path, value);
}

void st_declare(struct st_writer *writer, const char *name, enum dtype dtype, int n_dims, const int64_t *shape)
{
    CHECK(!json_object_get(writer->header, name), "tensor \"%s\" is declared twice", name);
    size_t row = 0; /* in dtypes */
    while (dtypes[row].dtype != dtype)
        row++;
    CHECK(dtype < DTYPE_OTHER, "dtype %d cannot be written", (int)dtype);
    uint64_t bytes = dtypes[row].bits / 8;
    json_t *dims = json_array();
    for (int i = 0; i < n_dims; i++) {
        bytes *= (uint64_t)shape[i];
        json_array_append_new(dims, json_integer(shape[i]));
    }
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtypes[row].name, "shape", dims, "data_offsets",
                              (json_int_t)writer->declared, (json_int_t)(writer->declared + bytes));
    int code = json_object_set_new(writer->header, name, entry);
    CHECK(code == 0, "tensor name \"%s\" is not valid UTF-8", name);
    writer->declared += bytes;
}

/* Spaces after the JSON make the data begin at a page, so that they can be mapped or read directly. */
uint64_t st_begin(struct st_writer *writer)
{
    if (!json_object_size(writer->metadata))
        json_object_del(writer->header, "__metadata__");
    char *text = dump_json(writer->header, JSON_COMPACT); /* keeps the order of insertion */
    uint64_t length = round_up(8 + strlen(text), DATA_ALIGNMENT) - 8;
    char *padded = format_string("%-*s", (int)length, text);
    write_bytes(writer->file, &length, 8);
    write_bytes(writer->file, padded, length);
    free(text);
    free(padded);
    return 8 + length;
}

void st_write(struct st_writer *writer, const void *bytes, size_t n)
{
    writer->written += n;
    write_bytes(writer->file, bytes, n);
}

void st_publish(struct st_writer *writer)
{
    CHECK(writer->written == writer->declared, "%s: %llu bytes written, %llu declared", writer->file->path,
          (unsigned long long)writer->written, (unsigned long long)writer->declared);
    must(publish(writer->file));
    json_decref(writer->header);
    free(writer);
}

/* test_safetensors.c - reading safetensors files that may be hostile, and writing such files.
 *
 * It tests safetensors.c of src/trainer/file.  It checks that reading stays inside the file and ends with a sentence,
 * not a crash, whatever the bytes of the file are; and that what is written is read back with the same bits.  It
 * catches a length that is believed, a name that is too long, and a number that is rounded.
 *
 * To see it fail: in safetensors.c, let a tensor begin behind the end of the file.
 *
 * Hostile headers stand in this program, each with what is wrong with it.
 */
#include "tests/support/child.h"
#include "trainer/file/file.h"

#include <math.h>

/* ---- hostile files ----------------------------------------------------------------------------------------------- */

/* Open a file and read everything in it, as a careless user would. */
static void read_everything(void *path)
{
    struct safetensors *st = open_safetensors(path);
    for (size_t i = 0; i < st->n; i++) {
        const struct st_tensor *tensor = &st->tensors[i];
        void *into = allocate(tensor->bytes + 8, 8); /* more than enough for any dtype */
        switch (tensor->dtype) {
        case DTYPE_F32:
        case DTYPE_F16:
        case DTYPE_BF16:
        case DTYPE_F64:
            read_floats(st, tensor, into);
            break;
        case DTYPE_I32:
            read_ints(st, tensor, into);
            break;
        default:
            break;
        }
        free(into);
    }
    close_safetensors(st);
}

/* length (8 bytes) | header | `data` zero bytes */
static const char *write_safetensors(const char *name, uint64_t length, const char *header, size_t n, size_t data)
{
    unsigned char *file = allocate(8 + n + data, 1);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, n);
    const char *path = write_file(name, file, 8 + n + data);
    free(file);
    return path;
}

#define F32(shape, begin, end) "{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"
#define A8 "\"a\":" F32("[2]", 0, 8)
#define OFFSETS(text) "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" text "}}"
#define SHAPE(text) "{\"a\":{\"dtype\":\"F32\",\"shape\":" text ",\"data_offsets\":[0,8]}}"
#define DTYPE(text) "{\"a\":{\"dtype\":" text ",\"shape\":[2],\"data_offsets\":[0,8]}}"
#define METADATA(text) "{\"__metadata__\":" text "," A8 "}"
#define HEADER(header, data, part)                                                                                     \
    {                                                                                                                  \
        header, sizeof(header) - 1, data, part                                                                         \
    }

static const struct {
    const char *header;
    size_t n, data;
    const char *part; /* a part of the sentence that is expected */
} hostile[] = {
    /* the top level and what surrounds it */
    HEADER("", 0, "must start with { at byte 8"),
    HEADER(" {" A8 "}", 8, "must start with { at byte 8"),
    HEADER("\n{" A8 "}", 8, "must start with { at byte 8"),
    HEADER("{" A8 "}\0", 8, "JSON header is wrong"),
    HEADER("{" A8 "}x", 8, "JSON header is wrong"),
    HEADER("{" A8 "}{}", 8, "JSON header is wrong"),
    HEADER("{" A8 "}}", 8, "JSON header is wrong"),
    HEADER("{" A8 "}\f", 8, "JSON header is wrong"),
    HEADER("{" A8 "}\xC2\xA0", 8, "JSON header is wrong"),
    HEADER("{" A8, 8, "JSON header is wrong"),
    HEADER("{" A8 ",}", 8, "JSON header is wrong"),
    HEADER("{\"a\"}", 0, "JSON header is wrong"),
    HEADER("{a:1}", 0, "JSON header is wrong"),
    HEADER("{/**/" A8 "}", 8, "JSON header is wrong"),
    HEADER("{'a':1}", 0, "JSON header is wrong"),
    HEADER("{", 0, "JSON header is wrong"),
    /* strings */
    HEADER("{\"\xFF\":" F32("[2]", 0, 8) "}", 8, "JSON header is wrong"),
    HEADER("{\"\xC0\x80\":" F32("[2]", 0, 8) "}", 8, "JSON header is wrong"),
    HEADER("{\"\xED\xA0\x80\":" F32("[2]", 0, 8) "}", 8, "JSON header is wrong"),
    HEADER("{\"\\ud800\":" F32("[2]", 0, 8) "}", 8, "JSON header is wrong"),
    HEADER("{\"\\u0000\":" F32("[2]", 0, 8) "}", 8, "JSON header is wrong"),
    HEADER("{\"a\\u0000b\":" F32("[2]", 0, 8) "}", 8, "JSON header is wrong"),
    HEADER("{\"a\0b\":" F32("[2]", 0, 8) "}", 8, "JSON header is wrong"),
    HEADER("{\"a\nb\":" F32("[2]", 0, 8) "}", 8, "JSON header is wrong"),
    HEADER("{\"\":" F32("[2]", 0, 8) "}", 8, "empty name"),
    /* the same name twice */
    HEADER("{" A8 "," A8 "}", 8, "duplicate"),
    HEADER("{" A8 ",\"\\u0061\":" F32("[2]", 0, 8) "}", 8, "duplicate"),
    HEADER("{" A8 ",\"a\":" F32("[1]", 8, 12) "}", 12, "duplicate"),
    HEADER("{\"__metadata__\":{},\"__metadata__\":{}," A8 "}", 8, "duplicate"),
    /* fields */
    HEADER("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "exactly the fields"),
    HEADER("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "exactly the fields"),
    HEADER("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "exactly the fields"),
    HEADER("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"strides\":[1]}}", 8, "exactly the fields"),
    HEADER("{\"a\":null}", 0, "exactly the fields"),
    /* dtype */
    HEADER(DTYPE("\"f32\""), 8, "has dtype \"f32\""),
    HEADER(DTYPE("\"F31\""), 8, "has dtype \"F31\""),
    HEADER(DTYPE("\"\""), 8, "has dtype \"\""),
    HEADER(DTYPE("\"F32 \""), 8, "has dtype"),
    HEADER(DTYPE("32"), 8, "exactly the fields"),
    HEADER(DTYPE("\"F64\""), 8, "needs 16 bytes"),
    HEADER(DTYPE("\"F16\""), 8, "needs 4 bytes"),
    HEADER("{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, "not a whole number of bytes"),
    HEADER("{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2, "not a whole number of bytes"),
    /* whole numbers */
    HEADER(SHAPE("[-2]"), 8, "whole numbers"),
    HEADER(SHAPE("[\"2\"]"), 8, "whole numbers"),
    HEADER(SHAPE("[[2]]"), 8, "whole numbers"),
    HEADER(SHAPE("[{}]"), 8, "whole numbers"),
    HEADER(SHAPE("2"), 8, "must be a list"),
    HEADER(SHAPE("{}"), 8, "must be a list"),
    HEADER(SHAPE("[1,1,1,1,1,1,1,1,2]"), 8, "at most 8"),
    HEADER(OFFSETS("[\"0\",8]"), 8, "whole numbers"),
    HEADER(OFFSETS("[0]"), 8, "list of two"),
    HEADER(OFFSETS("[]"), 8, "list of two"),
    /* sizes */
    HEADER(OFFSETS("[8,0]"), 8, "before it begins"),
    HEADER(OFFSETS("[0,7]"), 7, "needs 8 bytes"),
    HEADER(OFFSETS("[0,9]"), 9, "needs 8 bytes"),
    HEADER("{\"a\":" F32("[0]", 0, 8) "}", 8, "needs 0 bytes"),
    HEADER("{\"a\":" F32("[]", 0, 8) "}", 8, "needs 4 bytes"),
    HEADER("{\"a\":" F32("[0,9223372036854775807,4]", 0, 0) "}", 0, "overflows"),
    HEADER("{\"a\":" F32("[9223372036854775807,4,0]", 0, 0) "}", 0, "overflows"),
    HEADER("{\"a\":" F32("[4294967296,4294967296]", 0, 0) "}", 0, "overflows"),
    HEADER("{\"a\":" F32("[2305843009213693952]", 0, 0) "}", 0, "overflows"),
    HEADER("{\"a\":" F32("[4294967296,2147483648,2]", 0, 0) "}", 0, "overflows"),
    /* the tiling of the data */
    HEADER(OFFSETS("[4,12]"), 12, "a hole"),
    HEADER("{" A8 ",\"b\":" F32("[2]", 12, 20) "}", 20, "a hole"),
    HEADER("{" A8 ",\"b\":" F32("[2]", 4, 12) "}", 12, "they overlap"),
    HEADER("{" A8 ",\"b\":" F32("[2]", 0, 8) "}", 8, "they overlap"),
    HEADER("{" A8 "}", 7, "cut short"),
    HEADER("{" A8 "}", 0, "cut short"),
    HEADER("{" A8 "}", 9, "too long"),
    HEADER("{}", 1, "too long"),
    /* metadata */
    HEADER(METADATA("[]"), 8, "object of strings"),
    HEADER(METADATA("\"x\""), 8, "object of strings"),
    HEADER(METADATA("{\"k\":1}"), 8, "strings only"),
    HEADER(METADATA("{\"k\":{}}"), 8, "strings only"),
};

TEST(hostile_files_are_refused)
{
    for (size_t i = 0; i < COUNT(hostile); i++) {
        char *name = lasting("hostile-%zu.safetensors", i);
        const char *path = write_safetensors(name, hostile[i].n, hostile[i].header, hostile[i].n, hostile[i].data);
        expect_refusal(read_everything, (void *)path, EXIT_FAILED, hostile[i].part);
        expect_refusal(read_everything, (void *)path, EXIT_FAILED, name); /* the sentence names the file */
        remove(path);
    }
}

static const char *const valid[] = {
    "{}",
    "{\"__metadata__\":{}}",
    "{} \t\r\n  ",
    "{" A8 "}",
    "{ \"a\" : { \"shape\":[ 2 ],\n\"data_offsets\":[0,8] , \"dtype\":\"F32\" } }",
    "{\"b\":" F32("[1]", 4, 8) ",\"a\":" F32("[]", 0, 4) "}",
    "{\"a\":" F32("[0]", 0, 0) ",\"b\":" F32("[2]", 0, 8) ",\"c\":" F32("[0,5]", 8, 8) "}",
    "{\"a\":{\"dtype\":\"F4\",\"shape\":[4,4],\"data_offsets\":[0,8]}}",
    "{\"a\":{\"dtype\":\"F6_E3M2\",\"shape\":[4],\"data_offsets\":[0,3]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
    "offsets\":[3,7]},\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[7,8]}}", /* b is not aligned */
    "{\"\xC3\xA9 \\\" { \\\\\":" F32("[1,1,1,1,1,1,1,2]", 0, 8) "}",
    METADATA("{\"format\":\"pt\",\"\":\"\",\"x\":\"-1.5e3 null {[\"}"),
    METADATA("{}"),
};

TEST(valid_files_are_read)
{
    for (size_t i = 0; i < COUNT(valid); i++) {
        size_t data = strchr(valid[i], 'a') && strstr(valid[i], "shape") ? 8 : 0;
        const char *path = write_safetensors("valid.safetensors", strlen(valid[i]), valid[i], strlen(valid[i]), data);
        struct outcome outcome = run_child(read_everything, (void *)path);
        if (outcome.code != EXIT_OK)
            test_failed("valid[%zu] is refused: %s\n", i, outcome.text);
    }
}

TEST(a_wrong_length_of_the_header_is_refused)
{
    static const struct {
        uint64_t length;
        const char *part;
    } lies[] = {
        {UINT64_MAX, "expected at most 100000000"},
        {100000001, "expected at most"},
        {100000000, "but only 10 follow"},
        {11, "but only 10 follow"},
        {9, "JSON header is wrong"},
        {0, "must start with { at byte 8"},
    };
    for (size_t i = 0; i < COUNT(lies); i++) {
        const char *path = write_safetensors("lies.safetensors", lies[i].length, "{\"a\":12345", 10, 0);
        expect_refusal(read_everything, (void *)path, EXIT_FAILED, lies[i].part);
    }
}

TEST(names_may_have_4096_bytes)
{
    static const char rest[] = "\":" F32("[2]", 0, 8) "}";
    for (size_t length = 4096; length <= 4097; length++) {
        char *header = allocate(length + 100, 1);
        memset(header, 'x', length + 2);
        memcpy(header, "{\"", 2);
        memcpy(header + 2 + length, rest, sizeof rest - 1);
        size_t n = 2 + length + sizeof rest - 1;
        const char *path = write_safetensors("name.safetensors", n, header, n, 8);
        if (length == 4096)
            assert_int_equal(run_child(read_everything, (void *)path).code, 0);
        else
            expect_refusal(read_everything, (void *)path, EXIT_FAILED, "longer than 4096 bytes");
        free(header);
    }
}

TEST(deep_nesting_does_not_recurse)
{
    enum { DEPTH = 1000000 };
    char *header = allocate(DEPTH + 5, 1);
    memcpy(header, "{\"a\":", 5);
    memset(header + 5, '[', DEPTH);
    const char *path = write_safetensors("deep.safetensors", DEPTH + 5, header, DEPTH + 5, 0);
    expect_refusal(read_everything, (void *)path, EXIT_FAILED, "JSON header is wrong");
    free(header);
}

/* A small file with metadata, an empty tensor and two dtypes. */
static const char *write_sample(const char *name)
{
    const char *path = temp_path(name);
    struct st_writer *writer = new_st_writer(path);
    st_metadata(writer, "format", "pt");
    st_metadata(writer, "quote", "\"\\\xC3\xA9\n");
    st_declare(writer, "w", DTYPE_F32, 2, (int64_t[]){2, 3});
    st_declare(writer, "empty", DTYPE_F32, 2, (int64_t[]){0, 4});
    st_declare(writer, "ids", DTYPE_I32, 1, (int64_t[]){2});
    st_declare(writer, "h.0.\xC3\xA9", DTYPE_I32, 0, NULL);
    st_begin(writer);
    st_write(writer, (float[]){1, 2, 3}, 12);
    st_write(writer, (float[]){4, 5, -6.5f}, 12);
    st_write(writer, (int32_t[]){7, -8}, 8);
    st_write(writer, (int32_t[]){9}, 4);
    st_publish(writer);
    return path;
}

/* Cuts the file after every byte of its header, and after every byte of its data. */
TEST(files_of_another_length_are_refused)
{
    static const char header[] = METADATA("{\"format\":\"pt\"}");
    size_t n;
    char *whole = read_whole(write_safetensors("whole", sizeof header - 1, header, sizeof header - 1, 8), &n);
    for (size_t length = 0; length < n; length++) {
        const char *path = write_file("cut.safetensors", whole, length);
        expect_refusal(read_everything, (void *)path, EXIT_FAILED, "cut.safetensors");
    }
    char *longer = reallocate(whole, n + 1, 1);
    longer[n] = 0;
    expect_refusal(read_everything, write_file("cut.safetensors", longer, n + 1), EXIT_FAILED, "too long");
    free(longer);
}

static void flip_bit(char *bytes, size_t bit) { bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8); }

/* Every single-bit flip is read or refused, but never crashes. */
TEST(bit_flips_never_crash)
{
    static const char header[] = METADATA("{\"f\":\"pt\"}");
    size_t n, refused = 0;
    char *whole = read_whole(write_safetensors("whole", sizeof header - 1, header, sizeof header - 1, 8), &n);
    for (size_t bit = 0; bit < 8 * (n - 8); bit++) {
        flip_bit(whole, bit);
        const char *path = write_file("flip.safetensors", whole, n);
        struct outcome outcome = run_child(read_everything, (void *)path);
        bool is_read = !outcome.signal && outcome.code == EXIT_OK;
        bool is_refused = !outcome.signal && outcome.code == EXIT_FAILED && strstr(outcome.text, "flip.safetensors");
        if (!is_read && !is_refused)
            test_failed("bit %zu: code %d, signal %d, %s\n", bit, outcome.code, outcome.signal, outcome.text);
        if (outcome.code == EXIT_FAILED)
            refused++;
        flip_bit(whole, bit);
    }
    assert_above(refused, 6 * (n - 8)); /* what may change is names, metadata and nothing else */
    free(whole);
}

static void read_beyond(void *path)
{
    struct reader *reader = open_reader(path);
    char byte;
    read_at(reader, &byte, 1, 4); /* the last one */
    read_at(reader, &byte, 0, 5);
    read_at(reader, &byte, 1, UINT64_MAX);
}

static void read_too_much(void *path)
{
    char bytes[8];
    read_at(open_reader(path), bytes, 2, 4);
}

TEST(reads_stay_inside_the_file)
{
    const char *path = write_file("five", "12345", 5);
    expect_refusal(read_beyond, (void *)path, EXIT_FAILED,
                   "ends at byte 5, but 1 bytes are wanted from byte 18446744073709551615");
    expect_refusal(read_too_much, (void *)path, EXIT_FAILED, "ends at byte 5, but 2 bytes are wanted from byte 4");
}

TEST(a_missing_file_is_refused_by_its_name)
{
    expect_refusal(read_everything, temp_path("none.safetensors"), EXIT_IO, "none.safetensors: No such file");
    expect_refusal(read_everything, "/tmp", EXIT_IO, "/tmp is a folder");
    expect_refusal(read_everything, "/dev/null", EXIT_IO, "/dev/null is a device");
}

/* ---- values and writing ------------------------------------------------------------------------------------------ */

TEST(what_is_written_is_read_back)
{
    const char *path = write_sample("sample.safetensors");
    struct safetensors *st = open_safetensors(path);
    char text[SHAPE_TEXT];
    float w[6];
    int32_t ids[2];
    int32_t scalar;
    assert_int_equal(st->n, 4);
    assert_string_equal(find_metadata(st, "format"), "pt");
    assert_string_equal(find_metadata(st, "quote"), "\"\\\xC3\xA9\n");
    assert_null(find_metadata(st, "none"));
    assert_null(find_tensor(st, "none"));
    const struct st_tensor *tensor = find_tensor(st, "w");
    assert_int_equal(tensor->offset % 4096, 0);
    assert_string_equal(format_shape(text, tensor->n_dims, tensor->shape), "[2, 3]");
    read_floats(st, tensor, w);
    assert_memory_equal(w, ((float[]){1, 2, 3, 4, 5, -6.5f}), sizeof w);
    read_ints(st, find_tensor(st, "ids"), ids);
    assert_memory_equal(ids, ((int32_t[]){7, -8}), sizeof ids);
    read_ints(st, find_tensor(st, "h.0.\xC3\xA9"), &scalar);
    assert_int_equal(scalar, 9);
    assert_string_equal(format_shape(text, 0, NULL), "[]");
    close_safetensors(st);

    size_t n;
    char *file = read_whole(path, &n);
    assert_int_equal(file[8], '{');
    assert_contains(file + 8, "{\"__metadata__\":{\"format\":\"pt\""); /* the metadata comes first */
    assert_int_equal(n, 4096 + 24 + 8 + 4);                            /* the header, 6 floats, 2 integers, 1 integer */
    free(file);
}

static void publish_too_little(void *path)
{
    struct st_writer *writer = new_st_writer(path);
    st_declare(writer, "w", DTYPE_F32, 1, (int64_t[]){2});
    st_begin(writer);
    st_write(writer, "1234", 4);
    st_publish(writer);
}

static void declare_twice(void *path)
{
    struct st_writer *writer = new_st_writer(path);
    st_declare(writer, "w", DTYPE_F32, 1, (int64_t[]){2});
    st_declare(writer, "w", DTYPE_F32, 1, (int64_t[]){2});
}

static void invalid_metadata(void *path) { st_metadata(new_st_writer(path), "config", "\xFF"); }

TEST(mistakes_of_a_writer_end_the_program)
{
    const char *path = temp_path("mistake.safetensors");
    struct outcome outcome = run_child(publish_too_little, (void *)path);
    assert_int_equal(outcome.signal, SIGABRT);
    assert_contains(outcome.text, "4 bytes written, 8 declared");
    outcome = run_child(declare_twice, (void *)path);
    assert_int_equal(outcome.signal, SIGABRT);
    expect_refusal(invalid_metadata, (void *)path, EXIT_USAGE, "not valid UTF-8");
    assert_int_not_equal(access(path, F_OK), 0);
}

/* A half's magnitude by the definition: 2^(exponent - 15) 1.fraction, subnormals 2^-14 0.fraction; the fraction has
 * ten bits. */
static double half_value(int exponent, int fraction)
{
    if (exponent == 0)
        return ldexp(fraction, -24);
    if (exponent == 31)
        return fraction ? NAN : INFINITY;
    return ldexp(1024 + fraction, exponent - 25);
}

/* All 65536 halves, each of a sign, an exponent and a fraction. */
TEST(every_half_is_read_exactly)
{
    static const char header[] = "{\"h\":{\"dtype\":\"F16\",\"shape\":[65536],\"data_offsets\":[0,131072]}}";
    static char file[8 + sizeof header - 1 + 131072];
    static float values[65536];
    uint64_t length = sizeof header - 1;
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    for (uint32_t i = 0; i < 65536; i++)
        memcpy(file + 8 + length + 2 * i, &(uint16_t){(uint16_t)i}, 2);
    struct safetensors *st = open_safetensors(write_file("half.safetensors", file, sizeof file));
    read_floats(st, &st->tensors[0], values);
    for (int i = 0; i < 65536; i++) {
        bool is_negative = i >> 15; /* a bit of sign, five of the exponent, ten of the fraction */
        int exponent = i >> 10 & 31, fraction = i & 1023;
        double expected = is_negative ? -half_value(exponent, fraction) : half_value(exponent, fraction);
        if (isnan(expected)) {
            assert_true(isnan(values[i]));
        } else {
            assert_close(values[i], expected, 0);
            assert_int_equal(signbit(values[i]) != 0, is_negative);
        }
    }
    close_safetensors(st);
}

TEST(f64_and_bf16_are_read)
{
    static const char header[] = "{\"d\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]},"
                                 "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[16,20]}}";
    char file[8 + sizeof header - 1 + 20];
    uint64_t length = sizeof header - 1;
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    char *data = file + 8 + length;
    memcpy(data, (double[]){0.1, -3}, 16);
    memcpy(data + 16, (uint16_t[]){0x3FC0, 0xC000}, 4);
    struct safetensors *st = open_safetensors(write_file("types.safetensors", file, sizeof file));
    float values[2];
    read_floats(st, find_tensor(st, "d"), values);
    assert_close(values[0], 0.1f, 0);
    assert_close(values[1], -3, 0);
    read_floats(st, find_tensor(st, "b"), values);
    assert_close(values[0], 1.5f, 0);
    assert_close(values[1], -2, 0);
    close_safetensors(st);
}

static void floats_of_ints(void *path)
{
    struct safetensors *st = open_safetensors(path);
    read_floats(st, find_tensor(st, "ids"), (float[]){0, 0});
}

static void ints_of_floats(void *path)
{
    struct safetensors *st = open_safetensors(path);
    read_ints(st, find_tensor(st, "w"), (int32_t[]){0, 0, 0, 0, 0, 0});
}

TEST(wrong_dtype_names_the_tensor)
{
    const char *path = write_sample("sample.safetensors");
    expect_refusal(floats_of_ints, (void *)path, EXIT_FAILED,
                   "sample.safetensors: tensor \"ids\" is I32; expected floating point");
    expect_refusal(ints_of_floats, (void *)path, EXIT_FAILED, "tensor \"w\" is F32; expected whole numbers");
}

/* test_data.c - tokenizers, data sets, windows and the learning rate. */
#include "tests/support/child.h"
#include "trainer/base/embedded.h"
#include "trainer/train/data.h"
#include "trainer/train/rate.h"

#include <math.h>

enum { T = 16 }; /* windows of most tests */

/* ---- helpers --------------------------------------------------------------------------------------------------- */

static struct text text_of(const char *bytes)
{
    return (struct text){.name = "--prompt", .bytes = bytes, .n = strlen(bytes)};
}

static struct data_options options_for(const char *path)
{
    return (struct data_options){.path = path, .val_share = 0.1, .batch = 2, .seq_len = T};
}

static void open_it(void *options) { close_dataset(open_dataset(options)); }

static void expect_no_dataset(struct data_options o, int code, const char *part)
{
    expect_refusal(open_it, &o, code, part);
}

/* n bytes, all of `alphabet`, in no order. */
static char *write_letters(const char *name, size_t n, const char *alphabet)
{
    size_t letters = strlen(alphabet);
    char *text = allocate(n + 1, 1);
    for (size_t i = 0; i < n; i++)
        text[i] = alphabet[i < letters ? i : random_words(1, STREAM_TEST, 0, i).word[0] % letters];
    char *path = write_file(name, text, n);
    free(text);
    return path;
}

/* Tokens 0, 1, 2, ... so that a token tells where it was. */
static char *write_numbered(const char *name, size_t n, bool shard)
{
    size_t header = shard ? 1024 : 0;
    char *file = allocate(header + 2 * n, 1);
    if (shard)
        memcpy(file, (int32_t[]){20240520, 1, (int32_t)n}, 12);
    for (size_t i = 0; i < n; i++)
        memcpy(file + header + 2 * i, &(uint16_t){(uint16_t)i}, 2);
    char *path = write_file(name, file, header + 2 * n);
    free(file);
    return path;
}

/* ---- tokenizers ------------------------------------------------------------------------------------------------ */

static struct tokenizer char_tokenizer(const struct text *text)
{
    const struct texts train = {.text = (struct text *)text, .n = 1};
    const struct texts val = {0};
    return make_tokenizer("chars", &train, &val);
}

/* Writes what the token stands for to `out`, and returns its length. */
static size_t decode(const struct tokenizer *t, int32_t token, char out[DECODED_BYTES])
{
    char own[DECODED_BYTES];
    size_t n;
    const char *bytes = decode_token(t, token, own, &n);
    assert_in_range(n, 1, DECODED_BYTES);
    memcpy(out, bytes, n);
    return n;
}

TEST(characters_are_code_points_in_order)
{
    struct text text = text_of("z\xF0\x9F\x98\x80"
                               "a\xC3\xA9\xE6\xBC\xA2\n"
                               "az\xF4\x8F\xBF\xBF");
    struct tokenizer t = char_tokenizer(&text);
    static const uint32_t expected[] = {'\n', 'a', 'z', 0xE9, 0x6F22, 0x1F600, 0x10FFFF};
    static const uint16_t expected_tokens[] = {2, 5, 1, 3, 4, 0, 1, 2, 6};
    assert_int_equal(t.n, COUNT(expected));
    assert_memory_equal(t.own, expected, sizeof expected);
    size_t n, at = 0;
    uint16_t *tokens = encode_text(&t, &text, &n);
    assert_int_equal(n, COUNT(expected_tokens));
    assert_memory_equal(tokens, expected_tokens, sizeof expected_tokens);
    for (size_t i = 0; i < n; i++) { /* decoding gives the text back */
        char out[DECODED_BYTES];
        size_t length = decode(&t, tokens[i], out);
        assert_memory_equal(text.bytes + at, out, length);
        at += length;
    }
    assert_int_equal(at, text.n);
    free(tokens);
    free_tokenizer(&t);
}

static void make_char_tokenizer(void *text) { char_tokenizer(text); }

TEST(invalid_utf8_is_refused)
{
    static const char *const invalid[] = {
        "ab\x80",  /* a continuation byte alone */
        "ab\xC3",  /* cut short by the end */
        "ab\xC3z", /* by another character */
        "ab\xE6\xBC",
        "ab\xF0\x9F\x98",
        "ab\xC0\x80", /* longer than needed */
        "ab\xC1\xBF",
        "ab\xE0\x9F\xBF",
        "ab\xF0\x8F\xBF\xBF",
        "ab\xED\xA0\x80", /* surrogates */
        "ab\xED\xBF\xBF",
        "ab\xF4\x90\x80\x80", /* beyond U+10FFFF */
        "ab\xF8\x88\x80\x80\x80",
        "ab\xFF",
    };
    for (size_t i = 0; i < COUNT(invalid); i++) {
        struct text text = text_of(invalid[i]);
        expect_refusal(make_char_tokenizer, &text, 2, "--prompt is not valid UTF-8 at byte 2 (0x");
    }
    struct text cut = {.name = "--prompt", .bytes = "ab\xC3\xA9", .n = 3}; /* no byte after its end may be read */
    expect_refusal(make_char_tokenizer, &cut, 2, "at byte 2 (0xC3)");
    static const char *const borders[] = {"\x7F",         "\xC2\x80",         "\xDF\xBF",
                                          "\xE0\xA0\x80", "\xED\x9F\xBF",     "\xEE\x80\x80",
                                          "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"};
    for (size_t i = 0; i < COUNT(borders); i++) {
        struct text text = text_of(borders[i]);
        struct tokenizer t = char_tokenizer(&text);
        char out[DECODED_BYTES];
        assert_int_equal(decode(&t, 0, out), text.n);
        assert_memory_equal(out, text.bytes, text.n);
        free_tokenizer(&t);
    }
}

struct prompt {
    struct tokenizer tokenizer;
    struct text text;
};

static void encode_prompt(void *argument)
{
    struct prompt *p = argument;
    size_t n;
    free(encode_text(&p->tokenizer, &p->text, &n));
}

TEST(prompts)
{
    size_t n;
    struct tokenizer bytes = tokenizer_from_text("bytes", "here"), ids = tokenizer_from_text("ids 100", "here");
    struct text text = text_of("\xC3\xA9 17,99\n0");
    uint16_t *tokens = encode_text(&bytes, &text, &n);
    assert_int_equal(n, text.n);
    assert_int_equal(tokens[0], 0xC3);
    free(tokens);
    text = text_of(" 17, 99\n0");
    tokens = encode_text(&ids, &text, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(tokens, ((uint16_t[]){17, 99, 0}), 6);
    free(tokens);
    char out[DECODED_BYTES];
    assert_int_equal(decode(&ids, 17, out), 3);
    assert_memory_equal(out, "17 ", 3);
    assert_int_equal(decode(&bytes, 300, out), 3); /* U+FFFD for what has no meaning */
    assert_int_equal(decode(&bytes, 0xFF, out), 1);

    struct prompt wrong = {ids, text_of("5 100")};
    expect_refusal(encode_prompt, &wrong, 2, "--prompt has \"100\", but this model knows only token numbers");
    wrong.text = text_of("hello");
    expect_refusal(encode_prompt, &wrong, 2, "numbers from 0 to 99");
    wrong = (struct prompt){tokenizer_from_text("chars 61 62", "here"), text_of("ab\xC3\xA9")};
    expect_refusal(encode_prompt, &wrong, 2, "--prompt has the character '\xC3\xA9' (U+00E9) at byte 2");
    free_tokenizer(&wrong.tokenizer);
}

static void read_tokenizer(void *text) { tokenizer_from_text(text, "ckpt"); }

TEST(tokenizer_as_text)
{
    static const char *const good[] = {"bytes", "ids 50257", "chars a 20 61 e9 6f22 10ffff", "chars 0"};
    for (size_t i = 0; i < COUNT(good); i++) {
        struct tokenizer t = tokenizer_from_text(good[i], "ckpt");
        char *text = tokenizer_to_text(&t);
        assert_string_equal(text, good[i]);
        free(text);
        free_tokenizer(&t);
    }
    static const char *const bad[] = {
        "",          "byte",        "bytes ",    "ids",         "ids 0",       "ids x",     "ids 99999999999",
        "chars",     "chars ",      "chars  61", "chars 61 61", "chars 62 61", "chars 61 ", "chars 110000",
        "chars 61x", "chars 61 zz", "chars -61", "chars 61\t62"};
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_refusal(read_tokenizer, (void *)bad[i], 1, "ckpt is damaged: its tokenizer");
}

/* ---- data sets ------------------------------------------------------------------------------------------------- */

static const char alphabet65[] = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* The numbers of the published character recipe: 1,115,394 characters, 65 of them distinct, 90 % for training. */
TEST(character_recipe)
{
    struct data_options o = options_for(write_letters("shakespeare.txt", 1115394, alphabet65));
    o.tokens = "chars";
    struct dataset *d = open_dataset(&o);
    assert_int_equal(d->vocab, 65);
    assert_ptr_equal(d->tokenizer.kind, &token_chars);
    assert_int_equal(d->train.n, 1003854);
    assert_int_equal(d->val.n, 111540);
    for (int i = 0; i < 65; i++) /* the first 65 characters of the file are the alphabet in order */
        assert_int_equal(d->train.tokens[i], i);
    close_dataset(d);
}

TEST(stories_are_the_default)
{
    struct data_options o = options_for(NULL);
    struct data_options same = options_for("stories");
    struct data_options grammar = options_for("stories:data/memory.txt");
    struct dataset *d = open_dataset(&o);
    struct dataset *e = open_dataset(&same);
    struct dataset *g = open_dataset(&grammar);
    assert_int_equal(d->vocab, 256);
    assert_int_equal(d->train.n, e->train.n);
    assert_memory_equal(d->train.tokens, e->train.tokens, 2 * d->train.n);
    assert_true(d->rate > 0.05);
    assert_true(d->rate < d->floor);
    assert_true(d->floor == e->floor);
    assert_true(g->rate > 0);
    assert_true(g->rate != d->rate);
    const double floor = d->floor;
    close_dataset(d);
    close_dataset(e);
    close_dataset(g);
    o.tokens = "chars"; /* a character is a byte here, so the floor is the same */
    d = open_dataset(&o);
    assert_true(d->vocab < 64);
    assert_true(d->floor == floor);
    close_dataset(d);
    o.val_data = write_letters("other.txt", 100, "ab"); /* the floor is that of stories */
    d = open_dataset(&o);
    assert_true(isnan(d->floor));
    close_dataset(d);
    expect_no_dataset(options_for("stories:none.txt"), 4, "none.txt");
    expect_no_dataset(options_for(lasting("stories:%s", write_file("zero.txt", "a\0b", 3))), 2, "zero byte");
}

/* The place in the sources, moved to the first byte of its character. */
static size_t first_byte(size_t place)
{
    while ((embedded_text[place] & 0xC0) == 0x80)
        place--;
    return place;
}

/* Parts of the sources, all over them; every byte is in one of the two splits, in order. */
TEST(sources_are_held_out_in_parts)
{
    struct data_options o = options_for("self");
    for (int share = 1; share <= 3; share++) {
        o.val_share = 0.1 * share;
        struct dataset *d = open_dataset(&o);
        size_t i = 0;
        size_t train = 0;
        size_t val = 0;
        size_t changes = 0;
        assert_int_equal(d->train.n + d->val.n, embedded_text_size);
        assert_in_range(d->val.n, embedded_text_size * (size_t)share / 10 - 1,
                        embedded_text_size * (size_t)share / 10 + 64);
        for (size_t part = 0; part < 64; part++) {
            const size_t begin = embedded_text_size * part / 64;
            const size_t end = embedded_text_size * (part + 1) / 64;
            const size_t cut = begin + (size_t)((double)(end - begin) * (1 - o.val_share));
            for (; i < first_byte(cut); i++)
                changes += embedded_text[i] != d->train.tokens[train++];
            for (; i < first_byte(end); i++)
                changes += embedded_text[i] != d->val.tokens[val++];
        }
        assert_int_equal(changes, 0);
        assert_true(isnan(d->rate));
        assert_true(isnan(d->floor));
        close_dataset(d);
    }
}

/* The bytes that the split's tokens stand for; the text lasts. */
static const char *text_of_split(const struct dataset *d, const struct split *split)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < split->n; i++) {
        char own[DECODED_BYTES];
        size_t n;
        const char *bytes = decode_token(&d->tokenizer, split->tokens[i], own, &n);
        fwrite(bytes, 1, n, out);
    }
    fclose(out);
    const char *lasts = lasting("%s", text);
    free(text);
    return lasts;
}

/* Whatever tokens are, the same bytes are trained on; no character is cut; and what is to be validated is not learnt
 * from. */
TEST(a_text_is_cut_at_the_same_byte)
{
    static const char *const words[] = {"bytes", "chars", "bpe:300"};
    char text[3 * 1000 + 1] = "";
    const char *train[COUNT(words)], *val[COUNT(words)];
    while (strlen(text) < 2900)
        strcat(text, strlen(text) < 2600 ? "漢字 é" : "漢漢 é");
    for (size_t i = 0; i < COUNT(words); i++) {
        struct data_options o = options_for(write_text("cut.txt", "%s", text));
        o.tokens = words[i];
        struct dataset *d = open_dataset(&o);
        train[i] = text_of_split(d, &d->train);
        val[i] = text_of_split(d, &d->val);
        assert_string_equal(lasting("%s%s", train[i], val[i]), text);
        assert_int_equal(valid_utf8(train[i], strlen(train[i])), strlen(train[i]));
        assert_in_range(strlen(train[i]), strlen(text) * 9 / 10 - 3, strlen(text) * 9 / 10);
        assert_string_equal(train[i], train[0]);
        if (d->tokenizer.kind != &token_bytes)
            assert_true(d->bytes_per_token > 2);
        else
            assert_true(d->bytes_per_token == 1);
        close_dataset(d);
    }
    struct data_options o = options_for(write_text("late.txt", "%s%s", text, "xyxyxyxyxyxyxy"));
    o.tokens = "bpe:400";
    struct dataset *d = open_dataset(&o);
    char *line = tokenizer_to_text(&d->tokenizer);
    assert_null(strstr(line, "xy"));
    free(line);
    close_dataset(d);
}

/* However small they are, the share is about what was asked for. */
TEST(small_files_are_held_out_too)
{
    char text[2000];
    memset(text, 'x', sizeof text);
    for (size_t n = 20; n <= 2000; n *= 10) {
        assert_int_equal(mkdir(temp_path(lasting("small%zu", n)), 0777), 0);
        write_file(lasting("small%zu/a.txt", n), text, n);
        write_file(lasting("small%zu/b.txt", n), text, n);
        struct data_options o = options_for(temp_path(lasting("small%zu", n)));
        o.seq_len = 1;
        struct dataset *d = open_dataset(&o);
        assert_int_equal(d->train.n + d->val.n, 2 * n);
        assert_in_range(d->val.n, n / 5, n / 5 + 5);
        close_dataset(d);
    }
}

TEST(folders_and_globs_are_sorted)
{
    assert_int_equal(mkdir(temp_path("many"), 0777), 0);
    assert_int_equal(mkdir(temp_path("many/sub"), 0777), 0);
    write_file("many/b.txt", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 30);
    write_file("many/a.txt", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 30);
    write_file("many/c.md", "c", 1);
    write_file("many/.hidden", "hhhhh", 5);
    struct data_options o = options_for(temp_path("many"));
    o.val_share = 0;
    struct dataset *d = open_dataset(&o);
    assert_int_equal(d->train.n, 30 + 30 + 1);
    assert_int_equal(d->train.tokens[0], 'a');
    assert_int_equal(d->train.tokens[30], 'b');
    assert_int_equal(d->train.tokens[60], 'c');
    close_dataset(d);
    o.path = temp_path("many/*.txt");
    d = open_dataset(&o);
    assert_int_equal(d->train.n, 30 + 30);
    close_dataset(d);
    write_file("odd[1]*.txt", "dddddddddddddddddddddddddddddd", 30); /* a file of that name wins over the pattern */
    o.path = temp_path("odd[1]*.txt");
    d = open_dataset(&o);
    assert_int_equal(d->train.n, 30);
    close_dataset(d);
}

TEST(validation_text_of_its_own)
{
    char *train = write_letters("train.txt", 200, "abc");
    char *val = write_letters("val.txt", 100, "xbz");
    struct data_options o = options_for(train);
    o.val_data = val;
    o.tokens = "chars";
    struct dataset *d = open_dataset(&o);
    assert_int_equal(d->train.n, 200);
    assert_int_equal(d->val.n, 100);
    assert_int_equal(d->vocab, 5); /* the characters of both */
    assert_int_equal(d->val.tokens[0], 3);
    close_dataset(d);

    o.val_data = write_numbered("val.bin", 100, true);
    expect_no_dataset(o, 2, "is an llm.c token shard, but the training data");
    o.val_data = write_file("empty.txt", "", 0);
    expect_no_dataset(o, 2, "empty.txt has 0 tokens for validation");
}

TEST(token_files)
{
    struct data_options o = options_for(write_numbered("shard.bin", 1000, true));
    struct dataset *d = open_dataset(&o);
    assert_ptr_equal(d->tokenizer.kind, &token_ids);
    assert_int_equal(d->vocab, 1000);
    assert_int_equal(d->train.n, 900);
    close_dataset(d);
    o.order = ORDER_FILE; /* then all of a shard is training data */
    d = open_dataset(&o);
    assert_int_equal(d->train.n, 1000);
    assert_int_equal(d->val.n, 0);
    assert_int_equal(validation_windows(d, T), 0);
    close_dataset(d);
    o.path = write_numbered("raw.bin", 1000, false); /* nanoGPT's kind has no such convention */
    d = open_dataset(&o);
    assert_int_equal(d->train.n, 900);
    close_dataset(d);
    o.vocab = 50257; /* a model brings its own vocabulary */
    d = open_dataset(&o);
    assert_int_equal(d->vocab, 50257);
    close_dataset(d);
    o.vocab = 800;
    expect_no_dataset(o, 2, "raw.bin has token 999, but the model's vocabulary is 800");
}

TEST(a_model_brings_its_tokenizer)
{
    char *path = write_letters("abc.txt", 300, "abc");
    struct data_options o = options_for(path);
    o.tokenizer = tokenizer_from_text("chars 61 62 63 64", "ckpt");
    o.vocab = 4;
    struct dataset *d = open_dataset(&o);
    assert_int_equal(d->vocab, 4);
    assert_int_equal(d->train.tokens[2], 2);
    close_dataset(d);
    o.tokenizer = tokenizer_from_text("chars 61 62 63 64", "ckpt");
    o.path = write_letters("abe.txt", 300, "abe");
    expect_no_dataset(o, 2, "abe.txt has the character 'e' (U+0065) at byte 2, which is none of the 4");
    o.path = write_numbered("ids.bin", 300, true);
    expect_no_dataset(o, 2, "the model was trained on characters, but");
    o.path = path;
    free_tokenizer(&o.tokenizer);
    o.tokenizer = tokenizer_from_text("ids 9", "ckpt");
    expect_no_dataset(o, 2, "the model was trained on token numbers, but");
    o.tokenizer.n = 0;
    o.vocab = 'c';
    expect_no_dataset(o, 2, "has token 99, but the model's vocabulary is 99");
}

TEST(data_refusals)
{
    expect_no_dataset(options_for(temp_path("none.txt")), 4,
                      "none.txt; expected a file, a folder with files or a pattern");
    expect_no_dataset(options_for(write_file("empty.txt", "", 0)), 2, "empty.txt has 0 tokens for training");
    expect_no_dataset(options_for(write_numbered("empty.bin", 0, true)), 2, "empty.bin has 0 tokens for training");
    assert_int_equal(mkdir(temp_path("hollow"), 0777), 0);
    expect_no_dataset(options_for(temp_path("hollow")), 4, "no file matches");
    assert_int_equal(mkdir(temp_path("mixed"), 0777), 0);
    write_file("mixed/a.txt", "hello", 5);
    write_numbered("mixed/b.bin", 10, true);
    expect_no_dataset(options_for(temp_path("mixed")), 2, "mixes kinds of data");
    expect_no_dataset(options_for("tests/data/llmc-tiny.bin"), 1,
                      "is an llm.c model checkpoint; expected token numbers");

    struct data_options o = options_for(write_letters("short.txt", T, "ab"));
    o.val_share = 0;
    expect_no_dataset(o, 2, "short.txt has 16 tokens for training, but a window of --seq-len needs 17");
    o.path = write_letters("just.txt", T + 1, "ab");
    open_it(&o); /* one token more and it works */
    o.order = ORDER_FILE;
    expect_no_dataset(o, 2,
                      "just.txt has 17 tokens for training, but --order file, by --batch and --seq-len, needs 33");
    o.path = write_letters("batch.txt", 2 * T + 1, "ab");
    open_it(&o);
    o = options_for(write_letters("val.txt", 100, "ab"));
    expect_no_dataset(o, 2, "val.txt has 10 tokens for validation, but a window of --seq-len needs 17");
    o.tokens = "chars";
    o.path = write_file("latin1.txt", "caf\xE9 caf\xE9 caf\xE9 caf\xE9 caf\xE9", 24);
    expect_no_dataset(o, 2, "latin1.txt is not valid UTF-8 at byte 3 (0xE9); use --tokens bytes");
}

/* ---- files of others ------------------------------------------------------------------------------------------- */

/* The beginning of a file of each kind, and then what could be anything. */
TEST(what_says_that_it_is_something_else_is_refused)
{
    static const struct {
        const char *begin;
        size_t n;
        const char *part;
    } others[] = {
#define BEGINS(text, part) {text, sizeof(text) - 1, part}
        BEGINS("\x93NUMPY\1\0v\0{'descr': '<i8'", "is a NumPy array (.npy)"),
        BEGINS("BZh91AY&SY", "is a bzip2 file"),
        BEGINS("\xfd"
               "7zXZ\0",
               "is an xz file"),
        BEGINS("\x28\xb5\x2f\xfd", "is a zstd file"),
        BEGINS("7z\xbc\xaf\x27\x1c", "is a 7z archive"),
        BEGINS("PK\3\4\24\0\0\0notes.txt", "is a zip archive"),
        BEGINS("PK\3\4\24\0\0\0arr_0.npy", "is a file of NumPy arrays (.npz)"),
        BEGINS("PK\3\4\24\0\0\0archive/data.pkl", ": a model is what --init takes"),
        BEGINS("PK\3\4\24\0\0\0[Content_Types].xml", "is a document of an office program"),
        BEGINS("\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", "is a file of PyTorch's"),
        BEGINS("\x80\4\x95\x50\2\0\0\0\0\0\0", "is a pickle of Python's"),
        BEGINS("\x80\2}q\0", "is a pickle of Python's"),
        BEGINS("\x89HDF\r\n\x1a\n", "is an HDF5 file"),
        BEGINS("PAR1", "is a Parquet file"),
        BEGINS("ARROW1\0\0", "is an Arrow file"),
        BEGINS("\xff\xff\xff\xff\x80\0\0\0\x10\0\0\0", "is an Arrow stream"),
        BEGINS("SQLite format 3\0", "is an SQLite database"),
        BEGINS("GGUF\3\0\0\0", "is a GGUF model"),
        BEGINS("%PDF-1.7", ": convert it to text first, with pdftotext"),
        BEGINS("\x89PNG\r\n\x1a\n", "is a PNG picture"),
        BEGINS("\xff\xd8\xff\xe0", "is a JPEG picture"),
        BEGINS("RIFF\x50\2\0\0WAVE", "is a sound (WAV)"),
        BEGINS("\177ELF\2", "is a program (ELF)"),
        BEGINS("\x50\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\"", "is a safetensors file"),
        BEGINS("version https://git-lfs.github.com/spec/v1\noid", "is a pointer of Git LFS and not the file itself"),
        BEGINS("\xff\xfeh\0i\0", ": convert it with iconv"),
        BEGINS("MMIDIDX\0\0\1", "is the index of Megatron's tokens"),
        BEGINS("YARDTRC1", "is a trace of yard's"),
        BEGINS("YARDSNAP", "is a snapshot of yard's"),
#undef BEGINS
    };
    char file[600];
    for (size_t i = 0; i < COUNT(others); i++) {
        memset(file, 'x', sizeof file);
        memcpy(file, others[i].begin, others[i].n);
        memcpy(file + sizeof file - 5, "PAR1.", 5);
        size_t n = sizeof file - (strstr(others[i].part, "Parquet") != NULL);
        expect_no_dataset(options_for(write_file("other.txt", file, n)), 2, others[i].part);
        bool short_mark = strstr(others[i].part, "iconv"); /* tokens may begin so too */
        if (!short_mark)
            expect_no_dataset(options_for(write_file("other.bin", file, n)), 2, others[i].part);
    }
    memset(file, 'x', sizeof file);
    memcpy(file + 257, "ustar", 5);
    struct data_options ustar = options_for(write_file("ustar.txt", file, sizeof file));
    open_it(&ustar); /* a text may have that there */
    static const char *const formats[] = {"v7", "ustar", "gnu"};
    for (size_t i = 0; i < COUNT(formats); i++)
        for (int bin = 0; bin < 2; bin++) {
            char *tar = temp_path(bin ? "tarred.bin" : "tarred.txt");
            assert_int_equal(system(lasting("tar --format=%s -cf %s README.md", formats[i], tar)), 0);
            expect_no_dataset(options_for(tar), 2, "is a tar archive");
        }
    assert_int_equal(mkdir(temp_path("beside"), 0777), 0); /* not passed over in a folder */
    write_letters("beside/a.txt", 300, "abc");
    write_file("beside/b.txt", "%PDF-1.4", 8);
    expect_no_dataset(options_for(temp_path("beside")), 2, "b.txt is a PDF document");
    expect_no_dataset(options_for(temp_path("beside/*")), 2, "b.txt is a PDF document");
}

/* Words with which a text may well begin. */
TEST(text_that_begins_like_a_format_is_text)
{
    static const char *const texts[] = {"BZh is how bzip2 begins", "PAR1 and PAR2 are", "ORC is a format",
                                        "BM is a picture",         "MZ ran away",       "ID3\tis for music",
                                        "GGUF is of llama.cpp",    "RIFF: a WAVE",      "{\"run\":{}}"};
    char file[600];
    for (size_t i = 0; i < COUNT(texts); i++) {
        memset(file, ' ', sizeof file);
        memcpy(file, texts[i], strlen(texts[i]));
        struct data_options o = options_for(write_file("begins.txt", file, sizeof file));
        struct dataset *d = open_dataset(&o);
        assert_int_equal(d->train.n + d->val.n, sizeof file);
        close_dataset(d);
    }
}

TEST(other_magic_numbers_of_llmc)
{
    static const struct {
        int32_t magic;
        const char *part;
    } others[] = {{20240326, "is an llm.c model checkpoint"},
                  {20240327, "is an llm.c debug state"},
                  {20240328, "is an llm.c tokenizer"},
                  {20240522, "is an llm.c evaluation set"},
                  {20240527, "is an llm.c optimizer state"},
                  {20240801, "is an llm.c token shard of Llama 3, with tokens of 32 bits"},
                  {20240803, "is an llm.c model checkpoint of Llama 3"},
                  {20260101, "with the magic number 20260101, which this yard does not know"}};
    char file[4096] = {0};
    for (size_t i = 2000; i < sizeof file; i++)
        file[i] = (char)random_words(3, STREAM_TEST, 0, i).word[0];
    for (size_t i = 0; i < COUNT(others); i++) {
        memcpy(file, (int32_t[]){others[i].magic, 7, 1536}, 12);
        expect_no_dataset(options_for(write_file("magic.bin", file, sizeof file)), 1, others[i].part);
        if (others[i].magic < 20260101)
            expect_no_dataset(options_for(write_file("magic.tok", file, sizeof file)), 1, others[i].part);
    }
    memcpy(file, (int32_t[]){20240520, 1, 1536}, 12); /* a shard says what it is under any name */
    struct data_options o = options_for(write_file("shard.tok", file, sizeof file));
    struct dataset *d = open_dataset(&o);
    assert_int_equal(d->train.n + d->val.n, 1536);
    close_dataset(d);
}

enum { WIDE = 400 }; /* tokens */

/* Numbers below `limit`, of 4 or 8 bytes; some are above 65535 where that is larger. */
static char *write_wide(const char *name, size_t bytes, uint32_t limit, bool big_endian)
{
    unsigned char file[WIDE * 8] = {0};
    for (size_t i = 0; i < WIDE; i++) {
        uint32_t token = random_words(5, STREAM_TEST, 0, i).word[0] % (i % 9 ? MIN(limit, 60000) : limit);
        for (size_t k = 0; k < 4; k++)
            file[i * bytes + (big_endian ? bytes - 1 - k : k)] = (unsigned char)(token >> 8 * k);
    }
    return write_file(name, file, WIDE * bytes);
}

TEST(headerless_tokens_of_other_widths)
{
    static const uint32_t vocabularies[] = {4, 65, 50257, 128256};
    for (size_t i = 0; i < COUNT(vocabularies); i++)
        for (int big_endian = 0; big_endian < 2; big_endian++) {
            const char *order = big_endian ? ", the high one first" : "";
            for (size_t bytes = 4; bytes <= 8; bytes += 4)
                expect_no_dataset(options_for(write_wide("wide.bin", bytes, vocabularies[i], big_endian)), 1,
                                  lasting("holds tokens of %zu bytes%s: ", bytes, order));
        }
    for (size_t i = 0; i < COUNT(vocabularies); i++) { /* tokens of 2 bytes are read, whatever the vocabulary */
        uint16_t tokens[WIDE];
        for (size_t k = 0; k < WIDE; k++)
            tokens[k] = (uint16_t)(random_words(6, STREAM_TEST, 0, k).word[0] % MIN(vocabularies[i], 65536));
        struct data_options o = options_for(write_file("narrow.bin", tokens, sizeof tokens));
        open_it(&o);
    }
    struct data_options zeros = options_for(write_file("zeros.bin", (char[2000]){0}, 2000));
    open_it(&zeros);
    char index[18] = "MMIDIDX\0\0\1";
    index[17] = 4;
    char *tokens = write_numbered("mega.bin", 1000, false);
    write_file("mega.idx", index, sizeof index);
    expect_no_dataset(options_for(tokens), 1, "has tokens that are not of 16 bits, as");
    index[17] = 8;
    write_file("mega.idx", index, sizeof index);
    struct data_options o = options_for(tokens);
    open_it(&o);
}

/* Any two numbers may be the first: the marks of gzip, compress, UTF-16, UTF-32, TIFF, JPEG and MP3 prove nothing. */
TEST(tokens_may_begin_like_other_files)
{
    static const uint16_t first[][2] = {{0x0280, 0x7d7d}, {0x0480, 0x1195}, {0x8b1f, 0x0108}, {0x9d1f, 0x0090},
                                        {0xfeff, 0x0041}, {0xfffe, 0x0041}, {0x4949, 0x002a}, {0x4d4d, 0x2a00},
                                        {0xd8ff, 0x41ff}, {0x4449, 0x4133}};
    for (size_t i = 0; i < COUNT(first); i++) {
        uint16_t tokens[WIDE];
        for (size_t k = 0; k < WIDE; k++)
            tokens[k] = (uint16_t)(257 + random_words(8, STREAM_TEST, 0, k).word[0] % 50000);
        memcpy(tokens, first[i], sizeof first[i]);
        tokens[WIDE - 1] = 0x2e00; /* a pickle's stop */
        struct data_options o = options_for(write_file("begins.bin", tokens, sizeof tokens));
        struct dataset *d = open_dataset(&o);
        assert_int_equal(d->train.tokens[0], first[i][0]);
        close_dataset(d);
    }
}

TEST(text_named_bin_is_no_tokens)
{
    expect_no_dataset(options_for(write_letters("letters.bin", 5000, "abc \n")), 2,
                      "letters.bin is text, but a .bin file holds token numbers; give it another name");
    char accents[5001];
    for (size_t i = 0; i < 2500; i++)
        memcpy(accents + 2 * i, "\xC3\xA9", 2);
    expect_no_dataset(options_for(write_file("accents.bin", accents, 5000)), 2, "accents.bin is text");
}

TEST(packed_text)
{
    char *letters = write_letters("plain.txt", 3000, "abc"), *packed = temp_path("packed.txt.gz");
    char *second = temp_path("twice.gz"), *tar = temp_path("tar.gz");
    assert_int_equal(system(lasting("gzip -c %s >%s", letters, packed)), 0);
    assert_int_equal(system(lasting("cat %s %s >%s", packed, packed, second)), 0);
    struct data_options o = options_for(letters);
    struct dataset *plain = open_dataset(&o);
    o.path = packed;
    struct dataset *d = open_dataset(&o);
    assert_int_equal(d->train.n, plain->train.n);
    assert_memory_equal(d->train.tokens, plain->train.tokens, plain->train.n * sizeof *plain->train.tokens);
    close_dataset(plain);
    close_dataset(d);
    o.path = second; /* two members are a text */
    d = open_dataset(&o);
    assert_int_equal(d->train.n + d->val.n, 6000);
    close_dataset(d);
    assert_int_equal(system(lasting("head -c 400 %s >%s", packed, temp_path("cut.gz"))), 0);
    expect_no_dataset(options_for(temp_path("cut.gz")), 1, "cut.gz is damaged: gzip's data break off");
    assert_int_equal(system(lasting("cat %s %s >%s", packed, letters, temp_path("trail.gz"))), 0);
    expect_no_dataset(options_for(temp_path("trail.gz")), 1, "trail.gz is damaged");
    assert_int_equal(system(lasting("tar -C %s -c plain.txt | gzip >%s", temp_path("."), tar)), 0);
    expect_no_dataset(options_for(tar), 2, "is a tar archive, packed with gzip");
    write_numbered("shard.bin", 1000, true);
    assert_int_equal(system(lasting("gzip -kf %s", temp_path("shard.bin"))), 0);
    expect_no_dataset(options_for(temp_path("shard.bin.gz")), 2, "is packed with gzip and holds tokens");
    assert_int_equal(mkdir(temp_path("packs"), 0777), 0);
    write_letters("packs/a.txt", 300, "abc");
    assert_int_equal(system(lasting("gzip -kf %s", temp_path("packs/a.txt"))), 0);
    expect_no_dataset(options_for(temp_path("packs")), 2, "a.txt.gz is a gzip file"); /* it would be read twice */
    char *bomb = temp_path("bomb.gz");
    assert_int_equal(system(lasting("head -c 300M /dev/zero | gzip >%s", bomb)), 0);
    expect_no_dataset(options_for(bomb), 1, "bomb.gz unpacks to more than 100 times its size");
}

TEST(a_byte_order_mark_is_no_text)
{
    struct data_options o = options_for(write_letters("unmarked.txt", 300, "abc"));
    o.tokens = "chars";
    struct dataset *plain = open_dataset(&o);
    assert_int_equal(mkdir(temp_path("marked"), 0777), 0);
    char *marked = temp_path("marked/a.txt");
    assert_int_equal(system(lasting("{ printf '\\357\\273\\277'; cat %s; } >%s", o.path, marked)), 0);
    o.path = marked;
    struct dataset *d = open_dataset(&o);
    assert_int_equal(d->vocab, 3);
    assert_int_equal(d->train.n, plain->train.n);
    assert_memory_equal(d->train.tokens, plain->train.tokens, plain->train.n * sizeof *plain->train.tokens);
    close_dataset(plain);
    close_dataset(d);
    assert_int_equal(system(lasting("cp %s %s", marked, temp_path("marked/b.txt"))), 0);
    o.path = temp_path("marked"); /* nor in the middle of several texts */
    d = open_dataset(&o);
    assert_int_equal(d->vocab, 3);
    assert_int_equal(d->train.n + d->val.n, 600);
    close_dataset(d);
}

TEST(the_layout_of_nanogpt)
{
    assert_int_equal(mkdir(temp_path("nano"), 0777), 0);
    write_letters("nano/input.txt", 3000, "abc");
    write_file("nano/meta.pkl", "\x80\4}.", 4);
    write_numbered("nano/train.bin", 1000, false);
    struct data_options o = options_for(temp_path("nano"));
    expect_no_dataset(o, 2, "meta.pkl is a pickle"); /* without val.bin it is a folder like others */
    write_numbered("nano/val.bin", 100, false);
    struct dataset *d = open_dataset(&o);
    assert_int_equal(d->train.n, 1000);
    assert_int_equal(d->val.n, 100);
    close_dataset(d);
    struct outcome said = run_child(open_it, &o);
    assert_non_null(strstr(said.text, "is laid out as nanoGPT's: "));
    assert_ptr_equal(strchr(said.text, '\n'), said.text + strlen(said.text) - 1); /* one line */
    o.order = ORDER_FILE;
    d = open_dataset(&o);
    assert_int_equal(d->train.n, 1000);
    assert_int_equal(d->val.n, 100);
    close_dataset(d);
    o.val_data = write_numbered("own.bin", 50, false); /* --val-data may name another file */
    d = open_dataset(&o);
    assert_int_equal(d->val.n, 50);
    close_dataset(d);
    o = options_for(temp_path("nano/*.bin")); /* a pattern takes what it says, and that is said */
    d = open_dataset(&o);
    assert_int_equal(d->train.n + d->val.n, 1000 + 100);
    close_dataset(d);
    said = run_child(open_it, &o);
    assert_non_null(strstr(said.text, "val.bin too, which is trained on"));
}

/* ---- windows --------------------------------------------------------------------------------------------------- */

static struct dataset *numbered(size_t n, enum data_order order, double val_share)
{
    struct data_options o = options_for(write_numbered("numbered.bin", n, false));
    o.order = order;
    o.val_share = val_share;
    return open_dataset(&o);
}

/* llm.c's loader as it keeps its state: move by B*T, read B*T+1, start anew when that would go past the end. */
TEST(file_order_is_that_of_llmc)
{
    enum { B = 2 };
    static const size_t sizes[] = {33, 34, 64, 65, 66, 96, 97, 98, 200};
    for (size_t k = 0; k < COUNT(sizes); k++) {
        struct dataset *d = numbered(sizes[k], ORDER_FILE, 0);
        size_t position = 0;
        for (int step = 0; step < 20; step++) {
            if (position + B * T + 1 > sizes[k])
                position = 0;
            for (int s = 0; s < B; s++) {
                const struct window w = {
                    .order = ORDER_FILE, .seed = 7, .step = step, .sample = s, .batch = B, .seq_len = T};
                int32_t tokens[T], targets[T];
                dataset_window(d, &w, tokens, targets);
                for (int t = 0; t < T; t++) {
                    assert_int_equal(tokens[t], position + (size_t)(s * T + t));
                    assert_int_equal(targets[t], tokens[t] + 1);
                }
            }
            position += B * T;
        }
        close_dataset(d);
    }
}

static int32_t offset_of(const struct dataset *d, uint64_t seed, int64_t step, int sample, int batch)
{
    const struct window w = {
        .order = ORDER_SHUFFLE, .seed = seed, .step = step, .sample = sample, .batch = batch, .seq_len = T};
    int32_t tokens[T], targets[T];
    dataset_window(d, &w, tokens, targets);
    for (int t = 0; t < T; t++) {
        assert_int_equal(tokens[t], tokens[0] + t);
        assert_int_equal(targets[t], tokens[t] + 1);
    }
    return tokens[0];
}

TEST(shuffle_depends_on_the_global_sample_only)
{
    struct dataset *d = numbered(10000, ORDER_SHUFFLE, 0);
    for (int i = 0; i < 240; i++)
        assert_int_equal(offset_of(d, 5, i / 8, i % 8, 8), offset_of(d, 5, i / 12, i % 12, 12));
    int same = 0;
    for (int i = 0; i < 1000; i++)
        same += offset_of(d, 5, i, 0, 1) == offset_of(d, 6, i, 0, 1);
    assert_true(same < 5);
    assert_int_equal(offset_of(d, 5, 7, 3, 8), offset_of(d, 5, 7, 3, 8));
    close_dataset(d);
}

static int by_value(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* Within an epoch no two windows overlap (but where the ring closes), and the next epoch cuts elsewhere. */
TEST(shuffle_draws_without_replacement)
{
    enum { TOKENS = 10000, WINDOWS = (TOKENS - T) / T };
    struct dataset *d = numbered(TOKENS, ORDER_SHUFFLE, 0);
    int32_t offset[2][WINDOWS];
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < WINDOWS; i++)
            offset[epoch][i] = offset_of(d, 3, epoch * WINDOWS + i, 0, 1);
        int in_order = 0;
        for (int i = 1; i < WINDOWS; i++)
            in_order += offset[epoch][i] > offset[epoch][i - 1];
        assert_true(abs(in_order - WINDOWS / 2) < WINDOWS / 4);
        qsort(offset[epoch], WINDOWS, sizeof(int32_t), by_value);
        int overlaps = 0;
        for (int i = 1; i < WINDOWS; i++)
            overlaps += offset[epoch][i] - offset[epoch][i - 1] < T;
        assert_true(overlaps <= 1);
    }
    assert_int_not_equal(offset[0][0] % T, offset[1][0] % T);
    close_dataset(d);
}

/* Each token of the split but the first is a counted target exactly once, whatever the length. */
TEST(validation_counts_each_target_once)
{
    for (size_t n = T + 1; n < 5 * T; n++) {
        struct dataset d = {.val = {.tokens = allocate(n, sizeof(uint16_t)), .n = n}};
        for (size_t i = 0; i < n; i++)
            d.val.tokens[i] = (uint16_t)i;
        int next = 1, windows = (int)validation_windows(&d, T);
        for (int i = 0; i < windows; i++) {
            int32_t tokens[T], targets[T];
            int count = validation_window(&d, (size_t)i, T, tokens, targets);
            assert_true(count == T || i == windows - 1);
            assert_true(count >= 1 && count <= T);
            for (int t = T - count; t < T; t++, next++) {
                assert_int_equal(targets[t], next);
                assert_int_equal(tokens[t], next - 1);
            }
        }
        assert_int_equal(next, n);
        free(d.val.tokens);
    }
}

TEST(sort_positions)
{
    enum { N = 500, V = 23 };
    int32_t tokens[N], order[N], start[V + 1];
    for (int i = 0; i < N; i++) /* token 4 never occurs, nor does the last */
        tokens[i] = (int32_t)(random_words(3, STREAM_TEST, 0, (uint64_t)i).word[0] % (V - 1));
    for (int i = 0; i < N; i++)
        tokens[i] += tokens[i] == 4;
    sort_positions(tokens, N, V, order, start);
    int at = 0;
    for (int v = 0; v < V; v++) {
        assert_int_equal(start[v], at);
        for (int i = 0; i < N; i++)
            if (tokens[i] == v)
                assert_int_equal(order[at++], i);
    }
    assert_int_equal(start[V], N);
    sort_positions(tokens, 0, V, order, start);
    assert_int_equal(start[V], 0);
}

/* ---- learning rate --------------------------------------------------------------------------------------------- */

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-12 * fabs(b)))
        test_failed("%.17g is not %.17g\n", a, b);
}

TEST(constant_rate)
{
    struct rate r = {RATE_CONSTANT, 1e-3, 1e-4, 10, 0};
    for (int64_t step = 1; step <= 10; step++)
        assert_true(learning_rate(&r, step) == 1e-3); /* the very bits */
    r.warmup = 4;
    assert_near(learning_rate(&r, 1), 1e-3 / 5);
    assert_near(learning_rate(&r, 4), 4e-3 / 5);
    assert_true(learning_rate(&r, 5) == 1e-3);
}

/* nanoGPT's recipe: 2000 iterations, 100 of them warm-up, 1e-3 to 1e-4.  There `it` counts from 0. */
TEST(cosine_rate)
{
    struct rate r = {RATE_COSINE, 1e-3, 1e-4, 2000, 100};
    for (int64_t it = 0; it < 100; it++)
        assert_near(learning_rate(&r, it + 1), 1e-3 * (double)(it + 1) / 101);
    assert_true(learning_rate(&r, 101) == 1e-3);
    for (int64_t it = 100; it < 2000; it++)
        assert_near(learning_rate(&r, it + 1), 1e-4 + 0.5 * (1 + cos(M_PI * (double)(it - 100) / 1899)) * 9e-4);
    assert_near(learning_rate(&r, 2000), 1e-4);
    for (int64_t step = 102; step <= 2000; step++)
        assert_true(learning_rate(&r, step) < learning_rate(&r, step - 1));
    r.warmup = 0;
    assert_true(learning_rate(&r, 1) == 1e-3);
}

TEST(linear_and_wsd_rates)
{
    struct rate r = {RATE_LINEAR, 1, 0, 11, 0};
    for (int64_t step = 1; step <= 11; step++)
        assert_near(learning_rate(&r, step) + 1, 1 + 1 - (double)(step - 1) / 10);
    r = (struct rate){RATE_WSD, 1, 0.1, 100, 10};
    assert_near(learning_rate(&r, 10), 10.0 / 11);
    for (int step = 11; step <= 80; step++)
        assert_true(learning_rate(&r, step) == 1);
    assert_near(learning_rate(&r, 85), 0.1 + 0.9 * (1 - sqrt(5.0 / 20)));
    assert_near(learning_rate(&r, 100), 0.1);
}

TEST(short_runs_have_a_finite_rate)
{
    for (int schedule = RATE_COSINE; schedule <= RATE_WSD; schedule++)
        for (int steps = 1; steps <= 4; steps++)
            for (int warmup = 0; warmup < steps; warmup++)
                for (int step = 1; step <= steps; step++) {
                    struct rate r = {(enum rate_schedule)schedule, 1, 0.25, steps, warmup};
                    double lr = learning_rate(&r, step);
                    assert_true(lr >= 0.2 && lr <= 1);
                }
}

static void check_it(void *rate) { check_rate(rate); }

TEST(impossible_rates)
{
    struct rate r = {RATE_COSINE, 1e-3, 1e-4, 100, 100};
    expect_refusal(check_it, &r, 2, "100 warm-up steps leave none of the 100 steps");
    r.warmup = 99;
    check_rate(&r);
    r.lr_min = 2e-3;
    expect_refusal(check_it, &r, 2, "0.002 is above the learning rate 0.001");
    r.schedule = RATE_CONSTANT; /* which does not use it */
    check_rate(&r);
}

/* test_data.c - data sets: what --data names, what is held out for validation, and which vocabulary comes of it.
 *
 * It tests data.c, data_paths.c, splits.c and texts.c of src/trainer/data.  It checks that each byte is either trained
 * on or held out, and that the cut is at the same byte whatever tokens are; that files come in the order of their
 * names; that a model's own tokenizer and vocabulary count; and that data which are too short, missing or of another
 * kind are refused.  It catches a split that loses a token or cuts a character in two, a vocabulary that is learnt from
 * what is held out, and an order that the file system chooses.
 *
 * To see it fail: in texts.c, cut at the byte that is asked for, though it is in the middle of a character.
 *
 * The expected numbers of tokens follow from the lengths of files, which are written here, and from val_share, a tenth.
 *
 * test_data_formats.c tests files of other programs, test_data_windows.c windows, and test_tokenizer.c tokenizers.
 */
#include "tests/support/support_data.h"
#include "trainer/base/embedded.h"

#include <math.h>

/* ---- what --data names ------------------------------------------------------------------------------------------- */

/* nanoGPT's published recipe for Shakespeare's characters: 1,115,394 of them, 65 distinct ones.  The first 90 % are for
 * training, 1,003,854, and 111,540 are to validate. */
static const char alphabet65[] = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

TEST(nanogpts_character_recipe_has_its_splits)
{
    struct data_options options = options_for(write_letters("shakespeare.txt", 1115394, alphabet65));
    options.tokens = "chars";
    struct dataset *data = open_dataset(&options);
    assert_int_equal(data->vocab, 65);
    assert_ptr_equal(data->tokenizer.kind, &token_chars);
    assert_int_equal(data->train.n, 1003854);
    assert_int_equal(data->val.n, 111540);
    for (int i = 0; i < 65; i++) /* the first 65 characters of the file are the alphabet in order */
        assert_int_equal(data->train.tokens[i], i);
    close_dataset(data);
}

TEST(stories_are_the_default)
{
    struct data_options options = options_for(NULL);
    struct data_options same_options = options_for("stories");
    struct dataset *data = open_dataset(&options);
    struct dataset *same = open_dataset(&same_options);
    assert_int_equal(data->vocab, 256);
    assert_int_equal(data->train.n, same->train.n);
    assert_memory_equal(data->train.tokens, same->train.tokens, data->train.n * sizeof *data->train.tokens);
    assert_close(data->floor, same->floor, 0);
    close_dataset(data);
    close_dataset(same);
}

TEST(made_texts_have_a_rate_and_a_floor)
{
    struct data_options options = options_for("stories");
    struct data_options with_memory = options_for("stories:data/memory.txt");
    struct dataset *stories = open_dataset(&options);
    struct dataset *memory = open_dataset(&with_memory);
    assert_above(stories->nats_per_byte, 0.05);
    assert_below(stories->nats_per_byte, stories->floor); /* who sees few bytes knows less than the grammar */
    assert_above(memory->nats_per_byte, 0);
    assert_true(memory->nats_per_byte != stories->nats_per_byte);
    double floor = stories->floor;
    close_dataset(stories);
    close_dataset(memory);

    options.tokens = "chars"; /* a character is a byte here, so the floor is the same */
    stories = open_dataset(&options);
    assert_below(stories->vocab, 64);
    assert_close(stories->floor, floor, 0);
    close_dataset(stories);

    options.val_data = write_letters("other.txt", 100, "ab"); /* of which nobody knows a floor */
    stories = open_dataset(&options);
    assert_true(isnan(stories->floor));
    close_dataset(stories);
}

TEST(grammars_that_cannot_be_read_are_refused)
{
    expect_no_dataset(options_for("stories:none.txt"), EXIT_IO, "none.txt");
    expect_no_dataset(options_for(lasting("stories:%s", write_file("zero.txt", "a\0b", 3))), EXIT_USAGE, "zero byte");
}

TEST(folders_and_globs_are_sorted)
{
    assert_int_equal(mkdir(temp_path("many"), 0777), 0);
    assert_int_equal(mkdir(temp_path("many/sub"), 0777), 0);
    write_file("many/b.txt", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 30);
    write_file("many/a.txt", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 30);
    write_file("many/c.md", "c", 1);
    write_file("many/.hidden", "hhhhh", 5);
    struct data_options options = options_for(temp_path("many"));
    options.val_share = 0;
    struct dataset *data = open_dataset(&options);
    assert_int_equal(data->train.n, 30 + 30 + 1); /* a.txt, b.txt, c.md */
    assert_int_equal(data->train.tokens[0], 'a');
    assert_int_equal(data->train.tokens[30], 'b');
    assert_int_equal(data->train.tokens[60], 'c');
    close_dataset(data);
    options.path = temp_path("many/*.txt");
    expect_splits(&options, 30 + 30, 0);
}

TEST(a_file_wins_over_the_pattern_of_its_name)
{
    struct data_options options = options_for(write_file("odd[1]*.txt", "dddddddddddddddddddddddddddddd", 30));
    options.val_share = 0;
    expect_splits(&options, 30, 0);
}

/* ---- what is held out -------------------------------------------------------------------------------------------- */

/* The place in the sources, moved to the first byte of its character. */
static size_t first_byte(size_t place)
{
    while ((embedded_text[place] & 0xC0) == 0x80)
        place--;
    return place;
}

/* The sources are cut into 64 parts, so that what is held out comes from all over them; every byte is in one of the two
 * splits, in order. */
TEST(sources_are_held_out_in_parts)
{
    enum { PARTS = 64 };
    struct data_options options = options_for("self");
    for (int share = 1; share <= 3; share++) {
        options.val_share = 0.1 * share;
        struct dataset *data = open_dataset(&options);
        size_t at = 0; /* in the sources */
        size_t train = 0;
        size_t val = 0;
        size_t changes = 0;
        size_t held_out = embedded_text_size * (size_t)share / 10;
        assert_int_equal(data->train.n + data->val.n, embedded_text_size);
        assert_in_range(data->val.n, held_out - 1, held_out + PARTS); /* each part is rounded by itself */
        for (size_t part = 0; part < PARTS; part++) {
            size_t begin = embedded_text_size * part / PARTS;
            size_t end = embedded_text_size * (part + 1) / PARTS;
            size_t cut = begin + (size_t)((double)(end - begin) * (1 - options.val_share));
            for (; at < first_byte(cut); at++) {
                if (embedded_text[at] != data->train.tokens[train])
                    changes++;
                train++;
            }
            for (; at < first_byte(end); at++) {
                if (embedded_text[at] != data->val.tokens[val])
                    changes++;
                val++;
            }
        }
        assert_int_equal(changes, 0);
        assert_true(isnan(data->nats_per_byte));
        assert_true(isnan(data->floor));
        close_dataset(data);
    }
}

/* The bytes that the split's tokens stand for; the text lasts. */
static const char *text_of_split(const struct dataset *data, const struct split *split)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < split->n; i++) {
        char own[DECODED_BYTES];
        size_t n;
        const char *bytes = decode_token(&data->tokenizer, split->tokens[i], own, &n);
        fwrite(bytes, 1, n, out);
    }
    fclose(out);
    const char *lasts = lasting("%s", text);
    free(text);
    return lasts;
}

enum { PHRASE = 9 }; /* bytes of "漢字 é", whose characters have 3, 3, 1 and 2 */

/* A text of 2,907 bytes: phrases, in the last tenth of which another character stands in the second place. */
static const char *long_characters(void)
{
    static char text[3 * 1000 + 1];
    text[0] = '\0';
    while (strlen(text) < 2900)
        strcat(text, strlen(text) < 2600 ? "漢字 é" : "漢漢 é");
    return text;
}

/* Whatever tokens are, the same bytes are trained on, and no character is cut. */
static void expect_same_cut(const char *text)
{
    static const char *const words[] = {"bytes", "chars", "bpe:300"};
    const char *by_bytes = NULL; /* what is trained on where tokens are bytes */
    for (size_t i = 0; i < COUNT(words); i++) {
        struct data_options options = options_for(write_text("cut.txt", "%s", text));
        options.tokens = words[i];
        struct dataset *data = open_dataset(&options);
        const char *train = text_of_split(data, &data->train);
        const char *val = text_of_split(data, &data->val);
        if (i == 0)
            by_bytes = train;
        assert_string_equal(lasting("%s%s", train, val), text);
        assert_int_equal(valid_utf8(train, strlen(train)), strlen(train));
        assert_in_range(strlen(train), strlen(text) * 9 / 10 - 3, strlen(text) * 9 / 10); /* 3: a character's bytes */
        assert_string_equal(train, by_bytes);
        if (data->tokenizer.kind != &token_bytes)
            assert_above(data->bytes_per_token, 2);
        else
            assert_close(data->bytes_per_token, 1, 0);
        close_dataset(data);
    }
}

/* Ten letters more move the cut, at nine tenths of the bytes, by nine bytes: it comes to each byte of the phrase. */
TEST(a_text_is_cut_at_the_same_byte)
{
    for (int letters = 0; letters <= PHRASE + 1; letters++)
        expect_same_cut(lasting("%s%.*s", long_characters(), letters, "xxxxxxxxxxxx"));
}

/* Is there a token "xy" after learning up to 400 tokens from this text? */
static bool learns_xy(const char *text)
{
    struct data_options options = options_for(write_text("learn.txt", "%s", text));
    options.tokens = "bpe:400";
    struct dataset *data = open_dataset(&options);
    char *line = tokenizer_to_text(&data->tokenizer);
    bool found = strstr(line, "xy") != NULL;
    free(line);
    close_dataset(data);
    return found;
}

TEST(tokens_are_not_learnt_from_what_is_held_out)
{
    assert_true(learns_xy(lasting("%s%s", "xyxyxyxyxyxyxy ", long_characters())));
    assert_false(learns_xy(lasting("%s%s", long_characters(), "xyxyxyxyxyxyxy")));
}

/* However small files are, the share is about what was asked for: a tenth of 2 n bytes, and rounding. */
TEST(small_files_are_held_out_too)
{
    char text[2000];
    memset(text, 'x', sizeof text);
    for (size_t n = 20; n <= 2000; n *= 10) {
        assert_int_equal(mkdir(temp_path(lasting("small%zu", n)), 0777), 0);
        write_file(lasting("small%zu/a.txt", n), text, n);
        write_file(lasting("small%zu/b.txt", n), text, n);
        struct data_options options = options_for(temp_path(lasting("small%zu", n)));
        options.seq_len = 1;
        struct dataset *data = open_dataset(&options);
        assert_int_equal(data->train.n + data->val.n, 2 * n);
        assert_in_range(data->val.n, n / 5, n / 5 + 5);
        close_dataset(data);
    }
}

TEST(validation_text_may_be_a_file_of_its_own)
{
    char *train = write_letters("train.txt", 200, "abc");
    char *val = write_letters("val.txt", 100, "xbz");
    struct data_options options = options_for(train);
    options.val_data = val;
    options.tokens = "chars";
    struct dataset *data = open_dataset(&options);
    assert_int_equal(data->train.n, 200);
    assert_int_equal(data->val.n, 100);
    assert_int_equal(data->vocab, 5);         /* the characters of both, a b c x z */
    assert_int_equal(data->val.tokens[0], 3); /* x */
    close_dataset(data);

    options.val_data = write_numbered("val.bin", 100, true);
    expect_no_dataset(options, EXIT_USAGE, "is an llm.c token shard, but the training data");
    options.val_data = write_file("empty.txt", "", 0);
    expect_no_dataset(options, EXIT_USAGE, "empty.txt has 0 tokens for validation");
}

/* ---- token numbers, and models with a tokenizer of their own ----------------------------------------------------- */

TEST(a_tenth_of_token_files_is_held_out)
{
    struct data_options options = options_for(write_numbered("shard.bin", 1000, true));
    struct dataset *data = open_dataset(&options);
    assert_ptr_equal(data->tokenizer.kind, &token_ids);
    assert_int_equal(data->vocab, 1000);
    assert_int_equal(data->train.n, 900); /* a tenth is held out */
    close_dataset(data);
    options.window_order = ORDER_FILE; /* then all of a shard is training data */
    data = open_dataset(&options);
    assert_int_equal(data->train.n, 1000);
    assert_int_equal(data->val.n, 0);
    assert_int_equal(validation_windows(data, T), 0);
    close_dataset(data);
    options.path = write_numbered("raw.bin", 1000, false); /* nanoGPT's kind has no such convention */
    expect_splits(&options, 900, 100);
    options.vocab = 50257; /* a model brings its own vocabulary */
    data = open_dataset(&options);
    assert_int_equal(data->vocab, 50257);
    close_dataset(data);
    options.vocab = 800;
    expect_no_dataset(options, EXIT_USAGE, "raw.bin has token 999, but the model's vocabulary is 800");
}

TEST(a_model_brings_its_tokenizer)
{
    char *path = write_letters("abc.txt", 300, "abc");
    struct data_options options = options_for(path);
    options.tokenizer = tokenizer_from_text("chars 61 62 63 64", "ckpt");
    options.vocab = 4;
    struct dataset *data = open_dataset(&options);
    assert_int_equal(data->vocab, 4);
    assert_int_equal(data->train.tokens[2], 2);
    close_dataset(data);
    options.tokenizer = tokenizer_from_text("chars 61 62 63 64", "ckpt");
    options.path = write_letters("abe.txt", 300, "abe");
    expect_no_dataset(options, EXIT_USAGE,
                      "abe.txt has the character \"e\" (U+0065) at byte 2, which is none of the 4");
    options.path = write_numbered("ids.bin", 300, true);
    expect_no_dataset(options, EXIT_USAGE, "the model was trained on characters, but");
    options.path = path;
    free_tokenizer(&options.tokenizer);
    options.tokenizer = tokenizer_from_text("ids 9", "ckpt");
    expect_no_dataset(options, EXIT_USAGE, "the model was trained on token numbers, but");
    options.tokenizer.n = 0; /* a model without a tokenizer takes bytes, if it has a row for each of them */
    options.vocab = 'c';     /* the largest byte of the file, so that one row is missing */
    expect_no_dataset(options, EXIT_USAGE, "has token 99, but the model's vocabulary is 99");
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

TEST(paths_without_data_are_refused)
{
    expect_no_dataset(options_for(temp_path("none.txt")), EXIT_IO,
                      "none.txt; expected a file, a folder with files (not in folders inside it) or a pattern");
    expect_no_dataset(options_for(write_file("empty.txt", "", 0)), EXIT_USAGE, "empty.txt has 0 tokens for training");
    expect_no_dataset(options_for(write_numbered("empty.bin", 0, true)), EXIT_USAGE,
                      "empty.bin has 0 tokens for training");
    assert_int_equal(mkdir(temp_path("hollow"), 0777), 0);
    expect_no_dataset(options_for(temp_path("hollow")), EXIT_IO, "no file matches");
    assert_int_equal(mkdir(temp_path("mixed"), 0777), 0);
    write_file("mixed/a.txt", "hello", 5);
    write_numbered("mixed/b.bin", 10, true);
    expect_no_dataset(options_for(temp_path("mixed")), EXIT_USAGE, "mixes kinds of data");
    expect_no_dataset(options_for("tests/data/llmc-tiny.bin"), EXIT_FAILED,
                      "is an llm.c model checkpoint; expected token numbers");
}

TEST(data_that_are_too_short_are_refused)
{
    struct data_options options = options_for(write_letters("short.txt", T, "ab"));
    options.val_share = 0;
    expect_no_dataset(options, EXIT_USAGE, "short.txt has 16 tokens for training, which needs 17");
    options.path = write_letters("just.txt", T + 1, "ab");
    open_and_close(&options); /* one token more and it works */
    options.window_order = ORDER_FILE;
    expect_no_dataset(options, EXIT_USAGE, "just.txt has 17 tokens for training, which needs 33");
    options.path = write_letters("batch.txt", 2 * T + 1, "ab");
    open_and_close(&options);
    options = options_for(write_letters("val.txt", 100, "ab"));
    expect_no_dataset(options, EXIT_USAGE, "val.txt has 10 tokens for validation, which needs 17");
}

TEST(text_that_is_no_utf8_has_no_characters)
{
    struct data_options options = options_for(NULL);
    options.tokens = "chars";
    options.path = write_file("latin1.txt", "caf\xE9 caf\xE9 caf\xE9 caf\xE9 caf\xE9", 24);
    expect_no_dataset(options, EXIT_USAGE, "latin1.txt is not valid UTF-8 at byte 3 (0xE9); use --tokens bytes");
}

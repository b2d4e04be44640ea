/* test_llmc.c - reading the files of llm.c: models, and numbers of tokens.
 *
 * It tests llmc.c of src/trainer/file.  It catches a header that is believed although the file is shorter or longer
 * than it says, and numbers that are read from a file of another kind.
 *
 * To see it fail: in llmc.c, leave out the comparison of the file's length.
 *
 * Damaged files are tests/data/llmc-tiny.bin and llmc-tokens.bin, with one number changed.
 */
#include "tests/support/child.h"
#include "trainer/file/file.h"

static const char model_path[] = "tests/data/llmc-tiny.bin", tokens_path[] = "tests/data/llmc-tokens.bin";

static void open_model(void *path) { close_llmc_model(open_llmc_model(path)); }

static void read_shard(void *path)
{
    size_t n;
    free(read_token_shard(path, &n));
}

static void read_headerless(void *path)
{
    size_t n;
    free(read_headerless_tokens(path, &n));
}

TEST(damaged_models_of_llmc_are_refused)
{
    static const struct {
        int word, value;
        const char *part;
    } damage[] = {
        {0, 20240520, "is an llm.c token shard; expected an llm.c model checkpoint"},
        {0, 7, "its first word is 7, expected 20240326"},
        {1, 5, "version 5 in header word 1, expected 3: it holds bfloat16"},
        {1, 2, "version 2"},
        {2, 0, "header word 2 (max_seq_len) is 0"},
        {3, -1, "header word 3 (vocab) is -1"},
        {3, 257, "padded_vocab 256 (header word 7) is less than vocab 257"},
        {4, 0, "layers"},
        {4, 1 << 30, "header word 4 (layers)"},
        {5, 0, "heads"},
        {5, 3, "64 channels (header word 6) cannot be shared by 3 heads"},
        {6, 1 << 30, "header word 6 (channels)"},
        {6, 128, "asks for"},
        {7, 320, "asks for"},
        {7, INT32_MIN, "padded_vocab"},
    };
    size_t size;
    char *file = read_whole(model_path, &size);
    for (size_t i = 0; i < COUNT(damage); i++) {
        char *copy = allocate(size, 1);
        memcpy(copy, file, size);
        memcpy(copy + 4 * damage[i].word, &damage[i].value, 4);
        expect_refusal(open_model, write_file("damaged.bin", copy, size), EXIT_FAILED, damage[i].part);
        free(copy);
    }
    static const size_t cuts[] = {0, 3, 4, 1023, 1024, 1028};
    for (size_t i = 0; i < COUNT(cuts); i++)
        expect_refusal(open_model, write_file("cut.bin", file, cuts[i]), EXIT_FAILED, "cut.bin is damaged");
    expect_refusal(open_model, write_file("cut.bin", file, size - 1), EXIT_FAILED, "it has 483327");
    expect_refusal(open_model, temp_path("none.bin"), EXIT_IO, "none.bin");
    free(file);
}

TEST(shards_of_tokens_are_read_or_refused)
{
    size_t n;
    size_t size;
    uint16_t *tokens = read_token_shard(tokens_path, &n);
    char *file = read_whole(tokens_path, &size);
    assert_int_equal(n, 40000); /* as its header says, behind whose 1024 bytes the tokens begin */
    assert_memory_equal(tokens, file + 1024, 2 * n);
    free(tokens);
    assert_true(has_magic(tokens_path, LLMC_TOKENS_MAGIC));
    assert_false(has_magic(model_path, LLMC_TOKENS_MAGIC));
    assert_false(has_magic(write_file("short.bin", "abc", 3), LLMC_TOKENS_MAGIC));
    expect_refusal(read_shard, write_file("cut.bin", file, size - 2), EXIT_FAILED, "promises 40000 tokens");
    expect_refusal(read_shard, write_file("cut.bin", file, 1000), EXIT_FAILED, "begins with a header of 1024 bytes");
    expect_refusal(read_shard, (void *)model_path, EXIT_FAILED,
                   "is an llm.c model checkpoint; expected an llm.c token shard");
    memcpy(file + 8, &(int32_t){-1}, 4);
    expect_refusal(read_shard, write_file("cut.bin", file, size), EXIT_FAILED, "promises -1 tokens");
    free(file);
}

TEST(tokens_without_a_header_are_read_or_refused)
{
    size_t n;
    uint16_t *tokens = read_headerless_tokens(write_file("raw.bin", (uint16_t[]){1, 2, 50256}, 6), &n);
    assert_int_equal(n, 3);
    assert_int_equal(tokens[0], 1);
    assert_int_equal(tokens[1], 2);
    assert_int_equal(tokens[2], 50256);
    free(tokens);
    expect_refusal(read_headerless, write_file("raw.bin", "abc", 3), EXIT_FAILED, "odd number of bytes (3)");
    expect_refusal(read_headerless, (void *)model_path, EXIT_FAILED,
                   "is an llm.c model checkpoint; expected token numbers");
}

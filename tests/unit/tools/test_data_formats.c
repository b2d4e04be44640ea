/* test_data_formats.c - files of other programs as data: which of them are read, and which are refused by their names.
 *
 * It tests src/tools/foreign, and how texts.c and splits.c of src/trainer/data take what is found.  It checks that a
 * file which says what it is, and is neither text nor tokens, is refused with a sentence: otherwise a student trains on
 * an archive.  It also checks the opposite: text that begins with the words of a format is text, and any two numbers
 * may be the first tokens.  It catches a signature that is too short, or that is looked for in the wrong place, and a
 * text from a damaged archive.
 *
 * To see it fail: in data_files.c, take a row out of the table of signatures, or cut one to its first two bytes.
 *
 * Signatures are those of each format's description.  Each test file consists of a signature and of bytes without
 * meaning.
 */
#include "tests/support/support_data.h"

/* ---- files that say what they are -------------------------------------------------------------------------------- */

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
        BEGINS("YARDTRC1", "is a trace that yard wrote"),
        BEGINS("YARDSNAP", "is a snapshot that yard wrote"),
#undef BEGINS
    };
    char file[600];
    for (size_t i = 0; i < COUNT(others); i++) {
        memset(file, 'x', sizeof file);
        memcpy(file, others[i].begin, others[i].n);
        memcpy(file + sizeof file - 5, "PAR1.", 5); /* Parquet ends as it begins, so its file is a byte shorter */
        size_t n = sizeof file - (strstr(others[i].part, "Parquet") != NULL);
        expect_no_dataset(options_for(write_file("other.txt", file, n)), EXIT_USAGE, others[i].part);
        bool short_mark = strstr(others[i].part, "iconv"); /* numbers of tokens may begin with these two bytes too */
        if (!short_mark)
            expect_no_dataset(options_for(write_file("other.bin", file, n)), EXIT_USAGE, others[i].part);
    }
}

TEST(tar_archives_are_refused)
{
    static const char *const formats[] = {"v7", "ustar", "gnu"};
    for (size_t i = 0; i < COUNT(formats); i++)
        for (int bin = 0; bin < 2; bin++) {
            char *tar = temp_path(bin ? "tarred.bin" : "tarred.txt");
            assert_int_equal(system(lasting("tar --format=%s -cf %s README.md", formats[i], tar)), 0);
            expect_no_dataset(options_for(tar), EXIT_USAGE, "is a tar archive");
        }
}

/* The signature of tar stands at byte 257; without a header's check sum around it, it is five letters of a text. */
TEST(text_with_the_word_ustar_is_text)
{
    char file[600];
    memset(file, 'x', sizeof file);
    memcpy(file + 257, "ustar", 5);
    struct data_options options = options_for(write_file("ustar.txt", file, sizeof file));
    open_and_close(&options);
}

TEST(other_files_in_a_folder_are_not_passed_over)
{
    assert_int_equal(mkdir(temp_path("beside"), 0777), 0);
    write_letters("beside/a.txt", 300, "abc");
    write_file("beside/b.txt", "%PDF-1.4", 8);
    expect_no_dataset(options_for(temp_path("beside")), EXIT_USAGE, "b.txt is a PDF document");
    expect_no_dataset(options_for(temp_path("beside/*")), EXIT_USAGE, "b.txt is a PDF document");
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
        struct data_options options = options_for(write_file("begins.txt", file, sizeof file));
        struct dataset *data = open_dataset(&options);
        assert_int_equal(data->train.n + data->val.n, sizeof file);
        close_dataset(data);
    }
}

/* Magic numbers as llm.c's programs write them; each file has a header of 256 numbers, and 1536 tokens of 2 bytes. */
TEST(other_files_of_llmc_are_refused_by_their_names)
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
        expect_no_dataset(options_for(write_file("magic.bin", file, sizeof file)), EXIT_FAILED, others[i].part);
        if (others[i].magic < 20260101)
            expect_no_dataset(options_for(write_file("magic.tok", file, sizeof file)), EXIT_USAGE, others[i].part);
    }
}

TEST(a_shard_says_what_it_is_under_any_name)
{
    char file[SHARD_HEADER + 1536 * sizeof(uint16_t)] = {0};
    memcpy(file, (int32_t[]){SHARD_MAGIC, 1, 1536}, 3 * sizeof(int32_t));
    for (size_t i = SHARD_HEADER; i < sizeof file; i++)
        file[i] = (char)random_words(3, STREAM_TEST, 0, i).word[0];
    struct data_options options = options_for(write_file("shard.tok", file, sizeof file));
    struct dataset *data = open_dataset(&options);
    assert_int_equal(data->train.n + data->val.n, 1536);
    close_dataset(data);
}

/* ---- token numbers without a header ------------------------------------------------------------------------------ */

enum { WIDE = 400 }; /* tokens */

/* Numbers below `limit`, of 4 or 8 bytes; some are above 65535 where that is larger. */
static char *write_wide(const char *name, size_t bytes, uint32_t limit, bool big_endian)
{
    unsigned char file[WIDE * 8] = {0};
    for (size_t i = 0; i < WIDE; i++) {
        bool is_any = i % 9 == 0;
        uint32_t above = is_any ? limit : MIN(limit, 60000);
        uint32_t token = random_words(5, STREAM_TEST, 0, i).word[0] % above;
        for (size_t k = 0; k < 4; k++)
            file[i * bytes + (big_endian ? bytes - 1 - k : k)] = (unsigned char)(token >> 8 * k);
    }
    return write_file(name, file, WIDE * bytes);
}

TEST(headerless_tokens_of_four_or_eight_bytes_are_refused)
{
    static const uint32_t vocabularies[] = {4, 65, 50257, 128256};
    for (size_t i = 0; i < COUNT(vocabularies); i++)
        for (int big_endian = 0; big_endian < 2; big_endian++) {
            const char *order = big_endian ? ", the high one first" : "";
            for (size_t bytes = 4; bytes <= 8; bytes += 4)
                expect_no_dataset(options_for(write_wide("wide.bin", bytes, vocabularies[i], big_endian)), EXIT_FAILED,
                                  lasting("holds tokens of %zu bytes%s: ", bytes, order));
        }
}

TEST(tokens_of_two_bytes_are_read_whatever_the_vocabulary)
{
    static const uint32_t vocabularies[] = {4, 65, 50257, 128256};
    for (size_t i = 0; i < COUNT(vocabularies); i++) {
        uint16_t tokens[WIDE];
        for (size_t k = 0; k < WIDE; k++)
            tokens[k] = (uint16_t)(random_words(6, STREAM_TEST, 0, k).word[0] % MIN(vocabularies[i], 65536));
        struct data_options options = options_for(write_file("narrow.bin", tokens, sizeof tokens));
        open_and_close(&options);
    }
    struct data_options zeros = options_for(write_file("zeros.bin", (char[2000]){0}, 2000));
    open_and_close(&zeros);
}

/* Megatron's index says by a number which type its tokens have: 4 are numbers of 32 bits, 8 of 16. */
TEST(an_index_beside_tells_the_width_of_tokens)
{
    char index[18] = "MMIDIDX\0\0\1";
    index[17] = 4;
    char *tokens = write_numbered("mega.bin", 1000, false);
    write_file("mega.idx", index, sizeof index);
    expect_no_dataset(options_for(tokens), EXIT_FAILED, "has tokens that are not of 16 bits, as");
    index[17] = 8;
    write_file("mega.idx", index, sizeof index);
    struct data_options options = options_for(tokens);
    open_and_close(&options);
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
        struct data_options options = options_for(write_file("begins.bin", tokens, sizeof tokens));
        struct dataset *data = open_dataset(&options);
        assert_int_equal(data->train.tokens[0], first[i][0]);
        close_dataset(data);
    }
}

TEST(text_named_bin_is_no_tokens)
{
    expect_no_dataset(options_for(write_letters("letters.bin", 5000, "abc \n")), EXIT_USAGE,
                      "letters.bin is text, but a .bin file holds token numbers; give it another name");
    char accents[5001];
    for (size_t i = 0; i < 2500; i++)
        memcpy(accents + 2 * i, "\xC3\xA9", 2);
    expect_no_dataset(options_for(write_file("accents.bin", accents, 5000)), EXIT_USAGE, "accents.bin is text");
}

/* ---- text that is packed or marked ------------------------------------------------------------------------------- */

/* A file of 3,000 letters, packed by gzip; the plain one lies beside it. */
static char *write_packed(void)
{
    char *plain = write_letters("plain.txt", 3000, "abc");
    char *packed = temp_path("packed.txt.gz");
    assert_int_equal(system(lasting("gzip -c %s >%s", plain, packed)), 0);
    return packed;
}

TEST(packed_text_is_the_text)
{
    struct data_options packed = options_for(write_packed());
    struct data_options options = options_for(temp_path("plain.txt"));
    struct dataset *plain = open_dataset(&options);
    options = packed;
    struct dataset *data = open_dataset(&options);
    assert_int_equal(data->train.n, plain->train.n);
    assert_memory_equal(data->train.tokens, plain->train.tokens, plain->train.n * sizeof *plain->train.tokens);
    close_dataset(plain);
    close_dataset(data);
}

TEST(two_packed_members_are_one_text)
{
    char *packed = write_packed();
    char *twice = temp_path("twice.gz");
    assert_int_equal(system(lasting("cat %s %s >%s", packed, packed, twice)), 0);
    struct data_options options = options_for(twice);
    struct dataset *data = open_dataset(&options);
    assert_int_equal(data->train.n + data->val.n, 2 * 3000);
    close_dataset(data);
}

TEST(damaged_packing_is_refused)
{
    char *packed = write_packed();
    char *letters = temp_path("plain.txt");
    assert_int_equal(system(lasting("head -c 400 %s >%s", packed, temp_path("cut.gz"))), 0);
    expect_no_dataset(options_for(temp_path("cut.gz")), EXIT_FAILED, "cut.gz is damaged: gzip's data break off");
    assert_int_equal(system(lasting("cat %s %s >%s", packed, letters, temp_path("trail.gz"))), 0);
    expect_no_dataset(options_for(temp_path("trail.gz")), EXIT_FAILED, "trail.gz is damaged");
    char *bomb = temp_path("bomb.gz");
    assert_int_equal(system(lasting("head -c 300M /dev/zero | gzip >%s", bomb)), 0);
    expect_no_dataset(options_for(bomb), EXIT_FAILED, "bomb.gz unpacks to more than 100 times its size");
}

TEST(what_is_packed_and_is_no_text_is_refused)
{
    write_packed();
    char *tar = temp_path("tar.gz");
    assert_int_equal(system(lasting("tar -C %s -c plain.txt | gzip >%s", temp_path("."), tar)), 0);
    expect_no_dataset(options_for(tar), EXIT_USAGE, "is a tar archive, packed with gzip");
    write_numbered("shard.bin", 1000, true);
    assert_int_equal(system(lasting("gzip -kf %s", temp_path("shard.bin"))), 0);
    expect_no_dataset(options_for(temp_path("shard.bin.gz")), EXIT_USAGE, "is packed with gzip and holds tokens");
    assert_int_equal(mkdir(temp_path("packs"), 0777), 0);
    write_letters("packs/a.txt", 300, "abc");
    assert_int_equal(system(lasting("gzip -kf %s", temp_path("packs/a.txt"))), 0);
    expect_no_dataset(options_for(temp_path("packs")), EXIT_USAGE,
                      "a.txt.gz is a gzip file"); /* it would be read twice */
}

TEST(a_byte_order_mark_is_no_text)
{
    struct data_options options = options_for(write_letters("unmarked.txt", 300, "abc"));
    options.tokens = "chars";
    struct dataset *plain = open_dataset(&options);
    assert_int_equal(mkdir(temp_path("marked"), 0777), 0);
    char *marked = temp_path("marked/a.txt");
    assert_int_equal(system(lasting("{ printf '\\357\\273\\277'; cat %s; } >%s", options.path, marked)), 0);
    options.path = marked;
    struct dataset *data = open_dataset(&options);
    assert_int_equal(data->vocab, 3);
    assert_int_equal(data->train.n, plain->train.n);
    assert_memory_equal(data->train.tokens, plain->train.tokens, plain->train.n * sizeof *plain->train.tokens);
    close_dataset(plain);
    close_dataset(data);

    assert_int_equal(system(lasting("cp %s %s", marked, temp_path("marked/b.txt"))), 0);
    options.path = temp_path("marked"); /* nor in the middle of several texts */
    data = open_dataset(&options);
    assert_int_equal(data->vocab, 3);
    assert_int_equal(data->train.n + data->val.n, 600);
    close_dataset(data);
}

/* ---- nanoGPT's folder -------------------------------------------------------------------------------------------- */

/* train.bin and val.bin lie beside the text that they were made of. */
static struct data_options folder_of_nanogpt(void)
{
    mkdir(temp_path("nano"), 0777); /* another test may have made it */
    write_letters("nano/input.txt", 3000, "abc");
    write_file("nano/meta.pkl", "\x80\4}.", 4);
    write_numbered("nano/train.bin", 1000, false);
    write_numbered("nano/val.bin", 100, false);
    return options_for(temp_path("nano"));
}

TEST(a_folder_of_nanogpt_is_read)
{
    struct data_options options = folder_of_nanogpt();
    expect_splits(&options, 1000, 100);
    struct outcome said = run_child(open_and_close, &options);
    assert_contains(said.text, "is laid out as nanoGPT's: ");
    assert_ptr_equal(strchr(said.text, '\n'), said.text + strlen(said.text) - 1); /* one line */
    options.window_order = ORDER_FILE;
    expect_splits(&options, 1000, 100);
    options.val_data = write_numbered("own.bin", 50, false); /* --val-data may name another file */
    expect_splits(&options, 1000, 50);
}

TEST(without_val_bin_it_is_a_folder_like_others)
{
    struct data_options options = folder_of_nanogpt();
    assert_int_equal(unlink(temp_path("nano/val.bin")), 0);
    expect_no_dataset(options, EXIT_USAGE, "meta.pkl is a pickle");
}

TEST(a_pattern_takes_what_it_says)
{
    folder_of_nanogpt();
    struct data_options options = options_for(temp_path("nano/*.bin"));
    struct dataset *data = open_dataset(&options);
    assert_int_equal(data->train.n + data->val.n, 1000 + 100);
    close_dataset(data);
    struct outcome said = run_child(open_and_close, &options);
    assert_contains(said.text, "val.bin too, so the run trains on that file");
}

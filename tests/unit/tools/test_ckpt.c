/* test_ckpt.c - the commands `yard ckpt` ls, verify, diff, reshard and export, and what they leave alone.
 *
 * It tests src/tools/ckpt.  It catches a damaged checkpoint that is called sound, a file that is replaced although it
 * is not ours, and an export with other values or a wrong description.
 *
 * To see it fail: in ckpt_verify.c, leave out the call of verify_tensor().
 *
 * The checkpoint is small_state().  Its values follow from a seed (state_value()), and so does what an export must
 * have.
 */
#include "techniques/checkpoint/files.h"
#include "tests/support/support_state.h"
#include "tools/ckpt/model_forms.h"
#include "trainer/model_files/model_files.h"
#include "trainer/train/train.h"

/* ---- the commands ------------------------------------------------------------------------------------------------ */

/* small_state() cut for three devices: the path of a new checkpoint of this name. */
static const char *cut_in_three(const char *saved, const char *name)
{
    char *path = temp_path(name);
    expect_yard(EXIT_OK, "dp=3,pp=1,tp=1, zero 3", "ckpt reshard '%s' '%s' --mesh dp=3 --zero 3", saved, path);
    return path;
}

TEST(a_state_is_listed)
{
    char *saved = small_state("listed");
    expect_yard(EXIT_OK, "h.0.attn.c_attn.weight       value   [24, 8]        rows in 3", "ckpt ls '%s'", saved);
    expect_yard(EXIT_OK, "\"sections\": 3", "ckpt ls --json '%s'", saved);
    free(saved);
}

TEST(a_state_is_cut_anew)
{
    char *saved = small_state("cut-anew");
    const char *other = cut_in_three(saved, "cut-anew-in-three");
    expect_yard(EXIT_USAGE, "is a folder with files in it", "ckpt reshard '%s' '%s' --mesh dp=3 --zero 3", saved,
                other);
    expect_yard(EXIT_OK, ": 0 of ", "ckpt diff '%s' '%s'", saved, other);
    free(saved);
}

/* A copy of h.0.attn.c_attn.weight's values: 24 rows of 8 floats, q's, k's and v's.  Of each of these, rank 0 has the
 * first 4 rows and rank 1 the last 4. */
static void expect_copy_of_qkv(const json_t *copy, size_t number)
{
    size_t section = number / 2, rank = number % 2, half = 4 * 8 * sizeof(float);
    assert_close(number_at(copy, "from_rank"), (double)rank, 0);
    assert_close(number_at(copy, "from_offset"), (double)(section * half), 0);
    assert_close(number_at(copy, "to_offset"), (double)((2 * section + rank) * half), 0);
    assert_close(number_at(copy, "bytes"), (double)half, 0);
}

TEST(a_plan_says_what_would_be_read)
{
    char *saved = small_state("planned");
    const char *other = temp_path("other");
    expect_yard(EXIT_USAGE, "use tp=2", "ckpt reshard '%s' '%s' --mesh tp=3 --plan", saved, other);
    const json_t *copies = json_at(yard_json("ckpt reshard '%s' '%s' --plan --json", saved, other), "copies");
    size_t found = 0;
    for (size_t i = 0; i < json_array_size(copies); i++) {
        const json_t *copy = json_array_get(copies, i);
        bool is_qkv = strcmp(text_at(copy, "tensor"), "h.0.attn.c_attn.weight") == 0;
        if (!is_qkv || strcmp(text_at(copy, "role"), "value") != 0)
            continue;
        expect_copy_of_qkv(copy, found);
        found++;
    }
    assert_int_equal(found, 6);
    free(saved);
}

TEST(a_state_is_exported_in_two_forms)
{
    char *saved = small_state("exported");
    const char *other = cut_in_three(saved, "exported-in-three");
    char *bin = temp_path("m.bin");
    expect_yard(EXIT_OK, "Hugging Face's form", "ckpt export '%s' '%s'", saved, temp_path("hf"));
    expect_yard(EXIT_OK, "llm.c's form", "ckpt export '%s' '%s'", other, bin);
    expect_yard(EXIT_IO, "is not a checkpoint: give the folder that --save wrote", "ckpt verify '%s'", bin);
    free(saved);
}

TEST(an_unknown_command_of_ckpt_is_refused)
{
    expect_yard(EXIT_USAGE, "say ls, verify, diff, reshard or export", "ckpt lst nowhere");
}

TEST(a_damaged_state_is_not_sound)
{
    char *saved = small_state("damaged");
    const char *other = cut_in_three(saved, "damaged-in-three");
    char *file = lasting("%s/rank-2.safetensors", other);
    size_t n;
    char *bytes = read_whole(file, &n);
    expect_yard(EXIT_OK, "sound", "ckpt verify '%s'", saved);
    expect_yard(EXIT_OK, "sound", "ckpt verify '%s'", other);
    bytes[n - 1] ^= 1;
    overwrite(file, bytes, n);
    expect_yard(EXIT_FAILED, "is damaged: tensor", "ckpt verify '%s'", other);
    expect_yard(EXIT_FAILED, "\"sound\": false", "ckpt verify --json '%s'", other);
    free(bytes);
    free(saved);
}

/* ckpt verify looks at all states of a folder; other commands take the newest that is complete, with a warning. */
TEST(a_folder_is_verified_whole)
{
    size_t n;
    char *folder = temp_path("several"), *file = lasting("%s/step-2/rank-0.safetensors", folder);
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.dp = 1});
    make_folder(folder);
    for (uint32_t step = 1; step <= 3; step++) {
        char *path = lasting("%s/step-%u", folder, step);
        write_random_state(path, &small_config, &mesh, step, 1, step);
    }
    expect_yard(EXIT_OK, "step-1: sound", "ckpt verify '%s'", folder);
    expect_yard(EXIT_OK, "\"step\": 3", "ckpt verify --json '%s'", folder);
    char *bytes = read_whole(file, &n);
    bytes[n - 1] ^= 1;
    overwrite(file, bytes, n);
    expect_yard(EXIT_FAILED, "step-2/rank-0.safetensors is damaged: tensor", "ckpt verify '%s'", folder);
    expect_yard(EXIT_FAILED, "step-1: sound", "ckpt verify '%s'", folder);
    expect_yard(EXIT_FAILED, "several is not whole: 1 problem", "ckpt verify '%s'", folder);
    expect_yard(EXIT_FAILED, "several\",", "ckpt verify --json '%s'", folder);
    overwrite(file, bytes, n - 1);
    expect_yard(EXIT_FAILED, "it is cut short", "ckpt verify '%s'", folder);
    expect_yard(EXIT_OK, "is passed over", "ckpt ls '%s'", folder);
    free(bytes);
    free_mesh(&mesh);
}

static void expect_precious(const char *path)
{
    size_t n;
    char *text = read_whole(path, &n);
    assert_string_equal(text, "precious");
    free(text);
}

TEST(a_file_of_another_kind_is_not_replaced)
{
    char *saved = small_state("beside");
    char *file = lasting("%s-file", saved), *bin = lasting("%s.bin", saved);
    overwrite(file, "precious", 8);
    overwrite(bin, "precious", 8);
    expect_yard(EXIT_IO, "a file of that name is in the way", "ckpt reshard '%s' '%s'", saved, file);
    expect_yard(EXIT_IO, "a file of that name is in the way", "ckpt export '%s' '%s'", saved, file);
    expect_yard(EXIT_USAGE, "is a file of another kind", "ckpt export '%s' '%s'", saved, bin);
    expect_precious(file);
    expect_precious(bin);
    free(saved);
}

TEST(nothing_is_added_to_a_checkpoint)
{
    char *saved = small_state("whole");
    char *within = lasting("%s/x", saved);
    expect_yard(EXIT_USAGE, "is a checkpoint, to which nothing is added", "ckpt export '%s' '%s'", saved, within);
    expect_yard(EXIT_USAGE, "is a checkpoint, to which nothing is added", "ckpt reshard '%s' '%s'", saved, within);
    expect_yard(EXIT_USAGE, "is a checkpoint, to which nothing is added", "train --model tiny --save '%s'", saved);
    struct outcome outcome = run_child(check_checkpoint, saved);
    assert_int_equal(outcome.code, EXIT_OK);
    free(saved);
}

TEST(an_export_replaces_the_one_before)
{
    char *saved = small_state("twice-exported");
    for (int i = 0; i < 2; i++)
        expect_yard(EXIT_OK, "llm.c's form", "ckpt export '%s' '%s.bin'", saved, saved);
    free(saved);
}

TEST(the_name_of_a_new_folder_may_end_in_a_slash)
{
    char *saved = small_state("slashed");
    char *there = lasting("%s-there/", saved);
    make_folder(there);
    expect_yard(EXIT_OK, "Hugging", "ckpt export '%s' '%s-hf/'", saved, saved);
    expect_yard(EXIT_OK, "written, in", "ckpt reshard '%s' '%s'", saved, there);
    free(saved);
}

/* The byte 0xFF is in no text of UTF-8, so JSON cannot have it: what is said about such a file is said all the same. */
TEST(damage_counts_in_a_file_whose_name_is_no_text)
{
    const char *path = temp_path("damaged-\377.snap");
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.dp = 1});
    write_snapshot(path, &small_config, &mesh, HALF_PAYLOADS, 2);
    expect_yard(EXIT_OK, "sound", "ckpt verify '%s'", path);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "damage!", 7, 16), 7);
    close(fd);
    expect_yard(EXIT_FAILED, "page 0 is torn or damaged", "ckpt verify '%s'", path);
    expect_yard(EXIT_FAILED, "\"sound\": false", "ckpt verify --json '%s'", path);
    free_mesh(&mesh);
}

/* The same byte in the name of a folder. */
TEST(a_name_that_is_no_text_is_printed_as_one)
{
    char *saved = small_state("odd");
    expect_yard(EXIT_OK, "odd-?\"", "ckpt reshard --json '%s' '%s-\377'", saved, saved);
    free(saved);
}

static void expect_small_config(const char *path)
{
    json_t *json = json_load_file(path, 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_integer_value(json_object_get(json, "n_head")), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "n_embd")), 8);
    assert_int_equal(json_integer_value(json_object_get(json, "n_layer")), 1);
    assert_int_equal(json_integer_value(json_object_get(json, "n_positions")), 4);
    assert_true(json_is_true(json_object_get(json, "tie_word_embeddings")));
    json_decref(json);
}

static json_t *tokenizer_of_bytes(void)
{
    struct tokenizer bytes = tokenizer_from_text("bytes", "");
    return tokenizer_to_json(&bytes);
}

/* The tokens of Hugging Face's vocabulary are bytes, written in GPT-2's alphabet: a space is U+0120. */
TEST(the_tokenizer_of_bytes_is_exported_in_the_alphabet_of_gpt2)
{
    json_t *tokenizer = tokenizer_of_bytes();
    json_t *vocab = json_at(tokenizer, "model.vocab");
    assert_int_equal(json_object_size(vocab), 256);
    assert_close(number_at(vocab, "A"), 'A', 0);
    assert_close(number_at(vocab, "\u0120"), ' ', 0);
    assert_close(number_at(vocab, "\u00ff"), 255, 0);
    json_decref(tokenizer);
}

TEST(a_second_export_keeps_nothing_of_the_first_one)
{
    char *saved = small_state("exported-twice");
    char *hf = temp_path("twice");
    struct checkpoint *checkpoint = open_checkpoint(saved);
    json_t *tokenizer = tokenizer_of_bytes();
    remove_folder(hf);
    export_huggingface(checkpoint, hf, tokenizer, -1);
    export_huggingface(checkpoint, hf, tokenizer, -1);
    assert_int_not_equal(access(lasting("%s.kept-%ld", hf, (long)getpid()), F_OK), 0);
    json_decref(tokenizer);
    free_checkpoint(checkpoint);
    free(saved);
}

/* llm.c's file and Hugging Face's have the same parameters. */
TEST(both_exports_have_the_same_parameters)
{
    char *saved = small_state("exported-to-agree");
    char *bin = temp_path("agree.bin");
    char *hf = temp_path("agree");
    struct checkpoint *checkpoint = open_checkpoint(saved);
    remove_folder(hf);
    json_t *tokenizer = tokenizer_of_bytes();
    export_llmc(checkpoint, bin);
    export_huggingface(checkpoint, hf, tokenizer, -1);
    json_decref(tokenizer);
    char *file = lasting("%s/model.safetensors", hf);
    struct llmc_model *model = open_llmc_model(bin);
    struct safetensors *st = open_safetensors(file);
    size_t n = 3 * 8 * 8; /* qkvw: after 128 rows of wte, 4 of wpe, and ln_1 */
    float *theirs = allocate(n, sizeof *theirs), *ours = allocate(n, sizeof *ours);
    read_at(model->file, theirs, n * sizeof *theirs, LLMC_HEADER_BYTES + 4 * 8 * (128 + 4 + 2));
    struct param qkv = {.shape = {3 * small_config.channels, small_config.channels}, .conv1d = true};
    read_floats(st, find_tensor(st, "h.0.attn.c_attn.weight"), ours);
    ours = transpose_conv1d(&qkv, ours, FILE_TO_OURS);
    expect_same_bits("qkvw", ours, theirs, n);
    for (size_t i = 0; i < n; i++) /* it is tensor 6 of the checkpoint */
        assert_close(theirs[i], state_value(SMALL_SEED, 6, i), 0);
    assert_int_equal(read_config(file, 0).heads, 2);
    assert_int_equal(read_config(bin, 0).vocab, 9);
    expect_small_config(lasting("%s/config.json", hf));
    close_llmc_model(model);
    close_safetensors(st);
    free_checkpoint(checkpoint);
    free(theirs);
    free(ours);
    free(saved);
}

static void export_it(void *checkpoint) { export_llmc(checkpoint, temp_path("untied.bin")); }

TEST(a_head_of_its_own_is_exported)
{
    struct config config = small_config;
    config.tied = false;
    struct mesh mesh = cut_mesh(&config, (struct mesh){.tp = 2});
    const char *path = temp_path("untied"), *hf = temp_path("untied-hf");
    write_random_state(path, &config, &mesh, 3, 1, 5);
    struct checkpoint *checkpoint = open_checkpoint(path);
    export_huggingface(checkpoint, hf, NULL, -1);
    char *file = lasting("%s/model.safetensors", hf), *about = lasting("%s/config.json", hf);
    size_t n;
    char *text = read_whole(about, &n);
    assert_contains(text, "\"tie_word_embeddings\": false");
    assert_false(read_config(file, 0).tied);
    expect_refusal(export_it, checkpoint, EXIT_USAGE, "which llm.c's format has no place for");
    free_checkpoint(checkpoint);
    free_mesh(&mesh);
    free(text);
}

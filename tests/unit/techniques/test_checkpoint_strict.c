/* test_checkpoint_strict.c - refusing what is no sound checkpoint, and finding the newest of several.
 *
 * It tests manifest_read.c, find.c, rank_files.c and publish_folder.c of src/techniques/checkpoint.  It checks that
 * each damage is refused with a sentence.  It catches a rule of the manifest that the program does not check, a bit
 * that no hash covers, a length that the program ignores, and a checkpoint of an older session that is taken for the
 * newest.
 *
 * To see it fail: in manifest_read.c, let a piece end behind the end of its tensor.
 *
 * The test writes one small checkpoint (small_state()) and then changes it: a word of its manifest, with a hash that
 * fits, or a bit, or the length of a file.
 */
#include "techniques/checkpoint/files.h"
#include "tests/support/support_state.h"

/* ---- the strict reader ------------------------------------------------------------------------------------------- */

/* Each row breaks one rule of the manifest: it has `new` instead of `old`. */
static const struct {
    const char *old, *new, *sentence;
} broken_rules[] = {
    {"\"version\":2", "\"version\":0", "\"version\" must be a whole number from 1 to 2"},
    {"\"version\":2", "\"version\":3,\"more\":1",
     "manifest.json was written by a newer yard, " YARD_VERSION ", in format 3: this one, " YARD_VERSION},
    {"\"run\":\"", "\"run\":\"x", "\"run\" must be 16 hexadecimal digits"},
    {"\"program\":\"", "\"program\":1,\"x\":\"", "Expected string, got integer"},
    {"\"mesh\":\"dp", "\"mesh\":\"dq", "options: --mesh takes dp=A"},
    {"\"step\":3", "\"step\":-3", "\"step\" must be a whole number from 0"},
    {"\"step\":3", "\"steq\":3", "Object item not found: step"},
    {"\"step\":3", "\"step\":3,\"more\":1", "1 object item(s) left unpacked: more"},
    {"\"step\":3", "\"step\":3,\"step\":3", "duplicate object key"},
    {"\"session\":1", "\"session\":0", "\"session\" must be a whole number from 1"},
    {"\"vector\":", "\"vector\":1025,\"v\":", "\"vector\" must be a whole number from 0 to 1024"},
    {"\"heads\":", "\"more\":1,\"heads\":", "config: 1 object item(s) left unpacked: more"},
    {"\"zero\":", "\"more\":1,\"zero\":", "mesh: 1 object item(s) left unpacked: more"},
    {"\"zero\":", "\"zero\":4,\"z\":", "\"zero\" must be a whole number from 0 to 3"},
    {"\"rank\":1,\"bytes\"", "\"rank\":1,\"more\":1,\"bytes\"", "files: 1 object item(s) left unpacked: more"},
    {"\"offset\":", "\"more\":1,\"offset\":", "1 object item(s) left unpacked: more"},
    {"\"data\":\"", "\"data\":\"A", "\"data\" must be 16 hexadecimal digits"},
    {"\"tokenizer\":\"bytes\"", "\"tokenizer\":7", "Expected string, got integer"},
    {"\"heads\":2", "\"heads\":3", "config: 8 channels cannot be shared by 3 heads"},
    {"\"tied\":true", "\"tied\":1", "config: Expected true or false, got integer"},
    {"\"options\":{", "\"options\":{\"x\":1,", "options: \"x\" must be a text"},
    {"\"rank\":1,\"bytes\"", "\"rank\":0,\"bytes\"", "files: rank 0 is there twice"},
    {"\"rank\":1,\"bytes\":", "\"rank\":1,\"bytes\":9", "bytes, but the manifest says 9"},
    {"\"name\":\"wpe.weight\"", "\"name\":\"wqe.weight\"", "expected {\"name\":\"wpe.weight\",\"role\":\"value\""},
    {"\"shape\":[9,8]", "\"shape\":[8,9]", "tensor 0 (wte.weight, value): expected {"},
    {"\"rank\":0,\"box\":", "\"rank\":1,\"box\":", "\"file\" must be \"rank-1.safetensors\""},
    {"\"file\":\"rank-0.safetensors\"", "\"file\":\"../rank-0.safetensors\"", "\"file\" must be \"rank-0"},
    {"[[0,4],[0,8]]", "[[0,4],[0,9]]", "the range [0, 9) is empty or not within [0, 8)"},
    {"[[0,4],[0,8]]", "[[0,4,5],[0,8]]", "1 array item(s) left unpacked"},
    {"[[0,4],[0,8]]", "[[0,8],[0,4]]", "32 elements of F32, as the manifest says"},
    {"\"pieces\":[", "\"pieces\":[1,2,3,4,5,", "\"pieces\" must be a list of 1 to 6"},
    {"\"offset\":", "\"offset\":9", "\"offset\" must be a whole number from 8"},
    {"[[0,4],[0,8]]", "[[0,3],[0,8]]", "at byte"},
    {"]}\n", "]}]\n", "it is not JSON at line"},
};

TEST(the_manifest_is_read_strictly)
{
    char *folder = small_state("strict"), *path = lasting("%s/" MANIFEST, folder);
    size_t n;
    char *text = read_whole(path, &n);
    for (size_t i = 0; i < COUNT(broken_rules); i++) {
        change_manifest(folder, text, broken_rules[i].old, broken_rules[i].new);
        struct outcome outcome = run_child(check_checkpoint, folder);
        if (outcome.code != EXIT_FAILED || !strstr(outcome.text, broken_rules[i].sentence))
            test_failed("%s for %s: exit code %d, expected 1 and \"%s\"; got:\n%s\n", broken_rules[i].new,
                        broken_rules[i].old, outcome.code, broken_rules[i].sentence, outcome.text);
    }
    free(text);
    free(folder);
}

/* The manifest's first line has the hash of the others. */
TEST(the_manifest_begins_with_its_hash)
{
    char *folder = small_state("hashed"), *path = lasting("%s/" MANIFEST, folder);
    size_t n;
    char *text = read_whole(path, &n);
    overwrite(path, text, n - 1);
    expect_refusal(check_checkpoint, folder, EXIT_FAILED, "its first line says hash");
    overwrite(path, text + 1, n - 1);
    expect_refusal(check_checkpoint, folder, EXIT_FAILED, "it must begin with a line {\"hash\":");
    overwrite(path, text, n);
    assert_int_equal(run_child(check_checkpoint, folder).code, 0);
    free(text);
    free(folder);
}

/* Manifests from before runs had ids. */
TEST(older_manifests_are_read)
{
    static const char *const newer[] = {"\"version\":2,\"program\":\"" YARD_VERSION "\"",
                                        ",\"run\":\"0000000000000000\""},
                             *const older[] = {"\"version\":1", ""};
    char *folder = small_state("older"), *path = lasting("%s/" MANIFEST, folder);
    for (size_t i = 0, n; i < COUNT(newer); i++) {
        char *text = read_whole(path, &n);
        change_manifest(folder, text, newer[i], older[i]);
        free(text);
    }
    struct checkpoint *checkpoint = open_checkpoint(folder);
    assert_int_equal(checkpoint->run_id, 0);
    assert_string_equal(checkpoint->program, "");
    expect_state(checkpoint, SMALL_SEED);
    expect_yard(EXIT_OK, "not known, session 1; written by an older yard", "ckpt ls '%s'", folder);
    expect_yard(EXIT_OK, "yard cannot tell whether one run wrote both", "ckpt diff '%s' '%s'", folder, folder);
    free_checkpoint(checkpoint);
    free(folder);
}

/* A flipped bit is found wherever it is; or it is one of the spaces after a header, which say nothing. */
static void expect_flips_found(const char *folder, const char *file, size_t every)
{
    char *path = lasting("%s/%s", folder, file);
    size_t n, length = 0;
    char *bytes = read_whole(path, &n);
    uint64_t header = 0;
    if (strcmp(file, MANIFEST) != 0)
        memcpy(&header, bytes, 8);
    while (header && length < header && memchr(bytes + 8 + length, '}', header - length))
        length++; /* one byte after the last brace */
    for (size_t i = 0; i < n; i += i < 64 ? 1 : every) {
        bool space = header && i >= 8 + length && i < 8 + header;
        bytes[i] ^= (char)(1 << i % 8);
        overwrite(path, bytes, n);
        struct problem *problem = attempt(check_checkpoint, (void *)folder);
        if (!problem && !space)
            test_failed("bit %zu of byte %zu of %s is flipped, and nobody sees it\n", i % 8, i, file);
        free(problem);
        bytes[i] ^= (char)(1 << i % 8);
    }
    overwrite(path, bytes, n);
    assert_null(attempt(check_checkpoint, (void *)folder));
    free(bytes);
}

TEST(flipped_bits_are_found)
{
    char *folder = small_state("flips");
    int open = count_files("/proc/self/fd");
    expect_flips_found(folder, MANIFEST, 61);
    expect_flips_found(folder, "rank-0.safetensors", 67);
    expect_flips_found(folder, "rank-1.safetensors", 127);
    assert_int_equal(count_files("/proc/self/fd"), open); /* nor do files stay open that were found damaged */
    free(folder);
}

TEST(other_lengths_are_found)
{
    char *folder = small_state("lengths"), *path = lasting("%s/rank-1.safetensors", folder);
    size_t n;
    char *bytes = read_whole(path, &n);
    for (size_t length = 0; length < n; length += 1 + length / 16) {
        overwrite(path, bytes, length);
        struct problem *problem = attempt(check_checkpoint, folder);
        assert_non_null(problem);
        free(problem);
    }
    overwrite(path, bytes, n + 1); /* read_whole() puts a zero after the bytes */
    expect_refusal(check_checkpoint, folder, EXIT_FAILED, "too long");
    unlink(path);
    struct problem *problem = attempt(check_checkpoint, folder);
    assert_non_null(problem);
    free(problem);
    free(bytes);
    free(folder);
}

/* ---- the newest, and those that go ------------------------------------------------------------------------------- */

static void add_state(const char *folder, uint32_t step, int64_t session)
{
    char *path = lasting("%s/step-%u", folder, step);
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.dp = 2, .zero = 1});
    write_random_state(path, &small_config, &mesh, step, session, step);
    free_mesh(&mesh);
}

TEST(the_newest_is_of_the_last_session)
{
    const char *folder = temp_path("newest");
    char *old = lasting("%s/step-9", folder), *damaged = lasting("%s/step-40/" MANIFEST, folder);
    make_folder(folder);
    add_state(folder, 9, 1);
    add_state(folder, 20, 1);
    add_state(folder, 30, 1);
    expect_newest_checkpoint(folder, "step-30");
    add_state(folder, 25, 2); /* resumed from 20 */
    expect_newest_checkpoint(folder, "step-25");
    assert_int_equal(last_session(folder), 2);
    add_state(folder, 30, 2); /* the same name: it takes the other's place */
    expect_newest_checkpoint(folder, "step-30");
    prune_checkpoints(folder, 0, 3);
    assert_int_not_equal(access(old, F_OK), 0);
    add_state(folder, 40, 2);
    expect_newest_checkpoint(folder, "step-40");
    overwrite(damaged, "{", 1);
    expect_newest_checkpoint(folder, "step-30"); /* with a warning */
    prune_checkpoints(folder, 2, 0);
    assert_int_equal(count_files(folder), 2 + 3); /* what is damaged is not ours to remove */
}

/* A folder that a link leads to is not ours, nor are its files. */
TEST(links_are_not_followed)
{
    const char *folder = temp_path("links");
    char *target = small_state("elsewhere"),
         *elsewhere = realpath(target, NULL); /* links are relative to their folder */
    char *link = lasting("%s/step-1", folder);
    int files = count_files(elsewhere);
    make_folder(folder);
    assert_int_equal(symlink(elsewhere, link), 0);
    expect_newest_checkpoint(folder, "step-1");
    add_state(folder, 2, 1);
    prune_checkpoints(folder, 0, 1); /* step 3 of the same session is the newest */
    expect_newest_checkpoint(folder, "step-1");
    add_state(folder, 4, 1);
    prune_checkpoints(folder, 0, 1);
    expect_newest_checkpoint(folder, "step-4");
    assert_int_equal(symlink(elsewhere, link), 0);
    add_state(folder, 1, 2); /* in the link's place */
    assert_int_equal(count_files(elsewhere), files);
    assert_int_equal(count_files(folder), 2 + 2);
    free(target);
    free(elsewhere);
}

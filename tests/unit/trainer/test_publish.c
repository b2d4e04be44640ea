/* test_publish.c - writing files so that none is ever half there.
 *
 * It tests publish.c, claims.c and paths.c of src/trainer/file.  It checks that a published file is the old one
 * or the new one at every moment, and that no output overwrites what the program also reads or writes.  It catches a
 * temporary file that stays behind or open, and two names of one file that are taken for two files.
 *
 * To see it fail: in publish.c, leave out unlink(writer->temporary).
 */
#include "tests/support/child.h"
#include "trainer/file/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

/* ---- publishing -------------------------------------------------------------------------------------------------- */

static bool holds(const char *path, const char *text)
{
    size_t n;
    char *file = read_whole(path, &n);
    bool same = n == strlen(text) && memcmp(file, text, n) == 0;
    free(file);
    return same;
}

/* Files in the folder of `path` whose name goes on after that of `path`. */
static int count_temporaries(const char *path)
{
    char *command = lasting("ls %s.tmp-* 2>/dev/null | wc -l", path);
    FILE *out = popen(command, "r");
    int n = -1;
    assert_int_equal(fscanf(out, "%d", &n), 1);
    pclose(out);
    return n;
}

static enum { DIE, FAIL, ABANDON } unfinished; /* how a writer ends */

static void write_without_end(void *path)
{
    struct writer *writer = open_writer(path);
    write_bytes(writer, "new", 3);
    if (unfinished == DIE)
        raise(SIGKILL);
    if (unfinished == ABANDON)
        abandon(writer); /* the cleanup that it had registered is gone with it */
    fail(EXIT_USAGE, "something else went wrong");
}

TEST(publish_replaces)
{
    const char *path = temp_path("published");
    static const char *const texts[] = {"first", "second"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct writer *writer = open_writer(path);
        write_bytes(writer, texts[i], strlen(texts[i]));
        must(publish(writer));
        assert_true(holds(path, texts[i]));
        assert_int_equal(count_temporaries(path), 0);
    }
}

/* A text is mapped while a file is written, and another program cuts the text. */
static void read_a_text_that_is_cut(void *written)
{
    char *path = write_file("cut", "", 0), *memory = NULL;
    assert_int_equal(truncate(path, 64 << 20), 0);
    size_t size = map_large(path, &memory);
    assert_int_equal(size, 64 << 20);
    write_bytes(open_writer(written), "new", 3);
    assert_int_equal(truncate(path, 0), 0);
    fputc(memory[size - 1], stderr);
}

static void attempt_to_read(void *written) { attempt(read_a_text_that_is_cut, written); }

TEST(a_text_that_is_cut_ends_the_program)
{
    char *path = write_file("kept_too", "old", 3);
    expect_refusal(read_a_text_that_is_cut, path, EXIT_FAILED, "a text became shorter while it was read");
    expect_refusal(attempt_to_read, path, EXIT_FAILED, "a text became shorter while it was read");
    assert_true(holds(path, "old"));
    assert_int_equal(count_temporaries(path), 0);
}

TEST(publish_follows_links)
{
    char *file = write_file("behind", "old", 3), *soft = temp_path("link");
    assert_int_equal(symlink("behind", soft), 0);
    struct writer *writer = open_writer(soft);
    write_bytes(writer, "new", 3);
    must(publish(writer));
    struct stat status;
    assert_int_equal(lstat(soft, &status), 0);
    assert_true(S_ISLNK(status.st_mode)); /* /dev/stdout, say */
    assert_true(holds(file, "new"));
}

static void open_and_abandon(void *path) { abandon(open_writer(path)); }

TEST(a_writer_that_fails_leaves_the_old_file_alone)
{
    const char *path = write_file("kept", "old", 3);
    for (unfinished = FAIL; unfinished <= ABANDON; unfinished++) {
        assert_int_equal(run_child(write_without_end, (void *)path).code, EXIT_USAGE);
        assert_true(holds(path, "old"));
        assert_int_equal(count_temporaries(path), 0);
    }
}

/* kill -9 leaves the old file and a temporary one.  The next writer removes the temporary file of a process that has
 * ended, and neither that of a living process nor a file that only has such a name. */
TEST(a_temporary_file_of_a_killed_writer_is_removed_by_the_next)
{
    const char *path = write_file("survivor", "old", 3);
    unfinished = DIE;
    assert_int_equal(run_child(write_without_end, (void *)path).signal, SIGKILL);
    assert_true(holds(path, "old"));
    assert_int_equal(count_temporaries(path), 1);
    const char *living = write_text(lasting("survivor.tmp-%ld", (long)getppid()), "%s", "");
    const char *other = write_text("survivor.tmp-x", "%s", "");
    assert_int_equal(run_child(open_and_abandon, (void *)path).code, EXIT_OK);
    assert_int_equal(count_temporaries(path), 2);
    assert_int_equal(access(living, F_OK), 0);
    assert_int_equal(access(other, F_OK), 0);
}

/* A file size limit is the portable way to a full disk. */
static void write_to_full_disk(void *path)
{
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000});
    struct writer *writer = open_writer(path);
    static char bytes[4096];
    write_bytes(writer, bytes, sizeof bytes);
    must(publish(writer));
}

TEST(a_full_disk_leaves_what_was_there)
{
    const char *path = write_file("full", "old", 3);
    expect_refusal(write_to_full_disk, (void *)path, EXIT_IO, "what was at that path before is untouched");
    expect_refusal(write_to_full_disk, (void *)path, EXIT_IO, "after 1000 bytes");
    assert_true(holds(path, "old"));
    assert_int_equal(count_temporaries(path), 0);
}

/* The number that the next open() takes. */
static int lowest_free_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY);
    close(fd);
    return fd;
}

static void attempt_on_full_disk(void *path)
{
    int before = lowest_free_descriptor();
    struct problem *problem = attempt(write_to_full_disk, path);
    int after = lowest_free_descriptor();
    if (after != before)
        fail(EXIT_FAILED, "descriptor %d stays open", before);
    must(problem);
}

TEST(an_attempt_to_write_leaves_no_file_open)
{
    const char *path = write_file("attempted", "old", 3);
    expect_refusal(attempt_on_full_disk, (void *)path, EXIT_IO, "after 1000 bytes");
    assert_true(holds(path, "old"));
    assert_int_equal(count_temporaries(path), 0);
}

/* ---- claims ------------------------------------------------------------------------------------------------------ */

static const char *claimed[2]; /* what is read or written first, and what is written then */
static bool first_is_written;

static void claim_both(void *may_replace)
{
    if (first_is_written)
        claim_output("--log", claimed[0], NULL);
    else
        claim_input("--init", claimed[0]);
    claim_output("--save", claimed[1], may_replace);
}

/* `clash`: both are one file, so the second claim is refused, whether the first is read or written. */
static void expect_claims(const char *first, const char *second, bool clash)
{
    claimed[0] = first;
    claimed[1] = second;
    for (int k = 0; k < 2; k++) {
        first_is_written = k == 1;
        if (clash)
            expect_refusal(claim_both, NULL, EXIT_USAGE, "would overwrite what");
        else
            assert_int_equal(run_child(claim_both, NULL).code, EXIT_OK);
    }
    first_is_written = false; /* --save may be declared to replace what --init reads, ... */
    assert_int_equal(run_child(claim_both, "--init").code, EXIT_OK);
    first_is_written = true; /* ... but never what --log writes */
    assert_int_equal(run_child(claim_both, "--log").code, clash ? EXIT_USAGE : EXIT_OK);
}

TEST(two_outputs_that_are_one_file_are_refused)
{
    char *file = write_file("claimed", "x", 1);
    char *hard = temp_path("hard");
    char *soft = temp_path("soft");
    assert_int_equal(link(file, hard), 0);
    assert_int_equal(symlink("claimed", soft), 0);
    expect_claims(file, file, true);
    expect_claims(file, hard, true);
    expect_claims(soft, file, true);
    expect_claims(file, temp_path("other"), false);
    expect_claims(temp_path("new"), temp_path("new"), true);
    expect_claims(temp_path("new/a"), temp_path("new/b"), false);
    expect_claims(temp_path("new"), temp_path("new/b"), false);
    expect_claims(temp_path("new"), temp_path("./new"), true);
    expect_claims("/dev/null", "/dev/null", false);
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static void make_it(void *path) { make_folder(path); }

TEST(folders_are_made_with_their_parents)
{
    struct stat status;
    char *deep = temp_path("a/b//c/");
    make_folder(deep);
    make_folder(deep); /* which is there already */
    assert_int_equal(stat(deep, &status), 0);
    assert_true(S_ISDIR(status.st_mode));
    write_file("a/file", "x", 1);
    expect_refusal(make_it, temp_path("a/file"), EXIT_IO, "a/file: a file of that name is in the way");
    expect_refusal(make_it, temp_path("a/file/x/y"), EXIT_IO, "a/file: a file of that name is in the way");
    expect_refusal(open_and_abandon, temp_path("none/file"), EXIT_IO, "does the folder exist");
    expect_refusal(open_and_abandon, temp_path("a/b"), EXIT_IO, "a folder of that name is in the way");
}

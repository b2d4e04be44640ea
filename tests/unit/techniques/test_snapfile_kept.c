/* test_snapfile_kept.c - what a snapshot file keeps, and who may read and write it.
 *
 * It tests src/techniques/snapfile.  It checks that what is stored comes back, also beside a run that writes.  It
 * catches a value that is lost, or stored although it is not finite; an iteration that is overwritten while a newer one
 * is damaged; a file that two runs write; and a reader that takes a half-written page for a damaged one.
 *
 * To see it fail: in snapfile_open.c, take the file although another run has it: any descriptor is enough.
 *
 * Values follow from a seed, the number of their tensor, and their place in it (support_state.h).  Where a writer works
 * beside a reader, it is a process of its own.
 */
#include "techniques/checkpoint/checkpoint.h"
#include "tests/support/support_state.h"

#include <fcntl.h>
#include <math.h>
#include <sys/file.h>

/* Syncs are left out: here no power goes, and thousands of iterations are stored. */
int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

/* ---- what is stored comes back ----------------------------------------------------------------------------------- */

TEST(what_is_stored_is_read_back)
{
    const char *path = temp_path("any.snap");
    for (uint32_t i = 0; i < 60; i++) {
        struct random_case chosen = random_case(i);
        unlink(path);
        write_snapshot(path, &chosen.config, &chosen.from, i % 2, 3);
        struct checkpoint *checkpoint = open_checkpoint(path);
        assert_int_equal(checkpoint->step, 3);
        assert_int_equal(checkpoint->samples, 3 * 8); /* three steps of 8 samples */
        assert_int_equal(checkpoint->single_file->n_damage, 0);
        expect_state(checkpoint, seed_of(3, 1));
        free_checkpoint(checkpoint);
        free_mesh(&chosen.from);
        free_mesh(&chosen.to);
    }
}

/* What a run with two slots stores on one device, and its description. */
struct small_run {
    struct mesh mesh;
    struct stored stored;
    struct checkpoint checkpoint;
};

static void begin_small_run(struct small_run *small_run)
{
    small_run->mesh = cut_mesh(&small_config, (struct mesh){.dp = 1});
    small_run->stored = new_stored(&small_config, &small_run->mesh, 2, WHOLE_PAYLOADS);
    small_run->checkpoint = description(json_object(), 0, 1);
}

static void end_small_run(struct small_run *small_run)
{
    free_stored(&small_run->stored);
    json_decref(small_run->checkpoint.options);
    free_mesh(&small_run->mesh);
}

static struct problem *open_small_writer(struct small_run *small_run, const char *path, struct snapfile_writer **writer)
{
    return open_snapfile_writer(path, &small_run->checkpoint, &small_run->stored.plan, writer);
}

TEST(a_run_writes_no_snapshot_over_other_files)
{
    struct snapfile_writer *one, *two;
    struct small_run small_run;
    begin_small_run(&small_run);
    const char *path = temp_path("two.snap");
    must(open_small_writer(&small_run, path, &one));
    const struct {
        const char *path;
        int code;
        const char *says;
    } cases[] = {
        {path, EXIT_USAGE, "another run is writing"},
        {write_file("text", "not ours", 8), EXIT_USAGE, "is not a snapshot file"},
        {"/nowhere/x", EXIT_IO, "does its folder exist"},
        {"/dev/null", EXIT_USAGE, "not a regular file"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct problem *problem = open_small_writer(&small_run, cases[i].path, &two);
        assert_non_null(problem);
        assert_int_equal(problem->code, cases[i].code);
        assert_contains(problem->sentence, cases[i].says);
        free(problem);
    }
    close_snapfile_writer(one);
    end_small_run(&small_run);
}

/* Iterations 1 and 2 have the two slots, so 3 has none.  When 2 has failed, 4 takes its slot.  In the end nothing is
 * stored: 1 and 4 were begun only, and the file has no iteration. */
TEST(an_iteration_has_its_slot_until_it_is_finished)
{
    struct snapfile_writer *writer;
    struct small_run small_run;
    begin_small_run(&small_run);
    const char *path = temp_path("slots.snap");
    must(open_small_writer(&small_run, path, &writer));
    assert_int_equal(begin_commit(writer, 1), 1);
    assert_int_equal(begin_commit(writer, 2), 2);
    assert_int_equal(begin_commit(writer, 3), 0);
    finish_commit(writer, 2, false, &(struct commit_times){0});
    assert_int_equal(begin_commit(writer, 4), 2);
    assert_int_equal(close_snapfile_writer(writer).dropped, 2);
    assert_int_equal(run_yard("ckpt verify '%s'", path).code, EXIT_FAILED);
    assert_int_equal(run_yard("ckpt ls '%s'", path).code, EXIT_FAILED);
    end_small_run(&small_run);
}

TEST(a_plan_that_stores_too_little_is_refused)
{
    struct snapfile_writer *writer;
    struct small_run small_run;
    begin_small_run(&small_run);
    const char *path = temp_path("hole.snap");
    small_run.stored.plan.n--; /* the last payload, which has ln_f.weight, is missing */
    struct problem *problem = open_small_writer(&small_run, path, &writer);
    assert_non_null(problem);
    assert_contains(problem->sentence, "tasks of role update store 0 of the 8 elements of ln_f.weight, value");
    assert_int_not_equal(access(path, F_OK), 0);
    free(problem);
    small_run.stored.plan.n++;
    end_small_run(&small_run);
}

/* One value anywhere that is not finite: its iteration is not stored, and the next one in its slot is. */
TEST(one_value_that_is_not_finite_stops_the_commit)
{
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.dp = 1});
    struct stored stored = new_stored(&small_config, &mesh, 2, WHOLE_PAYLOADS);
    struct checkpoint checkpoint = description(json_object(), 0, 1);
    struct snapfile_writer *writer;
    must(open_snapfile_writer(temp_path("finite.snap"), &checkpoint, &stored.plan, &writer));
    for (size_t i = 0; i < stored.plan.n; i++)
        for (size_t k = 0; k < payload_bytes(&stored.plan.ranges[i]) / sizeof(float); k++) {
            bool between = false; /* the pieces */
            assert_above(begin_commit(writer, 1), 0);
            for (size_t at = 0; at < stored.plan.n; at++) {
                float *values = fill_payload(&stored, at, 1);
                if (at == i) {
                    between = memcmp(&values[k], "UUUU", sizeof(float)) == 0;
                    values[k] = INFINITY;
                }
                write_payload(writer, 1, at, values);
                free(values);
            }
            assert_int_equal(finish_commit(writer, 1, true, &(struct commit_times){0}), between);
            store_iteration(writer, &stored, 2, 1);
        }
    close_snapfile_writer(writer);
    json_decref(checkpoint.options);
    free_stored(&stored);
    free_mesh(&mesh);
}

/* ---- readers beside a writer ------------------------------------------------------------------------------------- */

static void read_first(void *argument)
{
    float values[512];
    struct checkpoint *checkpoint = argument;
    assert_at_most(tensor_elements(&checkpoint->cut->tensors[0]), COUNT(values));
    read_kept(checkpoint, 0, values);
}

/* Between opening and reading a run may store another iteration: what is read may then be of that. */
TEST(reading_notices_that_a_run_writes)
{
    struct snapfile snapfile;
    struct snapfile_writer *writer;
    struct image image = make_image(temp_path("busy.snap"), &snapfile);
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.dp = 2, .zero = 1});
    struct stored stored = new_stored(&small_config, &mesh, 2, WHOLE_PAYLOADS);
    struct checkpoint novel = description(json_pack("{s:s}", "novel", "1"), 2, 1);
    struct checkpoint *opened = read_newest_snapshot(image.path);
    read_first(opened);
    must(open_snapfile_writer(image.path, &novel, &stored.plan, &writer));
    assert_int_equal(begin_commit(writer, 3), 1);
    float *bytes = fill_payload(&stored, 0, 9);
    write_payload(writer, 3, 0, bytes);
    read_first(opened); /* it is of the other slot */
    finish_commit(writer, 3, false, &(struct commit_times){0});
    store_iteration(writer, &stored, 3, 1);
    read_first(opened); /* still it is */
    assert_int_equal(begin_commit(writer, 4), 2);
    write_payload(writer, 4, 0, bytes);
    struct problem *problem = attempt(read_first, opened);
    assert_non_null(problem);
    assert_int_equal(problem->code, EXIT_FAILED);
    assert_contains(problem->sentence, "or a run is writing this file");
    close_snapfile_writer(writer);
    free(problem);
    free(bytes);
    free(image.bytes);
    free_checkpoint(opened);
    json_decref(novel.options);
    free_stored(&stored);
    free_mesh(&mesh);
}

/* A writer in a process of its own, which has the file locked, as a run has, while half of a page is there. */
struct half_page {
    const struct image *image;
    int told[2]; /* a pipe: the page is half */
};

static void write_slowly(void *argument)
{
    const struct half_page *half_page = argument;
    size_t newer = SNAPFILE_PAGE, half = SNAPFILE_PAGE / 2;
    int fd = open(half_page->image->path, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    for (size_t page = 0; page <= newer; page += newer)
        assert_int_equal(pwrite(fd, (char[SNAPFILE_PAGE]){0}, half, (off_t)page), half);
    assert_int_equal(write(half_page->told[1], "x", 1), 1);
    usleep(30000);
    for (size_t page = 0; page <= newer; page += newer)
        assert_int_equal(pwrite(fd, half_page->image->bytes + page, half, (off_t)page), half);
    usleep(1000000); /* the run goes on */
}

TEST(a_page_that_is_being_written_is_read_again)
{
    struct snapfile snapfile;
    struct image image = make_image(temp_path("half.snap"), &snapfile);
    struct half_page half_page = {.image = &image};
    char told;
    assert_int_equal(pipe(half_page.told), 0);
    pid_t child = fork();
    if (child == 0) {
        write_slowly(&half_page);
        _exit(0);
    }
    assert_int_equal(read(half_page.told[0], &told, 1), 1);
    struct checkpoint *checkpoint = read_newest_snapshot(image.path);
    assert_int_equal(checkpoint->step, 2);
    assert_int_equal(checkpoint->single_file->n_damage, 0);
    free_checkpoint(checkpoint);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(half_page.told[0]);
    close(half_page.told[1]);
    free(image.bytes);
}

/* The slot that a reader is in may be the oldest by then, and be written: it looks for the newest once more.  It gives
 * up after a hundred times, so this writer pauses, as training does. */
static void commit_for_ever(const struct stored *stored, const char *path, int told)
{
    struct checkpoint checkpoint = description(json_pack("{s:s}", "novel", "1"), 0, 1);
    struct snapfile_writer *writer;
    must(open_snapfile_writer(path, &checkpoint, &stored->plan, &writer));
    pid_t reader = getppid();
    for (uint32_t step = 1; getppid() == reader; step++) { /* it ends with its reader */
        store_iteration(writer, stored, step, 1);
        if (step == 2)
            assert_int_equal(write(told, "x", 1), 1);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
}

LONG_TEST(who_is_overtaken_reads_again)
{
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.dp = 2, .zero = 1});
    struct stored stored = new_stored(&small_config, &mesh, 2, WHOLE_PAYLOADS);
    char *path = temp_path("fast.snap");
    char byte;
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        commit_for_ever(&stored, path, told[1]);
        _exit(0);
    }
    assert_int_equal(read(told[0], &byte, 1), 1);
    for (int i = 0; i < 100; i++) {
        struct checkpoint *checkpoint = read_newest_snapshot(path);
        if (checkpoint->single_file->n_damage)
            test_failed("read %d: %s\n", i, checkpoint->single_file->damage[0]);
        free_checkpoint(checkpoint);
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(told[0]);
    close(told[1]);
    free_stored(&stored);
    free_mesh(&mesh);
}

/* ---- a run that goes on ------------------------------------------------------------------------------------------ */

/* A run that goes on, also when the newest iteration is damaged, leaves the page and the slot that it found. */
TEST(a_run_that_goes_on_keeps_the_snapshot_it_found)
{
    for (int damaged = 0; damaged < 2; damaged++) {
        struct snapfile snapfile;
        struct snapfile_writer *writer;
        size_t n;
        struct image image = make_image(temp_path("found.snap"), &snapfile);
        struct mesh mesh = cut_mesh(&small_config, (struct mesh){.dp = 2, .zero = 1});
        struct stored stored = new_stored(&small_config, &mesh, 2, WHOLE_PAYLOADS);
        struct checkpoint described = description(json_pack("{s:s}", "novel", "1"), 1, 1);
        int slot = damaged ? 1 : 2;
        image.bytes[first_piece(image.path)] ^= (char)damaged;
        put_bytes(&image, 0, image.n);
        must(open_snapfile_writer(image.path, &described, &stored.plan, &writer));
        store_iteration(writer, &stored, 3, 1);
        close_snapfile_writer(writer);
        char *now = read_whole(image.path, &n);
        size_t page = (size_t)(slot - 1) * SNAPFILE_PAGE, bytes = slot_at(&snapfile, slot);
        assert_memory_equal(now + page, image.bytes + page, SNAPFILE_PAGE);
        assert_memory_equal(now + bytes, image.bytes + bytes, snapfile.base.bytes);
        assert_false(notices(&image));
        assert_int_equal(image.step, 3);
        assert_int_equal(image.damage, 0);
        struct checkpoint *checkpoint = read_newest_snapshot(image.path);
        /* It is newer than all that was there, damaged or not. */
        assert_above(snapfile_of(checkpoint)->newest.seq, snapfile.newest.seq);
        free_checkpoint(checkpoint);
        free(now);
        free(image.bytes);
        json_decref(described.options);
        free_stored(&stored);
        free_mesh(&mesh);
    }
}

/* It is called in a process of its own, so that what it says can be read. */
static void lose_the_name(void *path)
{
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.dp = 2, .zero = 1});
    struct stored stored = new_stored(&small_config, &mesh, 2, WHOLE_PAYLOADS);
    struct checkpoint checkpoint = description(json_pack("{s:s}", "novel", "1"), 0, 1);
    struct snapfile_writer *writer;
    must(open_snapfile_writer(path, &checkpoint, &stored.plan, &writer));
    store_iteration(writer, &stored, 1, 1);
    unlink(path);
    assert_above(begin_commit(writer, 2), 0);
    for (size_t i = 0; i < stored.plan.n; i++) {
        float *bytes = fill_payload(&stored, i, 5);
        write_payload(writer, 2, i, bytes);
        free(bytes);
    }
    assert_false(finish_commit(writer, 2, true, &(struct commit_times){0}));
    assert_int_equal(begin_commit(writer, 3), 0);
    struct snapfile_counts counts = close_snapfile_writer(writer);
    assert_int_equal(counts.stored, 0);
}

TEST(a_file_that_was_removed_is_noticed)
{
    struct outcome outcome = run_child(lose_the_name, temp_path("gone.snap"));
    const char *said = strstr(outcome.text, "was removed, renamed or replaced by another program while it was written");
    if (outcome.code != EXIT_OK || !said || strstr(said + 1, "was removed"))
        test_failed("code %d, signal %d: %s\n", outcome.code, outcome.signal, outcome.text);
}

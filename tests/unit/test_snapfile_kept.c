/* test_snapfile_kept.c - what a snapshot file keeps, and for whom: it comes back, also beside a run that writes.
 *
 * It tests src/techniques/snapshot.  A value that is lost, or not finite and yet stored, an iteration that is
 * overwritten while a newer one is damaged, a file that two runs write, and a reader who takes a page that is half
 * written for a damaged one are found.
 *
 * Values follow from a seed, the number of their tensor, and their place in it (support_state.h).  A writer beside a
 * reader is a process of its own.
 */
#include "techniques/reshard/find_checkpoint.h"
#include "techniques/reshard/transfer.h"
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

TEST(stored_comes_back)
{
    const char *path = temp_path("any.snap");
    for (uint32_t i = 0; i < 60; i++) {
        struct random_case r = random_case(i);
        unlink(path);
        write_snapshot(path, &r.config, &r.from, i % 2, 3);
        struct checkpoint *c = open_checkpoint(path);
        assert_int_equal(c->step, 3);
        assert_int_equal(c->samples, 3 * 8); /* three steps of 8 samples */
        assert_int_equal(c->stored->n_damage, 0);
        expect_state(c, seed_of(3, 1));
        free_checkpoint(c);
        free_mesh(&r.from);
        free_mesh(&r.to);
    }
}

TEST(what_is_refused)
{
    struct snap *one, *two;
    struct mesh m = mesh_of(&small_config, 1, 1, 1, 0);
    struct stored x = store_of(&small_config, &m, 2, false);
    struct snap_plan *p = &x.plan;
    struct checkpoint d = description(json_object(), 0, 1);
    const char *path = temp_path("two.snap"), *text = write_file("text", "not ours", 8);
    must(open_snap(path, &d, p, &one));
    struct problem *q[] = {open_snap(path, &d, p, &two), open_snap(text, &d, p, &two),
                           open_snap("/nowhere/x", &d, p, &two), open_snap("/dev/null", &d, p, &two)};
    const char *part[] = {"another run is writing", "is no snapshot file", "does its folder exist", "no regular file"};
    for (int i = 0; i < 4; i++) {
        assert_non_null(q[i]);
        assert_int_equal(q[i]->code, i == 2 ? EXIT_IO : EXIT_USAGE);
        if (!strstr(q[i]->sentence, part[i]))
            test_failed("%s\n", q[i]->sentence);
        free(q[i]);
    }
    assert_int_equal(snap_begin(one, 1), 1);
    assert_int_equal(snap_begin(one, 2), 2);
    assert_int_equal(snap_begin(one, 3), 0);
    snap_commit(one, 2, false, &(struct stored_step){0});
    assert_int_equal(snap_begin(one, 4), 2);
    assert_int_equal(close_snap(one).dropped, 2);
    assert_int_equal(run_yard("ckpt verify '%s'", path).code, EXIT_FAILED);
    assert_int_equal(run_yard("ckpt ls '%s'", path).code, EXIT_FAILED);
    p->n--; /* a part is missing */
    struct problem *hole = open_snap(temp_path("hole.snap"), &d, p, &two);
    assert_true(hole);
    assert_true(strstr(hole->sentence, "tasks of role update store 0 of the 8 elements of ln_f.weight, value"));
    assert_int_not_equal(access(temp_path("hole.snap"), F_OK), 0);
    free(hole);
    p->n++;
    free_stored(&x);
    json_decref(d.options);
    free_mesh(&m);
}

/* One value anywhere that is not finite: its iteration is not stored, and the next one in its slot is. */
TEST(no_value_is_overlooked)
{
    struct mesh m = mesh_of(&small_config, 1, 1, 1, 0);
    struct stored x = store_of(&small_config, &m, 2, false);
    struct checkpoint d = description(json_object(), 0, 1);
    struct snap *s;
    must(open_snap(temp_path("finite.snap"), &d, &x.plan, &s));
    for (size_t i = 0; i < x.plan.n; i++)
        for (size_t k = 0; k < payload_bytes(&x.plan.range[i]) / sizeof(float); k++) {
            bool between = false; /* the pieces */
            assert_true(snap_begin(s, 1) > 0);
            for (size_t at = 0; at < x.plan.n; at++) {
                float *values = fill_payload(&x, at, 1);
                if (at == i) {
                    between = memcmp(&values[k], "UUUU", sizeof(float)) == 0;
                    values[k] = INFINITY;
                }
                snap_write(s, 1, at, values);
                free(values);
            }
            assert_int_equal(snap_commit(s, 1, true, &(struct stored_step){0}), between);
            store_iteration(s, &x, 2, 1);
        }
    close_snap(s);
    json_decref(d.options);
    free_stored(&x);
    free_mesh(&m);
}

/* ---- readers beside a writer ------------------------------------------------------------------------------------- */

static void read_first(void *checkpoint)
{
    float values[512];
    const struct checkpoint *c = checkpoint;
    assert_true(tensor_elements(&c->pieces->tensor[0]) <= COUNT(values));
    read_kept(c, 0, values);
}

/* Between opening and reading a run may store another iteration: what is read may then be of that. */
TEST(who_reads_notices_a_writer)
{
    struct snapfile s;
    struct snap *snap;
    struct image x = make_image(temp_path("busy.snap"), &s);
    struct mesh m = mesh_of(&small_config, 2, 1, 1, 1);
    struct stored stored = store_of(&small_config, &m, 2, false);
    struct checkpoint d = description(json_pack("{s:s}", "novel", "1"), 2, 1), *c = open_snapshot(x.path);
    read_first(c);
    must(open_snap(x.path, &d, &stored.plan, &snap));
    assert_int_equal(snap_begin(snap, 3), 1);
    float *bytes = fill_payload(&stored, 0, 9);
    snap_write(snap, 3, 0, bytes);
    read_first(c); /* it is of the other slot */
    snap_commit(snap, 3, false, &(struct stored_step){0});
    store_iteration(snap, &stored, 3, 1);
    read_first(c); /* still it is */
    assert_int_equal(snap_begin(snap, 4), 2);
    snap_write(snap, 4, 0, bytes);
    struct problem *p = attempt(read_first, c);
    assert_true(p);
    assert_int_equal(p->code, EXIT_FAILED);
    assert_true(strstr(p->sentence, "or a run writes there"));
    close_snap(snap);
    free(p);
    free(bytes);
    free(x.bytes);
    free_checkpoint(c);
    json_decref(d.options);
    free_stored(&stored);
    free_mesh(&m);
}

/* A writer in a process of its own, which has the file locked, as a run has, while half of a page is there. */
struct half_page {
    const struct image *image;
    int told[2]; /* a pipe: the page is half */
};

static void write_slowly(void *half_page)
{
    const struct half_page *h = half_page;
    const size_t newer = SNAP_PAGE, half = SNAP_PAGE / 2;
    int fd = open(h->image->path, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    for (size_t page = 0; page <= newer; page += newer)
        assert_int_equal(pwrite(fd, (char[SNAP_PAGE]){0}, half, (off_t)page), half);
    assert_int_equal(write(h->told[1], "x", 1), 1);
    usleep(30000);
    for (size_t page = 0; page <= newer; page += newer)
        assert_int_equal(pwrite(fd, h->image->bytes + page, half, (off_t)page), half);
    usleep(1000000); /* the run goes on */
}

TEST(a_page_that_is_being_written_is_read_again)
{
    struct snapfile s;
    struct image x = make_image(temp_path("half.snap"), &s);
    struct half_page h = {.image = &x};
    char told;
    assert_int_equal(pipe(h.told), 0);
    pid_t child = fork();
    if (child == 0) {
        write_slowly(&h);
        _exit(0);
    }
    assert_int_equal(read(h.told[0], &told, 1), 1);
    struct checkpoint *c = open_snapshot(x.path);
    assert_int_equal(c->step, 2);
    assert_int_equal(c->stored->n_damage, 0);
    free_checkpoint(c);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(h.told[0]);
    close(h.told[1]);
    free(x.bytes);
}

/* The slot that a reader is in may be the oldest by then, and be written: it looks for the newest once more.  It gives
 * up after a hundred times, so this writer pauses, as training does. */
static void commit_for_ever(const struct stored *stored, const char *path, int told)
{
    struct checkpoint d = description(json_pack("{s:s}", "novel", "1"), 0, 1);
    struct snap *snap;
    must(open_snap(path, &d, &stored->plan, &snap));
    const pid_t reader = getppid();
    for (uint32_t step = 1; getppid() == reader; step++) { /* it ends with its reader */
        store_iteration(snap, stored, step, 1);
        if (step == 2)
            assert_int_equal(write(told, "x", 1), 1);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
}

LONG_TEST(who_is_overtaken_reads_again)
{
    struct mesh m = mesh_of(&small_config, 2, 1, 1, 1);
    struct stored stored = store_of(&small_config, &m, 2, false);
    char *path = temp_path("fast.snap"), byte;
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        commit_for_ever(&stored, path, told[1]);
        _exit(0);
    }
    assert_int_equal(read(told[0], &byte, 1), 1);
    for (int i = 0; i < 100; i++) {
        struct checkpoint *c = open_snapshot(path);
        if (c->stored->n_damage)
            test_failed("read %d: %s\n", i, c->stored->damage[0]);
        free_checkpoint(c);
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(told[0]);
    close(told[1]);
    free_stored(&stored);
    free_mesh(&m);
}

/* ---- a run that goes on ------------------------------------------------------------------------------------------ */

/* A run that goes on, also when the newest iteration is damaged, leaves the page and the slot that it found. */
TEST(what_was_found_stays)
{
    for (int damaged = 0; damaged < 2; damaged++) {
        struct snapfile s;
        struct snap *snap;
        size_t n;
        struct image x = make_image(temp_path("found.snap"), &s);
        struct mesh m = mesh_of(&small_config, 2, 1, 1, 1);
        struct stored stored = store_of(&small_config, &m, 2, false);
        struct checkpoint d = description(json_pack("{s:s}", "novel", "1"), 1, 1);
        int slot = damaged ? 1 : 2;
        x.bytes[first_piece(x.path)] ^= (char)damaged;
        put_bytes(&x, 0, x.n);
        must(open_snap(x.path, &d, &stored.plan, &snap));
        store_iteration(snap, &stored, 3, 1);
        close_snap(snap);
        char *now = read_whole(x.path, &n);
        size_t page = (size_t)(slot - 1) * SNAP_PAGE, bytes = slot_at(&s, slot);
        assert_memory_equal(now + page, x.bytes + page, SNAP_PAGE);
        assert_memory_equal(now + bytes, x.bytes + bytes, s.in.bytes);
        assert_false(notices(&x));
        assert_int_equal(x.step, 3);
        assert_true(!x.damage);
        struct checkpoint *c = open_snapshot(x.path);
        assert_true(snapfile_of(c)->newest.seq > s.newest.seq); /* newer than all that was there, damaged or not */
        free_checkpoint(c);
        free(now);
        free(x.bytes);
        json_decref(d.options);
        free_stored(&stored);
        free_mesh(&m);
    }
}

/* It is called in a process of its own, so that what it says can be read. */
static void lose_the_name(void *path)
{
    struct mesh m = mesh_of(&small_config, 2, 1, 1, 1);
    struct stored stored = store_of(&small_config, &m, 2, false);
    struct checkpoint d = description(json_pack("{s:s}", "novel", "1"), 0, 1);
    struct snap *snap;
    must(open_snap(path, &d, &stored.plan, &snap));
    store_iteration(snap, &stored, 1, 1);
    unlink(path);
    assert_true(snap_begin(snap, 2) > 0);
    for (size_t i = 0; i < stored.plan.n; i++) {
        float *bytes = fill_payload(&stored, i, 5);
        snap_write(snap, 2, i, bytes);
        free(bytes);
    }
    assert_false(snap_commit(snap, 2, true, &(struct stored_step){0}));
    assert_int_equal(snap_begin(snap, 3), 0);
    struct snap_counts counts = close_snap(snap);
    assert_int_equal(counts.newest, 0);
    assert_int_equal(counts.stored, 0);
}

TEST(a_file_without_its_name_is_noticed)
{
    struct outcome o = run_child(lose_the_name, temp_path("gone.snap"));
    const char *said = strstr(o.text, "was removed, renamed or replaced by another program while it was written");
    if (o.code != 0 || !said || strstr(said + 1, "was removed"))
        test_failed("code %d, signal %d: %s\n", o.code, o.signal, o.text);
}

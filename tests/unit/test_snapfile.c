/* test_snapfile.c - snapshot files: what is stored comes back, whatever is cut off, damaged or refused.
 *
 * This program has pwrite, fdatasync, rename and the like of its own, which stand before the system's.  They do
 * what the system's do, and keep a model of the disk beside (support_disk.h): of what was not synced it may have
 * any sectors, and of a rename either name.  A *life* is a run that opens the file, stores iterations, a few at
 * once, and ends where the shim throws it out: after a call by chance.  Then the power goes, and the file becomes
 * what such a disk would have; or the process was only killed, and the next life begins with what the system still
 * holds in memory.  After each life the newest iteration that was acknowledged, or a later one, is read back, all
 * of it of one life and iteration.
 *
 *     YARD_CUTS=100000 YARD_EVERY=1 build/tests/test_snapfile     so many ends of lives, from the YARD_FIRST-th
 *                                                                 trial on; every bit, else each 61st
 */
#include "tests/support/shim.h"
#include "tests/support/support_disk.h"
#include "tests/support/support_state.h"

#include <fcntl.h>
#include <math.h>
#include <sys/file.h>

/* ---- the disk --------------------------------------------------------------------------------------------------- */

static struct {
    bool on;
    struct disk_file file[2];
    ino_t inode[2];        /* the system's number of each; 0: there is none */
    int named, sure_named; /* which of them has the name, now and on the disk */
    struct counted_calls calls;
    int cut_at;               /* the number of the last call that is made */
    int cut_sync, fault_sync; /* after so many syncs of a file cut_at, calls.at are set; 0: never */
    bool no_sync;             /* a mutant: syncs do nothing */
    bool real;                /* syncs take their time */
    void (*while_syncing)(void);
    struct draws luck;
} disk;

static uint32_t draw(uint32_t below) { return (uint32_t)draw_below(&disk.luck, below); }

static struct disk_file *file_of(int fd)
{
    struct stat s;
    if (!disk.on || fstat(fd, &s) != 0)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (disk.inode[i] == s.st_ino)
            return &disk.file[i];
    return NULL;
}

/* Counts the call; false: it fails, with errno set.  After the cut it is never made. */
static bool go_on(bool writes)
{
    bool sound = count_call(&disk.calls, writes);
    if (disk.calls.n > disk.cut_at)
        fail(EXIT_IO, "the power went");
    return sound;
}

static ssize_t write_to(struct disk_file *f, int fd, const void *bytes, size_t n, off_t at)
{
    if (!go_on(true))
        return -1;
    ssize_t done = REAL(pwrite)(fd, bytes, bytes_to_write(&disk.calls, n), at);
    if (done > 0)
        disk_write(f, bytes, (size_t)done, (size_t)at);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    struct disk_file *f = file_of(fd);
    return f ? write_to(f, fd, bytes, n, at) : REAL(pwrite)(fd, bytes, n, at);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    struct disk_file *f = file_of(fd);
    off_t at = f ? lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t done = f ? write_to(f, fd, bytes, n, at) : REAL(write)(fd, bytes, n);
    if (f && done > 0)
        lseek(fd, at + done, SEEK_SET);
    return done;
}

int posix_fallocate(int fd, off_t at, off_t n)
{
    struct disk_file *f = file_of(fd);
    if (!f)
        return REAL(posix_fallocate)(fd, at, n);
    return go_on(true) ? REAL(posix_fallocate)(fd, at, n) : errno;
}

int sync_file_range(int fd, off_t at, off_t n, unsigned flags)
{
    if (disk.real)
        return REAL(sync_file_range)(fd, at, n, flags);
    return file_of(fd) && !go_on(false) ? -1 : 0;
}

/* An error leaves what it met in memory, as if it were on the disk: no later sync writes it. */
static int sync_model(int fd)
{
    struct disk_file *f = file_of(fd);
    struct stat s;
    if (disk.while_syncing && f)
        disk.while_syncing();
    if (f && disk.cut_sync) {
        disk.cut_sync--;
        if (disk.cut_sync == 0)
            disk.cut_at = disk.calls.n;
    }
    if (f && disk.fault_sync) {
        disk.fault_sync--;
        if (disk.fault_sync == 0)
            disk.calls.at = disk.calls.n + 1;
    }
    bool sound = !disk.on || go_on(false);
    if (disk.on && sound && fstat(fd, &s) == 0 && S_ISDIR(s.st_mode))
        disk.sure_named = disk.named;
    if (f && !sound)
        drop_waiting(f);
    if (f && sound && !disk.no_sync)
        disk_sync(f);
    return sound ? 0 : -1;
}
int fsync(int fd) { return disk.real ? REAL(fsync)(fd) : sync_model(fd); }
int fdatasync(int fd) { return disk.real ? REAL(fdatasync)(fd) : sync_model(fd); }

/* What is not waiting to be written is read from the disk again. */
int posix_fadvise(int fd, off_t at, off_t n, int advice)
{
    struct disk_file *f = file_of(fd);
    (void)at;
    (void)n;
    if (f && advice == POSIX_FADV_DONTNEED && !f->n_waiting)
        assert_int_equal(REAL(pwrite)(fd, f->sure, f->sure_n, 0), f->sure_n);
    return 0;
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    bool ours = disk.on && flags & O_CREAT, there = access(path, F_OK) == 0;
    struct stat s;
    if (ours && !go_on(true))
        return -1;
    int fd = REAL(open)(path, flags, mode);
    if (!ours || fd < 0)
        return fd;
    if (!there && fstat(fd, &s) == 0) {
        int file = strstr(path, ".tmp-") ? 1 - disk.named : disk.named;
        empty_file(&disk.file[file]);
        disk.inode[file] = s.st_ino;
    }
    return fd;
}

int flock(int fd, int how) { return file_of(fd) && !go_on(false) ? -1 : REAL(flock)(fd, how); }

int rename(const char *old, const char *new)
{
    if (disk.on && !go_on(false))
        return -1;
    disk.named = disk.on ? 1 - disk.named : 0;
    return REAL(rename)(old, new);
}

int unlink(const char *path) { return disk.on && disk.calls.n > disk.cut_at ? 0 : REAL(unlink)(path); }

/* ---- the power goes --------------------------------------------------------------------------------------------- */

static void put_file(const char *path, int file)
{
    const struct disk_file *f = &disk.file[file];
    struct stat s;
    int fd = REAL(open)(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &s), 0);
    assert_int_equal(REAL(pwrite)(fd, f->sure, f->sure_n, 0), f->sure_n);
    close(fd);
    disk.inode[file] = s.st_ino;
}

static void remove_temporary(const char *path)
{
    char *temporary = lasting("%s.tmp-%d", path, (int)getpid());
    REAL(unlink)(temporary);
}

static void cut_power(const char *path)
{
    bool old = disk.sure_named != disk.named && draw(2);
    disk.named = disk.sure_named = old ? disk.sure_named : disk.named;
    cut_file(&disk.file[disk.named], &disk.luck);
    empty_file(&disk.file[1 - disk.named]);
    disk.inode[1 - disk.named] = 0;
    if (disk.inode[disk.named])
        put_file(path, disk.named);
}

/* ---- what is stored comes back ----------------------------------------------------------------------------------- */

static const struct config sizes = {.layers = 1, .heads = 2, .channels = 8, .seq_len = 4, .vocab = 9, .tied = true};

TEST(stored_comes_back)
{
    const char *path = temp_path("any.snap");
    for (uint32_t i = 0; i < 60; i++) {
        struct random_case r = random_case(i);
        REAL(unlink)(path);
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
    struct mesh m = mesh_of(&sizes, 1, 1, 1, 0);
    struct stored x = store_of(&sizes, &m, 2, false);
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
    struct mesh m = mesh_of(&sizes, 1, 1, 1, 0);
    struct stored x = store_of(&sizes, &m, 2, false);
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

/* ---- lives ------------------------------------------------------------------------------------------------------ */

struct flight { /* an iteration under way */
    uint32_t step;
    size_t written;
};
static struct life {
    const char *path;
    const struct stored *stored;
    json_t *options;
    struct snap *snap;
    uint32_t first, step, actions;
    int64_t session;
    struct flight flight[MOST_MEMBERS];
    int n;
    struct problem *problem;
} life;
static uint32_t acknowledged;

static void begin_one(void)
{
    life.step++;
    if (snap_begin(life.snap, life.step))
        life.flight[life.n++] = (struct flight){.step = life.step, .written = 0};
}

static void write_one(void)
{
    int k = 0;
    while (k < life.n && life.flight[k].written == life.stored->plan.n)
        k++;
    if (k == life.n)
        return;
    struct flight *f = &life.flight[k];
    float *bytes = fill_payload(life.stored, f->written, seed_of(f->step, life.session));
    snap_write(life.snap, f->step, f->written, bytes);
    f->written++;
    free(bytes);
}

static void commit_one(void)
{
    struct stored_step t;
    struct flight f = life.flight[0];
    if (!life.n || f.written < life.stored->plan.n)
        return;
    life.n--;
    memmove(life.flight, life.flight + 1, (size_t)life.n * sizeof f);
    if (draw(20) == 0)
        snap_commit(life.snap, f.step, false, &(struct stored_step){0});
    else if (snap_commit(life.snap, f.step, true, &t))
        acknowledged = f.step;
}

/* Goes on as another thread does while one waits for the disk. */
static void go_on_meanwhile(void)
{
    void (*hook)(void) = disk.while_syncing;
    disk.while_syncing = NULL;
    for (uint32_t i = draw(6); life.snap && i; i--)
        if (draw(3))
            write_one();
        else
            begin_one();
    disk.while_syncing = hook;
}

static void live(void *unused)
{
    (void)unused;
    struct checkpoint d = description(life.options, life.first, life.session);
    struct snap *s;
    life.problem = open_snap(life.path, &d, &life.stored->plan, &s);
    if (life.problem)
        return;
    life.snap = s;
    for (uint32_t i = life.actions; i; i--)
        switch (draw(4)) {
        case 0:
            begin_one();
            break;
        case 1:
            commit_one();
            break;
        default:
            write_one();
        }
    life.snap = NULL;
    close_snap(s);
}

static void close_from(int first)
{
    for (int fd = first; fd < first + 16; fd++)
        close(fd);
}

/* What it is thrown out of leaks in part: tests/run/leaks.supp. */
static void run_life(void)
{
    int first_fd = dup(0);
    life.snap = NULL;
    life.n = 0;
    life.step = life.first;
    free(life.problem);
    life.problem = NULL;
    disk.calls.n = 0;
    disk.on = true;
    disk.while_syncing = go_on_meanwhile;
    struct problem *thrown = attempt(live, NULL);
    disk.on = false;
    disk.while_syncing = NULL;
    if (thrown && life.snap)
        close_snap(life.snap);
    free(thrown);
    close_from(first_fd); /* their locks go with them */
    if (life.problem && life.problem->code != EXIT_IO && !disk.no_sync) {
        printf("# a life ends with: %s\n", life.problem->sentence);
        test_failed("refused\n");
    }
}

struct back { /* the argument of attempt(), and what it read */
    uint32_t step;
    bool sound;
};

static void read_back(void *back)
{
    struct back *b = back;
    struct checkpoint *c = open_snapshot(life.path);
    b->step = c->step;
    b->sound = has_state(c, seed_of(c->step, c->session)) && c->samples == 8 * (int64_t)c->step;
    free_checkpoint(c);
}

/* Nothing acknowledged is lost, nothing torn accepted. */
static bool look_back(void)
{
    struct back b = {.sound = true};
    int first_fd = dup(0);
    free(attempt(read_back, &b));
    close_from(first_fd);
    life.first = b.step;
    return b.sound && b.step >= acknowledged;
}

static void begin_trial(const char *path, uint64_t number)
{
    disk.luck = (struct draws){.seed = number};
    REAL(unlink)(path);
    remove_temporary(path);
    for (int i = 0; i < 2; i++) {
        empty_file(&disk.file[i]);
        disk.inode[i] = 0;
    }
    disk.named = disk.sure_named = 0;
    disk.calls.fault = FAULT_NONE;
    life.path = path;
    life.first = 0;
    life.session = 1;
    acknowledged = 0;
}

/* Up to five lives of a file; false: one of them lost something. */
static bool run_trial(const char *path, const struct stored *stored, uint64_t number, int *ends)
{
    bool kept = true;
    begin_trial(path, number);
    for (int lives = 1 + (int)draw(5); lives && kept; lives--, life.session++, ++*ends) {
        life.stored = &stored[draw(8) ? number % 2 : draw(3)]; /* sometimes with another layout than before */
        disk.cut_at = draw(8) ? (int)draw(70) : INT32_MAX;
        disk.cut_sync = draw(3) ? 1 + (int)draw(5) : 0;
        disk.calls.fault = draw(6) ? FAULT_NONE : FAULT_EIO;
        disk.calls.at = (int)draw(60);
        disk.fault_sync = draw(3) ? 1 + (int)draw(6) : 0;
        life.actions = 10 + draw(30);
        run_life();
        remove_temporary(path);
        if (draw(3))
            cut_power(path);
        kept = look_back();
    }
    return kept;
}

/* Runs what is to be said on stderr into a file; how often a sentence is in it. */
static int quiet_fd = -1;
static void be_quiet(const char *log)
{
    fflush(stderr);
    quiet_fd = dup(2);
    int fd = REAL(open)(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, 2);
    close(fd);
}

static int be_loud(const char *log, const char *part)
{
    int n = 0;
    size_t size;
    fflush(stderr);
    dup2(quiet_fd, 2);
    close(quiet_fd);
    char *text = read_whole(log, &size);
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    free(text);
    return n;
}

/* A whole life; one with another layout, which gets a file of its own and is killed at that call; another whole one;
 * and then the power goes.  false: something was lost. */
static bool survives(const char *path, const struct stored *stored, int killed_at, int luck)
{
    const int cuts[] = {INT32_MAX, killed_at, INT32_MAX};
    begin_trial(path, (uint64_t)(8 * killed_at + luck));
    disk.cut_sync = disk.fault_sync = 0;
    bool kept = true;
    for (size_t i = 0; i < COUNT(cuts) && kept; i++, life.session++) {
        life.stored = &stored[i ? 2 : 0];
        life.actions = 60;
        disk.cut_at = cuts[i];
        run_life();
        remove_temporary(path);
        if (i == 2)
            cut_power(path);
        kept = look_back();
    }
    return kept;
}

static int count_lost(int ends, bool no_sync, int *done)
{
    int lost = 0;
    const char *path = temp_path("power.snap"), *log = temp_path("power.log");
    struct mesh m = mesh_of(&sizes, 1, 1, 1, 0);
    struct stored stored[3] = {store_of(&sizes, &m, 2, false), store_of(&sizes, &m, 3, true),
                               store_of(&sizes, &m, 4, true)};
    life.options = json_object();
    disk.no_sync = no_sync;
    be_quiet(log);
    *done = 0;
    for (uint64_t i = getenv("YARD_FIRST") ? strtoull(getenv("YARD_FIRST"), NULL, 10) : 0; *done < ends; i++)
        lost += !run_trial(path, stored, i, done);
    be_loud(log, "yard:");
    disk.no_sync = false;
    for (int i = 0; i < 3; i++)
        free_stored(&stored[i]);
    json_decref(life.options);
    free_mesh(&m);
    return lost;
}

/* A life may also end between the renaming of a file and the moment when its name is on the disk: the next life, which
 * finds the name there, syncs it. */
LONG_TEST(killed_and_then_cut)
{
    enum { CALLS = 120, LUCKS = 4 };
    int lost = 0;
    const char *path = temp_path("killed.snap"), *log = temp_path("killed.log");
    struct mesh m = mesh_of(&sizes, 1, 1, 1, 0);
    struct stored stored[3] = {store_of(&sizes, &m, 2, false), {0}, store_of(&sizes, &m, 4, true)};
    life.options = json_object();
    be_quiet(log);
    for (int at = 1; at <= CALLS; at++)
        for (int luck = 0; luck < LUCKS; luck++)
            lost += !survives(path, stored, at, luck);
    be_loud(log, "yard:");
    free_stored(&stored[0]);
    free_stored(&stored[2]);
    json_decref(life.options);
    free_mesh(&m);
    assert_int_equal(lost, 0);
}

LAW(lives_end_at_any_moment)
{
    const struct cases some = cases_of(600, getenv("YARD_CUTS") ? atoi(getenv("YARD_CUTS")) : 3000);
    int done, ends = some.end;
    int lost = count_lost(ends, false, &done);
    printf("# %d ends of lives: %d lost\n", done, lost);
    assert_int_equal(lost, 0);
    assert_true(count_lost(300, true, &done) > 0);
}

/* ---- calls that fail -------------------------------------------------------------------------------------------- */

/* A life on a file that has iterations already, or on none, one call of which goes wrong; then the power goes. */
static void spoil_call(const struct stored *x, bool fresh, enum fault fault, int at)
{
    const char *path = temp_path("fault.snap"), *log = temp_path("fault.log");
    begin_trial(path, 7);
    life.stored = x;
    life.actions = 120;
    disk.cut_sync = disk.fault_sync = 0;
    disk.cut_at = INT32_MAX;
    for (int run = fresh; run < 2; run++, life.session++) {
        disk.luck = (struct draws){0};
        disk.calls.fault = run ? fault : FAULT_NONE;
        disk.calls.at = at;
        be_quiet(log);
        run_life();
        int said = be_loud(log, "training goes on");
        struct problem *p = life.problem;
        if (p && (p->code != EXIT_IO || !run || fault == FAULT_SHORT))
            test_failed("%d in call %d: %s\n", fault, at, p->sentence);
        if (said > 1)
            test_failed("%d in call %d: said %d times\n", fault, at, said);
        remove_temporary(path);
        cut_power(path);
        if (!look_back() || (!run && !acknowledged))
            test_failed("%d in call %d: %u acknowledged, found is %u\n", fault, at, acknowledged, life.first);
    }
}

TEST(every_call_may_fail)
{
    struct mesh m = mesh_of(&sizes, 1, 1, 1, 0);
    struct stored x = store_of(&sizes, &m, 2, false);
    int tried = 0;
    life.options = json_object();
    for (int fresh = 0; fresh < 2; fresh++) {
        spoil_call(&x, fresh, FAULT_NONE, 0);
        int calls = disk.calls.n;
        assert_true(calls > 30);
        for (int fault = FAULT_EIO; fault <= FAULT_SHORT; fault++)
            for (int at = 1; at <= calls; at++, tried++)
                spoil_call(&x, fresh, (enum fault)fault, at);
    }
    printf("# %d faults\n", tried);
    json_decref(life.options);
    free_stored(&x);
    free_mesh(&m);
}

/* ---- damage ----------------------------------------------------------------------------------------------------- */

struct image {
    const char *path;
    char *bytes;
    size_t n;
    uint32_t step; /* the step that was read, 0: none */
    size_t damage; /* sentences */
    char said[512];
};

static void read_image(void *image)
{
    struct image *x = image;
    struct checkpoint *c = read_snapshot(x->path);
    x->damage = c->stored->n_damage;
    snprintf(x->said, sizeof x->said, "%s", x->damage ? c->stored->damage[0] : "");
    x->step = snapfile_of(c)->newest.slot && has_state(c, seed_of(c->step, 1)) ? c->step : 0;
    free_checkpoint(c);
}

/* true: it was noticed, and what is read is an iteration, or nothing. */
static bool notices(struct image *x)
{
    x->step = 0;
    x->damage = 0;
    struct problem *p = attempt(read_image, x);
    bool refused = p && p->code == EXIT_FAILED;
    free(p);
    return p ? refused : x->damage && x->step;
}

static void put_bytes(const struct image *x, size_t at, size_t n)
{
    int fd = REAL(open)(x->path, O_RDWR);
    assert_int_equal(REAL(pwrite)(fd, x->bytes + at, n, (off_t)at), n);
    close(fd);
}

static bool notices_flip(struct image *x, size_t at, int bit)
{
    x->bytes[at] ^= (char)(1 << bit);
    put_bytes(x, at, 1);
    bool noticed = notices(x);
    x->bytes[at] ^= (char)(1 << bit);
    put_bytes(x, at, 1);
    return noticed;
}

static struct image make_image(const char *path, struct snapfile *layout)
{
    struct image x = {.path = path};
    struct mesh m = mesh_of(&sizes, 2, 1, 1, 1);
    REAL(unlink)(path);
    write_snapshot(path, &sizes, &m, false, 2);
    struct checkpoint *c = open_checkpoint(path);
    *layout = *snapfile_of(c);
    x.bytes = read_whole(path, &x.n);
    assert_int_equal(x.n, slot_at(layout, 3));
    free_checkpoint(c);
    free_mesh(&m);
    return x;
}

TEST(every_bit_matters)
{
    struct snapfile s;
    struct image x = make_image(temp_path("bits.snap"), &s);
    size_t every = getenv("YARD_EVERY") ? strtoul(getenv("YARD_EVERY"), NULL, 10) : 61;
    size_t tried = 0;
    size_t older = 0;
    for (size_t bit = 0; bit < 8 * MANIFEST_AT; bit += every, tried++) /* pages */
        if (!notices_flip(&x, bit / 8, (int)(bit % 8)) || !x.step)
            test_failed("bit %zu of byte %zu\n", bit % 8, bit / 8);
        else
            older += x.step == 1;
    for (size_t bit = 0; bit < 8 * s.manifest_bytes; bit += 7 * every, tried++)
        if (!notices_flip(&x, MANIFEST_AT + bit / 8, (int)(bit % 8)))
            test_failed("bit %zu of byte %zu of the manifest\n", bit % 8, bit / 8);
    struct checkpoint *c = open_snapshot(x.path);
    for (size_t i = 0; i < c->pieces->n; i++)
        for (size_t k = 0; k < c->pieces->tensor[i].n; k++) {
            const struct piece *p = &c->pieces->tensor[i].piece[k];
            for (size_t bit = 5 * i; bit < 8 * ELEMENT_BYTES * piece_elements(p); bit += 7 * every, tried++)
                if (!notices_flip(&x, p->file_offset + bit / 8, (int)(bit % 8)) || x.step != 1 ||
                    !strstr(x.said, c->pieces->tensor[i].name))
                    test_failed("bit %zu of %s: step %u, %s\n", bit, c->pieces->tensor[i].name, x.step, x.said);
        }
    for (size_t bit = 0; bit < 64 * s.in.n; bit += every, tried++)
        if (!notices_flip(&x, hashes_at(&s, (int)s.newest.slot) + bit / 8, (int)(bit % 8)) || x.step != 1)
            test_failed("bit %zu of the hashes\n", bit);
    free_checkpoint(c);
    assert_true(older > 100);
    printf("# %zu bits turned over\n", tried);
    free(x.bytes);
}

/* The byte at which the newest iteration's first tensor begins. */
static size_t first_piece(const char *path)
{
    struct checkpoint *c = open_snapshot(path);
    size_t at = c->pieces->tensor[0].piece[0].file_offset;
    free_checkpoint(c);
    return at;
}

/* A run that goes on, also when the newest iteration is damaged, leaves the page and the slot that it found. */
TEST(what_was_found_stays)
{
    for (int damaged = 0; damaged < 2; damaged++) {
        struct snapfile s;
        struct snap *snap;
        size_t n;
        struct image x = make_image(temp_path("found.snap"), &s);
        struct mesh m = mesh_of(&sizes, 2, 1, 1, 1);
        struct stored stored = store_of(&sizes, &m, 2, false);
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
    struct mesh m = mesh_of(&sizes, 2, 1, 1, 1);
    struct stored stored = store_of(&sizes, &m, 2, false);
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
    int fd = REAL(open)(h->image->path, O_RDWR);
    assert_int_equal(REAL(flock)(fd, LOCK_EX), 0);
    for (size_t page = 0; page <= newer; page += newer)
        assert_int_equal(REAL(pwrite)(fd, (char[SNAP_PAGE]){0}, half, (off_t)page), half);
    assert_int_equal(REAL(write)(h->told[1], "x", 1), 1);
    usleep(30000);
    for (size_t page = 0; page <= newer; page += newer)
        assert_int_equal(REAL(pwrite)(fd, h->image->bytes + page, half, (off_t)page), half);
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
            assert_int_equal(REAL(write)(told, "x", 1), 1);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
}

LONG_TEST(who_is_overtaken_reads_again)
{
    struct mesh m = mesh_of(&sizes, 2, 1, 1, 1);
    struct stored stored = store_of(&sizes, &m, 2, false);
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

/* It is called in a process of its own, so that what it says can be read. */
static void lose_the_name(void *path)
{
    struct mesh m = mesh_of(&sizes, 2, 1, 1, 1);
    struct stored stored = store_of(&sizes, &m, 2, false);
    struct checkpoint d = description(json_pack("{s:s}", "novel", "1"), 0, 1);
    struct snap *snap;
    must(open_snap(path, &d, &stored.plan, &snap));
    store_iteration(snap, &stored, 1, 1);
    REAL(unlink)(path);
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

TEST(other_lengths_are_refused)
{
    struct snapfile s;
    struct image x = make_image(temp_path("length.snap"), &s);
    size_t most = x.n;
    assert_int_equal(truncate(x.path, (off_t)most + 1), 0);
    assert_true(notices(&x));
    assert_true(!x.step);
    for (size_t n = most - 1; n > 0; n = n > 509 ? n - 509 : n - 1) {
        assert_int_equal(truncate(x.path, (off_t)n), 0);
        assert_true(notices(&x));
        assert_true(!x.step);
    }
    free(x.bytes);
}

/* What the command says of a file whose newest iteration is damaged, and of one without any. */
TEST(the_command_names_the_payload)
{
    struct snapfile s;
    char path[1024];
    snprintf(path, sizeof path, "%s", temp_path("verify.snap"));
    struct image x = make_image(path, &s);
    assert_int_equal(run_yard("ckpt verify '%s'", path).code, EXIT_OK);
    assert_non_null(strstr(run_yard("ckpt ls '%s'", path).out, "step 2, 16 sequences\nsnapshot    slot 2 of 2, "));
    x.bytes[first_piece(path)] ^= 1;
    put_bytes(&x, 0, x.n);
    expect_yard(EXIT_FAILED, "iteration 2 is torn or damaged: ", "ckpt verify '%s'", path);
    struct ran r = expect_yard(EXIT_OK, "tensor wte.weight, value", "ckpt ls '%s'", path);
    expect_text(r.out, "step 1,");
    expect_text(run_yard("train --resume '%s'", path).err, lasting("warning: %s: option novel is unknown", path));
    x.bytes[first_piece(path)] ^= 1;
    put_bytes(&x, 0, x.n);
    expect_yard(EXIT_FAILED, "has no whole iteration", "ckpt verify '%s'", path);
    free(x.bytes);
}

/* Before runs had ids the pages had another number in that place; and a yard to come may have another page. */
TEST(older_and_newer_files)
{
    static const char now[] = "\"version\":2,\"program\":\"" YARD_VERSION "\"";
    char path[1024], digits[17];
    struct snapfile s;
    snprintf(path, sizeof path, "%s", temp_path("versions.snap"));
    struct image x = make_image(path, &s);
    char *manifest = x.bytes + MANIFEST_AT, *at = strstr(manifest, now);
    memset(at, ' ', strlen(now));
    memcpy(at, "\"version\":1", 11);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash_bytes(manifest + 28, s.manifest_bytes - 28, 0));
    memcpy(manifest + 9, digits, 16);
    s.manifest_hash = hash_bytes(manifest, s.manifest_bytes, 0);
    for (char version = 3; version <= 4; version++) {
        for (char *page = x.bytes; page < manifest; page += SNAP_PAGE) {
            page[8] = version;
            page[24] = 7;
            memcpy(page + 56, &s.manifest_hash, 8);
            memcpy(page + SNAP_PAGE - 8, &(uint64_t){hash_bytes(page, SNAP_PAGE - 8, 0)}, 8);
        }
        put_bytes(&x, 0, x.n);
        expect_yard(version == 3 ? EXIT_OK : EXIT_FAILED,
                    version == 3 ? "not known, session 1; written by an older yard"
                                 : "versions.snap was written by a newer yard, as a snapshot of version 4",
                    "ckpt ls '%s'", path);
    }
    free(x.bytes);
}

/* A file that no run has committed to is not called damaged, nor is one that a run was killed over as it made it. */
TEST(a_file_without_commits_is_not_damaged)
{
    struct snapfile s;
    char path[1024];
    snprintf(path, sizeof path, "%s", temp_path("without.snap"));
    struct image x = make_image(path, &s);
    for (int k = 0; k < 2; k++)
        fill_page(&s, &(struct snap_commit){0}, x.bytes + k * SNAP_PAGE);
    put_bytes(&x, 0, x.n);
    for (int empty = 0; empty < 2; empty++) {
        if (empty)
            assert_int_equal(truncate(path, 0), 0);
        struct ran r = run_yard("ckpt verify '%s'", path);
        if (r.code != EXIT_FAILED || !strstr(r.out, "nothing was committed yet") || strstr(r.out, "damaged") ||
            strstr(r.err, "damaged"))
            test_failed("code %d: %s%s\n", r.code, r.out, r.err);
        expect_yard(EXIT_FAILED, "nothing was committed yet", "train --resume '%s' --snapshot '%s'", path, path);
    }
    free(x.bytes);
}

/* A terabyte of holes whose pages name two thousand million payloads: memory is asked for what is there. */
TEST(a_made_up_count_asks_for_no_memory)
{
    struct snapfile s;
    char path[1024], page[SNAP_PAGE];
    snprintf(path, sizeof path, "%s", temp_path("hostile.snap"));
    struct image x = make_image(path, &s);
    fill_page(&s, &(struct snap_commit){.seq = 9, .step = 9, .slot = 3}, x.bytes); /* there are two slots */
    put_bytes(&x, 0, x.n);
    assert_true(notices(&x));
    assert_int_equal(x.step, 2);
    assert_true(strstr(x.said, "page 0 is torn or damaged: it has impossible numbers"));
    s.in.n = (size_t)1 << 31;
    s.in.bytes = ((uint64_t)1 << 40) / 2 - s.slots_at;
    fill_page(&s, &(struct snap_commit){0}, page);
    memcpy(x.bytes, page, SNAP_PAGE);
    memcpy(x.bytes + SNAP_PAGE, page, SNAP_PAGE);
    put_bytes(&x, 0, x.n);
    if (truncate(path, (off_t)slot_at(&s, 3)) != 0)
        skip(); /* the file system has no files as large */
    expect_yard(EXIT_FAILED, "it has impossible numbers", "ckpt verify '%s'", path);
    assert_int_equal(truncate(path, 0), 0);
    free(x.bytes);
}

/* The other words take it like the folder that has the same. */
TEST(the_command_takes_it)
{
    char path[1024], folder[1024], other[1024];
    struct mesh m = mesh_of(&sizes, 2, 1, 1, 3);
    snprintf(path, sizeof path, "%s", temp_path("words.snap"));
    snprintf(folder, sizeof folder, "%s", temp_path("words"));
    snprintf(other, sizeof other, "%s", temp_path("words.other"));
    REAL(unlink)(path);
    write_snapshot(path, &sizes, &m, true, 2);
    write_random_state(folder, &sizes, &m, 2, 1, seed_of(2, 1));
    struct ran r = run_yard("ckpt diff '%s' '%s'", path, folder);
    if (r.code != EXIT_OK)
        test_failed("%s%s\n", r.out, r.err);
    r = run_yard("ckpt reshard '%s' '%s' --mesh dp=1,tp=2", path, other);
    if (r.code != EXIT_OK)
        test_failed("%s%s\n", r.out, r.err);
    assert_int_equal(run_yard("ckpt diff '%s' '%s'", other, folder).code, EXIT_OK);
    assert_int_equal(run_yard("ckpt export '%s' '%s.bin'", path, other).code, EXIT_OK);
    free_mesh(&m);
}

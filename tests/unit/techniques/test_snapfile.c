/* test_snapfile.c - snapshot files of runs that end at any moment, by a kill, a power cut, or a call that fails.
 *
 * It tests src/techniques/snapfile.  It checks that what was acknowledged is there afterwards, and that nothing torn is
 * taken for an iteration.  It catches a sync that is left out or comes too late: with syncs that do nothing, iterations
 * must be lost.
 *
 * To see it fail: in snapfile_system.c, let flush_file() return 0 at once.
 *
 * This program has its own pwrite, fdatasync, rename and the like, which replace the system's.  They do what the
 * system's do, and also keep a model of the disk (support_disk.h): of what was not synced it may have any sectors, and
 * of a rename either name.  A *life* is a run that opens the file, stores iterations, a few at once, and ends after a
 * random call, where the shim throws it out.  Then the power goes, and the file becomes what such a disk would have; or
 * only the process was killed, and the next life begins with what the system still holds in memory.  After each life
 * the test reads the newest iteration that was acknowledged, or a later one, and checks that all of it is of one life
 * and iteration.
 *
 *     YARD_CASES=100000 build/tests/test_snapfile     100,000 ends of lives, from the YARD_FIRST-th trial on
 *
 * test_snapfile_kept.c tests sound files, and readers beside a writer; test_snapfile_damage.c tests damaged files.
 */
#include "tests/support/shim.h"
#include "tests/support/support_disk.h"
#include "tests/support/support_state.h"

#include <fcntl.h>
#include <sys/file.h>

/* ---- the disk ---------------------------------------------------------------------------------------------------- */

static struct {
    bool on;
    struct disk_file file[2];
    ino_t inode[2];        /* the system's number of each; 0: there is none */
    int named, sure_named; /* which of them has the name, now and on the disk */
    struct counted_calls calls;
    int cut_at;               /* the number of the last call that is made */
    int cut_sync, fault_sync; /* after so many syncs of a file cut_at, calls.at are set; 0: never */
    bool no_sync;             /* a mutant: syncs do nothing */
    void (*while_syncing)(void);
    struct draws luck;
} disk;

static uint32_t draw(uint32_t below) { return (uint32_t)draw_below(&disk.luck, below); }

/* True one time in n, by chance. */
static bool one_in(uint32_t n) { return draw(n) == 0; }

static struct disk_file *file_of(int fd)
{
    struct stat stat;
    if (!disk.on || fstat(fd, &stat) != 0)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (disk.inode[i] == stat.st_ino)
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

static ssize_t write_to(struct disk_file *disk_file, int fd, const void *bytes, size_t n, off_t at)
{
    if (!go_on(true))
        return -1;
    ssize_t done = REAL(pwrite)(fd, bytes, bytes_to_write(&disk.calls, n), at);
    if (done > 0)
        disk_write(disk_file, bytes, (size_t)done, (size_t)at);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    struct disk_file *disk_file = file_of(fd);
    return disk_file ? write_to(disk_file, fd, bytes, n, at) : REAL(pwrite)(fd, bytes, n, at);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    struct disk_file *disk_file = file_of(fd);
    off_t at = disk_file ? lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t done = disk_file ? write_to(disk_file, fd, bytes, n, at) : REAL(write)(fd, bytes, n);
    if (disk_file && done > 0)
        lseek(fd, at + done, SEEK_SET);
    return done;
}

int posix_fallocate(int fd, off_t at, off_t n)
{
    struct disk_file *disk_file = file_of(fd);
    if (!disk_file)
        return REAL(posix_fallocate)(fd, at, n);
    return go_on(true) ? REAL(posix_fallocate)(fd, at, n) : errno;
}

int sync_file_range(int fd, off_t at, off_t n, unsigned flags)
{
    (void)at;
    (void)n;
    (void)flags;
    return file_of(fd) && !go_on(false) ? -1 : 0;
}

/* An error leaves what it met in memory, as if it were on the disk: no later sync writes it. */
static int sync_model(int fd)
{
    struct disk_file *disk_file = file_of(fd);
    struct stat stat;
    if (disk.while_syncing && disk_file)
        disk.while_syncing();
    if (disk_file && disk.cut_sync) {
        disk.cut_sync--;
        if (disk.cut_sync == 0)
            disk.cut_at = disk.calls.n;
    }
    if (disk_file && disk.fault_sync) {
        disk.fault_sync--;
        if (disk.fault_sync == 0)
            disk.calls.at = disk.calls.n + 1;
    }
    bool sound = !disk.on || go_on(false);
    bool is_directory = fstat(fd, &stat) == 0 && S_ISDIR(stat.st_mode);
    if (disk.on && sound && is_directory)
        disk.sure_named = disk.named;
    if (disk_file && !sound)
        drop_waiting(disk_file);
    if (disk_file && sound && !disk.no_sync)
        disk_sync(disk_file);
    return sound ? 0 : -1;
}

int fsync(int fd) { return sync_model(fd); }
int fdatasync(int fd) { return sync_model(fd); }

/* Bytes that do not wait to be written are read from the disk again. */
int posix_fadvise(int fd, off_t at, off_t n, int advice)
{
    struct disk_file *disk_file = file_of(fd);
    (void)at;
    (void)n;
    if (disk_file && advice == POSIX_FADV_DONTNEED && !disk_file->n_waiting)
        assert_int_equal(REAL(pwrite)(fd, disk_file->sure, disk_file->sure_n, 0), disk_file->sure_n);
    return 0;
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    bool ours = disk.on && flags & O_CREAT, there = access(path, F_OK) == 0;
    struct stat stat;
    if (ours && !go_on(true))
        return -1;
    int fd = REAL(open)(path, flags, mode);
    if (!ours || fd < 0)
        return fd;
    if (!there && fstat(fd, &stat) == 0) {
        int file = strstr(path, ".tmp-") ? 1 - disk.named : disk.named;
        empty_file(&disk.file[file]);
        disk.inode[file] = stat.st_ino;
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

/* ---- the power goes ---------------------------------------------------------------------------------------------- */

static void put_file(const char *path, int file)
{
    const struct disk_file *disk_file = &disk.file[file];
    struct stat stat;
    int fd = REAL(open)(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_at_least(fd, 0);
    assert_int_equal(fstat(fd, &stat), 0);
    assert_int_equal(REAL(pwrite)(fd, disk_file->sure, disk_file->sure_n, 0), disk_file->sure_n);
    close(fd);
    disk.inode[file] = stat.st_ino;
}

static void remove_temporary(const char *path)
{
    char *temporary = lasting("%s.tmp-%d", path, (int)getpid());
    REAL(unlink)(temporary);
}

static void cut_power(const char *path)
{
    bool old = disk.sure_named != disk.named && !one_in(2);
    if (old)
        disk.named = disk.sure_named;
    disk.sure_named = disk.named;
    cut_file(&disk.file[disk.named], &disk.luck);
    empty_file(&disk.file[1 - disk.named]);
    disk.inode[1 - disk.named] = 0;
    if (disk.inode[disk.named])
        put_file(path, disk.named);
}

/* ---- lives ------------------------------------------------------------------------------------------------------- */

struct flight { /* an iteration under way */
    uint32_t step;
    size_t written;
};
static struct life {
    const char *path;
    const struct stored *stored;
    json_t *options;
    struct snapfile_writer *writer;
    uint32_t first, step, actions;
    int64_t session;
    struct flight flight[MOST_SLOTS];
    int n;
    struct problem *problem;
} life;
static uint32_t acknowledged;

static void begin_one(void)
{
    life.step++;
    if (begin_commit(life.writer, life.step))
        life.flight[life.n++] = (struct flight){.step = life.step, .written = 0};
}

static void write_one(void)
{
    int k = 0;
    while (k < life.n && life.flight[k].written == life.stored->plan.n)
        k++;
    if (k == life.n)
        return;
    struct flight *flight = &life.flight[k];
    float *bytes = fill_payload(life.stored, flight->written, seed_of(flight->step, life.session));
    write_payload(life.writer, flight->step, flight->written, bytes);
    flight->written++;
    free(bytes);
}

static void commit_one(void)
{
    struct commit_times times;
    struct flight flight = life.flight[0];
    if (!life.n || flight.written < life.stored->plan.n)
        return;
    life.n--;
    memmove(life.flight, life.flight + 1, (size_t)life.n * sizeof flight);
    if (one_in(20))
        finish_commit(life.writer, flight.step, false, &(struct commit_times){0});
    else if (finish_commit(life.writer, flight.step, true, &times))
        acknowledged = flight.step;
}

/* Goes on as another thread does while one waits for the disk. */
static void go_on_meanwhile(void)
{
    void (*hook)(void) = disk.while_syncing;
    disk.while_syncing = NULL;
    uint32_t left = draw(6);
    while (left > 0 && life.writer) {
        if (one_in(3))
            begin_one();
        else
            write_one();
        left--;
    }
    disk.while_syncing = hook;
}

static void live(void *unused)
{
    (void)unused;
    struct checkpoint checkpoint = description(life.options, life.first, life.session);
    struct snapfile_writer *writer;
    life.problem = open_snapfile_writer(life.path, &checkpoint, &life.stored->plan, &writer);
    if (life.problem)
        return;
    life.writer = writer;
    for (uint32_t i = 0; i < life.actions; i++)
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
    life.writer = NULL;
    close_snapfile_writer(writer);
}

static void close_from(int first)
{
    for (int fd = first; fd < first + 16; fd++)
        close(fd);
}

/* A power cut ends live() in its midst, so that some of its memory is never freed: see tests/lib/leaks.supp. */
static void run_life(void)
{
    int first_fd = dup(0);
    life.writer = NULL;
    life.n = 0;
    life.step = life.first;
    free(life.problem);
    life.problem = NULL;
    disk.calls.n = 0;
    disk.on = true;
    disk.while_syncing = go_on_meanwhile;
    struct problem *problem = attempt(live, NULL);
    disk.on = false;
    disk.while_syncing = NULL;
    if (problem && life.writer)
        close_snapfile_writer(life.writer);
    free(problem);
    close_from(first_fd); /* which also releases the locks of these files */
    if (life.problem && life.problem->code != EXIT_IO && !disk.no_sync) {
        printf("# a life ends with: %s\n", life.problem->sentence);
        test_failed("refused\n");
    }
}

struct back { /* the argument of attempt(), and what it read */
    uint32_t step;
    bool sound;
};

static void read_back(void *argument)
{
    struct back *back = argument;
    struct checkpoint *checkpoint = read_newest_snapshot(life.path);
    back->step = checkpoint->step;
    back->sound = has_state(checkpoint, seed_of(checkpoint->step, checkpoint->session)) &&
                  checkpoint->samples == 8 * (int64_t)checkpoint->step;
    free_checkpoint(checkpoint);
}

/* Nothing acknowledged is lost, nothing torn accepted. */
static bool look_back(void)
{
    struct back back = {.sound = true};
    int first_fd = dup(0);
    free(attempt(read_back, &back));
    close_from(first_fd);
    life.first = back.step;
    return back.sound && back.step >= acknowledged;
}

/* ---- trials: many lives of one file ------------------------------------------------------------------------------ */

static void begin_trial(const char *path, uint64_t number)
{
    disk.luck = (struct draws){.seed = number};
    REAL(unlink)(path);
    remove_temporary(path);
    for (int i = 0; i < 2; i++) {
        empty_file(&disk.file[i]);
        disk.inode[i] = 0;
    }
    disk.named = 0;
    disk.sure_named = 0;
    disk.calls.fault = FAULT_NONE;
    life.path = path;
    life.first = 0;
    life.session = 1;
    acknowledged = 0;
}

/* Runs up to five lives of a file, one after another.  Returns whether none of them lost anything. */
static bool run_trial(const char *path, const struct stored *stored, uint64_t number, int *ends)
{
    bool kept = true;
    begin_trial(path, number);
    int left = 1 + (int)draw(5);
    while (left > 0 && kept) {
        life.stored = &stored[one_in(8) ? draw(3) : number % 2]; /* sometimes with another layout than before */
        disk.cut_at = one_in(8) ? INT32_MAX : (int)draw(70);
        disk.cut_sync = one_in(3) ? 0 : 1 + (int)draw(5);
        disk.calls.fault = one_in(6) ? FAULT_EIO : FAULT_NONE;
        disk.calls.at = (int)draw(60);
        disk.fault_sync = one_in(3) ? 0 : 1 + (int)draw(6);
        life.actions = 10 + draw(30);
        run_life();
        remove_temporary(path);
        if (!one_in(3))
            cut_power(path);
        kept = look_back();
        left--;
        life.session++;
        *ends += 1;
    }
    return kept;
}

static int quiet_fd = -1; /* the stderr that be_quiet() put aside */

/* Messages on stderr go into this file, until be_loud(). */
static void be_quiet(const char *log)
{
    fflush(stderr);
    quiet_fd = dup(2);
    int fd = REAL(open)(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, 2);
    close(fd);
}

/* Stderr is again what it was; returns how often `part` is in what was said. */
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
    disk.cut_sync = 0;
    disk.fault_sync = 0;
    bool kept = true;
    for (size_t i = 0; i < COUNT(cuts) && kept; i++) {
        life.stored = &stored[i ? 2 : 0];
        life.actions = 60;
        disk.cut_at = cuts[i];
        run_life();
        remove_temporary(path);
        if (i == 2)
            cut_power(path);
        kept = look_back();
        life.session++;
    }
    return kept;
}

/* What lives of a file may store; their messages are put aside. */
struct lives {
    const char *log;
    struct mesh mesh;
    struct stored stored[3];
};

static void begin_lives(struct lives *lives, const char *log_name)
{
    lives->log = temp_path(log_name);
    lives->mesh = cut_mesh(&small_config, (struct mesh){.dp = 1});
    lives->stored[0] = new_stored(&small_config, &lives->mesh, 2, WHOLE_PAYLOADS);
    lives->stored[1] = new_stored(&small_config, &lives->mesh, 3, HALF_PAYLOADS);
    lives->stored[2] = new_stored(&small_config, &lives->mesh, 4, HALF_PAYLOADS);
    life.options = json_object();
    be_quiet(lives->log);
}

static void end_lives(struct lives *lives)
{
    be_loud(lives->log, "yard:");
    for (size_t i = 0; i < COUNT(lives->stored); i++)
        free_stored(&lives->stored[i]);
    json_decref(life.options);
    free_mesh(&lives->mesh);
}

static int count_lost(int ends, bool no_sync, int *done)
{
    int lost = 0;
    const char *path = temp_path("power.snap");
    struct lives lives;
    disk.no_sync = no_sync;
    begin_lives(&lives, "power.log");
    *done = 0;
    for (uint64_t i = getenv("YARD_FIRST") ? strtoull(getenv("YARD_FIRST"), NULL, 10) : 0; *done < ends; i++)
        if (!run_trial(path, lives.stored, i, done))
            lost++;
    end_lives(&lives);
    disk.no_sync = false;
    return lost;
}

/* A life may also end between the renaming of a file and the moment when its name is on the disk: the next life, which
 * finds the name there, syncs it. */
LONG_TEST(a_life_cut_after_a_rename_is_read)
{
    enum { CALLS = 120, LUCKS = 4 };
    int lost = 0;
    const char *path = temp_path("killed.snap");
    struct lives lives;
    begin_lives(&lives, "killed.log");
    for (int at = 1; at <= CALLS; at++)
        for (int luck = 0; luck < LUCKS; luck++)
            if (!survives(path, lives.stored, at, luck))
                lost++;
    end_lives(&lives);
    assert_int_equal(lost, 0);
}

LAW(lives_end_at_any_moment)
{
    const struct cases some = cases_of(600, number_from("YARD_CASES", 3000));
    int done, ends = some.end;
    int lost = count_lost(ends, false, &done);
    printf("# %d ends of lives: %d lost\n", done, lost);
    assert_int_equal(lost, 0);
    assert_above(count_lost(300, true, &done), 0);
}

/* ---- calls that fail --------------------------------------------------------------------------------------------- */

/* A life on a file that has iterations already, or on none, one call of which goes wrong; then the power goes. */
static void spoil_call(const struct stored *stored, bool fresh, enum fault fault, int at)
{
    const char *path = temp_path("fault.snap"), *log = temp_path("fault.log");
    begin_trial(path, 7);
    life.stored = stored;
    life.actions = 120;
    disk.cut_sync = 0;
    disk.fault_sync = 0;
    disk.cut_at = INT32_MAX;
    for (int run = fresh; run < 2; run++) {
        disk.luck = (struct draws){0};
        disk.calls.fault = run ? fault : FAULT_NONE;
        disk.calls.at = at;
        be_quiet(log);
        run_life();
        int said = be_loud(log, "training goes on");
        struct problem *problem = life.problem;
        bool may_fail = run && fault != FAULT_SHORT;
        if (problem && (problem->code != EXIT_IO || !may_fail))
            test_failed("%d in call %d: %s\n", fault, at, problem->sentence);
        if (said > 1)
            test_failed("%d in call %d: said %d times\n", fault, at, said);
        remove_temporary(path);
        cut_power(path);
        if (!look_back() || (!run && !acknowledged))
            test_failed("%d in call %d: %u acknowledged, found is %u\n", fault, at, acknowledged, life.first);
        life.session++;
    }
}

TEST(a_failure_of_any_system_call_loses_no_commit)
{
    struct mesh mesh = cut_mesh(&small_config, (struct mesh){.dp = 1});
    struct stored stored = new_stored(&small_config, &mesh, 2, WHOLE_PAYLOADS);
    int tried = 0;
    life.options = json_object();
    for (int fresh = 0; fresh < 2; fresh++) {
        spoil_call(&stored, fresh, FAULT_NONE, 0);
        int calls = disk.calls.n;
        assert_above(calls, 30);
        for (int fault = FAULT_EIO; fault <= FAULT_SHORT; fault++)
            for (int at = 1; at <= calls; at++) {
                spoil_call(&stored, fresh, (enum fault)fault, at);
                tried++;
            }
    }
    printf("# %d faults\n", tried);
    json_decref(life.options);
    free_stored(&stored);
    free_mesh(&mesh);
}

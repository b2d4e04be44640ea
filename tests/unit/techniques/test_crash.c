/* test_crash.c - saving while calls fail, the process is killed, or the power goes.
 *
 * This program has its own open, write, fsync, rename and the like, which replace the system's.  They count the calls
 * of a save (all that strace shows, except stat and the reading of folders), and spoil one of them.  There is a trial
 * for each call.
 *
 *     faults   the Nth call fails (EIO once, or a full disk from then on), is cut short, or is the last one (SIGKILL)
 *     power    all calls are recorded.  At each moment the disk may have any part of what was not synced: of what was
 *              written to a file, and of changes to a folder, in any order (support_tree.h).  The test makes the folder
 *              that such a disk would have, and reads it.
 *
 * This test checks that after each of these the newest checkpoint that was acknowledged, or a later one, loads with its
 * values.  It also checks that the syncs are needed: without any one of them, some power cut loses a checkpoint.  It
 * does all of this again for a system that cannot exchange two names.
 *
 *     YARD_CASES=100000 YARD_EVERY_CALL=1 build/tests/test_crash     100,000 power cuts; every call, else each 7th
 *
 * To see it fail: in publish.c, let sync_file() return 0 at once.
 */
#include "techniques/checkpoint/files.h"
#include "tests/support/shim.h"
#include "tests/support/support_state.h"
#include "tests/support/support_tree.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static const char *const fault_name[FAULTS] = {"none", "EIO", "disk full", "short write", "kill", "kill after"};
static struct {
    bool counting, recording, simple; /* simple: the system cannot exchange two names */
    struct counted_calls calls;
} shim;

/* true: the call fails, with errno set */
static bool spoil(bool makes) { return shim.counting && !count_call(&shim.calls, makes); }

static int after_call(int result)
{
    int reason = errno;
    if (shim.counting && shim.calls.n == shim.calls.at && shim.calls.fault == FAULT_KILL_AFTER)
        raise(SIGKILL);
    errno = reason;
    return result;
}

static void note_call(struct call call);
static const char *read_path(int fd);
static char *watched; /* the folder, from the root on; other files are not ours */

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    bool makes = flags & O_CREAT, ours = watched && strncmp(path, watched, strlen(watched)) == 0;
    if (ours && spoil(makes))
        return -1;
    int fd = REAL(open)(path, flags, mode);
    if (makes && fd >= 0)
        note_call((struct call){.kind = CALL_CREATE, .path = path});
    return ours ? after_call(fd) : fd;
}

int close(int fd)
{
    bool ours = read_path(fd), bad = ours && spoil(false);
    int result = REAL(close)(fd);
    if (bad) {
        errno = EIO;
        return -1;
    }
    return ours ? after_call(result) : result;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    const char *path = read_path(fd);
    if (!path)
        return REAL(write)(fd, bytes, n);
    if (spoil(true))
        return -1;
    if (shim.counting)
        n = bytes_to_write(&shim.calls, n);
    ssize_t done = REAL(write)(fd, bytes, n);
    if (done > 0)
        note_call((struct call){.kind = CALL_WRITE, .path = path, .bytes = bytes, .n = (size_t)done});
    after_call(0);
    return done;
}

int fsync(int fd)
{
    if (spoil(false))
        return -1;
    note_call((struct call){.kind = CALL_SYNC, .path = read_path(fd)});
    return after_call(0); /* the system's is not called, since it takes long */
}

int rename(const char *old, const char *new)
{
    if (spoil(false))
        return -1;
    int result = REAL(rename)(old, new);
    if (result == 0)
        note_call((struct call){.kind = CALL_RENAME, .path = old, .new_path = new});
    return after_call(result);
}

int renameat2(int old_folder, const char *old, int new_folder, const char *new, unsigned flags)
{
    if (spoil(false))
        return -1;
    if (shim.simple) {
        errno = EINVAL;
        return after_call(-1);
    }
    int result = REAL(renameat2)(old_folder, old, new_folder, new, flags);
    if (result == 0)
        note_call((struct call){.kind = CALL_EXCHANGE, .path = old, .new_path = new});
    return after_call(result);
}

int mkdir(const char *path, mode_t mode)
{
    if (spoil(true))
        return -1;
    int result = REAL(mkdir)(path, mode);
    if (result == 0)
        note_call((struct call){.kind = CALL_MKDIR, .path = path});
    return after_call(result);
}

int unlinkat(int folder, const char *name, int flags)
{
    if (spoil(false))
        return -1;
    int result = REAL(unlinkat)(folder, name, flags);
    const char *parent = read_path(folder);
    char *path = parent ? format_string("%s/%s", parent, name) : NULL;
    if (result == 0)
        note_call((struct call){.kind = CALL_REMOVE, .path = path});
    free(path);
    return after_call(result);
}

int rmdir(const char *path)
{
    if (spoil(false))
        return -1;
    int result = REAL(rmdir)(path);
    if (result == 0)
        note_call((struct call){.kind = CALL_REMOVE, .path = path});
    return after_call(result);
}

static int *acknowledged; /* the last step that was; shared with children */
static void note_acknowledged(void);

static const char *watch_folder(const char *name)
{
    acknowledged = mmap(NULL, sizeof *acknowledged, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const char *path = temp_path(name);
    make_folder(path);
    free(watched);
    watched = realpath(path, NULL);
    return watched;
}

/* ---- what is saved ----------------------------------------------------------------------------------------------- */

static const struct config sizes = {.layers = 1, .heads = 2, .channels = 8, .seq_len = 4, .vocab = 9, .tied = true};

static void save_step(const char *folder, uint32_t step)
{
    char *path = lasting("%s/step-%u", folder, step);
    struct mesh mesh = cut_mesh(&sizes, (struct mesh){.dp = 2, .zero = 1});
    write_random_state(path, &sizes, &mesh, step, step, step);
    free_mesh(&mesh);
    *acknowledged = (int)step;
    note_acknowledged();
    prune_checkpoints(folder, 0, 2);
}

/* Saves as a run does; the last checkpoint takes another's place. */
static void save_some(void *folder)
{
    shim.counting = true;
    save_step(folder, 2);
    save_step(folder, 3);
    save_step(folder, 3);
    shim.counting = false;
}

static void expect_newest(const char *folder, int least, const char *what, int at)
{
    char *newest = find_checkpoint(folder);
    struct checkpoint *checkpoint = newest ? open_checkpoint(newest) : NULL;
    if (!checkpoint || (int)checkpoint->step < least || !has_state(checkpoint, checkpoint->step))
        test_failed("%s at call %d: step %d was acknowledged, found is %d\n", what, at, least,
                    checkpoint ? (int)checkpoint->step : -1);
    free_checkpoint(checkpoint);
    free(newest);
}

/* By rm, since remove_folder() keeps files that are not yard's. */
static void remove_all(const char *folder)
{
    char *command = lasting("rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* The folder with one checkpoint in it, and nothing else. */
static void begin(const char *folder)
{
    remove_all(folder);
    make_folder(folder);
    *acknowledged = 1;
    save_step(folder, 1);
}

static int count_calls(const char *folder)
{
    begin(folder);
    shim.calls.fault = FAULT_NONE;
    shim.calls.n = 0;
    save_some((void *)folder);
    return shim.calls.n;
}

/* A save that is killed ends by the signal.  Any other one succeeds, or ends with EXIT_IO and a sentence; and one whose
 * write was only cut short succeeds, since the rest is written by another call. */
static void expect_end(enum fault fault, int at, const struct outcome *outcome)
{
    bool ends_as_it_may = outcome->code == EXIT_OK;
    if (fault == FAULT_KILL || fault == FAULT_KILL_AFTER)
        ends_as_it_may = outcome->signal == SIGKILL;
    else if (fault != FAULT_SHORT && outcome->code == EXIT_IO)
        ends_as_it_may = strncmp(outcome->text, "yard: cannot", 12) == 0 || strstr(outcome->text, "power cut");
    if (!ends_as_it_may)
        test_failed("%s at call %d: exit code %d, signal %d:\n%s\n", fault_name[fault], at, outcome->code,
                    outcome->signal, outcome->text);
}

/* One save, whose call number `at` is spoiled. */
static void fail_call(const char *folder, enum fault fault, int at)
{
    begin(folder);
    shim.calls.fault = fault;
    shim.calls.at = at;
    shim.calls.n = 0;
    struct outcome outcome = run_child(save_some, (void *)folder);
    expect_end(fault, at, &outcome);
    shim.calls.fault = FAULT_NONE;
    expect_newest(folder, *acknowledged, fault_name[fault], at);
}

/* `simple`: on a system that cannot exchange two names. */
static void fail_every_call(bool simple)
{
    shim.simple = simple;
    const char *folder = watch_folder("faults");
    int calls = count_calls(folder);
    int tried = 0;
    int every = number_from("YARD_EVERY_CALL", simple ? 23 : 7); /* one call in so many is tried */
    assert_above(calls, 40);
    for (enum fault fault = FAULT_EIO; fault < FAULTS; fault++)
        for (int at = 1 + (int)fault % every; at <= calls; at += every) {
            fail_call(folder, fault, at);
            tried++;
        }
    printf("# %d faults in %d calls\n", tried, calls);
}

TEST(no_call_that_fails_harms_a_checkpoint) { fail_every_call(false); }
LONG_TEST(no_call_that_fails_harms_a_checkpoint_without_exchange) { fail_every_call(true); }

/* ---- the power goes ---------------------------------------------------------------------------------------------- */

struct taped {
    struct call call;
    int acknowledged; /* the last step that was, when the call had ended and the next one had not begun */
};
static struct {
    struct taped *taped;
    size_t n, cap;
} tape;

static const char *read_path(int fd)
{
    static char path[4096];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = watched ? readlink(link, path, sizeof path - 1) : -1;
    path[n > 0 ? n : 0] = '\0';
    return n > 0 && strncmp(path, watched, strlen(watched)) == 0 ? path : NULL;
}

/* The part of a path in the watched folder that names something below it. */
static char *copy_below(const char *path)
{
    size_t n = strlen(watched);
    CHECK(strncmp(path, watched, n) == 0 && (path[n] == '/' || path[n] == '\0'), "%s is not in %s", path, watched);
    return copy_string(path + n + strspn(path + n, "/"));
}

/* The paths are whole; a call without one is none of ours. */
static void note_call(struct call call)
{
    if (!shim.recording || !call.path)
        return;
    call.path = copy_below(call.path);
    if (call.new_path)
        call.new_path = copy_below(call.new_path);
    if (call.bytes)
        call.bytes = memcpy(allocate(call.n, 1), call.bytes, call.n);
    GROW(tape.taped, tape.cap, tape.n + 1);
    tape.taped[tape.n++] = (struct taped){.call = call, .acknowledged = *acknowledged};
}

static void note_acknowledged(void)
{
    if (tape.n > 0)
        tape.taped[tape.n - 1].acknowledged = *acknowledged;
}

static void clear_tape(void)
{
    while (tape.n > 0) {
        struct call *call = &tape.taped[--tape.n].call;
        free((char *)call->path);
        free((char *)call->new_path);
        free((char *)call->bytes);
    }
}

/* ---- what is left ------------------------------------------------------------------------------------------------ */

struct read { /* the argument of attempt(read_back) */
    const char *folder;
    int step;
};

static void read_back(void *argument)
{
    struct read *read = argument;
    struct checkpoint *checkpoint = open_checkpoint(read->folder);
    read->step = has_state(checkpoint, checkpoint->step) ? (int)checkpoint->step : -1;
    free_checkpoint(checkpoint);
}

/* Does this call sync a file or a folder whose path has the word?  NULL: none has it. */
static bool syncs(const struct call *call, const char *word)
{
    return call->kind == CALL_SYNC && word && strstr(call->path, word);
}

/* The step that loads when the power goes after the first n calls, of which those that sync paths with the word
 * `unsynced` were not made; 0: none. */
static int cut_power(const char *folder, size_t n, const char *unsynced, uint32_t cut)
{
    struct tree *tree = new_tree();
    struct draws draws = {.seed = 23, .row = cut};
    struct read read = {folder, 0};
    for (size_t i = 0; i < n; i++)
        if (!syncs(&tape.taped[i].call, unsynced))
            apply_call(tree, &tape.taped[i].call);
    remove_all(folder);
    cut_tree(tree, &draws, folder);
    free_tree(tree);
    free(attempt(read_back, &read));
    return read.step;
}

/* How many of so many cuts lose what was acknowledged, if no path that has the word `unsynced` is ever synced. */
static int count_lost(const char *unsynced, int cuts)
{
    int lost = 0;
    const char *folder = temp_path("power");
    for (int i = 0; i < cuts; i++) {
        size_t n = 1 + (size_t)i * 97 % tape.n; /* all over the tape */
        int step = cut_power(folder, n, unsynced, (uint32_t)i);
        if (step < tape.taped[n - 1].acknowledged)
            lost++;
    }
    return lost;
}

static void cut_the_power(bool simple)
{
    shim.simple = simple;
    clear_tape();
    const char *folder = watch_folder(simple ? "simple" : "recorded");
    int cuts = number_from("YARD_CASES", simple ? 60 : 150);
    shim.calls.fault = FAULT_NONE;
    shim.recording = true;
    for (uint32_t step = 1; step <= 3; step++)
        save_step(folder, step);
    save_step(folder, 3);
    shim.recording = false;
    int lost = count_lost(NULL, cuts);
    printf("# %d power cuts in %zu calls: %d lost\n", cuts, tape.n, lost);
    assert_int_equal(lost, 0);
    assert_above(count_lost("", 60), 0);
    assert_above(count_lost(".safetensors", 60), 0);
    assert_above(count_lost(MANIFEST, 60), 0);
}

TEST(no_loss_of_power_harms_a_checkpoint) { cut_the_power(false); }
LONG_TEST(no_loss_of_power_harms_a_checkpoint_without_exchange) { cut_the_power(true); }

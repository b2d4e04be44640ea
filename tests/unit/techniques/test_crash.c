/* test_crash.c - saving while calls fail, the process is killed, or the power goes.
 *
 * This program has its own open, write, fsync, rename and the like, which replace the system's.  They count the calls
 * of a save (all that strace shows, except stat and the reading of folders), and spoil one of them.  There is a trial
 * for each call.
 *
 *     faults   the Nth call fails (EIO once, or a full disk from then on), is cut short, or is the last one (SIGKILL)
 *     power    all calls are recorded.  At each moment the disk may have any part of what was not synced: of what was
 *              written to a file (support_disk.h), and of changes to a folder, in any order.  The test makes the folder
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
#include "tests/support/support_disk.h"
#include "tests/support/support_state.h"

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

static void note_call(const char *what, const char *path, const char *other, const void *bytes, size_t n);
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
        note_call("create", path, NULL, NULL, 0);
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
        note_call("write", path, NULL, bytes, (size_t)done);
    after_call(0);
    return done;
}

int fsync(int fd)
{
    if (spoil(false))
        return -1;
    note_call("sync", read_path(fd), NULL, NULL, 0);
    return after_call(0); /* the system's is not called, since it takes long */
}

int rename(const char *old, const char *new)
{
    if (spoil(false))
        return -1;
    int result = REAL(rename)(old, new);
    if (result == 0)
        note_call("rename", old, new, NULL, 0);
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
        note_call("exchange", old, new, NULL, 0);
    return after_call(result);
}

int mkdir(const char *path, mode_t mode)
{
    if (spoil(true))
        return -1;
    int result = REAL(mkdir)(path, mode);
    if (result == 0)
        note_call("mkdir", path, NULL, NULL, 0);
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
        note_call("remove", path, NULL, NULL, 0);
    free(path);
    return after_call(result);
}

int rmdir(const char *path)
{
    if (spoil(false))
        return -1;
    int result = REAL(rmdir)(path);
    if (result == 0)
        note_call("remove", path, NULL, NULL, 0);
    return after_call(result);
}

static int *acknowledged; /* the last step that was; shared with children */

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
    note_call("ack", path, NULL, NULL, step);
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

/* The folder with one checkpoint in it, and nothing else. */
static void begin(const char *folder)
{
    char *command = lasting("rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
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

/* `simple`: on a system that cannot exchange two names. */
static void fail_every_call(bool simple)
{
    shim.simple = simple;
    const char *folder = watch_folder("faults");
    int calls = count_calls(folder);
    int tried = 0;
    int every = number_from("YARD_EVERY_CALL", simple ? 23 : 7); /* one call in so many is tried */
    assert_above(calls, 40);
    for (int fault = FAULT_EIO; fault < FAULTS; fault++)
        for (int at = 1 + fault % every; at <= calls; at += every) {
            begin(folder);
            shim.calls.fault = (enum fault)fault;
            shim.calls.at = at;
            shim.calls.n = 0;
            struct outcome outcome = run_child(save_some, (void *)folder);
            bool killed = fault == FAULT_KILL || fault == FAULT_KILL_AFTER;
            if (killed ? outcome.signal != SIGKILL : outcome.code != EXIT_OK && outcome.code != EXIT_IO)
                test_failed("%s at call %d: exit code %d, signal %d:\n%s\n", fault_name[fault], at, outcome.code,
                            outcome.signal, outcome.text);
            bool has_sentence = strncmp(outcome.text, "yard: cannot", 12) == 0 || strstr(outcome.text, "power cut");
            if (!killed && outcome.code != EXIT_OK && !has_sentence)
                test_failed("%s at call %d says:\n%s\n", fault_name[fault], at, outcome.text);
            if (fault == FAULT_SHORT && outcome.code != EXIT_OK)
                test_failed("a short write at call %d: %s\n", at, outcome.text);
            shim.calls.fault = FAULT_NONE;
            expect_newest(folder, *acknowledged, fault_name[fault], at);
            tried++;
        }
    printf("# %d faults in %d calls\n", tried, calls);
}

TEST(no_call_that_fails_harms_a_checkpoint) { fail_every_call(false); }
LONG_TEST(no_call_that_fails_harms_a_checkpoint_without_exchange) { fail_every_call(true); }

/* ---- the power goes ---------------------------------------------------------------------------------------------- */

struct call {
    const char *what;
    char *path, *other;
    char *bytes;
    size_t n;
};
static struct {
    struct call *call;
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

static void note_call(const char *what, const char *path, const char *other, const void *bytes, size_t n)
{
    if (!shim.recording || !path)
        return;
    tape.call = grow(tape.call, &tape.cap, tape.n + 1, sizeof *tape.call);
    struct call *call = &tape.call[tape.n++];
    *call = (struct call){.what = what, .path = copy_string(path), .other = other ? copy_string(other) : NULL, .n = n};
    call->bytes = bytes ? memcpy(allocate(n, 1), bytes, n) : NULL;
}

static void clear_tape(void)
{
    while (tape.n > 0) {
        struct call *call = &tape.call[--tape.n];
        free(call->path);
        free(call->other);
        free(call->bytes);
    }
}

struct node { /* a file or a folder on the disk */
    bool folder;
    struct disk_file file;
    struct name *names;
    size_t n_names, cap_names;
};
struct name { /* a name in a folder */
    char *name;
    struct node *node;
};
struct change { /* a change to a folder; until it is synced it may be lost */
    struct node *folder;
    struct { /* up to two names become these nodes, NULL: none */
        char *name;
        struct node *node;
    } to[2];
};
struct disk {
    struct node *nodes[4096]; /* all that were made, to free them */
    size_t n_nodes;
    struct node *now, *sure; /* the root as the program sees it; as it is without anything unsynced */
    struct change *change;
    size_t n, cap;
};

static struct node *new_node(struct disk *disk, bool folder)
{
    CHECK(disk->n_nodes < COUNT(disk->nodes), "%zu nodes", disk->n_nodes);
    struct node *node = disk->nodes[disk->n_nodes++] = allocate(1, sizeof *node);
    node->folder = folder;
    return node;
}

static struct node **find_name(struct node *folder, const char *name)
{
    for (size_t i = 0; i < folder->n_names; i++)
        if (strcmp(folder->names[i].name, name) == 0)
            return &folder->names[i].node;
    folder->names = grow(folder->names, &folder->cap_names, folder->n_names + 1, sizeof *folder->names);
    struct name *new = &folder->names[folder->n_names++];
    *new = (struct name){.name = copy_string(name)};
    return &new->node;
}

/* Folders have two lists of names: one as the program sees it, and, in a second node, one that is sure. */
struct twin {
    struct node *now, *sure;
};
static struct twin twins[4096];
static size_t n_twins;

static struct node *sure_of(struct node *now)
{
    for (size_t i = 0; i < n_twins; i++)
        if (twins[i].now == now)
            return twins[i].sure;
    return now;
}

static struct node *new_folder_node(struct disk *disk)
{
    struct node *now = new_node(disk, true), *sure = new_node(disk, true);
    twins[n_twins++] = (struct twin){now, sure};
    return now;
}

/* The folder that holds the path, below the one that is watched; *name: its last part. */
static struct node *parent_of(struct disk *disk, const char *path, const char **name)
{
    const char *below = path + strlen(watched);
    if (*below == '/')
        below++;
    const char *slash = strchr(below, '/');
    *name = slash ? slash + 1 : below;
    if (!slash)
        return disk->now;
    char *folder = lasting("%.*s", (int)(slash - below), below);
    struct node *node = *find_name(disk->now, folder);
    return node;
}

static struct node *node_at(struct disk *disk, const char *path)
{
    const char *name;
    if (strcmp(path, watched) == 0)
        return disk->now;
    struct node *folder = parent_of(disk, path, &name);
    return folder ? *find_name(folder, name) : NULL;
}

static void change(struct disk *disk, struct node *folder, const char *name, struct node *node, const char *second_name,
                   struct node *second_node)
{
    disk->change = grow(disk->change, &disk->cap, disk->n + 1, sizeof *disk->change);
    struct change *change = &disk->change[disk->n++];
    *change = (struct change){.folder = folder, .to = {{copy_string(name), node}}};
    *find_name(folder, name) = node;
    if (second_name) {
        change->to[1].name = copy_string(second_name);
        change->to[1].node = second_node;
        *find_name(folder, second_name) = second_node;
    }
}

static void make_sure(struct change *change)
{
    for (int i = 0; i < 2; i++)
        if (change->to[i].name) {
            *find_name(sure_of(change->folder), change->to[i].name) = change->to[i].node;
            free(change->to[i].name);
            change->to[i].name = NULL;
        }
}

static void sync_node(struct disk *disk, struct node *node)
{
    if (!node->folder)
        disk_sync(&node->file);
    for (size_t i = 0; i < disk->n && node->folder; i++)
        if (disk->change[i].folder == node)
            make_sure(&disk->change[i]);
}

static void apply(struct disk *disk, const struct call *call)
{
    const char *name, *other = NULL;
    struct node *node = node_at(disk, call->path),
                *folder = strcmp(call->path, watched) ? parent_of(disk, call->path, &name) : NULL;
    if (strcmp(call->what, "create") == 0 || strcmp(call->what, "mkdir") == 0)
        change(disk, folder, name, call->what[0] == 'c' ? new_node(disk, false) : new_folder_node(disk), NULL, NULL);
    else if (strcmp(call->what, "write") == 0)
        disk_write(&node->file, call->bytes, call->n, node->file.n);
    else if (strcmp(call->what, "sync") == 0)
        sync_node(disk, node);
    else if (strcmp(call->what, "remove") == 0)
        change(disk, folder, name, NULL, NULL, NULL);
    else if (strcmp(call->what, "rename") == 0 || strcmp(call->what, "exchange") == 0) {
        struct node *old = node_at(disk, call->other);
        parent_of(disk, call->other, &other); /* the same folder */
        change(disk, folder, other, node, name, call->what[0] == 'e' ? old : NULL);
    }
}

static void free_disk(struct disk *disk)
{
    for (size_t i = 0; i < disk->n_nodes; i++) {
        for (size_t k = 0; k < disk->nodes[i]->n_names; k++)
            free(disk->nodes[i]->names[k].name);
        free(disk->nodes[i]->names);
        empty_file(&disk->nodes[i]->file);
        free(disk->nodes[i]);
    }
    for (size_t i = 0; i < disk->n; i++) {
        free(disk->change[i].to[0].name);
        free(disk->change[i].to[1].name);
    }
    free(disk->change);
    n_twins = 0;
}

/* ---- what is left ------------------------------------------------------------------------------------------------ */

static void put_file(struct draws *draws, struct node *node, const char *path)
{
    cut_file(&node->file, draws);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    if (node->file.sure_n > 0) /* a file without bytes has no array of them */
        assert_int_equal(fwrite(node->file.sure, 1, node->file.sure_n, file), node->file.sure_n);
    assert_int_equal(fclose(file), 0);
}

static void put_folder(struct draws *draws, struct node *folder, const char *path)
{
    make_folder(path);
    struct node *sure = sure_of(folder);
    for (size_t i = 0; i < sure->n_names; i++) {
        char *below = lasting("%s/%s", path, sure->names[i].name);
        struct node *node = sure->names[i].node;
        if (node && node->folder)
            put_folder(draws, node, below);
        else if (node)
            put_file(draws, node, below);
    }
}

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

/* The step that loads when the power goes after the first n calls; 0: none. */
static int cut_power(const char *folder, size_t n, uint32_t cut)
{
    struct disk disk = {0};
    struct draws draws = {.seed = 23, .row = cut};
    struct read read = {folder, 0};
    disk.now = new_folder_node(&disk);
    for (size_t i = 0; i < n; i++)
        apply(&disk, &tape.call[i]);
    for (size_t i = 0; i < disk.n; i++)
        if (draw_below(&draws, 2))
            make_sure(&disk.change[i]);
    char *command = lasting("rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
    put_folder(&draws, disk.now, folder);
    free_disk(&disk);
    free(attempt(read_back, &read));
    return read.step;
}

static int last_acknowledged(size_t n)
{
    int step = 0;
    for (size_t i = 0; i < n; i++)
        step = strcmp(tape.call[i].what, "ack") == 0 ? (int)tape.call[i].n : step;
    return step;
}

/* How many of so many cuts lose what was acknowledged, or load what never was. */
static int count_lost(int cuts)
{
    int lost = 0;
    const char *folder = temp_path("power");
    for (int i = 0; i < cuts; i++) {
        size_t n = 1 + (size_t)i * 97 % tape.n; /* all over the tape */
        int step = cut_power(folder, n, (uint32_t)i);
        if (step < last_acknowledged(n))
            lost++;
    }
    return lost;
}

/* The same, if no path that has this word is ever synced. */
static int count_lost_without(const char *word, int cuts)
{
    for (size_t i = 0; i < tape.n; i++)
        if (strcmp(tape.call[i].what, "sync") == 0 && strstr(tape.call[i].path, word))
            tape.call[i].what = "nothing";
    int lost = count_lost(cuts);
    for (size_t i = 0; i < tape.n; i++)
        if (strcmp(tape.call[i].what, "nothing") == 0)
            tape.call[i].what = "sync";
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
    int lost = count_lost(cuts);
    printf("# %d power cuts in %zu calls: %d lost\n", cuts, tape.n, lost);
    assert_int_equal(lost, 0);
    assert_above(count_lost_without("", 60), 0);
    assert_above(count_lost_without(".safetensors", 60), 0);
    assert_above(count_lost_without(MANIFEST, 60), 0);
}

TEST(no_loss_of_power_harms_a_checkpoint) { cut_the_power(false); }
LONG_TEST(no_loss_of_power_harms_a_checkpoint_without_exchange) { cut_the_power(true); }

/* publish.c - files that appear whole or not at all.
 *
 *     write  <path>.tmp-<pid>     a crash here leaves the old file and a stray temporary,
 *                                 which the next writer of that path removes
 *     fsync  the temporary        its bytes are on the disk before its name is
 *     rename it over <path>       atomic: a reader sees the old file or the new one
 *     fsync  the folder           the new name is on the disk as well
 */
#ifdef __APPLE__
#define _DARWIN_C_SOURCE /* F_FULLFSYNC */
#endif
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 1 << 18 }; /* bytes: ext4 takes twice as long for many megabytes in one call */
#define TEMPORARY ".tmp-"
#define BESIDE ".new"
#define OLD ".old"

char *behind_links(const char *path)
{
    char real[PATH_MAX];
    if (access(path, F_OK) != 0)
        return copy_string(path);
    if (!realpath(path, real))
        fail(EXIT_IO, "cannot write %s: it leads to a file without a name; choose another name", path);
    return copy_string(real);
}

/* ---- temporaries ----------------------------------------------------------------------------------------------- */

/* Is `name` one of ours, `<begin>...<TEMPORARY><pid>`, of a process that is no more?  A number that another process has
 * by now counts as alive, and so does one that we may not signal. */
static bool is_stray(const char *name, const char *begin, bool more)
{
    size_t n = strlen(begin);
    int64_t pid;
    const char *mark = strncmp(name, begin, n) == 0 ? strstr(name + n, TEMPORARY) : NULL;
    if (!mark || (mark != name + n && !more))
        return false;
    const char *number = mark + strlen(TEMPORARY);
    bool digits = number[strspn(number, "0123456789")] == '\0';
    return digits && parse_int(number, &pid) && pid > 0 && pid <= INT32_MAX && kill((pid_t)pid, 0) != 0 &&
           errno == ESRCH;
}

static void remove_files(const char *path);

void remove_strays(const char *parent, const char *begin, bool folders)
{
    DIR *entries = opendir(parent);
    for (const struct dirent *e; entries && (e = readdir(entries));) {
        struct stat status;
        if (!is_stray(e->d_name, begin, folders))
            continue;
        char *path = format_string("%s/%s", parent, e->d_name);
        if (folders)
            remove_files(path);
        else if (lstat(path, &status) == 0 && S_ISREG(status.st_mode))
            unlink(path);
        free(path);
    }
    if (entries)
        closedir(entries);
}

/* fail() calls this with the writer whose temporary must go. */
static void remove_temporary(void *writer)
{
    struct writer *w = writer;
    unlink(w->temporary);
}

static _Noreturn void write_failed(const struct writer *w, const char *what)
{
    fail(EXIT_IO, "cannot %s %s: %s, after %llu bytes; what was at that path before is untouched", what, w->path,
         strerror(errno), (unsigned long long)w->offset);
}

static void free_writer(struct writer *w)
{
    cancel_on_fail(&w->cleanup);
    free((char *)w->path), free((char *)w->temporary);
    free(w);
}

struct writer *open_writer(const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        fail(EXIT_IO, "cannot write %s: a %s of that name is in the way; choose another name", path,
             S_ISDIR(status.st_mode) ? "folder" : "device or pipe");
    struct writer *w = allocate(1, sizeof *w);
    w->path = behind_links(path);
    w->temporary = format_string("%s" TEMPORARY "%ld", w->path, (long)getpid());
    char *copy = copy_string(w->path);
    const char *slash = strrchr(w->path, '/');
    remove_strays(dirname(copy), slash ? slash + 1 : w->path, false);
    free(copy);
    w->cleanup = (struct cleanup){.run = remove_temporary, .argument = w};
    on_fail(&w->cleanup); /* before there is a temporary: a signal may come at any moment */
    w->fd = open(w->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (w->fd < 0)
        fail(EXIT_IO, "cannot create %s: %s; does the folder exist, and may you write there?", w->temporary,
             strerror(errno));
    return w;
}

void write_bytes(struct writer *w, const void *bytes, size_t n)
{
    for (const char *p = bytes; n;) {
        ssize_t written = write(w->fd, p, MIN(n, AT_ONCE));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            write_failed(w, "write");
        p += written;
        n -= (size_t)written;
        w->offset += (uint64_t)written;
    }
}

int reserve_bytes(int fd, uint64_t bytes)
{
#ifdef __APPLE__ /* has no posix_fallocate */
    return ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
#else
    return posix_fallocate(fd, 0, (off_t)bytes);
#endif
}

/* To the disk itself; on macOS fsync stops at the drive's cache. */
static int sync_file(int fd)
{
#ifdef F_FULLFSYNC
    if (fcntl(fd, F_FULLFSYNC) == 0)
        return 0;
#endif
    return fsync(fd);
}

void sync_folder_of(const char *path)
{
    char *copy = copy_string(path), *folder = dirname(copy);
    int fd = open(folder, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (sync_file(fd) != 0 && errno != EINVAL)) /* EINVAL: a file system without folder sync */
        fail(EXIT_IO, "%s is written, but its folder %s cannot be synced: %s; it may not survive a power cut", path,
             folder, strerror(errno));
    close(fd);
    free(copy);
}

void publish(struct writer *w)
{
    if (sync_file(w->fd) != 0 || close(w->fd) != 0)
        write_failed(w, "finish writing");
    if (rename(w->temporary, w->path) != 0)
        write_failed(w, "rename the finished temporary to");
    sync_folder_of(w->path);
    free_writer(w);
}

void publish_text(const char *path, const char *text)
{
    struct writer *w = open_writer(path);
    write_bytes(w, text, strlen(text));
    publish(w);
}

void abandon(struct writer *w)
{
    close(w->fd);
    remove_temporary(w);
    free_writer(w);
}

bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

void make_folder(const char *path)
{
    char *part = copy_string(path);
    for (size_t n = 1, all = strlen(path); n <= all; n++) {
        if (path[n] != '/' && path[n] != '\0')
            continue;
        part[n] = '\0';
        int reason = mkdir(part, 0777) == 0 ? 0 : errno;
        if (reason && !is_folder(part))
            fail(EXIT_IO, "cannot make the folder %s: %s", part,
                 reason == EEXIST || reason == ENOTDIR ? "a file of that name is in the way" : strerror(reason));
        part[n] = path[n];
    }
    free(part);
}

/* ---- locks ------------------------------------------------------------------------------------------------------ */

/* false: the file system has no such locks (some NFS). */
static bool take_lock(int fd, int how, const char *who, const char *path)
{
    bool taken = flock(fd, how | LOCK_NB) == 0;
    if (!taken && errno == EWOULDBLOCK)
        fail(EXIT_USAGE, "%s %s: another run is writing there; wait for its end or choose another name", who, path);
    return taken;
}

int lock_folder(const char *who, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (take_lock(fd, LOCK_EX, who, path))
        return fd;
    close(fd);
    return 0;
}

/* A shared lock, for a moment: several that only ask do not meet. */
void expect_unlocked(const char *who, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
        return;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (S_ISDIR(status.st_mode) ? O_DIRECTORY : 0));
    if (fd < 0)
        return;
    take_lock(fd, LOCK_SH, who, path);
    close(fd);
}

void lock_file(const char *who, const char *path, int fd) { take_lock(fd, LOCK_EX, who, path); }

int open_locked(const char *who, const char *path, int flags)
{
    struct stat status;
    int fd = -1;
    do { /* whoever had the lock may have given the name to another file */
        if (fd >= 0)
            close(fd);
        bool there = stat(path, &status) == 0;
        if (there ? !S_ISREG(status.st_mode) : !(flags & O_CREAT))
            return -1;
        fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
        if (fd < 0)
            fail(EXIT_IO, "cannot write %s %s: %s; does its folder exist, and may you write there?", who, path,
                 strerror(errno));
        lock_file(who, path, fd);
    } while (!leads_to(path, fd));
    return fd;
}

/* ---- folders --------------------------------------------------------------------------------------------------- */

/* In a signal handler too. */
static void remove_folder_written(void *folder)
{
    struct folder *f = folder;
    for (size_t i = 0; i < f->n; i++)
        unlink(f->files[i]);
    rmdir(f->temporary);
}

/* What somebody else has put into a folder that goes stays beside, as `<folder>.kept-<pid>`. */
static void keep_rest(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *end = strstr(name, OLD TEMPORARY);
    end = end ? end : strstr(name, TEMPORARY);
    char *folder = format_string("%.*s", (int)(end ? end - path : (ptrdiff_t)strlen(path)), path);
    char *kept = format_string("%s.kept-%ld", folder, (long)getpid());
    if (rename(path, kept) == 0)
        warn("%s held more than yard had written there: the rest is in %s now", folder, kept);
    free(folder), free(kept);
}

/* What we may have written into a folder, of a checkpoint or an export or a temporary of one, and the folder.  What a
 * link leads to is somebody else's: only the link goes. */
static void remove_files(const char *path)
{
    static const char *const ours[] = {"manifest.json",       "rank-[0-9]*.safetensors", "model.safetensors",
                                       "config.json",         "tokenizer.json",          "tokenizer_config.json",
                                       "*" TEMPORARY "[0-9]*"};
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode)) {
        unlink(path);
        return;
    }
    DIR *entries = opendir(path);
    for (const struct dirent *e; entries && (e = readdir(entries));)
        for (size_t i = 0; i < COUNT(ours); i++)
            if (fnmatch(ours[i], e->d_name, 0) == 0)
                unlinkat(dirfd(entries), e->d_name, 0);
    if (entries)
        closedir(entries);
    if (rmdir(path) != 0 && (errno == ENOTEMPTY || errno == EEXIST))
        keep_rest(path);
}

void remove_folder(const char *path)
{
    char *aside = format_string("%s" OLD TEMPORARY "%ld", path, (long)getpid());
    if (rename(path, aside) == 0)
        remove_files(aside);
    free(aside);
}

struct folder *open_folder(const char *path, size_t most_files)
{
    struct folder *f = allocate(1, sizeof *f);
    f->path = copy_string(path);
    for (size_t n = strlen(path); n > 1 && f->path[n - 1] == '/'; n--)
        f->path[n - 1] = '\0';
    if (access(f->path, F_OK) == 0 && !is_folder(f->path))
        fail(EXIT_IO, "cannot make the folder %s: a file of that name is in the way", f->path);
    f->temporary = format_string("%s" TEMPORARY "%ld", f->path, (long)getpid());
    f->cap = most_files;
    f->files = allocate(most_files, sizeof *f->files);
    remove_files(f->temporary); /* of an attempt of ours that failed */
    f->cleanup = (struct cleanup){.run = remove_folder_written, .argument = f};
    on_fail(&f->cleanup);
    if (mkdir(f->temporary, 0777) != 0)
        fail(EXIT_IO, "cannot make the folder %s: %s", f->temporary, strerror(errno));
    return f;
}

const char *file_in(struct folder *f, const char *name)
{
    CHECK(f->n < f->cap, "%s: more than %zu files", f->path, f->cap);
    f->files[f->n] = format_string("%s/%s", f->temporary, name);
    return f->files[f->n++];
}

/* The folder that waits beside, for sure, takes the other's place. */
static int take_place(const char *beside, const char *path)
{
    sync_folder_of(beside);
    remove_folder(path);
    return rename(beside, path);
}

void publish_folder(struct folder *f)
{
    struct stat status; /* of a link itself: one that leads nowhere is there */
    char *beside = format_string("%s" BESIDE, f->path);
    if (f->n)
        sync_folder_of(f->files[0]);
    if (lstat(beside, &status) == 0) /* of a process that was killed */
        take_place(beside, f->path);
    bool there = lstat(f->path, &status) == 0, done = false;
    expect_unlocked("cannot write the folder", f->path); /* somebody may have made it in between */
#ifdef RENAME_EXCHANGE
    done = there && renameat2(AT_FDCWD, f->temporary, AT_FDCWD, f->path, RENAME_EXCHANGE) == 0;
#endif
    if (!done && there) /* where the system cannot do that (NFS): at each moment one of two names has a whole folder */
        done = rename(f->temporary, beside) == 0 && take_place(beside, f->path) == 0;
    else if (!done)
        done = rename(f->temporary, f->path) == 0;
    if (!done)
        fail(EXIT_IO, "cannot rename the finished folder %s to %s: %s", f->temporary, f->path, strerror(errno));
    sync_folder_of(f->path);
    if (there)
        remove_files(f->temporary);
    cancel_on_fail(&f->cleanup);
    for (size_t i = 0; i < f->n; i++)
        free(f->files[i]);
    free(beside), free(f->files), free(f->path), free(f->temporary), free(f);
}

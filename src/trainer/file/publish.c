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
#include <libgen.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 1 << 18 }; /* bytes: ext4 takes twice as long for many megabytes in one call */

bool is_stray(const char *name, const char *begin, enum stray_name form)
{
    size_t n = strlen(begin);
    if (strncmp(name, begin, n) != 0)
        return false;
    const char *mark = strstr(name + n, TEMPORARY);
    if (!mark || (mark != name + n && form == STRAY_EXACTLY))
        return false;
    const char *number = mark + strlen(TEMPORARY);
    bool digits = number[strspn(number, "0123456789")] == '\0';
    int64_t pid;
    if (!digits || !parse_int(number, &pid) || pid <= 0 || pid > INT32_MAX)
        return false;
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH; /* no process has this number */
}

static void remove_strays(const char *parent, const char *begin)
{
    DIR *entries = opendir(parent);
    if (!entries)
        return;
    const struct dirent *entry;
    while ((entry = readdir(entries))) {
        struct stat status;
        if (!is_stray(entry->d_name, begin, STRAY_EXACTLY))
            continue;
        char *path = join_path(parent, entry->d_name);
        if (lstat(path, &status) == 0 && S_ISREG(status.st_mode))
            unlink(path);
        free(path);
    }
    closedir(entries);
}

/* Closes and removes the temporary of a writer that has failed.  fail() calls this too, maybe in an attempt(). */
static void discard_temporary(void *argument)
{
    struct writer *writer = argument;
    if (writer->fd != NONE)
        close(writer->fd);
    writer->fd = NONE;
    unlink(writer->temporary);
}

/* attempted: "write", "finish writing" ... */
static struct problem *write_problem(const struct writer *writer, const char *attempted)
{
    return new_problem(EXIT_IO, "cannot %s %s: %s, after %llu bytes; what was at that path before is untouched",
                       attempted, writer->path, strerror(errno), (unsigned long long)writer->offset);
}

static void free_writer(struct writer *writer)
{
    cancel_on_fail(&writer->cleanup);
    free((char *)writer->path);
    free((char *)writer->temporary);
    free(writer);
}

struct problem *try_open_writer(const char *path, struct writer **opened)
{
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return new_problem(EXIT_IO, "cannot write %s: a %s of that name is in the way; choose another name", path,
                           S_ISDIR(status.st_mode) ? "folder" : "device or pipe");
    struct writer *writer = allocate(1, sizeof *writer);
    writer->path = behind_links(path);
    writer->temporary = format_string("%s" TEMPORARY "%ld", writer->path, (long)getpid());
    char *copy = copy_string(writer->path);
    remove_strays(dirname(copy), last_part(writer->path));
    free(copy);
    writer->fd = NONE;
    writer->cleanup = (struct cleanup){.run = discard_temporary, .argument = writer};
    on_fail(&writer->cleanup); /* called before the temporary exists, since a signal may come at any moment */
    writer->fd = open(writer->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (writer->fd >= 0) {
        *opened = writer;
        return NULL;
    }
    struct problem *problem =
        new_problem(EXIT_IO, "cannot create %s: %s; does the folder exist, and may you write there?", writer->path,
                    strerror(errno));
    free_writer(writer);
    return problem;
}

struct writer *open_writer(const char *path)
{
    struct writer *writer;
    must(try_open_writer(path, &writer));
    return writer;
}

size_t write_all(int fd, const void *bytes, size_t n)
{
    const char *from = bytes;
    size_t done = 0;
    while (done < n) {
        ssize_t written = write(fd, from + done, MIN(n - done, AT_ONCE));
        if (written >= 0)
            done += (size_t)written;
        else if (errno != EINTR)
            break;
    }
    return done;
}

struct problem *try_write_bytes(struct writer *writer, const void *bytes, size_t n)
{
    size_t done = write_all(writer->fd, bytes, n);
    writer->offset += done;
    return done < n ? write_problem(writer, "write") : NULL;
}

void write_bytes(struct writer *writer, const void *bytes, size_t n) { must(try_write_bytes(writer, bytes, n)); }

int reserve_bytes(int fd, uint64_t bytes)
{
#ifdef __APPLE__ /* macOS has no posix_fallocate() */
    return ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
#else
    return posix_fallocate(fd, 0, (off_t)bytes);
#endif
}

/* Writes the file's data to the disk itself; on macOS fsync() leaves them in the drive's cache. */
static int sync_file(int fd)
{
#ifdef F_FULLFSYNC
    if (fcntl(fd, F_FULLFSYNC) == 0)
        return 0;
#endif
    return fsync(fd);
}

struct problem *sync_folder_of(const char *path)
{
    struct problem *problem = NULL;
    char *copy = copy_string(path);
    const char *folder = dirname(copy); /* it changes the copy */
    int fd = open(folder, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (sync_file(fd) != 0 && errno != EINVAL)) /* EINVAL: this file system cannot sync folders */
        problem = new_problem(EXIT_IO,
                              "%s is written, but its folder %s cannot be synced: %s; the file may not survive a "
                              "power cut",
                              path, folder, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(copy);
    return problem;
}

/* The finished temporary takes the file's name. */
static struct problem *take_path(struct writer *writer)
{
    int fd = writer->fd;
    if (sync_file(fd) != 0)
        return write_problem(writer, "finish writing");
    writer->fd = NONE; /* close() ends with it also where it says that something was not written */
    if (close(fd) != 0)
        return write_problem(writer, "finish writing");
    if (rename(writer->temporary, writer->path) != 0)
        return write_problem(writer, "rename the finished temporary to");
    return sync_folder_of(writer->path);
}

struct problem *publish(struct writer *writer)
{
    struct problem *problem = take_path(writer);
    if (problem)
        discard_temporary(writer);
    free_writer(writer);
    return problem;
}

struct problem *try_publish_text(const char *path, const char *text)
{
    struct writer *writer;
    struct problem *problem = try_open_writer(path, &writer);
    if (problem)
        return problem;
    problem = try_write_bytes(writer, text, strlen(text));
    if (!problem)
        return publish(writer);
    abandon(writer);
    return problem;
}

void publish_text(const char *path, const char *text) { must(try_publish_text(path, text)); }

void abandon(struct writer *writer)
{
    discard_temporary(writer);
    free_writer(writer);
}

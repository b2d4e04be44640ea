/* locks.c - locks files and folders, so that only one process at a time writes to them. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns false when the file system has no such locks (some NFS). */
static bool take_lock(int fd, int how, const char *claimant, const char *path)
{
    if (flock(fd, how | LOCK_NB) == 0)
        return true;
    if (errno == EWOULDBLOCK)
        fail(EXIT_USAGE, "%s %s: another run is writing there; wait for its end or choose another name", claimant,
             path);
    return false;
}

int lock_folder(const char *claimant, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NONE;
    if (take_lock(fd, LOCK_EX, claimant, path))
        return fd;
    close(fd);
    return NONE;
}

/* Takes a shared lock for a moment: processes that only ask do not find each other's locks. */
void expect_unlocked(const char *claimant, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return;
    bool folder = S_ISDIR(status.st_mode);
    if (!folder && !S_ISREG(status.st_mode))
        return;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (folder ? O_DIRECTORY : 0));
    if (fd < 0)
        return;
    take_lock(fd, LOCK_SH, claimant, path);
    close(fd);
}

void lock_file(const char *claimant, const char *path, int fd) { take_lock(fd, LOCK_EX, claimant, path); }

int open_locked(const char *claimant, const char *path, int flags)
{
    for (;;) {
        struct stat status;
        bool there = stat(path, &status) == 0;
        if (there && !S_ISREG(status.st_mode))
            return NONE;
        if (!there && !(flags & O_CREAT))
            return NONE;
        int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
        if (fd < 0)
            fail(EXIT_IO, "cannot write %s %s: %s; does its folder exist, and may you write there?", claimant, path,
                 strerror(errno));
        lock_file(claimant, path, fd);
        if (leads_to(path, fd))
            return fd;
        close(fd); /* the process that held the lock has given the name to another file: open that one */
    }
}

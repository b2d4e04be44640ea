/* locks.c - locks files and folders, so that only one process at a time writes to them. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sets *locked, if that is not NULL: it is false when the file system has no such locks (some NFS). */
static struct problem *take_lock(int fd, int how, const char *claimant, const char *path, bool *locked)
{
    bool taken = flock(fd, how | LOCK_NB) == 0;
    if (locked)
        *locked = taken;
    if (taken || errno != EWOULDBLOCK)
        return NULL;
    return new_problem(EXIT_USAGE, "%s %s: another run is writing there; wait for its end or choose another name",
                       claimant, path);
}

int lock_folder(const char *claimant, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NONE;
    bool locked;
    must(take_lock(fd, LOCK_EX, claimant, path, &locked));
    if (locked)
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
    must(take_lock(fd, LOCK_SH, claimant, path, NULL));
    close(fd);
}

void lock_file(const char *claimant, const char *path, int fd) { must(take_lock(fd, LOCK_EX, claimant, path, NULL)); }

struct problem *open_locked(const char *claimant, const char *path, int flags, int *fd)
{
    *fd = NONE;
    for (;;) {
        struct stat status;
        bool there = stat(path, &status) == 0;
        if (there && !S_ISREG(status.st_mode))
            return NULL;
        if (!there && !(flags & O_CREAT))
            return NULL;
        int opened = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
        if (opened < 0)
            return new_problem(EXIT_IO, "cannot write %s %s: %s; does its folder exist, and may you write there?",
                               claimant, path, strerror(errno));
        struct problem *problem = take_lock(opened, LOCK_EX, claimant, path, NULL);
        if (!problem && leads_to(path, opened)) {
            *fd = opened;
            return NULL;
        }
        close(opened);
        if (problem)
            return problem;
        /* The process that held the lock has given the name to another file: that one is opened next. */
    }
}

/* system_calls.c - the system calls by which a snapshot file is written, where Linux and macOS differ.
 *
 *     flush_file       waits until the disk has the file                           both
 *     start_writing    asks that a part of the page cache be written               Linux
 *     forget_cached    the next read comes from the disk                           Linux
 *     open_direct      the same file, to be written past the page cache            Linux
 *     map_memory       the same file as memory, if it lies in persistent memory    Linux
 *
 * Where a system lacks one of the latter four, its function does nothing or returns that there is none: then the file
 * is written through the page cache.
 */
#include "snapfile_writer.h"

#include <fcntl.h>
#include <unistd.h>

#ifdef __linux__
#include <dlfcn.h>
#include <sys/mman.h>

int flush_file(int fd) { return fdatasync(fd); } /* the file's length stays */

/* This is only a hint.  If writing goes wrong, flush_file() says so. */
void start_writing(int fd, uint64_t at, size_t n) { sync_file_range(fd, (off_t)at, (off_t)n, SYNC_FILE_RANGE_WRITE); }

void forget_cached(int fd) { posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); }

char *map_memory(int fd, uint64_t bytes, persist_bytes **persist)
{
    char name[32];
    size_t mapped = 0;
    int persistent = 0;
    void *(*map)(const char *, size_t, int, mode_t, size_t *, int *) = NULL;
    void *library = dlopen("libpmem.so.1", RTLD_NOW | RTLD_LOCAL); /* stays loaded */
    if (!library)
        return NULL;
    *(void **)&map = dlsym(library, "pmem_map_file");
    *(void **)persist = dlsym(library, "pmem_memcpy_persist");
    if (!map || !*persist)
        return NULL;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    char *at = map(name, 0, 0, 0, &mapped, &persistent);
    if (at && persistent && mapped >= bytes)
        return at;
    if (at)
        munmap(at, mapped);
    return NULL;
}

/* Some file systems open a file for this way, and refuse it only when a page is read.  So a page is read. */
int open_direct(int fd)
{
    _Alignas(SNAPFILE_PAGE) char page[SNAPFILE_PAGE];
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int direct = open(name, O_RDWR | O_CLOEXEC | O_DIRECT);
    if (direct >= 0 && pread(direct, page, SNAPFILE_PAGE, 0) == SNAPFILE_PAGE)
        return direct;
    if (direct >= 0)
        close(direct);
    return -1;
}

#else

int flush_file(int fd) { return fcntl(fd, F_FULLFSYNC); }

void start_writing(int fd, uint64_t at, size_t n)
{
    (void)fd;
    (void)at;
    (void)n;
}

void forget_cached(int fd) { (void)fd; }

int open_direct(int fd)
{
    (void)fd;
    return -1;
}

char *map_memory(int fd, uint64_t bytes, persist_bytes **persist)
{
    (void)fd;
    (void)bytes;
    (void)persist;
    return NULL;
}

#endif

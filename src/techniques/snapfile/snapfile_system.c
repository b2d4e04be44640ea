/* snapfile_system.c - the system calls by which a snapshot file is written, where Linux and macOS differ.
 *
 *     flush_file       waits until the disk has the file                           both
 *     start_writing    asks that a part of the page cache be written               Linux
 *     forget_cached    the next read comes from the disk                           Linux
 *     map_memory       the same file as memory, if it lies in persistent memory    Linux
 *
 * On macOS, start_writing() and forget_cached() do nothing, and map_memory() returns that there is no such memory.
 */
#include "snapfile_parts.h"

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

#else

int flush_file(int fd) { return fcntl(fd, F_FULLFSYNC); }

void start_writing(int fd, uint64_t at, size_t n)
{
    (void)fd;
    (void)at;
    (void)n;
}

void forget_cached(int fd) { (void)fd; }

char *map_memory(int fd, uint64_t bytes, persist_bytes **persist)
{
    (void)fd;
    (void)bytes;
    (void)persist;
    return NULL;
}

#endif

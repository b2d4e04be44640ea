/* bytes.c - plain files, read by position.  pread, not mmap: a file cut short while we read it is an error message
 * here, and a SIGBUS there. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* All formats here are little endian, and so are all machines with OpenCL; a swap would be code that nobody runs. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file formats assume a little endian machine");

static void close_descriptor(void *reader) { close(((struct reader *)reader)->fd); }

/* What is no regular file is not opened at all: that alone can wait for a writer or wind a tape back.  O_NONBLOCK:
 * should one come between, nothing waits. */
struct reader *open_reader(const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        fail(EXIT_IO, "%s is a %s; expected a regular file", path,
             S_ISDIR(status.st_mode)    ? "folder"
             : S_ISFIFO(status.st_mode) ? "pipe, which cannot be read twice"
                                        : "device or socket");
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        fail(EXIT_IO, "cannot open %s: %s; check the path and its permissions", path, strerror(errno));
    struct reader *r = allocate(1, sizeof *r);
    *r = (struct reader){.path = copy_string(path), .fd = fd, .size = (uint64_t)status.st_size};
    r->cleanup = (struct cleanup){.run = close_descriptor, .argument = r};
    on_fail(&r->cleanup);
    return r;
}

void read_at(struct reader *r, void *into, size_t bytes, uint64_t offset)
{
    if (offset > r->size || bytes > r->size - offset) /* subtract: a sum could wrap around */
        fail(EXIT_FAILED, "%s is damaged: it ends at byte %llu, but %zu bytes are wanted from byte %llu on", r->path,
             (unsigned long long)r->size, bytes, (unsigned long long)offset);
    for (char *p = into; bytes;) {
        ssize_t n = pread(r->fd, p, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            fail(EXIT_IO, "cannot read %s at byte %llu: %s", r->path, (unsigned long long)offset, strerror(errno));
        if (n == 0)
            fail(EXIT_FAILED, "%s became shorter while it was read: it had %llu bytes and now ends at byte %llu",
                 r->path, (unsigned long long)r->size, (unsigned long long)offset);
        p += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
}

void close_reader(struct reader *r)
{
    cancel_on_fail(&r->cleanup);
    close(r->fd);
    free((char *)r->path);
    free(r);
}

bool leads_to(const char *path, int fd)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

char *read_whole(const char *path, size_t *size)
{
    struct reader *r = open_reader(path);
    char *text = allocate((size_t)r->size + 1, 1);
    *size = (size_t)r->size;
    read_at(r, text, *size, 0);
    close_reader(r);
    return text;
}

size_t byte_order_mark(const char *text, size_t n)
{
    static const char mark[] = "\xEF\xBB\xBF";
    const size_t length = sizeof mark - 1;
    return n >= length && memcmp(text, mark, length) == 0 ? length : 0;
}

/* ---- gzip ------------------------------------------------------------------------------------------------------- */

/* A file may have several members, one behind the other; zeros that fill up a block of a tape may follow. */
char *unpack_gzip(const char *path, const char *packed, size_t *n)
{
    enum { AT_ONCE = 1 << 20, GZIP_ONLY = 16 + MAX_WBITS, LARGE = 256 << 20, MOST_PACKED = 100 };
    char *text = NULL;
    size_t used = 0, room = 0, at = 0;
    while (at < *n && packed[at]) {
        z_stream z = {0};
        int code = inflateInit2(&z, GZIP_ONLY);
        while (code == Z_OK) {
            const size_t left = *n - at;
            text = grow(text, &room, used + AT_ONCE + 1, 1);
            z.next_in = (Bytef *)(packed + at);
            z.avail_in = (uInt)MIN(left, (size_t)AT_ONCE);
            z.next_out = (Bytef *)(text + used);
            z.avail_out = AT_ONCE;
            code = inflate(&z, Z_NO_FLUSH);
            at += MIN(left, (size_t)AT_ONCE) - z.avail_in;
            used += AT_ONCE - z.avail_out;
            if (used > LARGE && used / MOST_PACKED > at)
                fail(EXIT_FAILED,
                     "%s unpacks to more than %d times its size, as texts do not; if it is one all the same, unpack it "
                     "with gunzip",
                     path, MOST_PACKED);
        }
        inflateEnd(&z);
        if (code != Z_STREAM_END)
            fail(EXIT_FAILED, "%s is damaged: gzip's data break off or are wrong at byte %zu of %zu; fetch it again",
                 path, at, *n);
    }
    text = grow(text, &room, used + 1, 1);
    text[used] = '\0';
    *n = used;
    return text;
}

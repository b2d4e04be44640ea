/* bytes.c - plain files, read by position.  With pread() a file that is cut short while we read it causes an error
 * message; with mmap(), which large texts need, it causes a SIGBUS. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* All formats here are little endian, and so are all machines that this program supports. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file formats assume a little endian machine");

static void close_descriptor(void *reader) { close(((struct reader *)reader)->fd); }

/* The noun for what lies at a path, if this is not a regular file. */
static const char *name_of_type(mode_t mode)
{
    if (S_ISDIR(mode))
        return "folder";
    if (S_ISFIFO(mode))
        return "pipe, which cannot be read twice";
    return "device or socket";
}

/* Only a regular file is opened: to open a pipe can mean to wait for its writer, to open a tape winds it back.  A path
 * may become a pipe just after stat(), so O_NONBLOCK makes sure that open() does not wait. */
struct reader *open_reader(const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        fail(EXIT_IO, "%s is a %s; expected a regular file", path, name_of_type(status.st_mode));
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        fail(EXIT_IO, "cannot open %s: %s", path, strerror(errno));
    struct reader *reader = allocate(1, sizeof *reader);
    *reader = (struct reader){.path = copy_string(path), .fd = fd, .size = (uint64_t)status.st_size};
    reader->cleanup = (struct cleanup){.run = close_descriptor, .argument = reader};
    on_fail(&reader->cleanup);
    return reader;
}

void read_at(struct reader *reader, void *into, size_t bytes, uint64_t offset)
{
    if (offset > reader->size || bytes > reader->size - offset) /* subtract: a sum could wrap around */
        fail(EXIT_FAILED,
             "%s is damaged: it ends at byte %llu, but %zu bytes are wanted from byte %llu on; get a fresh copy",
             reader->path, (unsigned long long)reader->size, bytes, (unsigned long long)offset);
    char *at = into;
    while (bytes > 0) {
        ssize_t got = pread(reader->fd, at, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            fail(EXIT_IO, "cannot read %s at byte %llu: %s; is its disk in order?", reader->path,
                 (unsigned long long)offset, strerror(errno));
        if (got == 0)
            fail(EXIT_FAILED,
                 "%s became shorter while it was read: it had %llu bytes and now ends at byte %llu; begin again",
                 reader->path, (unsigned long long)reader->size, (unsigned long long)offset);
        at += got;
        bytes -= (size_t)got;
        offset += (uint64_t)got;
    }
}

void close_reader(struct reader *reader)
{
    cancel_on_fail(&reader->cleanup);
    close(reader->fd);
    free((char *)reader->path);
    free(reader);
}

bool leads_to(const char *path, int fd)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

char *read_whole(const char *path, size_t *size)
{
    struct reader *reader = open_reader(path);
    char *text = allocate((size_t)reader->size + 1, 1);
    *size = (size_t)reader->size;
    read_at(reader, text, *size, 0);
    close_reader(reader);
    return text;
}

/* The handler of SIGBUS, which may come in the middle of any function: so fail() may not be called here. */
static void mapping_failed(int signal)
{
    (void)signal;
    end_in_handler(EXIT_FAILED, "yard: a text became shorter while it was read, or its disk failed: begin again\n");
}

size_t map_large(const char *path, char **memory)
{
    enum { LARGE = 64 << 20 };
    struct reader *reader = open_reader(path);
    size_t size = (size_t)reader->size;
    void *mapped = MAP_FAILED;
    if (size >= LARGE)
        mapped = mmap(NULL, size, PROT_READ, MAP_PRIVATE, reader->fd, 0);
    close_reader(reader);
    if (mapped == MAP_FAILED)
        return 0;
    signal(SIGBUS, mapping_failed);
    *memory = mapped;
    return size;
}

void unmap_bytes(char *memory, size_t size)
{
    munmap(memory, size);
    signal(SIGBUS, SIG_DFL);
}

size_t byte_order_mark(const char *text, size_t n)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t length = sizeof mark - 1;
    return n >= length && memcmp(text, mark, length) == 0 ? length : 0;
}

/* ---- gzip -------------------------------------------------------------------------------------------------------- */

struct unpacking {
    const char *path;
    const char *packed; /* the file's n_packed bytes */
    size_t n_packed;
    size_t at; /* bytes of `packed` that have been read */
    char *text;
    size_t used, room; /* bytes of `text` that are filled, and that are allocated */
};

/* Unpacks some more of the member into unpacking->text; returns zlib's code. */
static int unpack_some(struct unpacking *unpacking, z_stream *z)
{
    enum { AT_ONCE = 1 << 20, LARGE = 256 << 20, MOST_PACKED = 100 };
    size_t offered = MIN(unpacking->n_packed - unpacking->at, (size_t)AT_ONCE);
    unpacking->text = grow(unpacking->text, &unpacking->room, unpacking->used + AT_ONCE + 1, 1);
    z->next_in = (Bytef *)(unpacking->packed + unpacking->at);
    z->avail_in = (uInt)offered;
    z->next_out = (Bytef *)(unpacking->text + unpacking->used);
    z->avail_out = AT_ONCE;
    int code = inflate(z, Z_NO_FLUSH);
    unpacking->at += offered - z->avail_in;
    unpacking->used += AT_ONCE - z->avail_out;
    if (unpacking->used > LARGE && unpacking->used / MOST_PACKED > unpacking->at)
        fail(EXIT_FAILED,
             "%s unpacks to more than %d times its size, which texts do not; if the file is a text all the same, "
             "unpack it with gunzip",
             unpacking->path, MOST_PACKED);
    return code;
}

/* A file has one member or several, one after another; zeros that fill up a block of a tape may follow them. */
char *unpack_gzip(const char *path, const char *packed, size_t *n)
{
    enum { GZIP_ONLY = 16 + MAX_WBITS };
    struct unpacking unpacking = {.path = path, .packed = packed, .n_packed = *n};
    while (unpacking.at < unpacking.n_packed && packed[unpacking.at]) {
        z_stream z = {0};
        int code = inflateInit2(&z, GZIP_ONLY);
        while (code == Z_OK)
            code = unpack_some(&unpacking, &z);
        inflateEnd(&z);
        if (code != Z_STREAM_END)
            fail(EXIT_FAILED, "%s is damaged: gzip's data break off or are wrong at byte %zu of %zu; fetch it again",
                 path, unpacking.at, unpacking.n_packed);
    }
    unpacking.text = grow(unpacking.text, &unpacking.room, unpacking.used + 1, 1);
    unpacking.text[unpacking.used] = '\0';
    *n = unpacking.used;
    return unpacking.text;
}

char *read_first_bytes(const char *path, size_t most, size_t *n)
{
    struct reader *reader = open_reader(path);
    char *head = allocate(most + 1, 1);
    *n = reader->size < most ? (size_t)reader->size : most;
    read_at(reader, head, *n, 0);
    close_reader(reader);
    return head;
}

/* bytes.h - plain files: read whole, in parts, or mapped: bytes.c. */
#ifndef BYTES_H
#define BYTES_H

#include "trainer/base/base.h"

/* A file opened for positioned reads.  Errors end the program through fail(): EXIT_IO when it cannot be opened or
 * read, EXIT_FAILED when it is damaged. */
struct reader {
    const char *path;       /* copied, owned */
    int fd;                 /* the file, open */
    uint64_t size;          /* its bytes */
    struct cleanup cleanup; /* closes the file when an attempt() fails */
};
struct reader *open_reader(const char *path);                                   /* ends with close_reader() */
void read_at(struct reader *reader, void *into, size_t bytes, uint64_t offset); /* all of it, or fail() */
void close_reader(struct reader *reader);                                       /* frees it */
bool leads_to(const char *path, int fd); /* is fd the file that the path names now? */

/* The bytes of a whole file, and a 0 after them that *size does not count.  The caller frees them. */
char *read_whole(const char *path, size_t *size);

/* The first bytes of a file, at most `most`, with a zero after them; *n says how many.  The caller frees them. */
char *read_first_bytes(const char *path, size_t most, size_t *n);

/* Map a large regular file into memory.  Returns its size; 0: the file is small or not regular, and *memory is as it
 * was.  The system can take mapped memory back, unlike that of read_whole(). */
size_t map_large(const char *path, char **memory);
void unmap_bytes(char *memory, size_t size);

/* The length of UTF-8's byte order mark at the beginning of a text: 3, or 0 when there is none. */
size_t byte_order_mark(const char *text, size_t n);

/* Unpacks a gzip file, with all its members, from memory.  *n: at first the bytes of `packed`, afterwards the bytes of
 * the result, which ends with an added 0.  The caller frees the result.  `path` is for messages. */
char *unpack_gzip(const char *path, const char *packed, size_t *n);

#endif

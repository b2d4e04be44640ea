/* publish.h - files that appear whole or not at all: written beside, synced, renamed: publish.c. */
#ifndef PUBLISH_H
#define PUBLISH_H

#include "trainer/base/base.h"

/* Atomic publish: write `<path>.tmp-<pid>`, fsync it, rename it over `path`, fsync the folder.  A crash or fail() at
 * any moment leaves the old file or the new one, never a part.  fail() and signals remove the temporary; after SIGKILL
 * or a power cut it stays, and the next open_writer() for that path removes it. */
struct writer {
    const char *path;       /* what is to be written */
    const char *temporary;  /* the file beside it that is written until then */
    int fd;                 /* the temporary, open; NONE: it is closed */
    uint64_t offset;        /* how many bytes have been written */
    struct cleanup cleanup; /* closes and removes the temporary when fail() is called */
};
struct writer *open_writer(const char *path); /* ends with publish() or abandon() */
void write_bytes(struct writer *writer, const void *bytes, size_t n);

/* The same for callers that go on after a problem.  After one of try_write_bytes() they abandon() the writer. */
struct problem *try_open_writer(const char *path, struct writer **opened);
struct problem *try_write_bytes(struct writer *writer, const void *bytes, size_t n);

/* Writes n bytes to an open file.  Returns how many were written; if they are fewer than n, errno says why. */
size_t write_all(int fd, const void *bytes, size_t n);

int reserve_bytes(int fd, uint64_t bytes);      /* allocates the file's bytes on the disk; returns 0 or an errno */
struct problem *publish(struct writer *writer); /* sync + rename + sync folder; frees the writer in any case */
void publish_text(const char *path, const char *text);                /* open_writer() + write_bytes() + publish() */
struct problem *try_publish_text(const char *path, const char *text); /* the same, and returns the problem */
struct problem *sync_folder_of(const char *path); /* afterwards the file keeps its name even in a power cut */
void abandon(struct writer *writer);              /* remove the temporary; frees the writer */
#define TEMPORARY ".tmp-"
enum stray_name { STRAY_EXACTLY, STRAY_BEGINS };

/* Is `name` a temporary of a yard process that has ended: `<begin>.tmp-<pid>`, or, for STRAY_BEGINS, with other text
 * before ".tmp-"?  If another process has that number now, or one that we may not signal, the answer is no. */
bool is_stray(const char *name, const char *begin, enum stray_name form);

#endif

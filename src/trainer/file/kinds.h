/* kinds.h - what a file says it is: kinds.c. */
#ifndef KINDS_H
#define KINDS_H

#include "trainer/base/base.h"

#include <jansson.h>

enum known_kind {
    KIND_OTHER,
    KIND_SHORT_MARK, /* a kind known by two bytes only: token numbers may begin with these too */
    KIND_GZIP,
    KIND_SAFETENSORS,
    KIND_PNG,
    KIND_TRACE,
    KIND_SNAPSHOT,
    KINDS_OF_TEXT, /* those from here on can be read as text */
    KIND_LOG = KINDS_OF_TEXT,
    KIND_CHROME,
    KIND_PROFILE,
    KIND_STEP_FILE /* no file is known as one by its bytes: a person writes it */
};

struct file_kind {
    enum known_kind kind;
    const char *name; /* "a zip archive" */
    const char *way;  /* what to do with such a file */
};

/* The kind that a file's first and last bytes say; NULL: they say nothing. */
const struct file_kind *kind_of_file(const char *path);
const struct file_kind *kind_of_bytes(const char *bytes, size_t n);

bool is_foreign(const struct file_kind *kind); /* is it a format that is neither text nor token numbers? */

/* Ends the program (EXIT_IO) if the path is a folder.  wanted: what is expected, with its article, "a trace". */
void refuse_if_folder(const char *path, const char *wanted);

/* Ends the program if the path is a folder (EXIT_IO), or if the file is known to be of another kind (EXIT_USAGE): then
 * the message says of which one, and what to do with it.  wanted: what is expected. */
void refuse_if_other_kind(const char *path, enum known_kind kind, const char *wanted);

/* The part of a file by which its kind is known: its first bytes, and its last ones. */
enum { GLIMPSE_LAST = 8 };

struct glimpse {
    const char *bytes; /* the file's first n bytes */
    size_t n;
    uint64_t size;           /* bytes of the whole file */
    char last[GLIMPSE_LAST]; /* the file's last bytes; those of a shorter file are at the end of this array */
};

/* Are the n bytes of `text` at byte `at`, and among glimpse->bytes? */
bool glimpse_has(const struct glimpse *glimpse, size_t at, const char *text, size_t n);

/* Functions of the folder that knows files of other programs (struct training_parts, base/additions.h). */
struct formats {
    const struct file_kind *(*kind)(const struct glimpse *glimpse); /* NULL: the file is of no kind that is known */
    /* Each ends the program if the file is, or the folder has, a model in a form that is known but not read here. */
    void (*refuse_if_foreign_file)(const char *path);
    void (*refuse_if_foreign_folder)(const char *folder);
};

/* Reads a small text file that a person writes, without its byte order mark.  Ends the program when the file has a zero
 * byte, more than 16 MiB or another format.  The caller frees the text. */
char *read_text(const char *path);

bool begins_json(const char *head);  /* do the first bytes of a file, with a 0 after them, begin a JSON object? */
bool is_json(const char *path);      /* does the file begin a JSON object, and no safetensors file? */
json_t *read_json(const char *path); /* the JSON object in a file; fails where there is none */
json_t *parse_json(const char *path, const char *text); /* read_json() for a file that has been read */

#endif

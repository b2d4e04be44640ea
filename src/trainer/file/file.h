/* file.h - files: what kind they are, safetensors, llm.c's formats, token shards, and publishing atomically.
 *
 * Everything read is untrusted: sizes are checked before they are used, and every refusal names the file, the field or
 * byte, what was found and what was expected.  Everything written appears whole or not at all.
 */
#ifndef FILE_H
#define FILE_H

#include "trainer/base/base.h"

#include <jansson.h>

/* ---- bytes.c: plain files -------------------------------------------------------------------------------------- */

/* A file opened for positioned reads.  Errors end the program through fail(): EXIT_IO when it cannot be opened or
 * read, EXIT_FAILED when it is damaged. */
struct reader {
    const char *path; /* copied, owned */
    int fd;
    uint64_t size;
    struct cleanup cleanup; /* closes the file when an attempt() fails */
};
struct reader *open_reader(const char *path);                                   /* ends with close_reader() */
void read_at(struct reader *reader, void *into, size_t bytes, uint64_t offset); /* all of it, or fail() */
void close_reader(struct reader *reader);
bool leads_to(const char *path, int fd); /* is fd the file that the path names now? */
/* The bytes of a whole file, and a 0 after them that *size does not count.  The caller frees them. */
char *read_whole(const char *path, size_t *size);
/* Map a large regular file into memory.  Returns its size; 0: the file is small or not regular, and *memory is as it
 * was.  The system can take mapped memory back, unlike that of read_whole(). */
size_t map_large(const char *path, char **memory);
void unmap(char *memory, size_t size);
/* The length of UTF-8's byte order mark at the beginning of a text: 3, or 0 when there is none. */
size_t byte_order_mark(const char *text, size_t n);
/* Unpack a gzip file, with all its members, from memory.  *n: at first the bytes of `packed`, afterwards the bytes of
 * the result, which ends with an added 0.  The caller frees the result.  `path` is for messages. */
char *unpack_gzip(const char *path, const char *packed, size_t *n);

/* ---- kinds.c: what a file says it is ---------------------------------------------------------------------------- */

enum known_kind {
    KIND_OTHER,
    KIND_SHORT_MARK, /* a kind known by two bytes only: token numbers may begin with these too */
    KIND_GZIP,
    KIND_SAFETENSORS,
    KIND_PNG,
    KIND_TRACE,
    KIND_SNAPSHOT,
    KIND_LOG,
    KIND_CHROME,
    KIND_PROFILE
};
struct file_kind {
    enum known_kind kind;
    const char *name; /* "a zip archive" */
    const char *way;  /* what to do with such a file, which is neither text nor tokens; "": it is a text */
};
/* The kind that a file's first and last bytes say; NULL: they say nothing. */
const struct file_kind *kind_of_file(const char *path);
const struct file_kind *kind_of_bytes(const char *bytes, size_t n);
bool is_foreign(const struct file_kind *kind); /* is it a format that is neither text nor token numbers? */
/* The part of a file by which its kind is known: its first bytes, and its last ones. */
enum { GLIMPSE_LAST = 8 };
struct glimpse {
    const char *bytes; /* the file's first n bytes */
    size_t n;
    uint64_t size;           /* bytes of the whole file */
    char last[GLIMPSE_LAST]; /* the file's last bytes; those of a shorter file stand at the end of this array */
};
bool glimpse_has(const struct glimpse *g, size_t at, const char *text, size_t n);
uint32_t glimpse_word(const struct glimpse *g, size_t at);
/* Functions of the folder that knows files of other programs (struct sole_parts, base/module.h). */
struct formats {
    const struct file_kind *(*kind)(const struct glimpse *g); /* NULL: the file is of no kind that is known */
    /* End the program when the path is a model of another program that yard cannot read but knows; else return. */
    void (*refuse_model)(const char *path);
    void (*refuse_folder)(const char *path);
};
/* Read a small text file that a person writes, without its byte order mark.  Ends the program when the file has a zero
 * byte, more than 16 MiB or another format.  The caller frees the text. */
char *read_text(const char *path);

/* ---- claims.c: what the command reads and writes --------------------------------------------------------------- */

void begin_claims(void); /* forget all claims: a command begins */
/* Enter the file `path` under its claimant, the name of what reads or writes it: "--log".  Ends the program
 * (EXIT_USAGE) when the path is empty, or when an output is a file that was entered before.  Every file is claimed
 * before the first output is opened.  `may_replace`: the claimant of an input that this output may replace, since the
 * input is read whole before it is replaced whole; NULL: it may replace none. */
void claim_input(const char *claimant, const char *path);
void claim_output(const char *claimant, const char *path, const char *may_replace);
/* End the program unless an output may take this path: nothing is there, or a file of the output's own kind, an empty
 * file, or what is no regular file.  `name` is the kind's name in the sentence, "log of yard's". */
void expect_own_kind(const char *claimant, const char *path, enum known_kind kind, const char *name);
/* expect_own_kind(), and no other process may be writing to the file. */
void expect_replaceable(const char *claimant, const char *path, enum known_kind kind, const char *name);

/* ---- publish.c: write beside, sync, rename --------------------------------------------------------------------- */

/* Atomic publish: write `<path>.tmp-<pid>`, fsync it, rename it over `path`, fsync the folder.  A crash or fail() at
 * any moment leaves the old file or the new one, never a part.  fail() and signals remove the temporary; after SIGKILL
 * or a power cut it stays, and the next open_writer() for that path removes it. */
struct writer {
    const char *path;       /* what is to be written */
    const char *temporary;  /* the file beside it that is written until then */
    int fd;                 /* the temporary, open */
    uint64_t offset;        /* how many bytes have been written */
    struct cleanup cleanup; /* removes the temporary when fail() ends the program */
};
struct writer *open_writer(const char *path);
void write_bytes(struct writer *writer, const void *bytes, size_t n);
/* Writes n bytes to an open file.  Returns how many were written; if they are fewer than n, errno says why. */
size_t write_all(int fd, const void *bytes, size_t n);
int reserve_bytes(int fd, uint64_t bytes); /* allocates the file's bytes on the disk; returns 0 or an errno */
void publish(struct writer *writer);       /* sync + rename + sync folder; frees the writer */
void publish_text(const char *path, const char *text); /* open_writer() + write_bytes() + publish() */
void sync_folder_of(const char *path);                 /* afterwards the file keeps its name even in a power cut */
void abandon(struct writer *writer);                   /* remove the temporary; frees the writer */
#define TEMPORARY ".tmp-"
enum stray_name { STRAY_EXACTLY, STRAY_BEGINS };
/* Is `name` a temporary of a yard process that has ended: `<begin>.tmp-<pid>`, or, for STRAY_BEGINS, with other text
 * before ".tmp-"?  If another process has that number now, or one that we may not signal, the answer is no. */
bool is_stray(const char *name, const char *begin, enum stray_name form);

/* ---- paths.c: what is at a path ---------------------------------------------------------------------------------- */

bool is_folder(const char *path);
bool exists(const char *path); /* true also for a link that leads nowhere: opening it says so */
/* Make `path` and its parents.  fail(EXIT_IO) names what is in the way. */
void make_folder(const char *path);
/* The path of the file itself, if `path` is a link to it, so that not the link, such as /dev/stdout, is replaced.  The
 * caller frees it. */
char *behind_links(const char *path);

/* ---- locks.c: one process at a time ------------------------------------------------------------------------------ */

/* A second process that wants the same lock fails, naming its claimant ("--log").  A lock holds until the descriptor
 * and its copies are closed, or the process ends; some file systems (NFS) have no locks. */
int lock_folder(const char *claimant, const char *path); /* returns the descriptor to close; 0: it is not locked */
void lock_file(const char *claimant, const char *path, int fd);
/* open() the regular file at this path with `flags`, and lock it.  -1: the path is a device or a pipe, to which several
 * processes may write; or nothing is there, and flags lack O_CREAT. */
int open_locked(const char *claimant, const char *path, int flags);
/* End the program when another process holds a lock of the file or folder now. */
void expect_unlocked(const char *claimant, const char *path);

/* ---- safetensors.c: a strict reader and a writer --------------------------------------------------------------- */

enum dtype { DTYPE_F32, DTYPE_I32, DTYPE_F16, DTYPE_BF16, DTYPE_F64, DTYPE_OTHER };
enum { MOST_DIMS = 8 }; /* of a tensor in a file; one of ours has at most MAX_DIMS */
struct st_tensor {
    char *name;
    enum dtype dtype;
    const char *dtype_name;
    int n_dims;
    int64_t shape[MOST_DIMS];
    uint64_t offset; /* from the start of the file */
    uint64_t bytes;
};
struct safetensors {
    struct reader *file;
    size_t n;
    struct st_tensor *tensors; /* sorted by offset */
    json_t *metadata;          /* an object of texts; NULL: there is none */
};
struct safetensors *open_safetensors(const char *path);
void close_safetensors(struct safetensors *st);
const struct st_tensor *find_tensor(const struct safetensors *st, const char *name); /* NULL when absent */
const char *find_metadata(const struct safetensors *st, const char *key);            /* NULL when absent */
size_t st_elements(const struct st_tensor *x);                                       /* product of the shape */
/* All elements as float (from F32, F16, BF16, F64), or as int32 (from I32).  Fails, and names the tensor, when the
 * dtype is another.  `into` has room for all elements. */
void read_floats(const struct safetensors *st, const struct st_tensor *x, float *into);
void read_ints(const struct safetensors *st, const struct st_tensor *x, int32_t *into);
/* Writes "[2, 16, 67]" into out; returns out. */
char *format_shape(char out[128], int n_dims, const int64_t *shape);

/* Writing: declare every tensor, call st_begin(), which writes the header, then write the bytes in the same order. */
struct st_writer;
struct st_writer *new_st_writer(const char *path);
void st_metadata(struct st_writer *writer, const char *key, const char *value);
void st_declare(struct st_writer *writer, const char *name, enum dtype dtype, int n_dims, const int64_t *shape);
uint64_t st_begin(struct st_writer *writer); /* returns the byte of the file where the data begin */
void st_write(struct st_writer *writer, const void *bytes, size_t n);
void st_publish(struct st_writer *writer); /* fails a CHECK when the bytes written are not the bytes declared */

/* ---- llmc.c: llm.c's model checkpoint and token shard ---------------------------------------------------------- */

enum { LLMC_MODEL_MAGIC = 20240326, LLMC_TOKENS_MAGIC = 20240520, LLMC_HEADER_BYTES = 1024, LLMC_PARAMETERS = 16 };
struct llmc_model {
    struct reader *file;
    int32_t max_seq_len, vocab, layers, heads, channels, padded_vocab;
};
/* Checks magic, version (3 = float32), sane sizes, and that the file is exactly as long as these sizes need. */
struct llmc_model *open_llmc_model(const char *path);
void close_llmc_model(struct llmc_model *m);
/* Does the file start with this magic number (little endian int32)?  false for files shorter than 4 bytes. */
bool has_magic(const char *path, int32_t magic);
/* The name of the kind that the file's magic number means, "an llm.c tokenizer"; NULL: it is none of llm.c's. */
const char *llmc_kind(const char *path);
const char *llmc_kind_of_bytes(const char *bytes, size_t n);
/* The *n tokens of an llm.c shard (magic, version 1), or of a headerless file of uint16.  The caller frees them.
 * Refused are a text, and a headerless file whose tokens are wider: the zeros in it show this, or, for Megatron's, the
 * index beside it. */
uint16_t *read_token_shard(const char *path, size_t *n);
uint16_t *read_headerless_tokens(const char *path, size_t *n);

#endif

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
    struct cleanup cleanup; /* closes it when an attempt() fails */
};
struct reader *open_reader(const char *path);
void read_at(struct reader *r, void *into, size_t bytes, uint64_t offset); /* all of it, or fail() */
void close_reader(struct reader *r);
bool leads_to(const char *path, int fd); /* is it the path of the file that is open? */
/* A whole text file; *size without the added terminating 0.  The caller frees it. */
char *read_whole(const char *path, size_t *size);
/* Bytes of UTF-8's byte order mark at the beginning of a text: 3, or 0 without one. */
size_t byte_order_mark(const char *text, size_t n);
/* What a gzip file in memory holds, all its members; *n becomes its bytes.  The caller frees it. */
char *unpack_gzip(const char *path, const char *packed, size_t *n);

/* ---- kinds.c: what a file says it is ---------------------------------------------------------------------------- */

enum known_kind {
    KIND_OTHER,
    KIND_SHORT_MARK, /* of two bytes, with which token numbers may begin too */
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
    const char *way;  /* what to do with it instead of reading it as text or tokens; "": it is a text */
};
/* By the first and last bytes; NULL: they say nothing. */
const struct file_kind *kind_of_file(const char *path);
const struct file_kind *kind_of_bytes(const char *bytes, size_t n);
bool is_foreign(const struct file_kind *kind); /* of a format that is neither text nor token numbers */
/* What is looked at of a file: its first bytes, and its last ones. */
enum { GLIMPSE_LAST = 8 };
struct glimpse {
    const char *bytes; /* the first n */
    size_t n;
    uint64_t size;
    char last[GLIMPSE_LAST]; /* bytes of the file, at the end of this array */
};
bool glimpse_has(const struct glimpse *g, size_t at, const char *text, size_t n);
uint32_t glimpse_word(const struct glimpse *g, size_t at);
/* The folder that knows files of other programs; there is one at most (struct module). */
struct formats {
    const struct file_kind *(*kind)(const struct glimpse *g); /* NULL: it is none that is known */
    /* End the program where that is no model that is read here, but is known. */
    void (*refuse_model)(const char *path);
    void (*refuse_folder)(const char *path);
};
const struct formats *find_formats(void); /* NULL: there is none */
/* A small text that a person writes, whole: one with a zero byte, above 16 MiB or of another format is refused, and a
 * byte order mark is no part of it.  The caller frees it. */
char *read_text(const char *path);

/* ---- claims.c: what the command reads and writes --------------------------------------------------------------- */

/* Enter the file `path` under the name of who reads or writes it, "--log".  Ends the program (EXIT_USAGE) when the path
 * is empty, or when an output is a file that was entered before.  To be called before the first output is opened.
 * `may_replace`: an output may be the file that this reader entered, as it is read whole before it is replaced whole;
 * NULL: nobody's. */
void begin_claims(void); /* nothing is claimed: a command begins */
void claim_input(const char *who, const char *path);
void claim_output(const char *who, const char *path, const char *may_replace);
/* What an output may take the path from: a file of its own kind that nobody is writing, an empty one, and what is no
 * regular file.  Else the program ends; `name` is how the sentence calls the kind, "log of yard's". */
void expect_own_kind(const char *who, const char *path, enum known_kind kind, const char *name);
void expect_replaceable(const char *who, const char *path, enum known_kind kind, const char *name); /* and unlocked */

/* ---- publish.c: write beside, sync, rename --------------------------------------------------------------------- */

/* Atomic publish: write `<path>.tmp-<pid>`, fsync it, rename it over `path`, fsync the folder.  A crash or fail() at
 * any moment leaves the old file or the new one, never a part.  fail() and signals remove the temporary; what SIGKILL
 * or a power cut leaves, the next open_writer() for that path removes. */
struct writer {
    const char *path, *temporary;
    int fd;
    uint64_t offset;
    struct cleanup cleanup; /* removes the temporary when fail() ends the program */
};
struct writer *open_writer(const char *path);
void write_bytes(struct writer *w, const void *bytes, size_t n);
int reserve_bytes(int fd, uint64_t bytes);             /* of the disk, where the system can; an errno */
void publish(struct writer *w);                        /* sync + rename + sync folder; frees w */
void publish_text(const char *path, const char *text); /* all of these */
void sync_folder_of(const char *path);                 /* so that the file has its name for sure */
void abandon(struct writer *w);                        /* remove the temporary; frees w */
bool is_folder(const char *path);
bool exists(const char *path); /* also a link that leads nowhere: opening it says so */
/* Make `path` and its parents.  fail(EXIT_IO) names what is in the way. */
void make_folder(const char *path);
/* Locks: a second process that wants the same fails, naming who wants it.  They hold until the descriptor and its
 * copies are closed, or the process ends; some file systems (NFS) have none. */
int lock_folder(const char *who, const char *path); /* 0: it is not locked */
void lock_file(const char *who, const char *path, int fd);
/* The regular file that has this name, open()ed with `flags` and locked.  -1: there is a device or a pipe, to which
 * many may write; or nothing, without O_CREAT. */
int open_locked(const char *who, const char *path, int flags);
void expect_unlocked(const char *who, const char *path); /* a file or folder, now: nothing is held */
#define TEMPORARY ".tmp-"
/* Is `name` one of ours, `<begin>.tmp-<pid>`, or with more between, of a process that is no more?  A number that
 * another process has by now counts as alive, and so does one that we may not signal. */
bool is_stray(const char *name, const char *begin, bool more);
/* The file that is to be replaced: a link to one, such as /dev/stdout, stays.  The caller frees it. */
char *behind_links(const char *path);

/* ---- safetensors.c: a strict reader and a writer --------------------------------------------------------------- */

enum dtype { DTYPE_F32, DTYPE_I32, DTYPE_F16, DTYPE_BF16, DTYPE_F64, DTYPE_OTHER };
enum { MAX_RANK = 8 };
struct st_tensor {
    char *name;
    enum dtype dtype;
    const char *dtype_name;
    int rank;
    int64_t shape[MAX_RANK];
    uint64_t offset; /* from the start of the file */
    uint64_t bytes;
};
struct safetensors {
    struct reader *file;
    size_t n;
    struct st_tensor *tensors; /* in order of offset */
    json_t *metadata;          /* an object of texts; NULL: there is none */
};
struct safetensors *open_safetensors(const char *path);
void close_safetensors(struct safetensors *st);
const struct st_tensor *find_tensor(const struct safetensors *st, const char *name); /* NULL when absent */
const char *find_metadata(const struct safetensors *st, const char *key);            /* NULL when absent */
size_t st_elements(const struct st_tensor *t);                                       /* product of the shape */
/* All elements as float (from F32, F16, BF16, F64), or as int32 (from I32); fails naming the tensor when the dtype is
 * another.  `into` holds the product of the shape. */
void read_floats(const struct safetensors *st, const struct st_tensor *t, float *into);
void read_ints(const struct safetensors *st, const struct st_tensor *t, int32_t *into);
/* "[2, 16, 67]" into out, returned. */
char *format_shape(char out[128], int rank, const int64_t *shape);

/* Writing: declare every tensor, then write their bytes in the declared order (begin_ writes the header). */
struct st_writer;
struct st_writer *new_st_writer(const char *path);
void st_metadata(struct st_writer *w, const char *key, const char *value);
void st_declare(struct st_writer *w, const char *name, enum dtype dtype, int rank, const int64_t *shape);
uint64_t st_begin(struct st_writer *w); /* the byte of the file where the data begin */
void st_write(struct st_writer *w, const void *bytes, size_t n);
void st_publish(struct st_writer *w); /* fails a CHECK when the bytes written are not the bytes declared */

/* ---- llmc.c: llm.c's model checkpoint and token shard ---------------------------------------------------------- */

enum { LLMC_MODEL_MAGIC = 20240326, LLMC_TOKENS_MAGIC = 20240520, LLMC_HEADER_BYTES = 1024, LLMC_PARAMETERS = 16 };
struct llmc_model {
    struct reader *file;
    int32_t max_seq_len, vocab, layers, heads, channels, padded_vocab;
};
/* Checks magic, version (3 = float32), sane sizes, and that the file's size is exactly what they ask for. */
struct llmc_model *open_llmc_model(const char *path);
void close_llmc_model(struct llmc_model *m);
/* Does the file start with this magic number (little endian int32)?  false for files shorter than 4 bytes. */
bool has_magic(const char *path, int32_t magic);
/* What llm.c's magic number says, "an llm.c tokenizer"; NULL: there is none that is known. */
const char *llmc_kind(const char *path);
const char *llmc_kind_of_bytes(const char *bytes, size_t n);
/* Tokens of an llm.c shard (magic, version 1) or of a headerless uint16 file; *n of them.  The caller frees them.
 * Headerless tokens of 4 or 8 bytes are known by their zeros, those of Megatron by the index beside; they are refused,
 * and so is text. */
uint16_t *read_token_shard(const char *path, size_t *n);
uint16_t *read_headerless_tokens(const char *path, size_t *n);

#endif

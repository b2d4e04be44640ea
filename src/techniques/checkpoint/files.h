/* files.h - the files of a checkpoint.  The manifest is its description:
 *
 *     {"hash":"c0ffee0123456789",           the first line: XXH64 of all bytes after it, in 16 digits
 *     "version":2, "step":30, ... "tensors":[
 *     {"name":"wte.weight","role":"value", ... "pieces":[{"file":"rank-0.safetensors","offset":4096, ...}]},
 *     ...]}
 *
 * In a folder it is the file MANIFEST.  A file of another form (struct checkpoint_form) has it in it.
 *
 * Writing a checkpoint:
 *
 *     open_ranks()       the pieces get their places; the files' headers are written
 *     write_piece()      a piece gets its hash, and its file its bytes: pieces come in the order of struct cut_tensors
 *     publish_ranks()    files, then the manifest, then the folder
 *
 * Until then the folder has a temporary name, and fail() removes it.  What the system refuses ends the program
 * (EXIT_IO).
 */
#ifndef FILES_H
#define FILES_H

#include "checkpoint.h"
#include "trainer/file/file.h"

#define MANIFEST "manifest.json"
enum { MANIFEST_VERSION = 2, MOST_MANIFEST_BYTES = 256 << 20 };

/* A manifest for many states, as a snapshot file has, says only how they are laid out.  It leaves out the fields that
 * belong to one state. */
enum manifest_kind { LAYOUT_MANIFEST, STATE_MANIFEST };

#define ADVICE_IF_DAMAGED "take another checkpoint"

/* ---- checkpoint.c ------------------------------------------------------------------------------------------------ */

/* Ends the program as fail() does, with this sentence on what is damaged, and the advice. */
_Noreturn void refuse_damaged(enum exit_code code, const char *format, ...) PRINTF_LIKE(2, 3);

/* ---- manifest_write.c -------------------------------------------------------------------------------------------- */

/* The whole text, of the layout alone where the checkpoint has another form; the caller frees it. */
char *manifest_text(const struct checkpoint *checkpoint);

/* Parts of it, which the caller owns. */
json_t *tensor_json(const struct checkpoint *checkpoint, const struct kept_tensor *tensor, enum manifest_kind kind);
json_t *tensors_json(const struct checkpoint *checkpoint); /* all tensors, each with its pieces, files and hashes */
json_t *mesh_json(const struct mesh *mesh);

/* ---- manifest_read.c --------------------------------------------------------------------------------------------- */

/* The checkpoint that the folder's manifest describes.  Strict: fails (EXIT_FAILED) with the rule that the manifest
 * breaks, and its place in the manifest.  The files beside the manifest are not looked at: open_checkpoint() does that.
 * The caller frees it with free_checkpoint(). */
struct checkpoint *read_manifest(const char *folder);

/* read_manifest() for a text of n bytes.  path: the file that has the text, which becomes the checkpoint's path too.
 * single_file: NULL, or that of a checkpoint in a single file, with its sizes set; the checkpoint owns it then. */
struct checkpoint *parse_manifest(const char *path, const char *text, size_t n, struct single_file *single_file);

/* ---- publish_folder.c: a folder that appears whole --------------------------------------------------------------- */

/* A folder that is being written: its files go, each by a writer, into `<path>.tmp-<pid>`, which publishing
 * renames.  A folder of that name is replaced: the two change places in one go where the system can do that, else the
 * new one is whole as `<path>.new` before the old one goes. */
struct folder {
    char *path, *temporary;
    char **files; /* the paths that file_in() gave out: a clean-up removes these files */
    size_t n, cap;
    struct cleanup cleanup;
};

/* Makes the temporary folder, for at most most_files files.  publish_folder() gives it its name.  What the system
 * refuses ends the program (EXIT_IO) in both, and then the temporary folder is removed. */
struct folder *open_folder(const char *path, size_t most_files);

/* The path under which to write this file of the folder.  It is the folder's, and lives until publish_folder(). */
const char *file_in(struct folder *folder, const char *name);

/* Gives the folder its name, and frees `folder`. */
void publish_folder(struct folder *folder);

/* Renames the folder, so that it is gone at once; then removes the files in it that yard writes, one by one.  Other
 * files stay, in `<path>.kept-<pid>`, and a warning says so.  A link to a folder is removed, what it leads to stays. */
void remove_folder(const char *path);

/* Removes the folders `<begin>*.tmp-<pid>` in `parent` of processes that are no more. */
void remove_stray_folders(const char *parent, const char *begin);

/* ---- rank_files.c ------------------------------------------------------------------------------------------------ */

struct rank_writers {
    struct folder *folder;
    struct st_writer **files; /* by rank, with the header written: it expects the bytes of the rank's pieces in order;
                              * NULL: the rank has no pieces */
};

/* The checkpoint has a path, and pieces, which get their places. */
struct rank_writers open_ranks(struct checkpoint *checkpoint);

/* Writes the piece's bytes, ELEMENT_BYTES for each of its elements, and sets its hash. */
void write_piece(const struct rank_writers *writers, struct piece *piece, const char *bytes);

/* Call it when all pieces are written.  Frees what open_ranks() has allocated. */
void publish_ranks(struct rank_writers *writers, const struct checkpoint *checkpoint);

/* ---- past_cache.c: files without the page cache between them and the disk ---------------------------------------- */

enum { DIRECT_ALIGNMENT = 4096 }; /* bytes: such reads and writes need memory, offset and length of its multiples */

/* Opens the file so that what is read and written goes past the page cache.  NONE: the system or the file system
 * cannot do that.  The caller closes it. */
int open_past_cache(const char *path, int flags);

#endif

/* manifest.h - the description of a checkpoint as a file: written by manifest.c, which has its form, and read by
 * read_manifest.c.
 *
 *     {"hash":"c0ffee0123456789",           the first line: XXH64 of all bytes after it, in 16 digits
 *     "version":2, "step":30, ... "tensors":[
 *     {"name":"wte.weight","role":"value", ... "pieces":[{"file":"rank-0.safetensors","offset":4096, ...}]},
 *     ...]}
 *
 * In a folder it is the file MANIFEST.  A file of another form (other_form.h) has it in it.
 */
#ifndef MANIFEST_H
#define MANIFEST_H

#include "checkpoint.h"
#include "other_form.h"

#define MANIFEST "manifest.json"
enum { MANIFEST_VERSION = 2, MOST_MANIFEST_BYTES = 256 << 20 };

/* A manifest for many states, as a snapshot file has, says only how they are laid out.  It leaves out the fields that
 * belong to one state. */
enum manifest_of { MANIFEST_OF_LAYOUT, MANIFEST_OF_STATE };

/* ---- manifest.c ------------------------------------------------------------------------------------------------- */

/* The whole text, of the layout alone where the checkpoint has another form; the caller frees it. */
char *manifest_text(const struct checkpoint *checkpoint);
/* Parts of it, which the caller owns: a tensor with its pieces, all tensors with theirs, and a mesh. */
json_t *tensor_json(const struct checkpoint *checkpoint, const struct kept_tensor *tensor, enum manifest_of of);
json_t *tensors_json(const struct checkpoint *checkpoint);
json_t *mesh_json(const struct mesh *mesh);

/* ---- read_manifest.c -------------------------------------------------------------------------------------------- */

/* The checkpoint that the folder's manifest describes.  Strict: fails (EXIT_FAILED) with the rule that the manifest
 * breaks, and its place in the manifest.  The files beside the manifest are not looked at: open_checkpoint() does that.
 * The caller frees it with free_checkpoint(). */
struct checkpoint *read_manifest(const char *folder);
/* read_manifest() for a text of n bytes.  other_form: NULL, or what the other form of this checkpoint adds, with its
 * sizes set; the checkpoint owns it then. */
struct checkpoint *parse_manifest(const char *path, const char *text, size_t n, struct other_form *other_form);

#endif

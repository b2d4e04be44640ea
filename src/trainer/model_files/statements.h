/* statements.h - what is said of a model of another program beside its tensors: by a config.json in its folder, and by
 * the metadata "config" in its file's header.
 *
 * Both are the fields of a JSON object.  A field that asks for what is not computed here ends the program with
 * EXIT_USAGE; one that contradicts another, or the shapes of the tensors, with EXIT_FAILED.  The sentence names file
 * and field.  Implemented in statements.c.
 */
#ifndef STATEMENTS_H
#define STATEMENTS_H

#include "model_files.h"

#define TIED_FIELD "tie_word_embeddings"

struct statement {
    char *where;    /* how messages name it: the path of config.json, or "FILE, metadata ..." */
    json_t *fields; /* the object */
};

struct statements {
    struct statement all[2]; /* the first is config.json's */
    size_t n;                /* how many there are: 0 to 2 */
};

/* What is said of the model at `path`, whose tensors are in these files.  The caller frees it with
 * free_statements(). */
struct statements read_statements(const char *path, struct safetensors *const *files, size_t n_files);
void free_statements(struct statements *statements);

/* Fail where a statement asks for what is not computed here, or for other sizes than the shapes in `path` give. */
void refuse_if_other_computation(const struct statements *statements);
void expect_sizes(const struct statements *statements, const char *path, const struct config *config);

/* The number of heads, which no tensor's shape says: what a statement says, else `heads`, the number that --heads gives
 * (0: it was not given), else a guess, with a warning. */
int count_heads(const struct statements *statements, const char *path, int channels, int heads);

/* The last statement that says whether the head is tied; NULL: none does. */
const struct statement *find_tied_field(const struct statements *statements);

bool says_tied(const struct statement *statement); /* does the statement say that the head is tied? */

#endif

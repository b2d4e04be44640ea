/* statements.h - what is said of a model, beside its tensors. */
#ifndef STATEMENTS_H
#define STATEMENTS_H

#include "import.h"

#define TIED_FIELD "tie_word_embeddings"
struct statement {
    char *where; /* the path of config.json, or the file and "metadata" */
    json_t *fields;
};
struct statements {
    struct statement all[2]; /* config.json, metadata */
    size_t n;
};
/* What is said of the model at `path`, which is in these files. */
struct statements read_statements(const char *path, struct safetensors *const *file, size_t n_files);
void free_statements(struct statements *s);
/* Fail where a statement asks for what is not computed here, or for other sizes than the shapes in `path` give. */
void refuse_other_computation(const struct statements *s);
void expect_sizes(const struct statements *s, const char *path, const struct config *c);
/* No tensor's shape says how many heads there are.  heads: the number that --heads gives; 0: it was not given. */
int count_heads(const struct statements *s, const char *path, int channels, int heads);
/* The last statement that says whether the head is tied; NULL: none does. */
const struct statement *find_tied_field(const struct statements *s);
bool says_tied(const struct statement *s);

#endif

/* llmc.h - llm.c's model checkpoint and token shard: llmc.c. */
#ifndef LLMC_H
#define LLMC_H

#include "bytes.h"

enum { LLMC_MODEL_MAGIC = 20240326, LLMC_TOKENS_MAGIC = 20240520, LLMC_HEADER_BYTES = 1024, LLMC_PARAMETERS = 16 };

struct llmc_model {
    struct reader *file;             /* open; its values follow the header */
    int32_t max_seq_len, vocab;      /* positions; words */
    int32_t layers, heads, channels; /* L, H, C */
    int32_t padded_vocab;            /* rows of the embedding in the file, of which the last ones are padding */
};

/* Checks magic, version (3 = float32), sane sizes, and that the file is exactly as long as these sizes need. */
struct llmc_model *open_llmc_model(const char *path);
void close_llmc_model(struct llmc_model *file);

/* Does the file start with this magic number (little endian int32)?  false for files shorter than 4 bytes. */
bool has_magic(const char *path, int32_t magic);

/* The name of the kind that the file's magic number means, "an llm.c tokenizer"; NULL: it is none of llm.c's. */
const char *llmc_kind(const char *path);
const char *llmc_kind_of_bytes(const char *bytes, size_t n);

/* The *n tokens of an llm.c shard (magic, version 1), or of a headerless file of uint16.  The caller frees them.  A
 * text is refused, and a headerless file of wider tokens too.  The latter has zeros between small tokens, or, if it is
 * Megatron's, an index beside it that tells their width. */
uint16_t *read_token_shard(const char *path, size_t *n);
uint16_t *read_headerless_tokens(const char *path, size_t *n);

#endif

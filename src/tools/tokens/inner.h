/* inner.h - what the files of this folder share. */
#ifndef TOKENS_INNER_H
#define TOKENS_INNER_H

#include "bpe.h"

/* ---- maps.c ----------------------------------------------------------------------------------------------------- */

/* A hash map from numbers to numbers below NO_NUMBER. */
enum { NO_NUMBER = -1 };
struct number_map;
struct number_map *new_map(void);
void free_map(struct number_map *m);
int64_t map_find(const struct number_map *m, uint64_t key); /* NO_NUMBER: the key is not there */
void map_put(struct number_map *m, uint64_t key, uint32_t number);

/* A heap of numbers, smallest first. */
struct heap {
    uint64_t *item;
    size_t n, cap;
};
void heap_push(struct heap *h, uint64_t item);
uint64_t heap_pop(struct heap *h); /* of a heap that is not empty */

/* ---- split.c ---------------------------------------------------------------------------------------------------- */

enum char_class { LETTER = 'l', NUMBER = 'n', SPACE = 's', OTHER = 'o' };
extern const char unicode_runs[]; /* classes.c */
uint8_t *unicode_classes(void);   /* [CODE_POINTS] enum char_class; the caller frees them */

/* Called for what a text consists of, from its beginning to its end. */
struct visitor {
    void (*word)(void *context, const char *bytes, size_t n);
    void (*added)(void *context, int token);
    void *context;
    const char *activity; /* what is done, for the line of progress */
};
void visit_text(const struct bpe *b, const struct text *text, const struct visitor *v);

/* ---- bpe.c: making a tokenizer ---------------------------------------------------------------------------------- */

struct bpe *new_bpe(int n);
/* These return what is wrong, as the end of a sentence that names the token or merge; NULL: all is well. */
const char *set_token(struct bpe *b, int id, const char *bytes, size_t n);
const char *add_merge(struct bpe *b, int left, int right, int result); /* sets result's bytes */
const char *add_added(struct bpe *b, const struct added *a, const char *text, size_t n);
size_t join_bytes(const struct bpe *b, int left, int right, char bytes[2 * MOST_TOKEN_BYTES]); /* returns how many */
static inline uint64_t pair_key(int left, int right) { return (uint64_t)left << 16 | (uint64_t)right; }

/* ---- names.c: bytes as characters that can be shown --------------------------------------------------------- */

/* GPT-2's files write bytes as characters: those that Latin-1 shows as themselves, the others as U+0100 and so on. */
enum { BYTE_CHARACTERS = 256 + 68 };
void byte_characters(uint32_t character[256]);
void bytes_of_characters(int byte_of[BYTE_CHARACTERS]); /* by character; NONE: it stands for no byte */
char *name_of_bytes(const char *bytes, size_t n);
/* The *n bytes, which the caller frees; NULL: a character of the name stands for no byte. */
char *bytes_of_name(const char *name, size_t *n);

/* ---- write_tokens.c: parts of tokenizer.json -------------------------------------------------------------------- */

json_t *byte_level_json(bool splits); /* splits: a text is cut into GPT-2's words */
/* The file of these parts, which it takes over. */
json_t *tokenizer_json(json_t *added, json_t *before, json_t *decoder, json_t *model);

/* ---- files.c ---------------------------------------------------------------------------------------------------- */

/* Does a tokenizer.json ask for what is not computed here, whatever its tokens are: a normalizer, byte_fallback ...? */
bool asks_for_more(const json_t *top);

/* ---- single.c: tokenizer.json of bytes and of characters, also as other programs write it anew ------------------ */

json_t *single_to_json(const struct tokenizer *t);     /* NULL: its tokens are others */
struct tokenizer single_from_json(const json_t *json); /* without tokens: it is neither */

#endif

/* tokens_parts.h - what the files of this folder need of one another.  bpe.h has what others need. */
#ifndef TOKENS_PARTS_H
#define TOKENS_PARTS_H

#include "bpe.h"

/* ---- map_and_heap.c ---------------------------------------------------------------------------------------------- */

/* A hash map from uint64_t to uint32_t. */
enum { NO_NUMBER = -1 }; /* what map_find() returns of a key that is not there */
struct number_map;
struct number_map *new_map(void);
void free_map(struct number_map *map);
int64_t map_find(const struct number_map *map, uint64_t key);
void map_put(struct number_map *map, uint64_t key, uint32_t number);

/* A heap of numbers, smallest first. */
struct heap {
    uint64_t *item;
    size_t n, cap;
};
void heap_push(struct heap *heap, uint64_t item);
uint64_t heap_pop(struct heap *heap); /* the heap is not empty */

/* ---- split.c ----------------------------------------------------------------------------------------------------- */

enum char_class { LETTER = 'l', NUMBER = 'n', SPACE = 's', OTHER = 'o' };
extern const char unicode_runs[]; /* classes.c */
uint8_t *unicode_classes(void);   /* [CODE_POINTS] enum char_class; the caller frees them */

/* Functions that are called for the words and added tokens of a text, from its beginning to its end. */
struct visitor {
    void (*word)(void *context, const char *bytes, size_t n);
    void (*added)(void *context, int token); /* NULL: they are passed over */
    void *context;
    const char *activity; /* what the line of progress says, "encoding" */
};
void visit_text(const struct bpe *bpe, const struct text *text, const struct visitor *visitor);

/* ---- bpe.c: making a tokenizer ----------------------------------------------------------------------------------- */

struct bpe *new_bpe(int n); /* n tokens without bytes, no merges; the caller frees it with free_bpe() */

/* The sentence of a problem of these three lacks its subject, the token or the merge, which the caller knows. */
struct problem *set_token(struct bpe *bpe, int id, const char *bytes, size_t n);
struct problem *add_merge(struct bpe *bpe, int left, int right, int result); /* sets result's bytes */
struct problem *add_added(struct bpe *bpe, const struct added_token *added, const char *text, size_t n);

/* Writes the bytes of the two tokens, one after the other, and returns how many there are. */
size_t join_bytes(const struct bpe *bpe, int left, int right, char bytes[2 * MOST_TOKEN_BYTES]);
static inline uint64_t pair_key(int left, int right) { return (uint64_t)left << 16 | (uint64_t)right; }

/* ---- byte_names.c: bytes as characters that can be shown --------------------------------------------------------- */

/* GPT-2's files write each byte as a character: a byte that Latin-1 shows as this character, the 68 others, in
 * ascending order, as the characters from U+0100 on.  A *name* is a token's bytes written so. */
enum { BYTE_CHARACTERS = 256 + 68 };
void byte_characters(uint32_t character[256]);          /* by byte: its character */
void bytes_of_characters(int byte_of[BYTE_CHARACTERS]); /* by character; NONE: it stands for no byte */
char *name_of_bytes(const char *bytes, size_t n);       /* the caller frees it */

/* The *n bytes, which the caller frees; NULL: a character of the name stands for no byte. */
char *bytes_of_name(const char *name, size_t *n);

/* ---- write_tokenizer.c: parts of tokenizer.json ------------------------------------------------------------------ */

enum cutting_of_text { CUTS_NOTHING, CUTS_WORDS };
json_t *byte_level_json(enum cutting_of_text cutting); /* CUTS_WORDS: a text is cut into GPT-2's words */

/* The JSON of these parts, which it then owns. */
json_t *tokenizer_json(json_t *added, json_t *before, json_t *decoder, json_t *model);

/* ---- read_tokenizer.c -------------------------------------------------------------------------------------------- */

/* Does this tokenizer.json ask for something that is not computed here: a normalizer, byte_fallback ...?  What only
 * matters where there are merges is not looked at. */
bool asks_for_more(const json_t *top);

/* ---- single_characters.c: tokenizer.json of bytes and of characters ---------------------------------------------- */

/* These know the kinds bytes and chars, also as other programs write the same file in another way. */
json_t *single_to_json(const struct tokenizer *tokenizer); /* NULL: it is of another kind */
struct tokenizer single_from_json(const json_t *json);     /* a tokenizer without tokens: the file has another kind */

#endif

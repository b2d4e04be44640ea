/* support_tokens.h - texts and tokenizers for the tests of src/tools/tokens. */
#ifndef SUPPORT_TOKENS_H
#define SUPPORT_TOKENS_H

#include "support.h"
#include "tools/tokens/tokens_parts.h"

struct text text_of(const char *bytes);
extern const char *const two_added[]; /* "<|end|>" and "<|end|>ing", and a NULL */

/* A tokenizer with the 256 bytes and two_added; it has room for n tokens. */
struct bpe *only_bytes(int n);

/* The same with merges up to n tokens.  They join any tokens that there are, not those of a text: they overlap, and
 * most words can be merged in several ways. */
struct bpe *random_bpe(struct draws *draws, int n);

/* Letters, white space of all kinds, characters of several lengths, endings, added tokens, and any bytes: n or a few
 * more.  The caller frees the bytes. */
struct text random_text(struct draws *draws, size_t n);

/* Fails unless these tokens stand for the text. */
void expect_decoded(const struct bpe *bpe, const struct text *text, const uint16_t *tokens, size_t n);

#endif

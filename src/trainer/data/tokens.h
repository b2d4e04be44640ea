/* tokens.h - text to token numbers and back.
 *
 *     "I am"  --tokens bytes   73 32 97 109          a token is a byte
 *             --tokens chars   5 1 11 19             a character of the training text
 *             --tokens bpe:N   40 716                bytes that often come together (src/tools/tokens)
 *             --tokens FILE    40 716                what another program's tokenizer says (the same folder)
 *             (.bin files)     40 716                ids: the numbers were made elsewhere
 *
 * A *kind* of tokenizer is a table of functions.  The three that the trainer has are in tokens.c; a folder may add
 * another one (struct training_parts, base/additions.h).
 */
#ifndef TOKENS_H
#define TOKENS_H

#include "trainer/base/base.h"

#include <jansson.h>

enum { MOST_TOKENS = 65536 }; /* token numbers are kept as uint16_t */
enum { BYTE_TOKENS = 256 };   /* how many there are where a token is a byte */

struct token_kind;

struct tokenizer {
    const struct token_kind *kind;
    int n;          /* how many tokens there are; 0: there is no tokenizer */
    bool takes_ids; /* text cannot become its tokens; only their ids, which are numbers, can: "17 4 25" */
    void *own;      /* the kind's own, such as a table of characters */
};

/* A text, or a part of one, in memory. */
struct text {
    const char *name; /* what error messages call it: its path, or "the prompt" */
    const char *bytes;
    size_t n;
    size_t before; /* how many bytes of the file come before these */
    char *memory;  /* where the bytes lie, if it is the text's own; NULL: it belongs to another text, or the program */
    size_t mapped; /* bytes of the file that are mapped there; 0: the memory is allocated */
};

struct texts {
    struct text *items; /* n of them, in the order of their files */
    size_t n, cap;
};

/* Tokenizers in files of other programs, of whatever kind they are. */
struct tokenizer_files {
    struct tokenizer (*read)(const char *path);            /* ends the program when it is none that is read here */
    struct tokenizer (*read_beside)(const char *model);    /* see tokenizer_beside() */
    json_t *(*to_json)(const struct tokenizer *tokenizer); /* see tokenizer_to_json() */
};

enum { DECODED_BYTES = 16 };

/* A field that is NULL or false says that the kind cannot do this. */
struct token_kind {
    const char *name; /* its word in --tokens, NAME or NAME:..., and the first word of its line for checkpoints */
    const char *word; /* how a sentence writes that, "bpe:N"; NULL: --tokens has no such word */
    const char *noun; /* what its tokens are: "bytes" */
    bool learns;      /* does NAME:... ask for new tokens, which are learned from the training text? */
    /* Ends the program unless --tokens may have this word, NAME or NAME:...  NULL: the word is NAME. */
    void (*check)(const char *word);
    /* Makes what --tokens WORD says, out of the texts to train on.  val: what must be encoded too. */
    struct tokenizer (*make)(const char *word, const struct texts *train, const struct texts *val);
    uint16_t *(*encode)(const struct tokenizer *tokenizer, const struct text *text, size_t *n);
    /* The *n bytes that the token stands for; they may be written to `own`. */
    const char *(*decode)(const struct tokenizer *tokenizer, int32_t token, char own[DECODED_BYTES], size_t *n);
    int (*end)(const struct tokenizer *tokenizer); /* the token that ends a text; -1: there is none */
    /* What follows the name in a checkpoint's line, with a space before. */
    char *(*to_text)(const struct tokenizer *tokenizer);
    struct tokenizer (*from_text)(const char *text); /* reads it; a tokenizer without tokens: the text is wrong */
    /* Leaves out the tokens from number n on, if only special texts become them: "<|pad|>".  false: other texts do. */
    bool (*drop)(struct tokenizer *tokenizer, int n);
    void (*free)(struct tokenizer *tokenizer);
    const struct tokenizer_files *files; /* how other programs' files of this kind are read and made */
};
extern const struct token_kind token_bytes, token_chars, token_ids;

/* ---- making ------------------------------------------------------------------------------------------------------ */

struct tokenizer byte_tokenizer(void); /* a token is a byte */
struct tokenizer id_tokenizer(int n);  /* its ids are those below n */

/* What --tokens says: NAME or NAME:... of a kind, or a FILE.  Checked early, since it ends the program when it is
 * wrong. */
void check_tokens(const char *word);

const char *file_of_tokens(const char *word); /* NULL: it names no file */

/* Makes or reads the tokenizer that --tokens says.  A kind that learns does so from `train` alone; the characters of
 * both are tokens, since it must be possible to score what is in `val`. */
struct tokenizer make_tokenizer(const char *word, const struct texts *train, const struct texts *val);

/* Is the tokenizer what --tokens says?  NAME: it is of that kind.  FILE: the tokens in it are its own.  bpe:N: never,
 * since it asks for tokens that are yet to be learned. */
bool is_tokenizer(const struct tokenizer *tokenizer, const char *word);

/* The one that a file of another program beside the model describes.  Without tokens: there is none; of one that cannot
 * be read a warning says why. */
struct tokenizer tokenizer_beside(const char *model);

/* Leaves out those tokens that a model of `vocab` tokens does not have, and warns.  Ends the program if texts cannot do
 * without them. */
void fit_tokenizer(struct tokenizer *tokenizer, int vocab, const char *model);
void free_tokenizer(struct tokenizer *tokenizer);

/* ---- using ------------------------------------------------------------------------------------------------------- */

/* Tokens of a text, *n of them; the caller frees them.  A character that is no token is refused by name and byte. */
uint16_t *encode_text(const struct tokenizer *tokenizer, const struct text *text, size_t *n);

/* The tokens of ids between spaces, as encode_text() gives them. */
uint16_t *encode_ids(const struct tokenizer *tokenizer, const struct text *text, size_t *n);

/* The *n bytes that a token stands for; they may be written to `own`.  Where only the ids are known, they are "17 ". */
const char *decode_token(const struct tokenizer *tokenizer, int32_t token, char own[DECODED_BYTES], size_t *n);

int end_of_text(const struct tokenizer *tokenizer); /* the token that ends a text; -1: there is none */

/* One line of text for a checkpoint: "bytes", "ids 50257", "chars a 20 21 2c ..." (hexadecimal).  The caller frees it.
 * A tokenizer of NULL (tokens are random): "bytes".  Reading refuses anything else, naming `path`. */
char *tokenizer_to_text(const struct tokenizer *tokenizer);
struct tokenizer tokenizer_from_text(const char *text, const char *path);

/* The tokenizer as Hugging Face's tokenizer.json; NULL: it has no such form, or no folder makes it. */
json_t *tokenizer_to_json(const struct tokenizer *tokenizer);

#endif

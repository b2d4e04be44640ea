/* bpe.h - byte-level byte pair encoding (BPE), the tokenizer of GPT-2: text to token numbers and back.
 *
 *     a text      "I'm lower than 12"
 *     its words   "I"  "'m"  " lower"  " than"  " 12"          split.c: a word takes the space before it along
 *     its bytes   ' ' 'l' 'o' 'w' 'e' 'r'                      each is a token; so any bytes can be encoded
 *     merges      ' ' 'l' 'ow' 'e' 'r'                         bpe.c: two neighbours become one token, those first
 *                 ' ' 'l' 'ow' 'er'                            whose merge was learnt first, until no neighbours have
 *                 ' ' 'low' 'er'                               a merge; a word's tokens depend on that word alone
 *                 ' low' 'er'
 *     numbers     300 271                                      a token is known by its number
 *
 * The merges are learnt from a text: the most frequent pair of neighbours becomes a token, then the most frequent pair
 * of what there is now, and so on.  Sennrich, Haddow, Birch: Neural Machine Translation of Rare Words with Subword
 * Units, 2016; on bytes: Radford and others: Language Models are Unsupervised Multitask Learners, 2019 (GPT-2).
 *
 *     split.c              cuts a text into words;  classes.c, made by classes.py: which characters are letters ...
 *     bpe.c                makes tokenizers, encodes and decodes
 *     learn.c              learns merges
 *     read_tokenizer.c     reads tokenizer.json, vocab.json with merges.txt, gpt2_tokenizer.bin
 *     write_tokenizer.c    writes tokenizer.json
 *     single_characters.c  reads and writes tokenizer.json of bytes and of characters, which have no merges
 *     bpe_kind.c           registers all this as a kind of tokenizer: --tokens bpe:N
 *     tokens_parts.h       what these share;  byte_names.c: bytes as characters;  map_and_heap.c: a hash map, a heap
 *
 * The numbers are those of Hugging Face's `tokenizers` for the same tokenizer.json.
 */
#ifndef BPE_H
#define BPE_H

#include "trainer/data/tokens.h"

enum { MOST_TOKEN_BYTES = 1024 };

struct token {
    char *bytes;
    size_t n;
    bool is_added;
};

struct merge {
    int left, right, result; /* tokens; the result's bytes are those of `left`, then those of `right` */
};

/* A token that stands for a text of its own, "<|endoftext|>".  It is found in any text before words are. */
enum added_kind {
    IS_SPECIAL = 1,    /* Hugging Face's decoders may skip it */
    IS_NORMALIZED = 2, /* it is looked for only after those that are not: Hugging Face's tokenizers do so */
};

struct added_token {
    int token;
    unsigned kinds; /* a sum of enum added_kind */
};

/* Texts of added tokens as a tree.  A node stands for what some of them begin with, the root, 0, for no bytes: so the
 * steps of a search depend on the text alone, not on how many there are. */
struct added_tree {
    struct number_map *next; /* finds, by node << 8 | byte, the node of the text that has this byte more */
    struct number_map *ends; /* finds, by a node that stands for a whole text, its token */
    uint32_t last;           /* the node that was made last */
    bool begins[256];        /* bytes with which the texts begin */
};

enum { PLAIN_TREE, NORMALIZED_TREE, ADDED_TREES };

struct bpe {
    int n;
    struct token *tokens; /* [n] */
    bool decodes_only;    /* there are no merges, and of_byte is not set */
    int of_byte[256];     /* the token of a single byte */
    struct merge *merges; /* in the order in which they were learnt; a merge's place here is its rank */
    size_t n_merges, cap_merges;
    struct number_map *ranks; /* finds, by pair_key(), the rank of a pair's merge */
    size_t reach;             /* bytes, see merge_long_word() */
    bool makes_twice;         /* two merges make the same token */
    bool joined[256][256];    /* bytes x and y: does a merge join a token that ends with x to one that begins with y? */
    struct added_token *added;
    size_t n_added, cap_added;
    struct added_tree trees[ADDED_TREES]; /* for added tokens that are not normalized, and for those that are */
    const uint8_t *class_of;              /* [CODE_POINTS] enum char_class */
};

/* ---- bpe.c ------------------------------------------------------------------------------------------------------- */

/* Tokens of a text, *n of them; the caller frees them.  Not for one that only decodes. */
uint16_t *bpe_encode(const struct bpe *bpe, const struct text *text, size_t *n);

/* The *n bytes of a token.  A model may have more tokens than its tokenizer: those are U+FFFD. */
const char *bpe_decode(const struct bpe *bpe, int32_t token, size_t *n);

/* Leaves out the tokens from number n on, if the bytes and the merges do without them.  The text of an added token that
 * is left out is then cut into words as any other text.  false: a byte or a merge needs one of them, and all stay. */
bool drop_tokens(struct bpe *bpe, int n);

/* The number of the added token that stands for this text, "<|endoftext|>"; NONE: there is none. */
int find_added(const struct bpe *bpe, const char *text);
void free_bpe(struct bpe *bpe);

/* ---- learn.c ----------------------------------------------------------------------------------------------------- */

/* Learns merges until there are n tokens: 256 bytes, the added ones, and a merge's each.  If pairs are equally
 * frequent, the pair of the smaller numbers is taken.  Where the texts have more than 16 MB of different words, rare
 * ones are not counted in full (learn.c).  Learning ends earlier when no pair occurs twice: look at the result's n.
 * added: texts of added tokens, ended by NULL, at which words end; NULL: there are none.  n is at least 256 and the
 * number of added tokens. */
struct bpe *learn_bpe(const struct text *texts, size_t n_texts, int n, const char *const *added);

/* ---- read_tokenizer.c -------------------------------------------------------------------------------------------- */

/* Reads a file: tokenizer.json; vocab.json or merges.txt, with the other one beside it; or llm.c's gpt2_tokenizer.bin,
 * which only decodes.  Whatever is not computed here is refused by its name. */
struct bpe *read_bpe(const char *path);

/* The tokenizer that a tokenizer.json describes; errors name `path`. */
struct bpe *bpe_from_json(const json_t *json, const char *path);

/* ---- write_tokenizer.c ------------------------------------------------------------------------------------------- */

/* The tokenizer.json of a tokenizer.  Where that only decodes, it has "merges": null, which no other program reads. */
json_t *bpe_to_json(const struct bpe *bpe);

#endif

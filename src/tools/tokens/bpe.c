/* bpe.c - makes tokenizers out of tokens and merges, encodes and decodes. */
#include "tokens_parts.h"

/* ---- making a tokenizer ------------------------------------------------------------------------------------------ */

struct bpe *new_bpe(int n)
{
    struct bpe *bpe = allocate(1, sizeof *bpe);
    bpe->n = n;
    bpe->tokens = allocate_each(n, sizeof *bpe->tokens);
    bpe->ranks = new_map();
    for (int i = 0; i < ADDED_TREES; i++) {
        bpe->trees[i].next = new_map();
        bpe->trees[i].ends = new_map();
    }
    bpe->class_of = unicode_classes();
    return bpe;
}

void free_bpe(struct bpe *bpe)
{
    for (int i = 0; i < bpe->n; i++)
        free(bpe->tokens[i].bytes);
    free(bpe->tokens);
    free(bpe->merges);
    free(bpe->added);
    free_map(bpe->ranks);
    for (int i = 0; i < ADDED_TREES; i++) {
        free_map(bpe->trees[i].next);
        free_map(bpe->trees[i].ends);
    }
    free((uint8_t *)bpe->class_of);
    free(bpe);
}

struct problem *set_token(struct bpe *bpe, int id, const char *bytes, size_t n)
{
    _Static_assert(MOST_TOKEN_BYTES == 1024, "the sentence below names this number");
    struct token *token = &bpe->tokens[id];
    if (n == 0 || n > MOST_TOKEN_BYTES)
        return new_problem(EXIT_FAILED, "has no bytes, or more than 1024");
    if (token->bytes && (token->n != n || memcmp(token->bytes, bytes, n) != 0))
        return new_problem(EXIT_FAILED, "has a number whose token has other bytes");
    if (!token->bytes)
        *token = (struct token){.bytes = copy_bytes(bytes, n), .n = n};
    return NULL;
}

size_t join_bytes(const struct bpe *bpe, int left, int right, char bytes[2 * MOST_TOKEN_BYTES])
{
    const struct token *first = &bpe->tokens[left], *second = &bpe->tokens[right];
    memcpy(bytes, first->bytes, first->n);
    memcpy(bytes + first->n, second->bytes, second->n);
    return first->n + second->n;
}

/* A merge's two tokens must have bytes before the merge is added.  So tokens are built up from single bytes, and no
 * token is made of itself. */
struct problem *add_merge(struct bpe *bpe, int left, int right, int result)
{
    char bytes[2 * MOST_TOKEN_BYTES];
    if (!bpe->tokens[left].bytes || !bpe->tokens[right].bytes)
        return new_problem(EXIT_FAILED, "joins a token that neither a byte nor a merge before it makes");
    if (map_find(bpe->ranks, pair_key(left, right)) != NO_NUMBER)
        return new_problem(EXIT_FAILED, "is there twice");
    bool had_bytes = bpe->tokens[result].bytes != NULL;
    size_t n = join_bytes(bpe, left, right, bytes);
    struct problem *problem = set_token(bpe, result, bytes, n);
    if (problem)
        return problem;
    bpe->makes_twice |= had_bytes;
    bpe->reach += bpe->tokens[left].n;
    size_t last = bpe->tokens[left].n - 1;
    bpe->joined[(unsigned char)bytes[last]][(unsigned char)bytes[last + 1]] = true;
    map_put(bpe->ranks, pair_key(left, right), (uint32_t)bpe->n_merges);
    GROW(bpe->merges, bpe->cap_merges, bpe->n_merges + 1);
    bpe->merges[bpe->n_merges++] = (struct merge){left, right, result};
    return NULL;
}

/* Adds a text of n bytes, which stands for that token: a node for each of its beginnings that is new. */
static void add_to_tree(struct added_tree *tree, const char *text, size_t n, int token)
{
    uint64_t node = 0;
    tree->begins[(unsigned char)*text] = true;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = node << 8 | (unsigned char)text[i];
        int64_t next = map_find(tree->next, key);
        if (next == NO_NUMBER) {
            tree->last++;
            next = tree->last;
            map_put(tree->next, key, tree->last);
        }
        node = (uint64_t)next;
    }
    map_put(tree->ends, node, (uint32_t)token);
}

struct problem *add_added(struct bpe *bpe, const struct added_token *added, const char *text, size_t n)
{
    if (valid_utf8(text, n) < n || memchr(text, '\0', n))
        return new_problem(EXIT_FAILED, "is not UTF-8");
    struct problem *problem = set_token(bpe, added->token, text, n);
    if (problem)
        return problem;
    GROW(bpe->added, bpe->cap_added, bpe->n_added + 1);
    bpe->added[bpe->n_added++] = *added;
    bpe->tokens[added->token].is_added = true;
    struct added_tree *tree = &bpe->trees[PLAIN_TREE];
    if (added->kinds & IS_NORMALIZED)
        tree = &bpe->trees[NORMALIZED_TREE];
    add_to_tree(tree, text, n, added->token);
    return NULL;
}

bool drop_tokens(struct bpe *bpe, int n)
{
    size_t n_added = bpe->n_added;
    if (bpe->decodes_only)
        return false;
    for (int byte = 0; byte < 256; byte++)
        if (bpe->of_byte[byte] >= n)
            return false;
    for (size_t i = 0; i < bpe->n_merges; i++)
        if (bpe->merges[i].result >= n)
            return false;
    bpe->n_added = 0;
    for (size_t i = 0; i < n_added; i++) {
        const struct added_token added = bpe->added[i];
        if (added.token < n) {
            bpe->added[bpe->n_added] = added;
            bpe->n_added++;
        }
    }
    for (int i = n; i < bpe->n; i++)
        free(bpe->tokens[i].bytes);
    bpe->n = n;
    return true;
}

int find_added(const struct bpe *bpe, const char *text)
{
    for (size_t i = 0; i < bpe->n_added; i++) {
        const struct token *token = &bpe->tokens[bpe->added[i].token];
        if (token->n == strlen(text) && memcmp(token->bytes, text, token->n) == 0)
            return bpe->added[i].token;
    }
    return NONE;
}

/* ---- encoding: merging a word ------------------------------------------------------------------------------------ */

/* The tokens of a word are a linked list, in which a token is known by the place of its first byte. */
enum { MERGED_AWAY = -1 };
enum { WINDOW_BYTES = 1 << 16 };
struct linked_token {
    int token;               /* MERGED_AWAY: a merge joined it to the token before it */
    uint32_t previous, next; /* places of its neighbours; of the first token: 0; of the last: the word's length */
};

/* A short word that was met before, and its tokens. */
enum { CACHED_BYTES = 22, CACHED_TOKENS = 12, CACHED_WORDS = 1 << 15 };
struct cached_word {
    uint8_t n_bytes, n_tokens; /* n_bytes 0: the slot has no word yet */
    char bytes[CACHED_BYTES];
    uint16_t tokens[CACHED_TOKENS];
};
struct encoder {
    const struct bpe *bpe;
    uint16_t *tokens; /* the text's tokens, as far as the text is encoded */
    size_t n, cap;
    struct linked_token *word; /* the tokens of the word, or piece of a word, that is being merged, by place */
    size_t cap_word;
    struct heap merges;         /* the neighbours in `word` that have a merge: rank << 32 | place of the left one */
    struct cached_word *cached; /* [CACHED_WORDS]; a word's hash says its slot, where it replaces the word before */
};

static void put_token(struct encoder *encoder, int token)
{
    GROW(encoder->tokens, encoder->cap, encoder->n + 1);
    encoder->tokens[encoder->n++] = (uint16_t)token;
}

/* Puts the pair that begins at this place of a word of n bytes into the heap, if it has a merge. */
static void offer(struct encoder *encoder, uint32_t place, size_t n)
{
    const struct linked_token *left = &encoder->word[place];
    if (left->next == n)
        return;
    int64_t rank = map_find(encoder->bpe->ranks, pair_key(left->token, encoder->word[left->next].token));
    if (rank != NO_NUMBER)
        heap_push(&encoder->merges, (uint64_t)rank << 32 | place);
}

/* Do the two tokens of the merge still stand at this place?  Since their pair was put into the heap, another merge may
 * have taken one of them. */
static bool is_pair(const struct encoder *encoder, const struct merge *merge, uint32_t place, size_t n)
{
    const struct linked_token *left = &encoder->word[place];
    return left->token == merge->left && left->next < n && encoder->word[left->next].token == merge->right;
}

static void join(struct encoder *encoder, const struct merge *merge, uint32_t place, size_t n)
{
    struct linked_token *left = &encoder->word[place], *right = &encoder->word[left->next];
    left->token = merge->result;
    right->token = MERGED_AWAY;
    left->next = right->next;
    if (left->next < n)
        encoder->word[left->next].previous = place;
    if (place > 0)
        offer(encoder, left->previous, n);
    offer(encoder, place, n);
}

/* Merges a word of n bytes: again and again the pair of the lowest rank, and of several such pairs the leftmost.  With
 * the heap this takes n log n steps.  Puts the tokens that end within the first `sure` bytes into encoder->tokens, and
 * returns how many bytes these tokens have. */
static size_t merge_word(struct encoder *encoder, const char *bytes, size_t n, size_t sure)
{
    GROW(encoder->word, encoder->cap_word, n);
    for (uint32_t i = 0; i < n; i++) {
        int token = encoder->bpe->of_byte[(unsigned char)bytes[i]];
        encoder->word[i] = (struct linked_token){.token = token, .previous = i ? i - 1 : 0, .next = i + 1};
    }
    for (uint32_t i = 0; i < n; i++)
        offer(encoder, i, n);
    while (encoder->merges.n > 0) {
        uint64_t top = heap_pop(&encoder->merges);
        const struct merge *merge = &encoder->bpe->merges[top >> 32];
        uint32_t place = (uint32_t)top;
        if (is_pair(encoder, merge, place, n))
            join(encoder, merge, place, n);
    }
    uint32_t done = 0;
    while (done < n && encoder->word[done].next <= sure) {
        put_token(encoder, encoder->word[done].token);
        done = encoder->word[done].next;
    }
    return done;
}

/* A long word is merged in windows, so that it takes little memory.  The bytes beyond a window's end, which are not
 * looked at, could change tokens at its end.  Merges are carried out rank by rank, and each rank can carry the change
 * further to the left by one token only: the token before the changed ones, if it is the left token of this rank's
 * merge.  `reach` is the bytes of the left tokens of all merges.  So a token that ends `reach` bytes before the
 * window's end, or earlier, is a token of the whole word too. */
static void merge_long_word(struct encoder *encoder, const char *bytes, size_t n)
{
    size_t reach = encoder->bpe->reach;
    size_t window = 2 * reach + WINDOW_BYTES;
    if (encoder->bpe->makes_twice) { /* then merges need not come rank by rank, and the word is merged at once */
        if (n >= UINT32_MAX)
            fail(EXIT_USAGE,
                 "the text has a word of %zu bytes; put white space into it, since a word must be shorter than 4 GiB",
                 n);
        merge_word(encoder, bytes, n, n);
        return;
    }
    while (n > window) {
        size_t done = merge_word(encoder, bytes, window, window - reach);
        bytes += done;
        n -= done;
    }
    merge_word(encoder, bytes, n, n);
}

/* ---- encoding: all words ----------------------------------------------------------------------------------------- */

/* Encodes a piece of a word.  No token reaches across an end of the piece. */
static void encode_piece(struct encoder *encoder, const char *bytes, size_t n)
{
    if (n > CACHED_BYTES) {
        merge_long_word(encoder, bytes, n);
        return;
    }
    struct cached_word *cached = &encoder->cached[hash_bytes(bytes, n, 0) % CACHED_WORDS];
    if (cached->n_bytes == n && memcmp(cached->bytes, bytes, n) == 0) {
        for (int i = 0; i < cached->n_tokens; i++)
            put_token(encoder, cached->tokens[i]);
        return;
    }
    size_t begin = encoder->n;
    merge_word(encoder, bytes, n, n);
    size_t n_tokens = encoder->n - begin;
    if (n_tokens > CACHED_TOKENS)
        return;
    cached->n_bytes = (uint8_t)n;
    cached->n_tokens = (uint8_t)n_tokens;
    memcpy(cached->bytes, bytes, n);
    memcpy(cached->tokens, encoder->tokens + begin, n_tokens * sizeof *cached->tokens);
}

/* No token lies across two bytes that no merge joins.  A long word is cut there, since short pieces take less memory
 * and may have been met before. */
static void encode_word(void *context, const char *bytes, size_t n)
{
    struct encoder *encoder = context;
    size_t begin = 0;
    if (n > CACHED_BYTES)
        for (size_t i = 1; i < n; i++) {
            if (encoder->bpe->joined[(unsigned char)bytes[i - 1]][(unsigned char)bytes[i]])
                continue;
            encode_piece(encoder, bytes + begin, i - begin);
            begin = i;
        }
    encode_piece(encoder, bytes + begin, n - begin);
}

static void encode_added(void *encoder, int token) { put_token(encoder, token); }

uint16_t *bpe_encode(const struct bpe *bpe, const struct text *text, size_t *n)
{
    struct encoder encoder = {.bpe = bpe, .cached = allocate(CACHED_WORDS, sizeof *encoder.cached)};
    const struct visitor visitor = {
        .word = encode_word, .added = encode_added, .context = &encoder, .activity = "encoding"};
    visit_text(bpe, text, &visitor);
    free(encoder.cached);
    free(encoder.word);
    free(encoder.merges.item);
    *n = encoder.n;
    return reallocate(encoder.tokens, encoder.n, sizeof *encoder.tokens);
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

const char *bpe_decode(const struct bpe *bpe, int32_t token, size_t *n)
{
    static const char unknown[] = "\xEF\xBF\xBD"; /* U+FFFD */
    if (token < 0 || token >= bpe->n) {
        *n = sizeof unknown - 1;
        return unknown;
    }
    *n = bpe->tokens[token].n;
    return bpe->tokens[token].bytes;
}

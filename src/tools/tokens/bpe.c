/* bpe.c - makes tokenizers out of tokens and merges, encodes and decodes. */
#include "inner.h"

/* ---- making a tokenizer ----------------------------------------------------------------------------------------- */

struct bpe *new_bpe(int n)
{
    struct bpe *b = allocate(1, sizeof *b);
    b->n = n;
    b->token = allocate((size_t)n, sizeof *b->token);
    b->ranks = new_map();
    for (int i = 0; i < ADDED_TREES; i++) {
        b->tree[i].next = new_map();
        b->tree[i].ends = new_map();
    }
    b->class_of = unicode_classes();
    return b;
}

void free_bpe(struct bpe *b)
{
    for (int i = 0; i < b->n; i++)
        free(b->token[i].bytes);
    free(b->token);
    free(b->merges);
    free(b->added);
    free_map(b->ranks);
    for (int i = 0; i < ADDED_TREES; i++) {
        free_map(b->tree[i].next);
        free_map(b->tree[i].ends);
    }
    free((uint8_t *)b->class_of);
    free(b);
}

const char *set_token(struct bpe *b, int id, const char *bytes, size_t n)
{
    struct token *t = &b->token[id];
    if (n == 0 || n > MOST_TOKEN_BYTES)
        return "has no bytes, or more than 1,024";
    if (t->bytes && (t->n != n || memcmp(t->bytes, bytes, n) != 0))
        return "has a number whose token has other bytes";
    if (!t->bytes)
        *t = (struct token){.bytes = copy_bytes(bytes, n), .n = n};
    return NULL;
}

size_t join_bytes(const struct bpe *b, int left, int right, char bytes[2 * MOST_TOKEN_BYTES])
{
    const struct token *l = &b->token[left], *r = &b->token[right];
    memcpy(bytes, l->bytes, l->n);
    memcpy(bytes + l->n, r->bytes, r->n);
    return l->n + r->n;
}

/* A merge's two tokens must have bytes before the merge is added.  So tokens are built up from single bytes, and no
 * token is made of itself. */
const char *add_merge(struct bpe *b, int left, int right, int result)
{
    char bytes[2 * MOST_TOKEN_BYTES];
    if (!b->token[left].bytes || !b->token[right].bytes)
        return "joins a token that neither a byte nor a merge before it makes";
    if (map_find(b->ranks, pair_key(left, right)) != NO_NUMBER)
        return "is there twice";
    const size_t n = join_bytes(b, left, right, bytes);
    b->makes_twice |= b->token[result].bytes != NULL;
    b->reach += b->token[left].n;
    const char *problem = set_token(b, result, bytes, n);
    if (problem)
        return problem;
    const size_t last = b->token[left].n - 1;
    b->joined[(unsigned char)bytes[last]][(unsigned char)bytes[last + 1]] = true;
    map_put(b->ranks, pair_key(left, right), (uint32_t)b->n_merges);
    *APPEND(b->merges, b->n_merges, b->cap_merges) = (struct merge){left, right, result};
    return NULL;
}

/* Adds a text of n bytes, which stands for that token: a node for each of its beginnings that is new. */
static void add_to_tree(struct added_tree *t, const char *text, size_t n, int token)
{
    uint64_t node = 0;
    t->begins[(unsigned char)*text] = true;
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = node << 8 | (unsigned char)text[i];
        int64_t next = map_find(t->next, key);
        if (next == NO_NUMBER) {
            t->last++;
            next = t->last;
            map_put(t->next, key, t->last);
        }
        node = (uint64_t)next;
    }
    map_put(t->ends, node, (uint32_t)token);
}

const char *add_added(struct bpe *b, const struct added *a, const char *text, size_t n)
{
    if (valid_utf8(text, n) < n || memchr(text, '\0', n))
        return "is not UTF-8";
    const char *problem = set_token(b, a->token, text, n);
    if (problem)
        return problem;
    *APPEND(b->added, b->n_added, b->cap_added) = *a;
    b->token[a->token].is_added = true;
    add_to_tree(&b->tree[(a->kinds & IS_NORMALIZED) != 0], text, n, a->token);
    return NULL;
}

bool drop_tokens(struct bpe *b, int n)
{
    const size_t n_added = b->n_added;
    if (b->decodes_only)
        return false;
    for (int byte = 0; byte < 256; byte++)
        if (b->of_byte[byte] >= n)
            return false;
    for (size_t i = 0; i < b->n_merges; i++)
        if (b->merges[i].result >= n)
            return false;
    b->n_added = 0;
    for (size_t i = 0; i < n_added; i++) {
        const struct added a = b->added[i];
        if (a.token < n) {
            b->added[b->n_added] = a;
            b->n_added++;
        }
    }
    for (int i = n; i < b->n; i++)
        free(b->token[i].bytes);
    b->n = n;
    return true;
}

int find_added(const struct bpe *b, const char *text)
{
    for (size_t i = 0; i < b->n_added; i++) {
        const struct token *t = &b->token[b->added[i].token];
        if (t->n == strlen(text) && memcmp(t->bytes, text, t->n) == 0)
            return b->added[i].token;
    }
    return -1;
}

/* ---- encoding: merging a word ----------------------------------------------------------------------------------- */

/* The tokens of a word are a linked list, in which a token is known by the place of its first byte. */
enum { GONE = -1 };
enum { WINDOW_BYTES = 1 << 16 };
struct linked_token {
    int token;               /* GONE: a merge joined it to the token before it */
    uint32_t previous, next; /* places of its neighbours; of the first token: 0; of the last: the word's length */
};
/* A short word that was met before, and its tokens. */
enum { CACHED_BYTES = 22, CACHED_TOKENS = 12, CACHED_WORDS = 1 << 15 };
struct cached {
    uint8_t n_bytes, n_tokens; /* n_bytes 0: the slot has no word yet */
    char bytes[CACHED_BYTES];
    uint16_t tokens[CACHED_TOKENS];
};
struct encoder {
    const struct bpe *b;
    uint16_t *tokens; /* the text's tokens, as far as the text is encoded */
    size_t n, cap;
    struct linked_token *word; /* the tokens of the word, or piece of a word, that is being merged, by place */
    size_t cap_word;
    struct heap merges;    /* the neighbours in `word` that have a merge: rank << 32 | place of the left one */
    struct cached *cached; /* [CACHED_WORDS]; a word's hash says its slot, where it replaces the word before */
};

static void put_token(struct encoder *e, int token)
{
    if (e->n == e->cap) {
        e->cap += e->cap / 2 + 1024;
        e->tokens = reallocate(e->tokens, e->cap, sizeof *e->tokens);
    }
    e->tokens[e->n] = (uint16_t)token;
    e->n++;
}

/* Puts the pair that begins at this place of a word of n bytes into the heap, if it has a merge. */
static void offer(struct encoder *e, uint32_t place, size_t n)
{
    const struct linked_token *left = &e->word[place];
    if (left->next == n)
        return;
    const int64_t rank = map_find(e->b->ranks, pair_key(left->token, e->word[left->next].token));
    if (rank != NO_NUMBER)
        heap_push(&e->merges, (uint64_t)rank << 32 | place);
}

/* Do the two tokens of merge m still stand at this place?  Since their pair was put into the heap, another merge may
 * have taken one of them. */
static bool is_pair(const struct encoder *e, const struct merge *m, uint32_t place, size_t n)
{
    const struct linked_token *left = &e->word[place];
    return left->token == m->left && left->next < n && e->word[left->next].token == m->right;
}

static void join(struct encoder *e, const struct merge *m, uint32_t place, size_t n)
{
    struct linked_token *left = &e->word[place], *right = &e->word[left->next];
    left->token = m->result;
    right->token = GONE;
    left->next = right->next;
    if (left->next < n)
        e->word[left->next].previous = place;
    if (place > 0)
        offer(e, left->previous, n);
    offer(e, place, n);
}

/* Merges a word of n bytes: again and again the pair of the lowest rank, and of several such pairs the leftmost.  With
 * the heap this takes n log n steps.  Puts the tokens that end within the first `sure` bytes into e->tokens, and
 * returns how many bytes these tokens have. */
static size_t merge_word(struct encoder *e, const char *bytes, size_t n, size_t sure)
{
    e->word = grow(e->word, &e->cap_word, n, sizeof *e->word);
    for (uint32_t i = 0; i < n; i++) {
        int token = e->b->of_byte[(unsigned char)bytes[i]];
        e->word[i] = (struct linked_token){.token = token, .previous = i ? i - 1 : 0, .next = i + 1};
    }
    for (uint32_t i = 0; i < n; i++)
        offer(e, i, n);
    while (e->merges.n > 0) {
        const uint64_t top = heap_pop(&e->merges);
        const struct merge *m = &e->b->merges[top >> 32];
        const uint32_t place = (uint32_t)top;
        if (is_pair(e, m, place, n))
            join(e, m, place, n);
    }
    uint32_t done = 0;
    while (done < n && e->word[done].next <= sure) {
        put_token(e, e->word[done].token);
        done = e->word[done].next;
    }
    return done;
}

/* A long word is merged in windows, so that it takes little memory.  The bytes beyond a window's end, which are not
 * looked at, could change tokens at its end.  Merges are carried out rank by rank, and each rank can carry the change
 * further to the left by one token only: the token before the changed ones, if it is the left token of this rank's
 * merge.  `reach` is the bytes of the left tokens of all merges.  So a token that ends `reach` bytes before the
 * window's end, or earlier, is a token of the whole word too. */
static void merge_long_word(struct encoder *e, const char *bytes, size_t n)
{
    const size_t reach = e->b->reach;
    const size_t window = 2 * reach + WINDOW_BYTES;
    if (e->b->makes_twice) { /* then merges need not come rank by rank, and the word is merged at once */
        if (n >= UINT32_MAX)
            fail(EXIT_USAGE,
                 "the text has a word of %zu bytes; put white space into it, since a word must be shorter than 4 GiB",
                 n);
        merge_word(e, bytes, n, n);
        return;
    }
    while (n > window) {
        const size_t done = merge_word(e, bytes, window, window - reach);
        bytes += done;
        n -= done;
    }
    merge_word(e, bytes, n, n);
}

/* ---- encoding: all words ---------------------------------------------------------------------------------------- */

/* Encodes a piece of a word between whose bytes and the bytes around it no token lies. */
static void encode_piece(struct encoder *e, const char *bytes, size_t n)
{
    if (n > CACHED_BYTES) {
        merge_long_word(e, bytes, n);
        return;
    }
    struct cached *c = &e->cached[hash_bytes(bytes, n, 0) % CACHED_WORDS];
    if (c->n_bytes == n && memcmp(c->bytes, bytes, n) == 0) {
        for (int i = 0; i < c->n_tokens; i++)
            put_token(e, c->tokens[i]);
        return;
    }
    const size_t begin = e->n;
    merge_word(e, bytes, n, n);
    const size_t n_tokens = e->n - begin;
    if (n_tokens > CACHED_TOKENS)
        return;
    c->n_bytes = (uint8_t)n;
    c->n_tokens = (uint8_t)n_tokens;
    memcpy(c->bytes, bytes, n);
    memcpy(c->tokens, e->tokens + begin, n_tokens * sizeof *c->tokens);
}

/* No token lies across two bytes that no merge joins.  A long word is cut there, since short pieces take less memory
 * and may have been met before. */
static void encode_word(void *encoder, const char *bytes, size_t n)
{
    struct encoder *e = encoder;
    size_t begin = 0;
    for (size_t i = 1; i < n && n > CACHED_BYTES; i++) {
        if (e->b->joined[(unsigned char)bytes[i - 1]][(unsigned char)bytes[i]])
            continue;
        encode_piece(e, bytes + begin, i - begin);
        begin = i;
    }
    encode_piece(e, bytes + begin, n - begin);
}

static void encode_added(void *encoder, int token) { put_token(encoder, token); }

uint16_t *bpe_encode(const struct bpe *b, const struct text *text, size_t *n)
{
    struct encoder e = {.b = b, .cached = allocate(CACHED_WORDS, sizeof *e.cached)};
    const struct visitor v = {.word = encode_word, .added = encode_added, .context = &e, .activity = "encoding"};
    visit_text(b, text, &v);
    free(e.cached);
    free(e.word);
    free(e.merges.item);
    *n = e.n;
    return reallocate(e.tokens, e.n, sizeof *e.tokens);
}

/* ---- decoding --------------------------------------------------------------------------------------------------- */

const char *bpe_decode(const struct bpe *b, int32_t token, size_t *n)
{
    static const char unknown[] = "\xEF\xBF\xBD"; /* U+FFFD */
    if (token < 0 || token >= b->n) {
        *n = sizeof unknown - 1;
        return unknown;
    }
    *n = b->token[token].n;
    return b->token[token].bytes;
}

/* learn.c - learns merges: the most frequent pair of neighbours becomes a token, again and again.
 *
 *     the texts' different words and how often each is there:      low 5   lower 2   newest 6
 *     the pairs in them, counted:                                  w e 8   l o 7   o w 7   n e 6   e w 6   e s 6 ...
 *     the most frequent becomes a token where it is:               lo(we)r   ne(we)st
 *     where it was, pairs are lost, and others come:               o w 5   w e 0   o we 2   e we 6   we s 6 ...
 *
 * A pair keeps the places where it is, so that a merge costs as many steps as the pair has places.
 */
#include "inner.h"

enum { LEAST_COUNT = 2, WORD_END = -1, GONE = -2 };
static const uint32_t no_place = UINT32_MAX;
/* A word longer than LONGEST_WORD is counted as several words.  When the different words have MOST_PLACES places, the
 * rarer half of them is forgotten, so that even a text of GBs without any repeated word fits in memory. */
enum { LONGEST_WORD = 1 << 16, MOST_PLACES = 1 << 24 };

struct counted_word {
    const char *bytes; /* n of them, in a text */
    size_t n;
    uint64_t count; /* how often it was met */
    uint64_t met;   /* how many words of the texts came before its first occurrence */
};
/* A place: the different words lie one after another, with a place for each of their bytes and one for each word's end.
 * A token lies at the place of its first byte. */
struct position {
    int token;       /* the token that begins here; GONE: none does; WORD_END: the word ends here */
    uint32_t before; /* the place of the token before; no_place: this is the word's first token */
    uint32_t word;   /* its number in `words` */
};
struct token_pair {
    int left, right;
    uint64_t count;
    uint32_t *places; /* [n] where the pair began when it was counted; merges may have taken some since */
    size_t n, cap;
    bool gained; /* it is in the learner's list `gained` */
};
struct learner {
    struct bpe *b;
    struct counted_word *words;
    size_t n_words, cap_words;
    uint64_t met; /* words of the texts, so far */
    struct position *places;
    size_t n_places;
    struct token_pair *pairs;
    size_t n_pairs, cap_pairs;
    /* While words are counted: a word's number by its hash.  Afterwards: a pair's number by pair_key(). */
    struct number_map *found;
    uint32_t *gained; /* numbers of the pairs whose count grew in this merge */
    size_t n_gained, cap_gained;
    struct heap frequent; /* pairs, the most frequent first, see heap_item(); some counts have become smaller since */
};

/* ---- counting words --------------------------------------------------------------------------------------------- */

/* The number of a word; NO_NUMBER: the word is new.  *key becomes the key that the word has, or should get, in
 * `found`. */
static int64_t find_word(const struct learner *l, const char *bytes, size_t n, uint64_t *key)
{
    *key = hash_bytes(bytes, n, 0);
    int64_t i = map_find(l->found, *key);
    while (i != NO_NUMBER && (l->words[i].n != n || memcmp(l->words[i].bytes, bytes, n) != 0)) {
        *key += 1; /* another word has the same hash */
        i = map_find(l->found, *key);
    }
    return i;
}

COMPARISON(more_frequent_first, struct counted_word, BY(b->count, a->count, COMPARE(a->met, b->met)))

/* Makes room for new words: keeps the most frequent ones, which take half of the places, and forgets all others. */
static void forget_rarer_half(struct learner *l)
{
    SORT(l->words, l->n_words, more_frequent_first);
    free_map(l->found);
    l->found = new_map();
    l->n_words = 0;
    l->n_places = 0;
    while (l->n_places < MOST_PLACES / 2) {
        const struct counted_word *w = &l->words[l->n_words];
        uint64_t key;
        find_word(l, w->bytes, w->n, &key);
        map_put(l->found, key, (uint32_t)l->n_words);
        l->n_places += w->n + 1;
        l->n_words++;
    }
}

static void count_piece(struct learner *l, const char *bytes, size_t n)
{
    uint64_t key;
    int64_t i = find_word(l, bytes, n, &key);
    if (i == NO_NUMBER) {
        i = (int64_t)l->n_words;
        map_put(l->found, key, (uint32_t)i);
        *APPEND(l->words, l->n_words, l->cap_words) = (struct counted_word){.bytes = bytes, .n = n, .met = l->met};
        l->n_places += n + 1;
    }
    l->words[i].count++;
    l->met++;
    if (l->n_places >= MOST_PLACES)
        forget_rarer_half(l);
}

static void count_word(void *learner, const char *bytes, size_t n)
{
    while (n > LONGEST_WORD) {
        count_piece(learner, bytes, LONGEST_WORD);
        bytes += LONGEST_WORD;
        n -= LONGEST_WORD;
    }
    count_piece(learner, bytes, n);
}

static void pass_added(void *learner, int token)
{
    (void)learner;
    (void)token;
}

static void lay_out_words(struct learner *l)
{
    uint32_t place = 0;
    l->places = allocate(l->n_places, sizeof *l->places);
    for (uint32_t i = 0; i < l->n_words; i++) {
        const struct counted_word *w = &l->words[i];
        for (size_t k = 0; k <= w->n; k++) {
            int token = k < w->n ? l->b->of_byte[(unsigned char)w->bytes[k]] : WORD_END;
            l->places[place] = (struct position){.token = token, .before = k ? place - 1 : no_place, .word = i};
            place++;
        }
    }
}

/* ---- counting pairs --------------------------------------------------------------------------------------------- */

static uint32_t place_after(const struct learner *l, uint32_t place)
{
    return place + (uint32_t)l->b->token[l->places[place].token].n;
}

/* The pair that begins at this place; NULL: there is none, since the token is its word's last. */
static struct token_pair *pair_at(struct learner *l, uint32_t place)
{
    const int left = l->places[place].token, right = l->places[place_after(l, place)].token;
    if (right == WORD_END)
        return NULL;
    int64_t i = map_find(l->found, pair_key(left, right));
    if (i == NO_NUMBER) {
        i = (int64_t)l->n_pairs;
        map_put(l->found, pair_key(left, right), (uint32_t)i);
        *APPEND(l->pairs, l->n_pairs, l->cap_pairs) = (struct token_pair){.left = left, .right = right};
    }
    return &l->pairs[i];
}

static void gain_pair(struct learner *l, uint32_t place)
{
    struct token_pair *p = pair_at(l, place);
    if (!p)
        return;
    p->count += l->words[l->places[place].word].count;
    *APPEND(p->places, p->n, p->cap) = place;
    if (!p->gained)
        *APPEND(l->gained, l->n_gained, l->cap_gained) = (uint32_t)(p - l->pairs);
    p->gained = true;
}

static void lose_pair(struct learner *l, uint32_t place)
{
    struct token_pair *p = pair_at(l, place);
    if (p)
        p->count -= l->words[l->places[place].word].count;
}

/* ---- the most frequent pair ------------------------------------------------------------------------------------- */

/* The heap's item for a pair, rarity << 32 | pair_key(): the smallest is the most frequent pair, and of equally
 * frequent pairs the pair of the smallest numbers. */
static uint64_t heap_item(const struct token_pair *p)
{
    const uint64_t rarity = UINT32_MAX - MIN(p->count, (uint64_t)UINT32_MAX);
    return rarity << 32 | pair_key(p->left, p->right);
}

static void offer_gained(struct learner *l)
{
    for (size_t i = 0; i < l->n_gained; i++) {
        struct token_pair *p = &l->pairs[l->gained[i]];
        p->gained = false;
        if (p->count >= LEAST_COUNT)
            heap_push(&l->frequent, heap_item(p));
    }
    l->n_gained = 0;
}

/* The most frequent pair; NULL: no pair occurs twice.  When a pair's count has become smaller since its item was put
 * into the heap, it is put there anew, with the count that it has now. */
static struct token_pair *most_frequent(struct learner *l)
{
    while (l->frequent.n > 0) {
        const uint64_t item = heap_pop(&l->frequent);
        struct token_pair *p = &l->pairs[map_find(l->found, (uint32_t)item)];
        if (heap_item(p) == item)
            return p;
        if (p->count >= LEAST_COUNT)
            heap_push(&l->frequent, heap_item(p));
    }
    return NULL;
}

/* ---- merging ---------------------------------------------------------------------------------------------------- */

/* Joins the token at this place and the token after it, and corrects the counts of the pairs around them. */
static void merge_at(struct learner *l, uint32_t place, int result)
{
    struct position *first = &l->places[place];
    const uint32_t second = place_after(l, place);
    lose_pair(l, place);
    lose_pair(l, second);
    if (first->before != no_place)
        lose_pair(l, first->before);
    first->token = result;
    l->places[second].token = GONE;
    l->places[place_after(l, place)].before = place;
    if (first->before != no_place)
        gain_pair(l, first->before);
    gain_pair(l, place);
}

/* Places are merged from left to right, so that "aaa" becomes "aa" "a".  A pair's places are in this order: all were
 * added in one merge, which made the newer one of the pair's tokens. */
static void merge_everywhere(struct learner *l, struct token_pair *p, int result)
{
    const int left = p->left, right = p->right;
    const size_t n = p->n;
    uint32_t *places = p->places;
    p->places = NULL; /* *p lies elsewhere when pairs have been added */
    p->n = p->cap = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_left = l->places[places[i]].token == left;
        if (is_left && l->places[place_after(l, places[i])].token == right)
            merge_at(l, places[i], result);
    }
    free(places);
}

/* No two of the learnt merges make the same bytes, so add_merge() refuses only tokens that are too long.  The reason:
 * where no token lies across the bounds of a piece of text, the piece's tokens depend on the piece alone.  So wherever
 * a second merge could make the same bytes, the first one has made them before. */
static void learn_merges(struct learner *l, int n)
{
    struct bpe *b = l->b;
    const uint64_t begun = now_ns();
    const int first = b->n;
    while (b->n < n) {
        struct token_pair *p = most_frequent(l);
        const int result = b->n;
        if (!p)
            break;
        if (add_merge(b, p->left, p->right, result))
            continue; /* the token would be too long, and its pair has left the heap */
        b->n++;
        merge_everywhere(l, p, result);
        offer_gained(l);
        show_busy("learning tokens", begun, (double)(b->n - first) / (n - first));
    }
    erase_line();
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

/* A tokenizer with room for n tokens that has two sorts of them: the 256 bytes, numbered as GPT-2 numbers them, in the
 * order of their characters; then the added tokens. */
static struct bpe *begin_tokens(int n, const char *const *added)
{
    struct bpe *b = new_bpe(n);
    int byte_of[BYTE_CHARACTERS];
    bytes_of_characters(byte_of);
    b->n = 0;
    for (int c = 0; c < BYTE_CHARACTERS; c++) {
        const int byte = byte_of[c];
        if (byte == NONE)
            continue;
        b->of_byte[byte] = b->n;
        set_token(b, b->n, &(char){(char)byte}, 1);
        b->n++;
    }
    for (size_t i = 0; added && added[i]; i++) {
        const struct added a = {.token = b->n, .kinds = IS_SPECIAL};
        const char *problem = add_added(b, &a, added[i], strlen(added[i]));
        CHECK(!problem && b->n < n, "added token \"%s\" %s; %d of %d tokens", added[i], problem, b->n, n);
        b->n++;
    }
    return b;
}

static void count_pairs(struct learner *l)
{
    for (uint32_t place = 0; place < l->n_places; place++)
        if (l->places[place].token != WORD_END)
            gain_pair(l, place);
    offer_gained(l);
}

struct bpe *learn_bpe(const struct text *texts, size_t n_texts, int n, const char *const *added)
{
    struct learner l = {.b = begin_tokens(n, added), .found = new_map()};
    const struct visitor v = {.word = count_word, .added = pass_added, .context = &l, .activity = "counting words"};
    for (size_t i = 0; i < n_texts; i++)
        visit_text(l.b, &texts[i], &v);
    lay_out_words(&l);
    free_map(l.found);
    l.found = new_map();
    count_pairs(&l);
    learn_merges(&l, n);
    for (size_t i = 0; i < l.n_pairs; i++)
        free(l.pairs[i].places);
    free(l.pairs);
    free(l.places);
    free(l.words);
    free(l.gained);
    free(l.frequent.item);
    free_map(l.found);
    return l.b;
}

/* learn.c - learns merges: the most frequent pair of neighbours becomes a token, again and again.
 *
 *     the texts' different words and how often each is there:      low 5   lower 2   newest 6
 *     the pairs in them, counted:                                  w e 8   l o 7   o w 7   n e 6   e w 6   e s 6 ...
 *     the most frequent becomes a token where it is:               lo(we)r   ne(we)st
 *     where it was, pairs are lost, and others come:               o w 5   w e 0   o we 2   e we 6   we s 6 ...
 *
 * A pair keeps the places where it is, so that a merge costs as many steps as the pair has places.
 */
#include "tokens_parts.h"

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

/* The different words lie one after another, with a place for each of their bytes and one for each word's end.
 * A token lies at the place of its first byte. */
struct place {
    int token;       /* the token that begins here; GONE: none does; WORD_END: the word ends here */
    uint32_t before; /* the place of the token before; no_place: this is the word's first token */
    uint32_t word;   /* its number in `words` */
};
struct token_pair {
    int left, right;
    uint64_t count;
    uint32_t *begins; /* [n] places where the pair began when it was counted; merges may have taken some since */
    size_t n, cap;
    bool gained; /* it is in the learner's list `gained` */
};
struct learner {
    struct bpe *bpe;
    struct counted_word *words;
    size_t n_words, cap_words;
    uint64_t met; /* words of the texts, so far */
    struct place *places;
    size_t n_places;
    struct token_pair *pairs;
    size_t n_pairs, cap_pairs;
    struct number_map *word_numbers; /* by hash */
    struct number_map *pair_numbers; /* by pair_key() */
    uint32_t *gained;                /* numbers of the pairs whose count grew in this merge */
    size_t n_gained, cap_gained;
    struct heap frequent; /* pairs, the most frequent first, see heap_item(); some counts have become smaller since */
};

/* ---- counting words ---------------------------------------------------------------------------------------------- */

/* The number of a word; NO_NUMBER: the word is new.  *key becomes the key that the word has, or should get, in
 * `word_numbers`. */
static int64_t number_of_word(const struct learner *learner, const char *bytes, size_t n, uint64_t *key)
{
    *key = hash_bytes(bytes, n, 0);
    int64_t i = map_find(learner->word_numbers, *key);
    while (i != NO_NUMBER && (learner->words[i].n != n || memcmp(learner->words[i].bytes, bytes, n) != 0)) {
        *key += 1; /* another word has the same hash */
        i = map_find(learner->word_numbers, *key);
    }
    return i;
}

static int more_frequent_first(const void *left, const void *right)
{
    const struct counted_word *a = left;
    const struct counted_word *b = right;
    return BY(b->count, a->count, COMPARE(a->met, b->met));
}

/* Makes room for new words: keeps the most frequent ones, which take half of the places, and forgets all others. */
static void forget_rarer_half(struct learner *learner)
{
    SORT(learner->words, learner->n_words, more_frequent_first);
    free_map(learner->word_numbers);
    learner->word_numbers = new_map();
    learner->n_words = 0;
    learner->n_places = 0;
    while (learner->n_places < MOST_PLACES / 2) {
        const struct counted_word *word = &learner->words[learner->n_words];
        uint64_t key;
        number_of_word(learner, word->bytes, word->n, &key);
        map_put(learner->word_numbers, key, (uint32_t)learner->n_words);
        learner->n_places += word->n + 1;
        learner->n_words++;
    }
}

static void count_piece(struct learner *learner, const char *bytes, size_t n)
{
    uint64_t key;
    int64_t i = number_of_word(learner, bytes, n, &key);
    if (i == NO_NUMBER) {
        i = (int64_t)learner->n_words;
        map_put(learner->word_numbers, key, (uint32_t)i);
        GROW(learner->words, learner->cap_words, learner->n_words + 1);
        learner->words[learner->n_words++] = (struct counted_word){.bytes = bytes, .n = n, .met = learner->met};
        learner->n_places += n + 1;
    }
    learner->words[i].count++;
    learner->met++;
    if (learner->n_places >= MOST_PLACES)
        forget_rarer_half(learner);
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

static void lay_out_words(struct learner *learner)
{
    uint32_t place = 0;
    learner->places = allocate(learner->n_places, sizeof *learner->places);
    for (uint32_t i = 0; i < learner->n_words; i++) {
        const struct counted_word *word = &learner->words[i];
        for (size_t k = 0; k <= word->n; k++) {
            int token = k < word->n ? learner->bpe->of_byte[(unsigned char)word->bytes[k]] : WORD_END;
            learner->places[place] = (struct place){.token = token, .before = k ? place - 1 : no_place, .word = i};
            place++;
        }
    }
}

/* ---- counting pairs ---------------------------------------------------------------------------------------------- */

static uint32_t place_after(const struct learner *learner, uint32_t place)
{
    return place + (uint32_t)learner->bpe->tokens[learner->places[place].token].n;
}

/* The pair that begins at this place; NULL: there is none, since the token is its word's last. */
static struct token_pair *pair_at(struct learner *learner, uint32_t place)
{
    int left = learner->places[place].token, right = learner->places[place_after(learner, place)].token;
    if (right == WORD_END)
        return NULL;
    int64_t i = map_find(learner->pair_numbers, pair_key(left, right));
    if (i == NO_NUMBER) {
        i = (int64_t)learner->n_pairs;
        map_put(learner->pair_numbers, pair_key(left, right), (uint32_t)i);
        GROW(learner->pairs, learner->cap_pairs, learner->n_pairs + 1);
        learner->pairs[learner->n_pairs++] = (struct token_pair){.left = left, .right = right};
    }
    return &learner->pairs[i];
}

static void gain_pair(struct learner *learner, uint32_t place)
{
    struct token_pair *pair = pair_at(learner, place);
    if (!pair)
        return;
    pair->count += learner->words[learner->places[place].word].count;
    GROW(pair->begins, pair->cap, pair->n + 1);
    pair->begins[pair->n++] = place;
    if (!pair->gained) {
        GROW(learner->gained, learner->cap_gained, learner->n_gained + 1);
        learner->gained[learner->n_gained++] = (uint32_t)(pair - learner->pairs);
    }
    pair->gained = true;
}

static void lose_pair(struct learner *learner, uint32_t place)
{
    struct token_pair *pair = pair_at(learner, place);
    if (pair)
        pair->count -= learner->words[learner->places[place].word].count;
}

/* ---- the most frequent pair -------------------------------------------------------------------------------------- */

/* The heap's item for a pair, rarity << 32 | pair_key(): the smallest is the most frequent pair, and of equally
 * frequent pairs the pair of the smallest numbers. */
static uint64_t heap_item(const struct token_pair *pair)
{
    uint64_t rarity = UINT32_MAX - MIN(pair->count, (uint64_t)UINT32_MAX);
    return rarity << 32 | pair_key(pair->left, pair->right);
}

static void offer_gained(struct learner *learner)
{
    for (size_t i = 0; i < learner->n_gained; i++) {
        struct token_pair *pair = &learner->pairs[learner->gained[i]];
        pair->gained = false;
        if (pair->count >= LEAST_COUNT)
            heap_push(&learner->frequent, heap_item(pair));
    }
    learner->n_gained = 0;
}

/* The most frequent pair; NULL: no pair occurs twice.  When a pair's count has become smaller since its item was put
 * into the heap, it is put there anew, with the count that it has now. */
static struct token_pair *most_frequent(struct learner *learner)
{
    while (learner->frequent.n > 0) {
        uint64_t item = heap_pop(&learner->frequent);
        struct token_pair *pair = &learner->pairs[map_find(learner->pair_numbers, (uint32_t)item)];
        if (heap_item(pair) == item)
            return pair;
        if (pair->count >= LEAST_COUNT)
            heap_push(&learner->frequent, heap_item(pair));
    }
    return NULL;
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

/* Joins the token at this place and the token after it, and corrects the counts of the pairs around them. */
static void merge_at(struct learner *learner, uint32_t place, int result)
{
    struct place *first = &learner->places[place];
    uint32_t second = place_after(learner, place);
    lose_pair(learner, place);
    lose_pair(learner, second);
    if (first->before != no_place)
        lose_pair(learner, first->before);
    first->token = result;
    learner->places[second].token = GONE;
    learner->places[place_after(learner, place)].before = place;
    if (first->before != no_place)
        gain_pair(learner, first->before);
    gain_pair(learner, place);
}

/* Places are merged from left to right, so that "aaa" becomes "aa" "a".  A pair's places are in this order: all were
 * added in one merge, which made the newer one of the pair's tokens. */
static void merge_everywhere(struct learner *learner, struct token_pair *pair, int result)
{
    int left = pair->left, right = pair->right;
    size_t n = pair->n;
    uint32_t *begins = pair->begins;
    pair->begins = NULL; /* *pair lies elsewhere when pairs have been added */
    pair->n = 0;
    pair->cap = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_left = learner->places[begins[i]].token == left;
        if (is_left && learner->places[place_after(learner, begins[i])].token == right)
            merge_at(learner, begins[i], result);
    }
    free(begins);
}

/* No two of the learnt merges make the same bytes, so add_merge() would refuse only tokens that are too long.  The
 * reason: where no token lies across the bounds of a piece of text, the piece's tokens depend on the piece alone.  So
 * wherever a second merge could make the same bytes, the first one has made them before. */
static void learn_merges(struct learner *learner, int n)
{
    struct bpe *bpe = learner->bpe;
    uint64_t begun = now_ns();
    int first = bpe->n;
    while (bpe->n < n) {
        struct token_pair *pair = most_frequent(learner);
        int result = bpe->n;
        if (!pair)
            break;
        if (bpe->tokens[pair->left].n + bpe->tokens[pair->right].n > MOST_TOKEN_BYTES)
            continue; /* its pair has left the heap */
        must(add_merge(bpe, pair->left, pair->right, result));
        bpe->n++;
        merge_everywhere(learner, pair, result);
        offer_gained(learner);
        show_busy("learning tokens", begun, (double)(bpe->n - first) / (n - first));
    }
    erase_line();
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* A tokenizer with room for n tokens that has two sorts of them: the 256 bytes, numbered as GPT-2 numbers them, in the
 * order of their characters; then the added tokens. */
static struct bpe *begin_tokens(int n, const char *const *added)
{
    struct bpe *bpe = new_bpe(n);
    int byte_of[BYTE_CHARACTERS];
    bytes_of_characters(byte_of);
    bpe->n = 0;
    for (int c = 0; c < BYTE_CHARACTERS; c++) {
        int byte = byte_of[c];
        if (byte == NONE)
            continue;
        bpe->of_byte[byte] = bpe->n;
        must(set_token(bpe, bpe->n, &(char){(char)byte}, 1));
        bpe->n++;
    }
    if (!added)
        return bpe;
    for (size_t i = 0; added[i]; i++) {
        const struct added_token special = {.token = bpe->n, .kinds = IS_SPECIAL};
        CHECK(bpe->n < n, "added token \"%s\": %d of %d tokens", added[i], bpe->n, n);
        const struct problem *problem = add_added(bpe, &special, added[i], strlen(added[i]));
        CHECK(!problem, "added token \"%s\" %s", added[i], problem->sentence);
        bpe->n++;
    }
    return bpe;
}

static void count_pairs(struct learner *learner)
{
    for (uint32_t place = 0; place < learner->n_places; place++)
        if (learner->places[place].token != WORD_END)
            gain_pair(learner, place);
    offer_gained(learner);
}

struct bpe *learn_bpe(const struct text *texts, size_t n_texts, int n, const char *const *added)
{
    struct learner learner = {.bpe = begin_tokens(n, added), .word_numbers = new_map()};
    const struct visitor visitor = {.word = count_word, .context = &learner, .activity = "counting words"};
    for (size_t i = 0; i < n_texts; i++)
        visit_text(learner.bpe, &texts[i], &visitor);
    lay_out_words(&learner);
    free_map(learner.word_numbers);
    learner.pair_numbers = new_map();
    count_pairs(&learner);
    learn_merges(&learner, n);
    for (size_t i = 0; i < learner.n_pairs; i++)
        free(learner.pairs[i].begins);
    free(learner.pairs);
    free(learner.places);
    free(learner.words);
    free(learner.gained);
    free(learner.frequent.item);
    free_map(learner.pair_numbers);
    return learner.bpe;
}

/* test_tokens.c - byte-level BPE: words, encoding, learning, and files of other programs.
 *
 * It tests src/tools/tokens.  Any bytes come back from their tokens; tokens are those of the textbook's algorithm,
 * which merges the first pair of the list again and again; the most frequent pair is learnt; and a tokenizer that goes
 * through a file is the same.  Words that are cut elsewhere than GPT-2's, a merge out of order, a word whose length
 * makes it slow, and a file that is believed though it cannot be computed here are found.
 *
 * To see it fail: in learn.c, let a pair that occurs LEAST_COUNT times count for nothing: > in place of >=.
 *
 * The textbook's algorithm is written out here.  Words and tokens that are expected otherwise stand beside their texts.
 */
#include "tests/support/support.h"
#include "tools/tokens/inner.h"
#include "trainer/file/file.h"

/* ---- for tests/scripts/tokenizers.sh ----------------------------------------------------------------------------- */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        fail(EXIT_USAGE, "the environment variable %s is not set", name);
    return value;
}

static struct text text_of_file(const char *path)
{
    struct text text = {.name = path};
    text.bytes = read_whole(path, &text.n);
    return text;
}

static double seconds_since(uint64_t begun) { return 1e-9 * (double)(now_ns() - begun); }

/* Writes the numbers of the text TEXT by the tokenizer TOKENS to the file OUT, as uint16. */
CASE(encode)
{
    struct bpe *bpe = read_bpe(variable("TOKENS"));
    struct text text = text_of_file(variable("TEXT"));
    const uint64_t begun = now_ns();
    size_t n;
    uint16_t *tokens = bpe_encode(bpe, &text, &n);
    const double seconds = seconds_since(begun);
    printf("# %zu bytes, %zu tokens, %.1f MB/s\n", text.n, n, 1e-6 * (double)text.n / seconds);
    struct writer *writer = open_writer(variable("OUT"));
    write_bytes(writer, tokens, n * sizeof *tokens);
    publish(writer);
}

/* Learns N tokens from TEXT, among them <|endoftext|>, and writes OUT, a tokenizer.json. */
CASE(learn)
{
    static const char *const added[] = {"<|endoftext|>", NULL};
    struct text text = text_of_file(variable("TEXT"));
    int64_t n;
    if (!parse_int(variable("N"), &n))
        fail(EXIT_USAGE, "N is no number");
    const uint64_t begun = now_ns();
    struct bpe *bpe = learn_bpe(&text, 1, (int)n, added);
    printf("# %d tokens from %zu bytes, %.2f s\n", bpe->n, text.n, seconds_since(begun));
    char *out = json_dumps(bpe_to_json(bpe), 0);
    publish_text(variable("OUT"), out);
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

/* Words and added tokens with a bar after each. */
struct listing {
    const struct bpe *b;
    char *text;
};
static void list_word(void *listing, const char *bytes, size_t n)
{
    struct listing *l = listing;
    append_text(&l->text, "%.*s|", (int)n, bytes);
}
static void list_added(void *listing, int token)
{
    struct listing *l = listing;
    append_text(&l->text, "[%.*s]|", (int)l->b->token[token].n, l->b->token[token].bytes);
}

static struct text text_of(const char *bytes)
{
    return (struct text){.name = "a text", .bytes = bytes, .n = strlen(bytes)};
}

static const char *const two_added[] = {"<|end|>", "<|end|>ing", NULL};

/* n tokens may be set; there are 256 bytes and two_added. */
static struct bpe *only_bytes(int n)
{
    struct text nothing = text_of("");
    return learn_bpe(&nothing, 1, n, two_added);
}

/* The same, but these are the kinds of the two. */
static struct bpe *bytes_and_added(unsigned first, unsigned second)
{
    struct text nothing = text_of("");
    struct bpe *bpe = learn_bpe(&nothing, 1, 258, NULL);
    assert_null(add_added(bpe, &(struct added){.token = 256, .kinds = first}, two_added[0], strlen(two_added[0])));
    assert_null(add_added(bpe, &(struct added){.token = 257, .kinds = second}, two_added[1], strlen(two_added[1])));
    bpe->n = 258;
    return bpe;
}

static void expect_words(const struct bpe *bpe, const char *bytes, const char *words)
{
    struct listing listing = {.b = bpe};
    struct visitor visitor = {.word = list_word, .added = list_added, .context = &listing, .activity = "listing"};
    struct text text = text_of(bytes);
    visit_text(bpe, &text, &visitor);
    assert_string_equal(listing.text, words);
    free(listing.text);
}

TEST(words_are_those_of_gpt2)
{
    static const char *const words[] = {
        "I|'m| lower| than| 12|", "x| | y|",           "we|'ll| can|'t|'|LL|", "a|  | b|\n\n| c|\n|d|  |",
        "x|1|y|²½٣| 12|", /* superscripts, fractions and Arabic digits are numbers */
        "漢字かな|,😀😀|e|\u0301|", " \u00A0|\u3000|a|", "  | !!!'|s|",          "a|\xFF\xFE|b|\xC3|",
    };
    struct bpe *bpe = only_bytes(258);
    for (size_t i = 0; i < COUNT(words); i++) {
        char *whole = allocate(strlen(words[i]) + 1, 1), *end = whole;
        for (const char *at = words[i]; *at; at++) {
            *end = *at;
            end += *at != '|';
        }
        *end = '\0';
        expect_words(bpe, whole, words[i]);
        free(whole);
    }
    expect_words(bpe, "a<|end|>'s <|end|>ing<|end", "a|[<|end|>]|'s| |[<|end|>ing]|<||end|");
    free_bpe(bpe);
    bpe = bytes_and_added(0, IS_NORMALIZED); /* it is found in what the others leave */
    expect_words(bpe, "<|end|>ing", "[<|end|>]|ing|");
    free_bpe(bpe);
    bpe = bytes_and_added(IS_NORMALIZED, IS_NORMALIZED);
    expect_words(bpe, "<|end|>ing", "[<|end|>ing]|");
    free_bpe(bpe);
}

/* ---- random texts and tokenizers -------------------------------------------------------------------------------- */

static uint64_t drawn;
static size_t draw(size_t below)
{
    drawn++;
    return random_words(1, STREAM_TEST, 52, drawn).word[0] % below;
}

/* Letters, white space of all kinds, characters of several lengths, endings, added tokens, and any bytes. */
static struct text random_text(size_t n)
{
    static const char *const parts[] = {"a",      "b",      "ab",     "ba",   "Z",       "7",          "12",
                                        " ",      " ",      "  ",     "\n",   "\t",      "\r\n",       "'s",
                                        "'ll",    "'",      "!",      "...",  "é",       "ß",          "я",
                                        "漢",     "\xC3",   "\xFF",   "٣",    "😀",       "\u00A0",     "\u2003",
                                        "\u3000", "\u200D", "\u0301", "<|en", "<|end|>", "<|end|>ing", "\xED\xA0\x80"};
    char *bytes = allocate(n + 16, 1);
    struct text text = {.name = "a random text", .bytes = bytes};
    const size_t most = draw(2) ? COUNT(parts) + 1 : 8; /* a few parts make long words, and many equal ones */
    while (text.n < n) {
        const size_t i = draw(most);
        char byte[2] = {(char)draw(256)};
        const char *part = i < COUNT(parts) ? parts[i] : byte;
        const size_t length = i < COUNT(parts) ? strlen(part) : 1;
        memcpy(bytes + text.n, part, length);
        text.n += length;
    }
    return text;
}

/* Merges of any tokens that there are, not of a text's: they overlap, and most words can be merged in several ways. */
static struct bpe *random_bpe(int n)
{
    static const char few[] = "aabbZ7  \xC3\xA9'";
    struct bpe *bpe = only_bytes(n);
    const size_t letters = COUNT(few) - 1;
    while (bpe->n < n) {
        int pair[2];
        for (int i = 0; i < 2; i++) {
            const size_t k = draw(letters + (size_t)bpe->n - 258);
            pair[i] = k < letters ? bpe->of_byte[(unsigned char)few[k]] : 258 + (int)(k - letters);
        }
        const struct token *l = &bpe->token[pair[0]], *r = &bpe->token[pair[1]];
        char *both = format_string("%.*s%.*s", (int)l->n, l->bytes, (int)r->n, r->bytes);
        bool known = strlen(both) > 12;
        for (int i = 258; i < bpe->n; i++)
            known |= bpe->token[i].n == strlen(both) && memcmp(bpe->token[i].bytes, both, strlen(both)) == 0;
        free(both);
        if (known)
            continue;
        assert_null(add_merge(bpe, pair[0], pair[1], bpe->n));
        bpe->n++;
    }
    return bpe;
}

/* ---- encoding and decoding -------------------------------------------------------------------------------------- */

static void expect_decoded(const struct bpe *bpe, const struct text *text, const uint16_t *tokens, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const char *bytes = bpe_decode(bpe, tokens[i], &length);
        assert_true(at + length <= text->n);
        assert_memory_equal(bytes, text->bytes + at, length);
        at += length;
    }
    assert_int_equal(at, text->n);
}

/* From left to right; how many tokens there are then. */
static size_t merge_all(uint16_t *tokens, size_t n, const struct merge *m)
{
    size_t to = 0;
    for (size_t i = 0; i < n; to++) {
        bool is_pair = i + 1 < n && tokens[i] == m->left && tokens[i + 1] == m->right;
        tokens[to] = (uint16_t)(is_pair ? m->result : tokens[i]);
        i += is_pair ? 2 : 1;
    }
    return to;
}

/* The textbook's way: of all merges that the word has the first one that was learnt, everywhere, from left to right. */
struct textbook {
    const struct bpe *b;
    uint16_t *tokens;
    size_t n;
};
static void merge_slowly(void *textbook, const char *bytes, size_t n)
{
    struct textbook *t = textbook;
    uint16_t *word = t->tokens + t->n;
    for (size_t i = 0; i < n; i++)
        word[i] = (uint16_t)t->b->of_byte[(unsigned char)bytes[i]];
    for (;;) {
        int64_t best = NO_NUMBER;
        for (size_t i = 0; i + 1 < n; i++) {
            int64_t rank = map_find(t->b->ranks, pair_key(word[i], word[i + 1]));
            if (rank != NO_NUMBER && (best == NO_NUMBER || rank < best))
                best = rank;
        }
        if (best == NO_NUMBER)
            break;
        n = merge_all(word, n, &t->b->merges[best]);
    }
    t->n += n;
}
static void put_added(void *textbook, int token)
{
    struct textbook *t = textbook;
    t->tokens[t->n] = (uint16_t)token;
    t->n++;
}

LAW(any_bytes_come_back_and_tokens_are_the_textbooks)
{
    struct cases c = cases_of(20, 200);
    for (int i = c.begin; i < c.end; i++) {
        drawn = (uint64_t)i << 32;
        struct bpe *bpe = random_bpe(258 + (int)draw(120));
        struct text text = random_text(draw(5000));
        size_t n;
        uint16_t *tokens = bpe_encode(bpe, &text, &n);
        expect_decoded(bpe, &text, tokens, n);
        struct textbook slow = {.b = bpe, .tokens = allocate(text.n, sizeof *slow.tokens)};
        struct visitor visitor = {.word = merge_slowly, .added = put_added, .context = &slow, .activity = "merging"};
        visit_text(bpe, &text, &visitor);
        assert_int_equal(n, slow.n);
        assert_memory_equal(tokens, slow.tokens, n * sizeof *tokens);
        free(tokens);
        free(slow.tokens);
        free((void *)text.bytes);
        free_bpe(bpe);
    }
}

/* The text, which is one word, is merged as by the textbook. */
static void expect_slow_merges(const struct bpe *bpe, const struct text *text)
{
    struct textbook slow = {.b = bpe, .tokens = allocate(text->n, sizeof *slow.tokens)};
    size_t n;
    uint16_t *tokens = bpe_encode(bpe, text, &n);
    merge_slowly(&slow, text->bytes, text->n);
    assert_int_equal(n, slow.n);
    assert_memory_equal(tokens, slow.tokens, n * sizeof *tokens);
    free(tokens);
    free(slow.tokens);
}

/* What is merged in windows and what is merged at once is the same; one letter alone shows where a window begins. */
TEST(long_words_are_merged_in_windows)
{
    for (int i = 0; i < 8; i++) {
        drawn = (uint64_t)(100 + i) << 32;
        struct bpe *bpe = random_bpe(258 + 60);
        char *bytes = allocate(300001, 1);
        const size_t letters = 1 + draw(3);
        struct text text = {.name = "a long word", .bytes = bytes, .n = 300001};
        for (size_t k = 0; k < text.n; k++)
            bytes[k] = "abZ"[draw(letters)];
        expect_slow_merges(bpe, &text);
        free(bytes);
        free_bpe(bpe);
    }
}

/* Merges "ba", "cb", "dc" ... "nm": one letter more at the end of "nm...cb" changes every pair in it, so a window's end
 * is felt as far before it as merges can reach. */
TEST(a_window_ends_as_far_before_as_merges_reach)
{
    enum { LETTERS = 14, BYTES = 70000 };
    struct bpe *bpe = only_bytes(300);
    char *bytes = allocate(BYTES, 1);
    struct text text = {.name = "a long word", .bytes = bytes, .n = BYTES};
    for (int i = 1; i < LETTERS; i++)
        assert_null(add_merge(bpe, bpe->of_byte['a' + i], bpe->of_byte['a' + i - 1], 257 + i));
    bpe->n = 257 + LETTERS;
    bpe->joined['a']['a' + LETTERS - 1] = true; /* else it is cut there */
    for (int shift = 0; shift < LETTERS; shift++) {
        for (int i = 0; i < BYTES; i++)
            bytes[i] = (char)('a' + LETTERS - 1 - (i + shift) % LETTERS);
        expect_slow_merges(bpe, &text);
    }
    free(bytes);
    free_bpe(bpe);
}

/* "ab" "c" and "a" "bc" make one token, and what follows the one need not follow the other: no windows then. */
TEST(two_merges_that_make_the_same_token)
{
    struct bpe *b = only_bytes(300);
    const int a = b->of_byte['a'], c = b->of_byte['c'];
    assert_null(add_merge(b, a, b->of_byte['b'], 258));
    assert_null(add_merge(b, b->of_byte['b'], c, 259));
    assert_null(add_merge(b, 258, c, 260));
    assert_false(b->makes_twice);
    assert_null(add_merge(b, a, 259, 260));
    assert_true(b->makes_twice);
    b->n = 261;
    free_bpe(b);
}

TEST(a_long_word_takes_no_quadratic_time)
{
    const size_t n = 4000000;
    char *bytes = allocate(n, 1);
    struct text text = {.name = "a long word", .bytes = bytes, .n = n};
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)('a' + draw(2));
    const uint64_t begun = now_ns();
    struct bpe *bpe = learn_bpe(&text, 1, 300, NULL);
    size_t n_tokens;
    uint16_t *tokens = bpe_encode(bpe, &text, &n_tokens);
    expect_decoded(bpe, &text, tokens, n_tokens);
    assert_true(n_tokens < n / 3);
    assert_true(seconds_since(begun) < 60);
    free(tokens);
    free((void *)text.bytes);
    free_bpe(bpe);
}

/* "<0>", "<1>", "<10>" ...: each byte of the text could begin any of them. */
TEST(many_added_tokens_take_no_more_time)
{
    enum { MANY = 60000 };
    struct bpe *bpe = only_bytes(258 + MANY);
    for (int i = 0; i < MANY; i++) {
        char text[16];
        snprintf(text, sizeof text, "<%d>", i);
        assert_null(add_added(bpe, &(struct added){.token = 258 + i}, text, strlen(text)));
    }
    bpe->n = 258 + MANY;
    char *bytes = allocate(3000000, 1);
    struct text text = {.name = "a text", .bytes = bytes, .n = 3000000};
    for (size_t i = 0; i < text.n; i += 3)
        memcpy(bytes + i, i % 2 ? "<7>" : "<a>", 3);
    const uint64_t begun = now_ns();
    size_t n;
    uint16_t *tokens = bpe_encode(bpe, &text, &n);
    expect_decoded(bpe, &text, tokens, n);
    assert_int_equal(n, 500000 + 500000 * 3);
    assert_int_equal(tokens[3], 258 + 7);
    assert_true(seconds_since(begun) < 20);
    free(tokens);
    free(bytes);
    free_bpe(bpe);
}

/* Those that a model does not have are left out if they are special; then their text is any text. */
TEST(special_tokens_can_be_dropped)
{
    struct text text = text_of("abab<|end|>ing abab");
    struct bpe *bpe = random_bpe(300);
    assert_false(drop_tokens(bpe, 299)); /* a merge makes it */
    assert_false(drop_tokens(bpe, 100));
    free_bpe(bpe);
    bpe = only_bytes(258);
    assert_false(drop_tokens(bpe, 255)); /* it is a byte's */
    assert_true(drop_tokens(bpe, 257));
    size_t n;
    uint16_t *tokens = bpe_encode(bpe, &text, &n);
    assert_int_equal(n, 4 + 1 + 3 + 5);
    assert_int_equal(tokens[4], 256);
    expect_decoded(bpe, &text, tokens, n);
    json_t *json = bpe_to_json(bpe);
    assert_int_equal(json_array_size(json_object_get(json, "added_tokens")), 1);
    json_decref(json);
    free(tokens);
    free_bpe(bpe);
}

TEST(what_no_token_has_decodes_to_a_mark)
{
    struct bpe *bpe = only_bytes(258);
    size_t n;
    for (int token = -1; token <= 258; token += 259) {
        const char *bytes = bpe_decode(bpe, token, &n);
        assert_int_equal(n, 3);
        assert_memory_equal(bytes, "\xEF\xBF\xBD", 3);
    }
    assert_int_equal(find_added(bpe, "<|end|>"), 256);
    assert_int_equal(find_added(bpe, "<|end|>in"), -1);
    free_bpe(bpe);
}

/* ---- learning --------------------------------------------------------------------------------------------------- */

/* The textbook's way: for each merge all pairs of all words, which lie one after another with ends between, are counted
 * anew. */
enum { END = 65535 };
struct course {
    uint16_t *tokens;
    size_t n;
    const struct bpe *b;
};
static void add_word(void *course, const char *bytes, size_t n)
{
    struct course *c = course;
    for (size_t i = 0; i < n; i++)
        c->tokens[c->n + i] = (uint16_t)c->b->of_byte[(unsigned char)bytes[i]];
    c->tokens[c->n + n] = END;
    c->n += n + 1;
}
static void pass_added(void *course, int token)
{
    (void)course;
    (void)token;
}

static struct merge most_frequent_pair(const struct course *course, size_t *most)
{
    const int n = course->b->n;
    uint32_t *count = allocate((size_t)(n * n), sizeof *count);
    struct merge best = {0};
    for (size_t i = 0; i + 1 < course->n; i++)
        if (course->tokens[i] != END && course->tokens[i + 1] != END)
            count[course->tokens[i] * n + course->tokens[i + 1]]++;
    *most = 0;
    for (int pair = 0; pair < n * n; pair++)
        if (count[pair] > *most) {
            *most = count[pair];
            best = (struct merge){.left = pair / n, .right = pair % n};
        }
    free(count);
    return best;
}

static bool is_known(const struct bpe *bpe, const struct merge *merge)
{
    char bytes[2 * MOST_TOKEN_BYTES];
    const size_t n = join_bytes(bpe, merge->left, merge->right, bytes);
    for (int i = 0; i < bpe->n; i++)
        if (bpe->token[i].n == n && memcmp(bpe->token[i].bytes, bytes, n) == 0)
            return true;
    return false;
}

static struct bpe *learn_slowly(const struct text *text, int n)
{
    struct bpe *bpe = only_bytes(n);
    struct course course = {.tokens = allocate(2 * text->n, sizeof *course.tokens), .b = bpe};
    struct visitor visitor = {.word = add_word, .added = pass_added, .context = &course, .activity = "learning"};
    visit_text(bpe, text, &visitor);
    while (bpe->n < n) {
        size_t most;
        struct merge merge = most_frequent_pair(&course, &most);
        if (most < 2)
            break;
        merge.result = bpe->n;
        assert_false(is_known(bpe, &merge)); /* learn.c says why */
        assert_null(add_merge(bpe, merge.left, merge.right, merge.result));
        bpe->n++;
        course.n = merge_all(course.tokens, course.n, &merge);
    }
    free(course.tokens);
    return bpe;
}

LAW(the_most_frequent_pair_is_merged)
{
    struct cases c = cases_of(10, 60);
    for (int i = c.begin; i < c.end; i++) {
        drawn = (uint64_t)i << 32;
        const int n = 258 + (int)draw(150);
        struct text text = random_text(300 + draw(3000));
        struct bpe *bpe = learn_bpe(&text, 1, n, two_added), *slow = learn_slowly(&text, n);
        assert_int_equal(bpe->n, slow->n);
        assert_int_equal(bpe->n_merges, slow->n_merges);
        assert_memory_equal(bpe->merges, slow->merges, bpe->n_merges * sizeof *bpe->merges);
        free((void *)text.bytes);
        free_bpe(bpe);
        free_bpe(slow);
    }
}

/* More different words than are kept: what is met often is learnt, wherever it begins. */
TEST(rare_words_are_forgotten)
{
    const size_t size = 20 << 20;
    char *bytes = allocate(size, 1);
    struct text text = {.name = "a text", .bytes = bytes, .n = size};
    for (size_t i = 0; i < size; i += 8) {
        size_t number = i;
        bytes[i] = ' ';
        for (size_t k = 1; k < 8; k++) {
            bytes[i + k] = (char)('a' + number % 16);
            number /= 16;
        }
    }
    for (size_t i = size / 8 * 7; i < size; i += 8)
        memcpy(bytes + i, " @@##%%@", 8);
    struct bpe *bpe = learn_bpe(&text, 1, 300, NULL);
    struct text often = text_of(" @@##%%@");
    size_t n;
    uint16_t *tokens = bpe_encode(bpe, &often, &n);
    assert_int_equal(n, 1);
    free(tokens);
    free(bytes);
    free_bpe(bpe);
}

TEST(learning_ends_when_no_pair_occurs_twice)
{
    struct text text = text_of("abab abab<|end|>abab");
    struct bpe *bpe = learn_bpe(&text, 1, 1000, two_added);
    /* "ab", "abab"; " abab" is there once, "abab" stands for itself */
    assert_int_equal(bpe->n, 260);
    size_t n;
    uint16_t *tokens = bpe_encode(bpe, &text, &n);
    assert_int_equal(n, 5);
    assert_int_equal(tokens[0], 259);
    assert_int_equal(tokens[1], bpe->of_byte[' ']);
    assert_int_equal(tokens[3], 256);
    free(tokens);
    free_bpe(bpe);
}

/* ---- as text and as JSON ---------------------------------------------------------------------------------------- */

static void expect_same_tokens(const struct bpe *a, const struct bpe *b, const struct text *text)
{
    size_t n, m;
    uint16_t *x = bpe_encode(a, text, &n), *y = bpe_encode(b, text, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n * sizeof *x);
    expect_decoded(b, text, y, m);
    free(x);
    free(y);
}

static char *text_of_json(const struct bpe *bpe)
{
    json_t *json = bpe_to_json(bpe);
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

TEST(a_tokenizer_goes_through_json)
{
    for (int i = 0; i < 10; i++) {
        struct bpe *bpe = random_bpe(258 + 100 * i);
        struct text text = random_text(3000);
        json_t *json = bpe_to_json(bpe);
        struct bpe *again = bpe_from_json(json, "tokenizer.json");
        char *first = text_of_json(bpe), *second = text_of_json(again);
        assert_string_equal(first, second);
        assert_int_equal(valid_utf8(first, strlen(first)), strlen(first));
        expect_same_tokens(bpe, again, &text);
        json_decref(json);
        free(first);
        free(second);
        free((void *)text.bytes);
        free_bpe(bpe);
        free_bpe(again);
    }
}

/* Merges as pairs and a step in a sequence mean the same. */
TEST(other_ways_to_write_a_tokenizer)
{
    struct bpe *bpe = random_bpe(400);
    struct text text = random_text(3000);
    json_t *json = bpe_to_json(bpe), *merges = json_object_get(json_object_get(json, "model"), "merges"), *merge;
    size_t i;
    json_array_foreach(merges, i, merge)
    {
        char *copy = copy_string(json_string_value(merge)), *space = strchr(copy, ' ');
        *space = '\0';
        json_array_set_new(merges, i, json_pack("[s, s]", copy, space + 1));
        free(copy);
    }
    json_object_set_new(
        json, "pre_tokenizer",
        json_pack("{s:s, s:[O]}", "type", "Sequence", "pretokenizers", json_object_get(json, "decoder")));
    struct bpe *again = bpe_from_json(json, "tokenizer.json");
    expect_same_tokens(bpe, again, &text);
    json_decref(json);
    free((void *)text.bytes);
    free_bpe(bpe);
    free_bpe(again);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

/* A tokenizer.json in which the field at this path has another value. */
struct edit {
    const char *path, *value;
};
static json_t *edited(const struct edit *edit)
{
    struct text text = text_of("abab abab abc abc");
    struct bpe *bpe = learn_bpe(&text, 1, 300, two_added);
    json_t *json = json_deep_copy(bpe_to_json(bpe)), *at = json; /* it has one "ByteLevel" twice */
    char *copy = copy_string(edit->path), *rest = copy, *key = strsep(&rest, ".");
    for (; rest; key = strsep(&rest, "."))
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(key)) : json_object_get(at, key);
    json_t *value = json_loads(edit->value, JSON_DECODE_ANY, NULL);
    if (json_is_array(at))
        json_array_set_new(at, (size_t)atoi(key), value);
    else if (value)
        json_object_set_new(at, key, value);
    else
        json_object_del(at, key);
    return json;
}
static void read_edited(void *edit) { bpe_from_json(edited(edit), "t.json"); }

TEST(what_is_not_computed_is_refused_by_its_name)
{
    static const struct {
        struct edit edit;
        int code;
        const char *part;
    } cases[] = {
        {{"normalizer", "{\"type\": \"NFC\"}"}, 2, "t.json asks for normalizer.type \"NFC\", but only"},
        {{"normalizer", "\"Lowercase\""}, 2, "asks for normalizer.type \"Lowercase\""},
        {{"normalizer", "{\"a\": 1}"}, 2, "asks for normalizer {\"a\":1}"},
        {{"model.merges", "\"a b\""}, 1, "its merges must be a list"},
        {{"added_tokens", "{\"content\": 1}"}, 1, "its added_tokens must be a list"},
        {{"model.type", "\"Unigram\""}, 2, "asks for model.type \"Unigram\""},
        {{"model.type", ""}, 2, "asks for model.type null"},
        {{"model.dropout", "0.1"}, 2, "asks for model.dropout 0.1"},
        {{"model.unk_token", "\"<unk>\""}, 2, "model.unk_token \"<unk>\""},
        {{"model.continuing_subword_prefix", "\"##\""}, 2, "model.continuing_subword_prefix \"##\""},
        {{"model.end_of_word_suffix", "\"</w>\""}, 2, "model.end_of_word_suffix"},
        {{"model.byte_fallback", "true"}, 2, "model.byte_fallback true"},
        {{"model.ignore_merges", "true"}, 2, "model.ignore_merges true"},
        {{"pre_tokenizer.add_prefix_space", "true"}, 2, "pre_tokenizer.add_prefix_space true"},
        {{"pre_tokenizer.use_regex", "false"}, 2, "asks for pre_tokenizer.use_regex false"},
        {{"pre_tokenizer.type", "\"Metaspace\""}, 2, "asks for pre_tokenizer.type \"Metaspace\""},
        {{"pre_tokenizer", "null"}, 2, "asks for pre_tokenizer.type null"},
        {{"post_processor", "{\"type\": \"BertProcessing\"}"}, 2, "post_processor.type \"BertProcessing\""},
        {{"post_processor", "{\"type\": \"TemplateProcessing\", \"single\": []}"}, 2, "post_processor.single []"},
        {{"decoder", "{\"type\": \"Metaspace\"}"}, 2, "decoder.type \"Metaspace\""},
        {{"added_tokens.0.lstrip", "true"}, 2, "asks for lstrip with the added token \"<|end|>\""},
        {{"added_tokens.0.id", "7"}, 1, "added token 0, \"<|end|>\", has two numbers"},
        {{"added_tokens.0.id", "\"7\""}, 1, "added token 0 must have a content and a number"},
        {{"added_tokens.0.content", "\"\""}, 1, "\"\" must have a number of its own from 0 to"},
        {{"model.vocab.a", "65"}, 1, "must have a number of its own from 0 to 260"}, /* of b */
        {{"model.vocab.a", "-1"}, 1, "the token \"a\" must have a number of its own from 0 to 260"},
        {{"model.vocab.a", "261"}, 1, "the token \"a\" must have"},
        {{"model.vocab.a", ""}, 1, "must have a number of its own from 0 to 259"}, /* a hole */
        {{"model.vocab", "[1]"}, 1, "its vocab must be an object"},
        {{"model.vocab", ""}, 1, "its vocab must be an object"},
        {{"model.vocab", "{}"}, 1, "must have a number of its own"},
        {{"model.merges.0", "\"ab\""}, 1, "merge 0 must have two tokens, as \"a b\""},
        {{"model.merges.0", "[\"a\", \"b\", \"c\"]"}, 1, "merge 0 must have two tokens"},
        {{"model.merges.0", "\"a q\""}, 1, "merge 0, \"a q\", needs \"aq\", which is no token of t.json"},
        {{"model.merges.0", "\"a nothing\""}, 1, "needs \"nothing\", which is no token"},
        {{"model.merges.1", "\"a b\""}, 1, "merge 1, \"a b\", is there twice"},
        {{"model.merges.0", "\"Ġ ab\""}, 1, "merge 0, \"Ġ ab\", joins a token that neither a byte nor a merge"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_refusal(read_edited, (void *)&cases[i].edit, cases[i].code, cases[i].part);
}

static void read_file(void *path) { read_bpe(path); }

/* The vocabulary and the merges as GPT-2's two files have them; the texts last. */
struct two_files {
    const char *vocab, *merges;
};
static struct two_files two_files_of(const struct bpe *bpe, int end_of_text)
{
    json_t *json = bpe_to_json(bpe), *model = json_object_get(json, "model"), *merge;
    json_t *vocab = json_object_get(model, "vocab");
    char *merges = copy_string("#version: 0.2\n"), *names;
    size_t i;
    json_object_set_new(vocab, "<|endoftext|>", json_integer(end_of_text));
    json_object_set_new(vocab, "model", json_integer(end_of_text + 1)); /* GPT-2 has this token: it is no field */
    json_array_foreach(json_object_get(model, "merges"), i, merge)
        append_text(&merges, "%s\r\n", json_string_value(merge));
    names = json_dumps(vocab, 0);
    struct two_files two = {.vocab = lasting("%s", names), .merges = lasting("%s", merges)};
    json_decref(json);
    free(names);
    free(merges);
    return two;
}

TEST(vocab_json_and_merges_txt)
{
    struct text text = random_text(2000);
    struct bpe *bpe = random_bpe(400);
    struct two_files two = two_files_of(bpe, 400);
    char *path = write_text("gpt2-vocab.json", "%s", two.vocab);
    char *second = write_text("gpt2-merges.txt", "%s", two.merges);
    struct bpe *by_vocab = read_bpe(path), *by_merges = read_bpe(second);
    assert_int_equal(find_added(by_vocab, "<|endoftext|>"), 400);
    expect_same_tokens(by_vocab, by_merges, &text);
    expect_refusal(read_file, write_text("vocab.json", "%s", two.vocab), 4, "merges.txt");
    expect_refusal(read_file, write_text("other.json", "%s", two.vocab), 2, "other.json is no tokenizer: it has no");
    expect_refusal(read_file, write_text("twice.json", "{\"model\": 1, \"model\": 2}"), 1, "duplicate object key");
    expect_refusal(read_file, write_text("array.json", "[]"), 1, "expected a JSON object");
    write_text("gpt2-merges.txt", "a b\nno\xFF t\n");
    expect_refusal(read_file, path, 1, "gpt2-merges.txt: merge 1 is not UTF-8");
    write_text("gpt2-merges.txt", "a a a\n");
    expect_refusal(read_file, path, 1, "merge 0, \"a a a\", needs \"a a\", which is no token of ");
    free((void *)text.bytes);
    free_bpe(bpe);
    free_bpe(by_vocab);
    free_bpe(by_merges);
}

/* Numbers made elsewhere: --tokens FILE says what they mean, and no other word can. */
TEST(a_file_says_what_numbers_mean)
{
    struct bpe *bpe = random_bpe(400);
    struct two_files two = two_files_of(bpe, 400);
    write_text("gpt2-merges.txt", "%s", two.merges);
    const char *vocab = lasting("%s", write_text("gpt2-vocab.json", "%s", two.vocab));
    char *text = allocate(8001, 1);
    memset(text, 0x81, 8000); /* as numbers of 16 bits: 0x8181 is 33153 */
    const char *ids = lasting("%s", write_text("ids.bin", "%s", text));
    expect_yard(EXIT_USAGE, "has token 33153, but --tokens ", "train --steps 1 --data %s --tokens %s", ids, vocab);
    expect_yard(EXIT_OK, "--tokens chars has no effect: ",
                "train --model tiny --steps 1 --sample-tokens 0 --data %s --tokens chars", ids);
    free(text);
    free_bpe(bpe);
}

TEST(too_many_tokens_are_refused_by_their_number)
{
    struct bpe *bpe = only_bytes(258);
    json_t *json = bpe_to_json(bpe), *many = json_object();
    for (int i = 0; i < 65537; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        json_object_set_new(many, name, json_integer(i));
    }
    json_object_set_new(json_object_get(json, "model"), "vocab", many);
    char *text = json_dumps(json, 0);
    expect_refusal(
        read_file, write_text("many.json", "%s", text), 2,
        "many.json has 65539 tokens, but token numbers are kept in 16 bits: take a tokenizer of at most 65536");
    json_decref(json);
    free(text);
    free_bpe(bpe);
}

/* llm.c's gpt2_tokenizer.bin with this version and number of tokens, and then the tokens "a" and "end". */
static char *write_llmc(int32_t version, int32_t n)
{
    unsigned char file[1024 + 6] = {[1024] = 1, 'a', 3, 'e', 'n', 'd'};
    memcpy(file, (int32_t[]){20240328, version, n, 1}, 16);
    return write_file("gpt2_tokenizer.bin", file, sizeof file);
}

TEST(llmc_only_decodes)
{
    struct bpe *bpe = read_bpe(write_llmc(2, 2));
    size_t n;
    assert_memory_equal(bpe_decode(bpe, 1, &n), "end", 3);
    assert_int_equal(n, 3);
    assert_int_equal(find_added(bpe, "end"), 1);
    json_t *json = bpe_to_json(bpe);
    struct bpe *again = bpe_from_json(json, "x");
    assert_true(again->decodes_only);
    assert_int_equal(find_added(again, "end"), 1);
    expect_refusal(read_file, write_file("cut.bin", (int32_t[]){20240328, 2, 2, 1}, 16), 1,
                   "cut.bin is cut off: it has 16 bytes, and its header alone 1024");
    expect_refusal(read_file, write_llmc(3, 2), 1, "says version 3 and 2 tokens");
    expect_refusal(read_file, write_llmc(1, 70000), 1, "and 70000 tokens");
    expect_refusal(read_file, write_llmc(1, -1), 1, "and -1 tokens");
    expect_refusal(read_file, write_llmc(1, 3), 1, "token 2 has no bytes");
    expect_refusal(read_file, write_llmc(1, 1), 1, "goes on after its last token, at byte 1026");
    json_decref(json);
    free_bpe(bpe);
    free_bpe(again);
}

/* The tokens come back from tokenizer.json; of any other nothing is taken. */
TEST(tokenizers_come_back)
{
    static const char *const ours[] = {"bytes", "chars a 20 41 416 20ac 1f600"};
    static const char *const others[] = {
        "{}",
        "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": [\"a b\"]}}",
        "{\"model\": {\"vocab\": {\"ab\": 0, \"b\": 1}, \"merges\": []}}",
        "{\"model\": {\"vocab\": {\"b\": 0, \"a\": 1}, \"merges\": []}}",
        "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []}}",
        "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 2}, \"merges\": []}}",
        "{\"model\": {\"vocab\": {\"a\": 0, \"b\": \"1\"}, \"merges\": []}}",
        "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}}",
        "{\"normalizer\": {\"type\": \"Lowercase\"}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": "
        "[]}}",
        "{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}, \"merges\": []}}",
        "{\"added_tokens\": [{}], \"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}}"};
    for (size_t i = 0; i < COUNT(ours); i++) {
        struct tokenizer tokenizer = tokenizer_from_text(ours[i], "");
        json_t *json = tokenizer_to_json(&tokenizer);
        struct tokenizer back = single_from_json(json);
        char *text = tokenizer_to_text(&back);
        assert_string_equal(text, ours[i]);
        free(text);
        free_tokenizer(&tokenizer);
        free_tokenizer(&back);
        json_decref(json);
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        json_t *json = json_loads(others[i], 0, NULL);
        assert_non_null(json);
        assert_int_equal(single_from_json(json).n, 0);
        json_decref(json);
    }
    assert_int_equal(single_from_json(NULL).n, 0);
}

/* ---- as a kind of tokenizer -------------------------------------------------------------------------------------- */

static void read_line(void *line) { tokenizer_from_text(line, "run/model"); }
static void check_word(void *word) { check_tokens(word); }

TEST(a_checkpoint_keeps_a_tokenizer)
{
    const struct text text = text_of("abab abab<|endoftext|> abc abc");
    const struct texts train = {.text = (struct text *)&text, .n = 1};
    struct tokenizer tokenizer = make_tokenizer("bpe:300", &train, &train);
    char *line = tokenizer_to_text(&tokenizer);
    struct tokenizer again = tokenizer_from_text(line, "run/model");
    assert_int_equal(again.n, tokenizer.n);
    assert_false(again.takes_numbers);
    assert_true(end_of_text(&tokenizer) >= 0); /* the text has it */
    assert_int_equal(end_of_text(&tokenizer), end_of_text(&again));
    assert_false(is_tokenizer(&again, lasting("bpe:%d", tokenizer.n))); /* it would learn others */
    assert_false(is_tokenizer(&again, "bytes"));
    expect_same_tokens(tokenizer.own, again.own, &text);
    for (size_t n = 0; n < strlen(line); n += 97) {
        char *cut = format_string("%.*s", (int)n, line);
        expect_refusal(read_line, cut, 1, "run/model is damaged: its tokenizer");
        free(cut);
    }
    free(line);
    free_tokenizer(&tokenizer);
    free_tokenizer(&again);
}

TEST(words_of_tokens)
{
    check_tokens("bytes");
    check_tokens("bpe:257");
    check_tokens("bpe:65536");
    static const char *const wrong[] = {"bpe", "bpe:", "bpe:256", "bpe:65537", "bpe:1k"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_refusal(check_word, (void *)wrong[i], 2, "expected bpe:N, where N is how many tokens to learn");
    expect_refusal(check_word, (char *)"words", 2, "takes bytes, chars, bpe:N, or the FILE of a tokenizer: ");
    expect_refusal(check_word, (char *)"ids", 2, "\"ids\" is none of these");
}

static void encode_by_llmc(void *tokenizer)
{
    const struct text text = text_of("a");
    size_t n;
    encode_text(tokenizer, &text, &n);
}

TEST(a_tokenizer_that_only_decodes_takes_numbers)
{
    struct tokenizer tokenizer = make_tokenizer(write_llmc(2, 2), NULL, NULL);
    const struct text text = text_of("1 0");
    size_t n;
    assert_true(tokenizer.takes_numbers);
    assert_null(tokenizer_to_json(&tokenizer));
    uint16_t *tokens = encode_text(&tokenizer, &text, &n);
    assert_int_equal(n, 2);
    assert_int_equal(tokens[0], 1);
    char *line = tokenizer_to_text(&tokenizer);
    struct tokenizer again = tokenizer_from_text(line, "x");
    assert_true(again.takes_numbers);
    expect_refusal(encode_by_llmc, &again, 2, "has \"a\", but this model knows only token numbers");
    free(tokens);
    free(line);
    free_tokenizer(&tokenizer);
    free_tokenizer(&again);
}

/* test_tokens.c - byte-level BPE: words, encoding and decoding, and learning.
 *
 * It tests src/tools/tokens.  It checks that words are GPT-2's, that any bytes come back from their tokens, that tokens
 * are those of the textbook's algorithm, which merges the first pair of the list again and again, and that the most
 * frequent pair is learnt.  It catches words that are cut in other places than GPT-2's, a merge out of order, and a
 * word that takes long because of its length.
 *
 * To see it fail: in learn.c, let a pair that occurs LEAST_COUNT times count for nothing: > in place of >=.  Or
 * in bpe.c, let merge_word() go through the whole word after each heap_pop(): then a long word takes too long.
 *
 * The textbook's algorithm is in this file.  Other expected words and tokens stand beside their texts.
 * test_tokenizer_files.c tests tokenizers in files.
 */
#include "tests/support/support_tokens.h"
#include "trainer/file/file.h"

#include <time.h>

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
    uint64_t begun = now_ns();
    size_t n;
    uint16_t *tokens = bpe_encode(bpe, &text, &n);
    double seconds = seconds_since(begun);
    printf("# %zu bytes, %zu tokens, %.1f MB/s\n", text.n, n, 1e-6 * (double)text.n / seconds);
    struct writer *writer = open_writer(variable("OUT"));
    write_bytes(writer, tokens, n * sizeof *tokens);
    must(publish(writer));
}

/* Learns N tokens from TEXT, among them <|endoftext|>, and writes OUT, a tokenizer.json. */
CASE(learn)
{
    static const char *const added[] = {"<|endoftext|>", NULL};
    struct text text = text_of_file(variable("TEXT"));
    int64_t n;
    if (!parse_int(variable("N"), &n))
        fail(EXIT_USAGE, "N is no number");
    uint64_t begun = now_ns();
    struct bpe *bpe = learn_bpe(&text, 1, (int)n, added);
    printf("# %d tokens from %zu bytes, %.2f s\n", bpe->n, text.n, seconds_since(begun));
    char *out = json_dumps(bpe_to_json(bpe), 0);
    publish_text(variable("OUT"), out);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Words and added tokens with a bar after each. */
struct listing {
    const struct bpe *bpe;
    char *text;
};
static void list_word(void *argument, const char *bytes, size_t n)
{
    struct listing *listing = argument;
    append_text(&listing->text, "%.*s|", (int)n, bytes);
}

static void list_added(void *argument, int token)
{
    struct listing *listing = argument;
    append_text(&listing->text, "[%.*s]|", (int)listing->bpe->tokens[token].n, listing->bpe->tokens[token].bytes);
}

/* Like only_bytes(), but the tokenizer has two added tokens, of these kinds. */
static struct bpe *bytes_and_added(unsigned first, unsigned second)
{
    struct text nothing = text_of("");
    struct bpe *bpe = learn_bpe(&nothing, 1, 258, NULL);
    assert_null(
        add_added(bpe, &(struct added_token){.token = 256, .kinds = first}, two_added[0], strlen(two_added[0])));
    assert_null(
        add_added(bpe, &(struct added_token){.token = 257, .kinds = second}, two_added[1], strlen(two_added[1])));
    bpe->n = 258;
    return bpe;
}

static void expect_words(const struct bpe *bpe, const char *bytes, const char *words)
{
    struct listing listing = {.bpe = bpe};
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
            if (*at != '|')
                end++;
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

/* ---- encoding and decoding --------------------------------------------------------------------------------------- */

/* Merges the pair everywhere in the tokens, from left to right.  Returns how many tokens are left. */
static size_t merge_all(uint16_t *tokens, size_t n, const struct merge *merge)
{
    size_t to = 0;
    for (size_t i = 0; i < n; to++) {
        bool is_pair = i + 1 < n && tokens[i] == merge->left && tokens[i + 1] == merge->right;
        tokens[to] = (uint16_t)(is_pair ? merge->result : tokens[i]);
        i += is_pair ? 2 : 1;
    }
    return to;
}

/* The textbook's way: of all merges that fit in the word, it takes the one that was learnt first, merges it everywhere,
 * and begins anew. */
struct textbook {
    const struct bpe *bpe;
    uint16_t *tokens;
    size_t n;
};
static void merge_slowly(void *argument, const char *bytes, size_t n)
{
    struct textbook *textbook = argument;
    uint16_t *word = textbook->tokens + textbook->n;
    for (size_t i = 0; i < n; i++)
        word[i] = (uint16_t)textbook->bpe->of_byte[(unsigned char)bytes[i]];
    for (;;) {
        int64_t best = NO_NUMBER;
        for (size_t i = 0; i + 1 < n; i++) {
            int64_t rank = map_find(textbook->bpe->ranks, pair_key(word[i], word[i + 1]));
            if (rank != NO_NUMBER && (best == NO_NUMBER || rank < best))
                best = rank;
        }
        if (best == NO_NUMBER)
            break;
        n = merge_all(word, n, &textbook->bpe->merges[best]);
    }
    textbook->n += n;
}

static void put_added(void *argument, int token)
{
    struct textbook *textbook = argument;
    textbook->tokens[textbook->n] = (uint16_t)token;
    textbook->n++;
}

LAW(any_bytes_come_back_and_tokens_are_the_textbooks)
{
    struct cases cases = cases_of(20, 200);
    for (int i = cases.begin; i < cases.end; i++) {
        struct draws draws = {.seed = (uint64_t)i};
        struct bpe *bpe = random_bpe(&draws, 258 + (int)draw_below(&draws, 120));
        struct text text = random_text(&draws, draw_below(&draws, 5000));
        size_t n;
        uint16_t *tokens = bpe_encode(bpe, &text, &n);
        expect_decoded(bpe, &text, tokens, n);
        struct textbook slow = {.bpe = bpe, .tokens = allocate(text.n, sizeof *slow.tokens)};
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
    struct textbook slow = {.bpe = bpe, .tokens = allocate(text->n, sizeof *slow.tokens)};
    size_t n;
    uint16_t *tokens = bpe_encode(bpe, text, &n);
    merge_slowly(&slow, text->bytes, text->n);
    assert_int_equal(n, slow.n);
    assert_memory_equal(tokens, slow.tokens, n * sizeof *tokens);
    free(tokens);
    free(slow.tokens);
}

/* Merging in windows gives the same as merging at once; one letter alone shows where a window begins. */
TEST(long_words_are_merged_in_windows)
{
    for (int i = 0; i < 8; i++) {
        struct draws draws = {.seed = 100 + (uint64_t)i};
        struct bpe *bpe = random_bpe(&draws, 258 + 60);
        char *bytes = allocate(300001, 1);
        size_t letters = 1 + draw_below(&draws, 3);
        struct text text = {.name = "a long word", .bytes = bytes, .n = 300001};
        for (size_t k = 0; k < text.n; k++)
            bytes[k] = "abZ"[draw_below(&draws, letters)];
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
TEST(a_token_that_two_merges_make_is_noticed)
{
    struct bpe *bpe = only_bytes(300);
    int a = bpe->of_byte['a'], b = bpe->of_byte['b'], c = bpe->of_byte['c'];
    assert_null(add_merge(bpe, a, b, 258));
    assert_null(add_merge(bpe, b, c, 259));
    assert_null(add_merge(bpe, 258, c, 260));
    assert_false(bpe->makes_twice);
    assert_null(add_merge(bpe, a, 259, 260));
    assert_true(bpe->makes_twice);
    bpe->n = 261;
    free_bpe(bpe);
}

/* "aa", "aaaa" ... up to 1,024 bytes are tokens.  What comes after them is refused: the first merge makes too many
 * bytes, and the second one gives "ab" the number of "aa". */
TEST(a_merge_that_is_refused_changes_nothing)
{
    struct bpe *bpe = only_bytes(300);
    int a = bpe->of_byte['a'], b = bpe->of_byte['b'];
    int longest = a;
    for (int id = 258; bpe->tokens[longest].n < MOST_TOKEN_BYTES; id++) {
        assert_null(add_merge(bpe, longest, longest, id));
        longest = id;
        bpe->n = id + 1;
    }
    assert_int_equal(bpe->reach, MOST_TOKEN_BYTES - 1); /* 1 + 2 + 4 ... + 512, the bytes of the left tokens */
    size_t n_merges = bpe->n_merges;
    struct problem *too_long = add_merge(bpe, longest, a, bpe->n);
    assert_string_equal(too_long->sentence, "has no bytes, or more than 1024");
    free(too_long);
    struct problem *other_bytes = add_merge(bpe, a, b, 258);
    assert_string_equal(other_bytes->sentence, "has a number whose token has other bytes");
    free(other_bytes);
    assert_int_equal(bpe->reach, MOST_TOKEN_BYTES - 1);
    assert_int_equal(bpe->n_merges, n_merges);
    assert_false(bpe->makes_twice);
    free_bpe(bpe);
}

/* Seconds that this process computed, and not those of a clock, since other programs may keep the machine busy. */
static double cpu_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static double seconds_to_encode(const struct bpe *bpe, const struct text *text, size_t *n_tokens)
{
    double begun = cpu_seconds();
    uint16_t *tokens = bpe_encode(bpe, text, n_tokens);
    double seconds = cpu_seconds() - begun;
    expect_decoded(bpe, text, tokens, *n_tokens);
    free(tokens);
    return seconds;
}

static double seconds_to_learn_and_encode(const struct text *text, size_t *n_tokens)
{
    double begun = cpu_seconds();
    struct bpe *bpe = learn_bpe(text, 1, 300, NULL);
    double seconds = cpu_seconds() - begun + seconds_to_encode(bpe, text, n_tokens);
    free_bpe(bpe);
    return seconds;
}

/* The same letters are encoded as one word, and as words of 100 letters.  These are too long for the cache of words,
 * and differ.  With a heap the long word takes about as long as they do; with n steps a merge, hundreds of times. */
TEST(a_long_word_takes_no_quadratic_time)
{
    enum { N = 1000000, SHORT = 100, MOST_TIMES = 20 };
    struct draws draws = {.seed = 1};
    char *bytes = allocate(N, 1);
    struct text text = {.name = "a long word", .bytes = bytes, .n = N};
    for (size_t i = 0; i < N; i++)
        bytes[i] = (char)('a' + draw_below(&draws, 2));
    size_t n_tokens;
    double one_word = seconds_to_learn_and_encode(&text, &n_tokens);
    assert_below(n_tokens, N / 3);
    for (size_t i = 0; i < N; i += SHORT)
        bytes[i] = ' ';
    double short_words = seconds_to_learn_and_encode(&text, &n_tokens);
    assert_below(one_word, MOST_TIMES * short_words);
    free(bytes);
}

/* A tokenizer of bytes with the added tokens "<0>", "<1>", "<2>" ..., n of them. */
static struct bpe *with_numbers(int n)
{
    struct bpe *bpe = only_bytes(258 + n);
    for (int i = 0; i < n; i++) {
        char text[16];
        snprintf(text, sizeof text, "<%d>", i);
        assert_null(add_added(bpe, &(struct added_token){.token = 258 + i}, text, strlen(text)));
    }
    bpe->n = 258 + n;
    return bpe;
}

/* Each "<" of the text could begin any of them.  A search through all of them would take thousands of times as long as
 * one through ten. */
TEST(many_added_tokens_take_no_more_time)
{
    enum { N = 300000, FEW = 10, MANY = 60000, MOST_TIMES = 20 };
    struct bpe *few = with_numbers(FEW);
    struct bpe *many = with_numbers(MANY);
    char *bytes = allocate(N, 1);
    struct text text = {.name = "a text", .bytes = bytes, .n = N};
    for (size_t i = 0; i < N; i += 3)
        memcpy(bytes + i, i % 2 ? "<7>" : "<a>", 3);
    size_t n, n_with_few;
    double seconds_with_few = seconds_to_encode(few, &text, &n_with_few);
    double seconds = seconds_to_encode(many, &text, &n);
    assert_int_equal(n, N / 6 + N / 6 * 3); /* <7> is a token, and <a> the tokens of its three bytes */
    assert_int_equal(n_with_few, n);
    uint16_t *tokens = bpe_encode(many, &text, &n);
    assert_int_equal(tokens[3], 258 + 7);
    free(tokens);
    assert_below(seconds, MOST_TIMES * seconds_with_few);
    free(bytes);
    free_bpe(few);
    free_bpe(many);
}

/* Those that a model does not have are left out if they are special; then their text is any text. */
TEST(special_tokens_can_be_dropped)
{
    struct draws draws = {.seed = 1};
    struct text text = text_of("abab<|end|>ing abab");
    struct bpe *bpe = random_bpe(&draws, 300);
    assert_false(drop_tokens(bpe, 299)); /* a merge makes it */
    assert_false(drop_tokens(bpe, 100));
    free_bpe(bpe);
    bpe = only_bytes(258);
    assert_false(drop_tokens(bpe, 255)); /* it is a byte's */
    assert_true(drop_tokens(bpe, 257));
    size_t n;
    uint16_t *tokens = bpe_encode(bpe, &text, &n);
    assert_int_equal(n, 4 + 1 + 3 + 5); /* the bytes of "abab", then <|end|>, and the bytes of "ing" and " abab" */
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

/* ---- learning ---------------------------------------------------------------------------------------------------- */

/* The textbook's way: for each merge all pairs of all words, which lie one after another with ends between, are counted
 * anew. */
enum { END = 65535 };
struct course {
    uint16_t *tokens;
    size_t n;
    const struct bpe *bpe;
};
static void add_word(void *argument, const char *bytes, size_t n)
{
    struct course *course = argument;
    for (size_t i = 0; i < n; i++)
        course->tokens[course->n + i] = (uint16_t)course->bpe->of_byte[(unsigned char)bytes[i]];
    course->tokens[course->n + n] = END;
    course->n += n + 1;
}

static void pass_added(void *course, int token)
{
    (void)course;
    (void)token;
}

static struct merge most_frequent_pair(const struct course *course, size_t *most)
{
    int n = course->bpe->n;
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
    size_t n = join_bytes(bpe, merge->left, merge->right, bytes);
    for (int i = 0; i < bpe->n; i++)
        if (bpe->tokens[i].n == n && memcmp(bpe->tokens[i].bytes, bytes, n) == 0)
            return true;
    return false;
}

static struct bpe *learn_slowly(const struct text *text, int n)
{
    struct bpe *bpe = only_bytes(n);
    struct course course = {.tokens = allocate(2 * text->n, sizeof *course.tokens), .bpe = bpe};
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
    struct cases cases = cases_of(10, 60);
    for (int i = cases.begin; i < cases.end; i++) {
        struct draws draws = {.seed = (uint64_t)i};
        int n = 258 + (int)draw_below(&draws, 150);
        struct text text = random_text(&draws, 300 + draw_below(&draws, 3000));
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
    size_t size = 20 << 20;
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
    assert_int_equal(bpe->n, 256 + 2 + 2); /* bytes, those that are added, and the two that are learnt */
    size_t n;
    uint16_t *tokens = bpe_encode(bpe, &text, &n);
    assert_int_equal(n, 5); /* "abab", " ", "abab", <|end|>, "abab" */
    assert_int_equal(tokens[0], 259);
    assert_int_equal(tokens[1], bpe->of_byte[' ']);
    assert_int_equal(tokens[3], 256);
    free(tokens);
    free_bpe(bpe);
}

/* split.c - cuts a text into added tokens, and what lies between them into words.
 *
 * Words are what GPT-2's pattern finds, one after another:
 *
 *     's|'t|'re|'ve|'m|'ll|'d          English endings
 *     | ?\p{L}+                        letters, perhaps with a space before them
 *     | ?\p{N}+                        numbers
 *     | ?[^\s\p{L}\p{N}]+              all else that is no white space
 *     |\s+(?!\S)|\s+                   white space, but for its last character if a word follows: "  a" is " " " a"
 *
 * Each byte that is not UTF-8 counts as a character that is no letter, no number and no white space.
 */
#include "tokens_parts.h"

uint8_t *unicode_classes(void)
{
    uint8_t *class_of = allocate(CODE_POINTS, sizeof *class_of);
    size_t begin = 0;
    const char *run = unicode_runs;
    while (*run) {
        char *end;
        size_t n = strtoul(run + 1, &end, 10);
        memset(class_of + begin, *run, n);
        begin += n;
        run = end;
        if (*run == ' ')
            run++;
    }
    CHECK(begin == CODE_POINTS, "the runs cover %zu of %d code points", begin, CODE_POINTS);
    return class_of;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* The class of the first character of the text, which has n bytes; *length becomes the character's bytes. */
static enum char_class class_at(const uint8_t *class_of, const char *text, size_t n, size_t *length)
{
    uint32_t c = (unsigned char)*text;
    *length = 1;
    if (c < 0x80)
        return class_of[c];
    *length = utf8_decode(text, n, &c);
    if (*length == 0) {
        *length = 1;
        return OTHER;
    }
    return class_of[c];
}

/* The bytes of the characters of this class at the text's beginning; *last becomes where the last of them begins. */
static size_t run_length(const uint8_t *class_of, enum char_class class, const char *text, size_t n, size_t *last)
{
    size_t at = 0;
    while (at < n) {
        size_t length;
        if (class_at(class_of, text + at, n - at, &length) != class)
            break;
        *last = at;
        at += length;
    }
    return at;
}

/* The length of the English ending at the text's beginning; 0: there is none. */
static size_t ending_length(const char *text, size_t n)
{
    static const char *const endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    if (*text != '\'')
        return 0;
    for (size_t i = 0; i < COUNT(endings); i++) {
        size_t length = strlen(endings[i]);
        if (length <= n && memcmp(text, endings[i], length) == 0)
            return length;
    }
    return 0;
}

/* The length of the first word of the text, which has n bytes. */
static size_t word_length(const uint8_t *class_of, const char *text, size_t n)
{
    size_t length, last = 0;
    size_t begin = 0; /* where the word begins without the space before it */
    size_t ending = ending_length(text, n);
    if (ending)
        return ending;
    if (*text == ' ' && n > 1)
        begin = 1;
    enum char_class class = class_at(class_of, text + begin, n - begin, &length);
    if (class != SPACE)
        return begin + run_length(class_of, class, text + begin, n - begin, &last);
    size_t spaces = run_length(class_of, SPACE, text, n, &last);
    if (spaces < n && last > 0)
        return last;
    return spaces;
}

/* ---- added tokens ------------------------------------------------------------------------------------------------ */

struct cutting {
    const struct bpe *bpe;
    const struct text *text;
    const struct visitor *visitor;
    uint64_t begun; /* ns */
};

static void cut_words(const struct cutting *cutting, const char *part, size_t n)
{
    enum { TOLD_AFTER = 1 << 20 }; /* bytes */
    size_t at = 0;
    while (at < n) {
        size_t length = word_length(cutting->bpe->class_of, part + at, n - at);
        cutting->visitor->word(cutting->visitor->context, part + at, length);
        size_t before = (size_t)(part - cutting->text->bytes) + at;
        if ((before + length) / TOLD_AFTER > before / TOLD_AFTER) /* the word ends in a later block of this size */
            show_busy(cutting->visitor->activity, cutting->begun, (double)before / (double)cutting->text->n);
        at += length;
    }
}

/* The longest added token of the tree at the text's beginning; NONE: there is none. */
static int added_at(const struct bpe *bpe, const struct added_tree *tree, const char *text, size_t n)
{
    int longest = NONE;
    uint64_t node = 0; /* of the tree, which also has the tokens that drop_tokens() has dropped: those from bpe->n on */
    if (!tree->begins[(unsigned char)*text])
        return NONE;
    for (size_t i = 0; i < n; i++) {
        int64_t next = map_find(tree->next, node << 8 | (unsigned char)text[i]);
        if (next == NO_NUMBER)
            break;
        node = (uint64_t)next;
        int64_t token = map_find(tree->ends, node);
        if (token != NO_NUMBER && token < bpe->n)
            longest = (int)token;
    }
    return longest;
}

/* Level i < ADDED_TREES cuts a part at the added tokens of tree i; the last level cuts it into words. */
enum { INTO_WORDS = ADDED_TREES };

/* Cuts n bytes at the added tokens of that level, and what lies between them at the next level. */
static void cut_part(const struct cutting *cutting, int level, const char *part, size_t n)
{
    size_t begin = 0, at = 0;
    if (level == INTO_WORDS) {
        cut_words(cutting, part, n);
        return;
    }
    while (at < n) {
        int token = added_at(cutting->bpe, &cutting->bpe->trees[level], part + at, n - at);
        if (token == NONE) {
            at++;
            continue;
        }
        cut_part(cutting, level + 1, part + begin, at - begin);
        if (cutting->visitor->added)
            cutting->visitor->added(cutting->visitor->context, token);
        at += cutting->bpe->tokens[token].n;
        begin = at;
    }
    cut_part(cutting, level + 1, part + begin, n - begin);
}

void visit_text(const struct bpe *bpe, const struct text *text, const struct visitor *visitor)
{
    const struct cutting cutting = {.bpe = bpe, .text = text, .visitor = visitor, .begun = now_ns()};
    cut_part(&cutting, 0, text->bytes, text->n);
    erase_line();
}

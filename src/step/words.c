/* words.c - what the lines of a step file are made of (see words.h). */
#include "words.h"

#include <stdarg.h>

_Noreturn void fail_word(const struct line *l, const char *word, const char *expected, ...)
{
    va_list arguments;
    va_start(arguments, expected);
    char *text = format_list(expected, arguments);
    va_end(arguments);
    fail(EXIT_USAGE, "%s, line %d: '%.80s': expected %s", l->path, l->number, word, text);
}

/* ---- words ----------------------------------------------------------------------------------------------------- */

void split_line(struct line *l, char *text)
{
    char *save = NULL;
    text[strcspn(text, "#")] = '\0';
    l->n = 0;
    memset(l->used, 0, sizeof l->used);
    for (char *word = strtok_r(text, " \t\r", &save); word; word = strtok_r(NULL, " \t\r", &save)) {
        if (l->n == MOST_WORDS)
            fail_word(l, word, "fewer words in a line");
        char *shown = make_printable(copy_string(word), false);
        if (strcmp(shown, word) != 0)
            fail_word(l, word, "characters that can be shown, as UTF-8");
        free(shown);
        l->word[l->n++] = word;
    }
}

/* Word i, which has a place of its own. */
char *word_at(struct line *l, size_t i, const char *expected)
{
    if (i >= l->n)
        fail(EXIT_USAGE, "%s, line %d: '%.80s' ends too early: expected %s", l->path, l->number, l->word[l->n - 1],
             expected);
    l->used[i] = true;
    return l->word[i];
}

/* The value of `key=value`, or NULL. */
char *word_option(struct line *l, const char *key)
{
    char *value = NULL;
    size_t length = strlen(key);
    for (size_t i = 1; i < l->n; i++) {
        if (l->used[i] || strncmp(l->word[i], key, length) != 0 || l->word[i][length] != '=')
            continue;
        if (value)
            fail_word(l, l->word[i], "each option once");
        l->used[i] = true;
        value = l->word[i] + length + 1;
    }
    return value;
}

bool flag_option(struct line *l, const char *name)
{
    for (size_t i = 1; i < l->n; i++)
        if (!l->used[i] && strcmp(l->word[i], name) == 0)
            return l->used[i] = true;
    return false;
}

char *next_name(const struct line *l, char **list)
{
    char *name = strsep(list, ",");
    if (name && !*name)
        fail_word(l, ",", "a name before and behind each comma");
    return name;
}

void check_all_used(const struct line *l, const char *takes)
{
    for (size_t i = 1; i < l->n; i++)
        if (!l->used[i])
            fail_word(l, l->word[i], "%s", takes);
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

/* Seconds, or a number with a unit. */
static bool parse_time(const char *word, double *seconds)
{
    static const struct {
        const char *name;
        double per_second;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}};
    size_t n = strspn(word, "0123456789+-.eE");
    char number[64];
    if (n == 0 || n >= sizeof number)
        return false;
    memcpy(number, word, n);
    number[n] = '\0';
    for (size_t i = 0; i < COUNT(units); i++)
        if (strcmp(word + n, units[i].name) == 0 && parse_double(number, seconds)) {
            *seconds /= units[i].per_second;
            return *seconds >= 0 && *seconds <= 1e6;
        }
    return false;
}

double read_time(const struct line *l, const char *word)
{
    double seconds;
    if (!parse_time(word, &seconds))
        fail_word(l, word, "a time such as 0.5, 20ns, 3us, 1.5ms or 2s, from 0 to 1e6 s");
    return seconds;
}

size_t read_bytes(const struct line *l, const char *word)
{
    size_t bytes;
    if (!parse_bytes(word, &bytes) || bytes == 0 || bytes > NO_LIMIT)
        fail_word(l, word, "a number of bytes from 1 to 2^50, such as 4096, 64K, 512M or 16G");
    return bytes;
}

double read_rate(const struct line *l, const char *word)
{
    double rate;
    if (!parse_double(word, &rate) || !(rate >= 1e-6 && rate <= 1e30))
        fail_word(l, word, "a rate in bytes per second, such as 12e9, without a unit");
    return rate;
}

int read_number(const struct line *l, const char *word, int64_t low, int64_t high)
{
    int64_t n;
    if (!parse_int(word, &n) || n < low || n > high)
        fail_word(l, word, "a whole number from %lld to %lld", (long long)low, (long long)high);
    return (int)n;
}

int number_option(struct line *l, const char *key, int64_t low, int64_t high, int absent)
{
    const char *value = word_option(l, key);
    return value ? read_number(l, value, low, high) : absent;
}

double time_option(struct line *l, const char *key, double absent)
{
    const char *value = word_option(l, key);
    return value ? read_time(l, value) : absent;
}

/* text.c - texts that are put together; numbers and sizes to text and back. */
#include "base.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

char *format_arguments(const char *format, va_list arguments)
{
    va_list once_more;
    va_copy(once_more, arguments);
    int n = vsnprintf(NULL, 0, format, once_more);
    va_end(once_more);
    CHECK(n >= 0, "bad format \"%s\"", format);
    char *text = allocate((size_t)n + 1, 1); /* not vasprintf(): leak checkers do not report where that is called */
    vsnprintf(text, (size_t)n + 1, format, arguments);
    return text;
}

char *format_string(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = format_arguments(format, arguments);
    va_end(arguments);
    return text;
}

void append_string(char **text, char *addition)
{
    size_t used = *text ? strlen(*text) : 0;
    *text = reallocate(*text, used + strlen(addition) + 1, 1);
    strcpy(*text + used, addition);
    free(addition);
}

void append_quoted(char **text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:+=@%-";
    bool is_plain = word[strspn(word, plain)] == '\0';
    if (is_plain) {
        append_text(text, "%s", word);
        return;
    }
    append_text(text, "'");
    for (; *word; word++) {
        if (*word == '\'')
            append_text(text, "'\\''"); /* ends the quotes, adds a quote, begins them again */
        else
            append_text(text, "%c", *word);
    }
    append_text(text, "'");
}

FILE *begin_text(struct begun_text *begun)
{
    begun->out = open_memstream(&begun->text, &begun->bytes);
    if (!begun->out)
        fail(EXIT_USAGE, "out of memory on the host: a text cannot be begun");
    return begun->out;
}

char *end_text(struct begun_text *begun)
{
    bool failed = ferror(begun->out);
    if (fclose(begun->out) || failed)
        fail(EXIT_USAGE, "out of memory on the host: a text of more than %zu bytes cannot be written", begun->bytes);
    return begun->text;
}

char *format_number(char out[NUMBER_TEXT], double x, int places)
{
    if (isnan(x))
        snprintf(out, NUMBER_TEXT, "nan");
    else if (fabs(x) < 1e6)
        snprintf(out, NUMBER_TEXT, "%.*f", places, x);
    else
        snprintf(out, NUMBER_TEXT, "%.4g", x);
    return out;
}

char *format_exactly(char out[NUMBER_TEXT], double x)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(out, NUMBER_TEXT, "%.*g", digits, x);
        if (strtod(out, NULL) == x)
            break;
    }
    return out;
}

char *format_bytes(char out[NUMBER_TEXT], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    while (bytes >= 1023.5 && unit + 1 < COUNT(units)) {
        bytes /= 1024;
        unit++;
    }
    int places = 0; /* three digits: "1.50", "12.3", "768" */
    if (unit > 0 && bytes < 9.995)
        places = 2;
    else if (unit > 0 && bytes < 99.95)
        places = 1;
    snprintf(out, NUMBER_TEXT, "%.*f %s", places, bytes, units[unit]);
    return out;
}

char *format_seconds(char out[NUMBER_TEXT], double seconds)
{
    bool known = seconds >= 0 && seconds < 1e12; /* false before the first step, for example */
    long long s = known ? llround(seconds) : 0;
    if (!known)
        snprintf(out, NUMBER_TEXT, "?");
    else if (seconds < 9.95)
        snprintf(out, NUMBER_TEXT, "%.1f s", seconds);
    else if (s < 60)
        snprintf(out, NUMBER_TEXT, "%lld s", s);
    else if (s < 3600)
        snprintf(out, NUMBER_TEXT, "%lld min %02lld s", s / 60, s % 60);
    else
        snprintf(out, NUMBER_TEXT, "%lld h %02lld min", s / 3600, s % 3600 / 60);
    return out;
}

char *join_texts(char out[64], const char *a, const char *b)
{
    snprintf(out, 64, "%s%s", a, b);
    return out;
}

/* Where the text of the line begins: after its blanks, and after a label that two blanks or more follow. */
static int find_second_column(const char *line)
{
    enum { LONGEST_LABEL = 30 };
    int end = (int)strcspn(line, "\n");
    int first = (int)strspn(line, " ");
    for (int at = first; at < MIN(end, LONGEST_LABEL); at++)
        if (begins_with(line + at, "  "))
            return at + (int)strspn(line + at, " ");
    return first;
}

/* Appends the text up to `end`, which has no line break, folded between words into lines of `columns` columns. */
static void fold_line(char **out, const char *line, const char *end, int columns)
{
    int hang = find_second_column(line);
    int column = 0;
    while (line < end) {
        int blanks = (int)strspn(line, " ");
        int n = (int)strcspn(line + blanks, " \n");
        int wide = count_characters(line + blanks, (size_t)n);
        bool breaks = column > hang && column + blanks + wide > columns;
        if (breaks) {
            append_text(out, "\n%*s%.*s", hang, "", n, line + blanks);
            column = hang + wide;
        } else {
            append_text(out, "%.*s", blanks + n, line);
            column += blanks + wide;
        }
        line += blanks + n;
    }
}

char *fold_text(const char *text, int columns)
{
    char *out = copy_string("");
    while (*text) {
        const char *end = text + strcspn(text, "\n");
        fold_line(&out, text, end, columns);
        if (*end)
            append_text(&out, "\n");
        text = end + (*end != '\0');
    }
    return out;
}

bool begins_with(const char *text, const char *begin) { return strncmp(text, begin, strlen(begin)) == 0; }

bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), end_n = strlen(end);
    return n >= end_n && strcmp(text + n - end_n, end) == 0;
}

bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    if (!words || n == 0)
        return false;
    for (const char *at = strstr(words, word); at; at = strstr(at + 1, word))
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

bool parse_int(const char *text, int64_t *value)
{
    if (!isdigit((unsigned char)text[0]) && text[0] != '-' && text[0] != '+') /* strtoll would skip spaces */
        return false;
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno || end == text || *end)
        return false;
    *value = parsed;
    return true;
}

int parse_number(const char **at, int end)
{
    char *rest;
    if (!isdigit((unsigned char)**at))
        return NONE;
    long n = strtol(*at, &rest, 10);
    *at = rest;
    return n < end ? (int)n : NONE;
}

bool parse_double(const char *text, double *value)
{
    if (strspn(text, "0123456789+-.eE") != strlen(text)) /* no spaces, hexadecimal, inf or nan */
        return false;
    char *end;
    double parsed = strtod(text, &end);
    if (end == text || *end || !isfinite(parsed))
        return false;
    *value = parsed;
    return true;
}

bool parse_bytes(const char *text, size_t *bytes)
{
    static const char suffixes[] = "KMG";
    if (!isdigit((unsigned char)text[0])) /* strtoull would skip spaces and take a sign */
        return false;
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno)
        return false;
    double fraction = 0;
    if (*end == '.')
        fraction = strtod(end, &end);
    int shift = 0;
    if (*end) {
        const char *suffix = strchr(suffixes, toupper((unsigned char)*end));
        if (!suffix || end[1])
            return false;
        shift = 10 * (int)(suffix - suffixes + 1);
    }
    double rest = ldexp(fraction, shift); /* bytes; only a number with a suffix may have a fraction */
    if (n > (SIZE_MAX >> shift) || fraction >= 1 || (shift == 0 && fraction > 0))
        return false;
    *bytes = ((size_t)n << shift) + (size_t)rest;
    return true;
}

/* Levenshtein: fewest insertions, deletions and substitutions.  One row of the usual table is kept; cost[j] is the
 * distance between the part of `a` read so far and the first j characters of `b`. */
int edit_distance(const char *a, const char *b)
{
    size_t n = strlen(b);
    int *cost = allocate(n + 1, sizeof *cost);
    for (size_t j = 0; j <= n; j++)
        cost[j] = (int)j;
    for (; *a; a++) {
        int diagonal = cost[0];
        cost[0]++;
        for (size_t j = 1; j <= n; j++) {
            int substitute = diagonal + (*a != b[j - 1]);
            diagonal = cost[j];
            cost[j] = MIN(substitute, MIN(cost[j], cost[j - 1]) + 1);
        }
    }
    int distance = cost[n];
    free(cost);
    return distance;
}

/* Typing errors between what was typed and the word; none where the word only goes on. */
static int typing_errors(const char *typed, const char *word)
{
    size_t n = strlen(typed);
    return n >= 3 && strncmp(word, typed, n) == 0 ? 0 : edit_distance(typed, word);
}

const char *nearest_word(const char *typed, const char *const *words, size_t n)
{
    const char *nearest = NULL;
    int most = MAX(1, ((int)strlen(typed) + 1) / 3); /* a guess that needs more typing errors would only confuse */
    for (size_t i = 0; i < n; i++) {
        int errors = typing_errors(typed, words[i]);
        if (errors < most || (errors == most && !nearest)) {
            most = errors;
            nearest = words[i];
        }
    }
    return nearest;
}

char *trim_text(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t n = strlen(text);
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    text[n] = '\0';
    return text;
}

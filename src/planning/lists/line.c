/* line.c - what the lines of a step file are made of (see line.h). */
#include "line.h"

#include "trainer/step/list.h"

#include <math.h>

#define OFFSET(type, member) offsetof(struct type, member)
enum { MOST_NUMBER = 1000000, MOST_EVERY = 1000 };
enum { MOST_MESSAGES = 1000000000 }; /* slices get numbers of their own, so a list that is printed has larger ones */
static const struct option_word {
    enum line_of kind;
    const char *key;
    enum value value;
    size_t offset;    /* where its member is in the struct of the line's kind, such as struct device */
    double absent;    /* the member's value where the line does not have the word */
    double low, high; /* the range of a counter */
} options[] = {
    {LINE_DEVICE, "memory", VALUE_BYTES, OFFSET(device, budget), .absent = 0},
    {LINE_DEVICE, "align", VALUE_BYTES, OFFSET(device, alignment), .absent = 1},
    {LINE_DEVICE, "slab", VALUE_BYTES, OFFSET(device, max_allocation), .absent = 0},
    {LINE_DEVICE, "share", VALUE_FLAG, OFFSET(device, extra.described.shares_bytes), .absent = 0},
    {LINE_HOST, "issue", VALUE_TIME, OFFSET(machine, issue_seconds), .absent = 0},
    {LINE_LANE, "gap", VALUE_TIME, OFFSET(lane, gap_seconds), .absent = 0},
    {LINE_LINK, "queues", VALUE_COUNTER, OFFSET(link, max_lanes), .absent = 0, .low = 1, .high = MOST_NUMBER},
    {LINE_LINK, "queue", VALUE_RATE, OFFSET(link, queue_rate), .absent = 0},
    {LINE_TENSOR, "keep", VALUE_FLAG, OFFSET(tensor, persistent), .absent = 0},
    {LINE_TENSOR, "buffer", VALUE_FLAG, OFFSET(tensor, extra.is_buffer), .absent = 0},
    {LINE_TENSOR, "side", VALUE_FLAG, OFFSET(tensor, extra.is_side_word), .absent = 0},
    {LINE_TASK, "layer", VALUE_COUNTER, OFFSET(task, layer), .absent = -1, .high = MOST_NUMBER},
    {LINE_TASK, "micro", VALUE_COUNTER, OFFSET(task, micro), .absent = -1, .high = MOST_NUMBER},
    {LINE_TASK, "role", VALUE_ROLE, OFFSET(task, role), .absent = ROLE_OTHER},
    {LINE_TASK, "every", VALUE_COUNTER, OFFSET(task, extra.when.every), .absent = 1, .low = 1, .high = MOST_EVERY},
    {LINE_TASK, "rest", VALUE_COUNTER, OFFSET(task, extra.when.remainder), .absent = 0, .high = MOST_EVERY},
    {LINE_COPY, "time", VALUE_TIME, OFFSET(task, extra.seconds), .absent = NAN},
    {LINE_COPY, "msg", VALUE_COUNTER, OFFSET(task, extra.message), .absent = 0, .low = 1, .high = MOST_MESSAGES},
    {LINE_WORK, "cpu", VALUE_TIME, OFFSET(task, extra.on_host.seconds), .absent = NAN},
};

void split_line(struct line *line, char *text)
{
    char *save = NULL;
    text[strcspn(text, "#")] = '\0';
    line->n = 0;
    memset(line->used, 0, sizeof line->used);
    for (char *word = strtok_r(text, " \t\r", &save); word; word = strtok_r(NULL, " \t\r", &save)) {
        if (line->n == MOST_WORDS)
            fail_word(line, word, "fewer words in a line");
        char *shown = make_printable(copy_string(word), ONE_LINE);
        if (strcmp(shown, word) != 0)
            fail_word(line, word, "characters that can be shown, as UTF-8");
        free(shown);
        line->words[line->n++] = word;
    }
}

char *word_at(struct line *line, size_t i)
{
    if (i >= line->n)
        fail(EXIT_USAGE, "%s, line %d: \"%.80s\" ends too early: expected %s", line->path, line->number,
             line->words[line->n - 1], line->takes);
    line->used[i] = true;
    return line->words[i];
}

/* Finds the one word that is `key` followed by the character `end`.  Returns what follows `end`; NULL: no such word. */
static char *take_word(struct line *line, const char *key, char end)
{
    char *value = NULL;
    size_t length = strlen(key);
    for (size_t i = 1; i < line->n; i++) {
        if (line->used[i] || strncmp(line->words[i], key, length) != 0 || line->words[i][length] != end)
            continue;
        if (value)
            fail_word(line, line->words[i], "each option once");
        line->used[i] = true;
        value = line->words[i] + length;
        if (end != '\0')
            value++;
    }
    return value;
}

char *word_option(struct line *line, const char *key) { return take_word(line, key, '='); }

char *next_name(const struct line *line, char **list)
{
    char *name = strsep(list, ",");
    if (name && !*name)
        fail_word(line, ",", "a name before and after each comma");
    return name;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

bool parse_time(const char *text, double *seconds)
{
    static const char *const units[] = {"ns", "us", "ms", "s", ""};
    static const double per_second[] = {1e9, 1e6, 1e3, 1, 1};
    size_t i = 0;
    while (!ends_with(text, units[i]))
        i++;
    char *number = format_string("%.*s", (int)(strlen(text) - strlen(units[i])), text);
    bool good = parse_double(number, seconds);
    *seconds /= per_second[i];
    free(number);
    return good;
}

/* The index of the text among names[first] .. names[end - 1].  If it is none of these, fails with a sentence that lists
 * the names after `intro`, "a role: ". */
static int choice_index(const struct line *line, const char *text, const char *const *names, int first, int end,
                        const char *intro)
{
    for (int i = first; i < end; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    char *all = copy_string(names[first]);
    for (int i = first + 1; i < end; i++)
        append_text(&all, "%s%s", i + 1 < end ? ", " : " or ", names[i]);
    fail_word(line, text, "%s%s", intro, all);
}

double read_counter(const struct line *line, const char *text, double low, double high)
{
    int64_t whole;
    if (!parse_int(text, &whole) || (double)whole < low || (double)whole > high)
        fail_word(line, text, "a whole number from %.0f to %.0f", low, high);
    return (double)whole;
}

double read_as(const struct line *line, enum value value, const char *text)
{
    static const struct {
        double low, high;
        const char *expected;
    } rule[] = {[VALUE_BYTES] = {1, NO_LIMIT, "a number of bytes from 1 to 2^50, such as 4096, 64K, 512M or 16G"},
                [VALUE_TIME] = {0, 1e6, "a time such as 0.5, 20ns, 3us, 1.5ms or 2s, from 0 to 1e6 s"},
                [VALUE_RATE] = {1e-6, 1e30, "a rate in bytes per second, such as 12e9, without a unit"}};
    double number = -1;
    size_t bytes = 0;
    bool good;
    if (value == VALUE_CLASS)
        return choice_index(line, text, memory_class_name, 0, MEM_BUFFERS, "");
    if (value == VALUE_ROLE)
        return choice_index(line, text, role_name, ROLE_OTHER + 1, ROLES_BY_HAND, "a role: ");
    if (value == VALUE_TIME) {
        good = parse_time(text, &number);
    } else if (value == VALUE_BYTES) {
        good = parse_bytes(text, &bytes);
        number = (double)bytes;
    } else {
        good = parse_double(text, &number);
    }
    if (!good || !(number >= rule[value].low && number <= rule[value].high))
        fail_word(line, text, "%s", rule[value].expected);
    return number;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static double load_value(const void *member, enum value value)
{
    if (value == VALUE_BYTES)
        return (double)*(const size_t *)member;
    if (value == VALUE_TIME || value == VALUE_RATE)
        return *(const double *)member;
    if (value == VALUE_FLAG)
        return *(const bool *)member;
    return *(const int *)member;
}

static void store_value(void *member, enum value value, double number)
{
    if (value == VALUE_BYTES)
        *(size_t *)member = (size_t)number;
    else if (value == VALUE_TIME || value == VALUE_RATE)
        *(double *)member = number;
    else if (value == VALUE_FLAG)
        *(bool *)member = number != 0;
    else
        *(int *)member = (int)number;
}

void read_options(struct line *line, enum line_of kind, void *to)
{
    for (const struct option_word *word = options; word < options + COUNT(options); word++) {
        if (word->kind != kind)
            continue;
        char *text = take_word(line, word->key, word->value == VALUE_FLAG ? '\0' : '=');
        double number = word->absent;
        if (text && word->value == VALUE_FLAG)
            number = true;
        else if (text && word->value == VALUE_COUNTER)
            number = read_counter(line, text, word->low, word->high);
        else if (text)
            number = read_as(line, word->value, text);
        store_value((char *)to + word->offset, word->value, number);
    }
}

void write_options(FILE *out, enum line_of kind, const void *from)
{
    for (const struct option_word *word = options; word < options + COUNT(options); word++) {
        if (word->kind != kind)
            continue;
        char text[NUMBER_TEXT];
        double number = load_value((const char *)from + word->offset, word->value);
        if (number == word->absent || isnan(number))
            continue;
        fprintf(out, " %s", word->key);
        if (word->value == VALUE_BYTES || word->value == VALUE_COUNTER)
            fprintf(out, "=%.0f", number);
        else if (word->value == VALUE_ROLE)
            fprintf(out, "=%s", role_name[(int)number]);
        else if (word->value != VALUE_FLAG)
            fprintf(out, "=%s", format_exactly(text, number));
    }
}

/* line.h - a line of a step file as words: some have a place, the others are options, `key=value` or `flag`, in any
 * order.  Options are listed in tables, by which lines are read and written.
 *
 * Protocol: split_line(), take all words that the line may have; one that is not `used` then is wrong.  Whatever is
 * wrong ends the program (EXIT_USAGE) with file, line and word.
 */
#ifndef LINE_H
#define LINE_H

#include "trainer/base/base.h"

enum { MOST_WORDS = 32 };

struct line {
    const char *path;
    int number;              /* from 1 */
    const char *takes;       /* the whole line, as it should be */
    char *words[MOST_WORDS]; /* the first is its kind */
    bool used[MOST_WORDS];
    size_t n;
};

/* Cuts the text into words, which point into it; '#' begins a comment. */
void split_line(struct line *line, char *text);

/* Ends the program: the word of that line is wrong.  What is expected there comes last, by the rules of printf(). */
#define fail_word(l, word, ...)                                                                                        \
    fail(EXIT_USAGE, "%s, line %d: \"%.80s\": expected %s", (l)->path, (l)->number, (word), format_string(__VA_ARGS__))
char *word_at(struct line *line, size_t i);            /* the word that has place i, which must be there */
char *word_option(struct line *line, const char *key); /* the value of `key=value`, or NULL */

/* Cuts the first name off a list with commas; NULL: none is left. */
char *next_name(const struct line *line, char **list);

/* The values that words have, as a struct keeps them. */
enum value {
    VALUE_BYTES,   /* size_t */
    VALUE_TIME,    /* double: seconds */
    VALUE_RATE,    /* double: bytes per second */
    VALUE_COUNTER, /* int */
    VALUE_FLAG,    /* bool: the word is there or not */
    VALUE_CLASS,   /* enum memory_class */
    VALUE_ROLE     /* enum role */
};

enum line_of { LINE_DEVICE, LINE_HOST, LINE_LANE, LINE_LINK, LINE_TENSOR, LINE_TASK, LINE_COPY, LINE_WORK };
bool parse_time(const char *text, double *seconds); /* "1.5ms", or a number of seconds; false: it is neither */

/* The text as a whole number from low to high. */
double read_counter(const struct line *line, const char *text, double low, double high);

/* The text as such a value, in the unit that enum value says. */
double read_as(const struct line *line, enum value value, const char *text);

/* Read into a struct, or write from it, all options that lines of that kind have.  The struct is a
 *
 *     device, lane, link or tensor    as the kind says
 *     machine                         for LINE_HOST
 *     task                            for the last three: LINE_TASK has the options of all tasks, LINE_COPY those of
 *                                     copies alone, LINE_WORK those of all other tasks */
void read_options(struct line *line, enum line_of kind, void *to);
void write_options(FILE *out, enum line_of kind, const void *from);

#endif

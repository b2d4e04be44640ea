/* words.h - a line of a step file as words: some have a place, the others are options, `key=value` or `flag`, in any
 * order.  Options are listed in tables, by which lines are read and written.
 *
 * Protocol: split_line(), take all words that the line may have, then check_all_used().  Whatever is wrong ends the
 * program (EXIT_USAGE) with file, line and word.
 */
#ifndef WORDS_H
#define WORDS_H

#include "../base/base.h"

enum { MOST_WORDS = 32 };
struct line {
    const char *path;
    int number;             /* from 1 */
    const char *takes;      /* the whole line, as it should be */
    char *word[MOST_WORDS]; /* the first is its kind */
    bool used[MOST_WORDS];
    size_t n;
};
/* Cuts the text up; '#' begins a comment. */
void split_line(struct line *l, char *text);
_Noreturn void fail_word(const struct line *l, const char *word, const char *expected, ...) PRINTF_LIKE(3, 4);
char *word_at(struct line *l, size_t i);            /* one that has a place */
char *word_option(struct line *l, const char *key); /* the value of `key=value`, or NULL */
char *next_name(const struct line *l, char **list); /* cuts it off a list with commas; NULL: there is none */
void check_all_used(const struct line *l);

enum value { BYTES, TIME, RATE, COUNTER, FLAG, CLASS, ROLE }; /* as size_t, double, double, int, bool, enums */
struct option_word {
    const char *key;
    enum value value;
    size_t at;        /* where in a struct it is kept */
    double absent;    /* what is there without the word */
    double low, high; /* of a COUNTER */
};
double read_value(const struct line *l, const struct option_word *w, const char *text);
double read_as(const struct line *l, enum value value, const char *text);
/* All options of a table, which a key of NULL ends, into, or from, the struct they belong to. */
void read_options(struct line *l, const struct option_word *table, void *to);
void write_options(FILE *out, const struct option_word *table, const void *from);

/* What lines have, by the struct it is kept in; struct machine: the host's line. */
extern const struct option_word device_words[], machine_words[], lane_words[], link_words[], tensor_words[],
    task_words[], work_words[], copy_words[];

#endif

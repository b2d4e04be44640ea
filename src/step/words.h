/* words.h - a line of a step file as words: some have a place, the others are options `key=value` in any order.
 *
 * Protocol: split_line(), take every word that the line may have, then check_all_used().  Whatever is wrong ends the
 * program (EXIT_USAGE) with file, line and word.
 */
#ifndef WORDS_H
#define WORDS_H

#include "../base/base.h"

enum { MOST_WORDS = 32 };
struct line {
    const char *path;
    int number;             /* from 1 */
    char *word[MOST_WORDS]; /* the first is its kind */
    bool used[MOST_WORDS];
    size_t n;
};
/* Cuts the text up; '#' begins a comment. */
void split_line(struct line *l, char *text);
_Noreturn void fail_word(const struct line *l, const char *word, const char *expected, ...) PRINTF_LIKE(3, 4);
/* Word i, which has a place of its own. */
char *word_at(struct line *l, size_t i, const char *expected);
/* The value of `key=value`, or NULL; and as a number or a time, or what it is when absent. */
char *word_option(struct line *l, const char *key);
int number_option(struct line *l, const char *key, int64_t low, int64_t high, int absent);
double time_option(struct line *l, const char *key, double absent);
bool flag_option(struct line *l, const char *name); /* is the word there? */
/* Cuts the next name off a list with commas; NULL: there is none. */
char *next_name(const struct line *l, char **list);
/* Fails on a word that nobody has taken; `takes` shows the whole line. */
void check_all_used(const struct line *l, const char *takes);

double read_time(const struct line *l, const char *word); /* in seconds */
size_t read_bytes(const struct line *l, const char *word);
double read_rate(const struct line *l, const char *word); /* in bytes per second */
int read_number(const struct line *l, const char *word, int64_t low, int64_t high);

#endif

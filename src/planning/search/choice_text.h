/* choice_text.h - a choice as text, to be read, edited and loaded: a line per decision, its name and a word for what it
 * is.
 *
 *     layer 0 D
 *     layer 1 C
 */
#ifndef CHOICE_TEXT_H
#define CHOICE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The number of an option.  A choice is an array of these, one for each decision. */
typedef unsigned char option_byte;

struct choice_text {
    const char *title;       /* the first line, for people */
    const char *const *word; /* what each option is called; NULL ends them */
    const char *expected;    /* the words, for people: "D or C" */
    const char **name;       /* what each decision is called */
    size_t n;                /* the number of decisions, at least 1 */
};

/* Writes the choice, of n decisions, in place of any file of that path. */
void write_choice(const char *path, const struct choice_text *choice_text, const option_byte *choice);

/* Reads it into choice[n].  false: there is no such file.  Ends the program (EXIT_USAGE) with the wrong line, or the
 * missing decision. */
bool read_choice(const char *path, const struct choice_text *choice_text, option_byte *choice);

#endif

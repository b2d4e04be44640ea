/* words.h - commands that take paths, and those of several words, as `yard trace summary FILE`. */
#ifndef COMMAND_WORDS_H
#define COMMAND_WORDS_H

#include "trainer/base/module.h"

struct option_table;
/* Sets the options and returns the paths among the arguments, *n of them, the first so many of which are read; they and
 * the options' outputs are claimed.  NULL: help was asked for, and printed, from "FILE [options]..." on. */
char **take_arguments(struct option_table *table, unsigned bit, const char *name, const char *help, int inputs,
                      int argc, char **argv, int *n);

struct word {
    const char *name, *takes, *what; /* "diff"; "A B"; a line of the overview */
    int n;                           /* so many paths */
    unsigned bit;                    /* of its options' `commands` */
    int (*run)(char **paths);        /* returns the exit code */
    const char *help;
};
struct words {
    const char *command, *about, *list; /* "trace"; the overview's text; "summary, export or diff" */
    int inputs;                         /* the first so many of the paths are read */
    const struct word *word;
    size_t n;
    struct option_table *table;
};
/* Runs the word that comes first among the arguments; returns the exit code. */
int run_words(const struct words *w, int argc, char **argv);

#endif

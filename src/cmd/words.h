/* words.h - commands of several words, as `yard trace summary FILE`: finding the word, its help, its options and paths.
 */
#ifndef WORDS_H
#define WORDS_H

#include "../base/base.h"

struct word {
    const char *name, *takes, *what; /* "diff"; "A B"; a line of the overview */
    int n;                           /* so many paths */
    unsigned bit;                    /* of its options' `commands` */
    int (*run)(char **paths);        /* returns the exit code */
    const char *help;
};
struct words {
    const char *command, *about, *list; /* "trace"; the overview's text; "summary, export or diff" */
    const char *thing;                  /* what its paths are called: "file" */
    int inputs;                         /* the first so many of the paths are read */
    const struct word *word;
    size_t n;
    struct option_table *table;
};
/* Runs the word that comes first among the arguments; returns the exit code. */
int run_words(const struct words *w, int argc, char **argv);

#endif

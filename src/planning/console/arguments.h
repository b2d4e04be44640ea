/* arguments.h - commands that take paths, and those of several words, as `yard trace summary FILE`. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "trainer/base/module.h"

struct option_table;

/* A command that takes paths. */
struct path_command {
    const char *name;
    const char *takes;    /* "FILE [options]" */
    const char *examples; /* what follows the name in two examples, each with its new line */
    const char *help;     /* sentences on what it does, a line for each paragraph */
    unsigned bit;         /* its bit in its options' `classes` */
    int inputs;           /* how many of the paths are read, from the first on */
};

/* Sets the options, and returns the paths among the arguments, *n of them; the caller frees the array.  The files that
 * are read, and the options' outputs, are claimed.  NULL: help was asked for, and printed. */
char **take_arguments(struct option_table *table, const struct path_command *command, int argc, char **argv, int *n);

struct word {
    const char *name;         /* "diff" */
    const char *takes;        /* "A B" */
    const char *summary;      /* its line of the overview */
    int n;                    /* how many paths it takes */
    unsigned bit;             /* its bit in its options' `classes` */
    int (*run)(char **paths); /* returns the exit code */
    const char *examples;     /* as those above */
    const char *help;         /* likewise */
};

struct words {
    const char *command;  /* "trace" */
    const char *examples; /* as those above */
    const char *about;    /* the overview's text */
    const char *list;     /* "summary, export or diff" */
    int inputs;           /* how many of the paths are read, from the first on */
    const struct word *words;
    size_t n;
    struct option_table *table;
};

/* Runs the word that comes first among the arguments; returns the exit code. */
int run_words(const struct words *words, int argc, char **argv);

#endif

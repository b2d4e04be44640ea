/* arguments.h - commands that take paths, such as `yard plot FILE`, and commands that have subcommands, each of which
 * takes paths, such as `yard trace summary FILE`. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "trainer/base/module.h"

struct option_table;

/* ---- a command that takes paths ---------------------------------------------------------------------------------- */

struct path_command {
    const char *name;     /* "trace summary" */
    const char *takes;    /* what follows the name: "FILE [options]" */
    const char *examples; /* what follows the name in two examples; each ends with a new line */
    const char *help;     /* sentences on what the command does, a line for each paragraph */
    unsigned bit;         /* the bit in option->classes that its options have */
    int inputs;           /* how many of the paths are read, from the first on; the others are written */
};

/* Sets the options, and returns the paths among the arguments, *n of them; the caller frees the array.  The files that
 * are read, and those that options name as outputs, are claimed (file/claims.c).  NULL: help was asked for, and
 * printed. */
char **take_arguments(struct option_table *table, const struct path_command *command, int argc, char **argv, int *n);

/* ---- a command that has subcommands ------------------------------------------------------------------------------ */

struct path_subcommand {
    const char *name;    /* "diff" */
    const char *takes;   /* its paths: "A B" */
    const char *summary; /* its line in the command's overview */
    int n_paths;         /* how many paths it takes */
    unsigned bit;        /* the bit in option->classes that its options have: 1 << its index in the group */
    enum exit_code (*run)(char **paths);
    const char *examples; /* what follows "yard trace diff" in two examples; each ends with a new line */
    const char *help;     /* sentences on what it does, a line for each paragraph */
};

struct subcommand_group {
    const char *command;  /* "trace" */
    const char *examples; /* what follows "yard trace" in two examples; each ends with a new line */
    const char *about;    /* sentences at the head of the overview, on all subcommands */
    int inputs;           /* how many of the paths of each are read, from the first on; the others are written */
    const struct path_subcommand *subcommands;
    size_t n;                   /* subcommands */
    struct option_table *table; /* its `takers` are set by run_subcommand() */
};

/* Runs the subcommand that the first argument names, and returns its exit code; or prints the overview, where help is
 * asked for.  Ends the program (EXIT_USAGE) if no subcommand has that name, or if it takes another number of paths. */
enum exit_code run_subcommand(const struct subcommand_group *group, int argc, char **argv);

#endif

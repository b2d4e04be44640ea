/* options.h - options: on the command line, in config files, in the help and in the log.
 *
 * One table of options serves all four.  A row says the option's name and type, and points to the variable that gets
 * its value:
 *
 *     static int batch;
 *     {.name = "batch", .letter = 'b', .type = OPT_INT, .value = &batch, .initial = "8", .argument = "N", ...}
 *
 *     yard train --batch 4        on the command line; --batch=4 and -b 4 are the same
 *     batch = 4   # sequences     a line of a config file
 *
 * The caller applies reset_options(), then a preset, a config file and the command line: a later value replaces an
 * earlier one.  A user's mistake ends the program with EXIT_USAGE.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* The type of an option's value, and that of its variable: */
enum option_type {
    OPT_FLAG, /* bool: --name takes no value and means true (there is no --no-name); a config file has true or false */
    OPT_INT,  /* int */
    OPT_LONG, /* int64_t */
    OPT_DOUBLE, /* double */
    OPT_FLOAT,  /* double that kernels get as a 32-bit float: none between 0 and the smallest of those (FLT_MIN) */
    OPT_BYTES,  /* size_t: "512M" */
    OPT_TEXT,   /* const char *, as all that follow but OPT_CHOICE */
    OPT_CHOICE, /* int: one of several words; its place among them, an enumerator; -1: none */
    OPT_INPUT,  /* a path that is read */
    OPT_INPUTS, /* a path that is read, or a pattern of several; it is an error to give two of them */
    OPT_OUTPUT, /* a path that is written, never "" */
    OPT_KEPT    /* an OPT_OUTPUT that may also be the path that the run goes on from */
};

struct option {
    const char *name; /* without dashes */
    char letter;      /* 'd' also accepts -d; 0: no letter */
    enum option_type type;
    void *value; /* the variable, of the C type above; of a text it gets a pointer into argv or the config file */
    const char *initial;  /* the value when the option is not given, as a user would write it; NULL: false, 0 or NULL */
    const void *argument; /* the value's name in the help, "N"; for an OPT_CHOICE its words, see choice_words() */
    double low, high;     /* the inclusive range of a number; both 0: any number */
    const char *group;    /* the heading in the help */
    unsigned classes;     /* bit set of the commands that take it; the parser is told one of them */
    const char *help;     /* one line, which print_options() wraps */
};

/* The argument of an OPT_CHOICE: WORDS([FIRST] = "first", [SECOND] = "second"). */
#define WORDS(...)                                                                                                     \
    (const char *const[]) { __VA_ARGS__, NULL }

enum { MOST_OPTIONS = 128 };

struct option_table {
    const struct option *options;
    size_t n;
    const struct foreign_lookup *foreign; /* module.h: how foreign words are found; NULL: no folder knows them */
    /* By bit of `classes`: what takes such options, "`yard train`"; NULL ends them.  NULL: the table does not say. */
    const char *const *takers;
    bool given[MOST_OPTIONS]; /* has the user given option i, on the command line or in a config file? */
};

/* ---- setting values ---------------------------------------------------------------------------------------------- */

/* Sets every value to its initial one, or to 0, false or NULL where it has none; no option counts as given. */
void reset_options(struct option_table *table);

/* Parses argv[0..argc) for the command with bit `command`.  Returns the words that are no options, *n_words of them and
 * then NULL, in an array that the caller frees.  It refuses an unknown option (naming the nearest), a missing or
 * wrong value, and an option that only other commands take. */
char **parse_options(struct option_table *table, unsigned command, const char *command_name, int argc, char **argv,
                     int *n_words);

/* Sets options from the text of a config file, which is written to and must outlive the table; errors name path and
 * line. */
void parse_config(struct option_table *table, unsigned command, const char *path, char *text);

/* Sets one option from a text, which must outlive the table.  The option counts as given.  `where` is how errors name
 * it, as the user wrote it: "--batch", or "run.conf, line 3: batch". */
void set_option(struct option_table *table, const struct option *option, const char *where, const char *text);

/* For a trial an option has another value for a while:
 *
 *     struct value_before before = try_value(o, "full");
 *     ...                       what is tried here finds the value "full"
 *     restore_value(&before);
 *
 * A trial within a trial ends first.  What may fail() in between, and not end the program, runs in an attempt()
 * (error.h) between the two calls, so that the second is reached. */
struct value_before {
    const struct option *option;
    unsigned char bytes[sizeof(int64_t)]; /* those of the option's variable; no type of variable has more */
};

/* text: a value that the option takes; NULL: its initial one.  Whether the user has given the option stays as it is. */
struct value_before try_value(const struct option *option, const char *text);
void restore_value(const struct value_before *before);

/* Reads the lines `name = value` of a text that a person writes.  '#' at a line's start or after white space begins a
 * comment.  The first '=' that follows white space divides the line, or, if there is none, the first '='. */
struct settings_text {
    const char *path;
    char *unread;       /* the lines that are still to be read; next_setting() writes zeros into the text */
    int number;         /* the line's number, from 1 */
    char *name, *value; /* what the line says; both lie in the text */
};
bool next_setting(struct settings_text *lines); /* false: there are no more lines */

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Is --help or -h among the words, or is the first of them "help"? */
bool wants_help(int argc, char **argv);
const struct option *find_option(const struct option_table *table, const char *name); /* NULL: there is none */
bool option_given(const struct option_table *table, const char *name);                /* there must be such an option */

/* The option's present value as text, "" when unset; the caller frees it. */
char *option_text(const struct option *option);

bool is_output(const struct option *option); /* is its value a path that is written? */

/* The words of an OPT_CHOICE, indexed by enumerator; NULL ends them. */
const char *const *choice_words(const struct option *option);

int choice_number(const char *const *words, const char *word); /* the word's index in `words`; -1: it is not there */

/* What stands for the option's value in the help: "a|b|c" for an OPT_CHOICE, else the value's name, such as "N".  The
 * caller frees it. */
char *argument_name(const struct option *option);

/* For a message: what takes the option, "`yard train`", or "another command" where the table does not say. */
const char *taker_of(const struct option_table *table, const struct option *option);

/* Half a sentence about a foreign word (module.h): what yard calls it, or why yard has nothing like it.  `dashes` is
 * written before names of options.  NULL: no folder knows the word.  The caller frees the text. */
char *explain_foreign(const struct option_table *table, unsigned command, const char *typed, const char *dashes);

/* ---- options_help.c: the help ------------------------------------------------------------------------------------ */

enum { HELP_WIDTH = 80 }; /* columns of the help */

/* Prints the beginning of a help: "usage: yard COMMAND TAKES"; the examples, one a line, each without "yard COMMAND";
 * and the text, wrapped. */
void print_usage(FILE *out, const char *command, const char *takes, const char *examples, const char *text);

/* Prints the `--name value` lines of the options of `command`, with their defaults, wrapped at 80 columns.  Options of
 * one group must be together in the table. */
void print_options(FILE *out, const struct option_table *table, unsigned command);

/* Prints a label, and the text beside it as the help has it: wrapped, in a column of its own. */
void print_labelled(FILE *out, const char *label, const char *text);

#endif

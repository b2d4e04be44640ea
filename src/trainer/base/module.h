/* module.h - how a folder registers itself: with one struct, in one of its files.
 *
 *     const struct module module_plot = {      make looks for this line: module_ and the folder's name
 *         .name = "plot",                      always: this name
 *         .needs = "console picture",          if it calls functions of folders that are not of src/trainer: these
 *         .commands = &command,                a command, as in src/tools/plot; or
 *         .n_commands = 1,                     .training, as in src/tools/finite, the shortest, for a training's hooks;
 *     };                                       or .options and .planning, for a pass, as in src/techniques/recompute
 *
 * Fields for what a folder does not have are left out.  Nothing else has to be written: make collects these structs in
 * a table, build/modules.c (src/make/modules.awk).  So a folder that is not of src/trainer can be left out, together
 * with those that need it: make WITHOUT="plot view".  Code outside a folder calls none of its functions, unless it
 * says that it needs the folder.
 *
 * The help lists the folders' options, and the trainer calls their hooks, in the order of this table: planning,
 * techniques, tools, each by name.  A module whose hooks must be called after those of another folder says so in
 * `.after`, with the reason beside it.  `make modules` prints it.
 *
 * The values of a folder's options lie in its own variables.  Those that other files read are in a struct that is
 * called asked_ and the folder's name or its command's, such as asked_swap.
 *
 * A *foreign* word is one of other programs: `fit` where we say train, --batch-size where we say --batch.  A user who
 * types one is told ours.
 */
#ifndef MODULE_H
#define MODULE_H

#include "error.h"

struct subcommand {
    int help_place; /* the command's place in `yard --help`: commands are listed by ascending places */
    const char *name, *help;
    enum exit_code (*run)(int argc, char **argv); /* gets the words after the command's name */
    const char *foreign;                          /* foreign words for it, separated by spaces: "fit run"; or NULL */
};

/* Which commands take an option.  struct option's `classes` has the classes that the option belongs to; a command's
 * usage (struct usage) has the classes that the command takes, and names single options beside them. */
enum option_class {
    OF_TRAIN = 1,     /* options of yard train */
    OF_SAMPLE = 2,    /* options of yard sample */
    OF_LIST = 4,      /* options of all commands that build the list for training */
    OF_PLAN = 8,      /* options of commands that build this list to look at it */
    OF_RUN = 16,      /* options of commands that run something on devices */
    OF_THIS = 32,     /* single options that the usage of the present command names */
    OF_STEP_FILE = 64 /* options that make sense where a file brings the list with its machine, times and sizes; those
                       * of techniques all do */
};

/* Groups of options in the help, in this order; any other groups come after them. */
#define GROUP_MODEL "Model"
#define GROUP_DATA "Data"
#define GROUP_TRAINING "Training"
#define GROUP_DEVICES "Devices"
#define GROUP_TECHNIQUES "Techniques"
#define GROUP_LOOKING "Running and looking"
#define GROUP_PREDICTING "Predicting"
#define GROUP_SAMPLING "Sampling"

/* Foreign words for one of our options.  A word may stand for several of our options: then the first of them that the
 * command takes is meant. */
struct foreign_words {
    const char *option; /* our option; NULL: we have none for this */
    const char *words;  /* in small letters with dashes, between spaces */
    const char *why;    /* half a sentence to add; NULL: nothing needs to be said */
};

/* The two functions of the folder that looks for foreign words, among those that all folders register. */
struct option_table;

struct foreign_lookup {
    /* What explain_foreign() returns. */
    char *(*find)(const struct option_table *table, unsigned command, const char *typed, const char *dashes);
    /* Prints the foreign words of the options that the command takes, for the help. */
    void (*print)(FILE *out, const struct option_table *table, unsigned command);
};

/* A rule for two options of yard.  NEEDS: the first one has no effect where the other is off, and a warning says so.
 * EXCLUDES: both together are a mistake. */
struct option_rule {
    const char *option;
    enum { NEEDS, EXCLUDES } relation;
    const char *other, *why; /* `why` says of EXCLUDES why one must be left out */
};

struct settings;

/* A field that is NULL or 0 says that the folder does not have this. */
struct module {
    const char *name;  /* the folder's name */
    const char *needs; /* folders outside of src/trainer that it cannot be built without, between spaces */
    const char *after; /* folders that it must come after in the table of modules, between spaces; or NULL */

    /* commands and options */
    const struct subcommand *commands;
    size_t n_commands;
    const struct option *options; /* options.h: name, letter, type, where its value goes, ... */
    size_t n_options;
    const char *unrecorded; /* names of its options that a resumed run does not take over, between spaces */
    const struct foreign_words *foreign; /* foreign words for options */
    size_t n_foreign;
    const struct foreign_lookup *foreign_lookup; /* how foreign words are found; at most one folder may have it */
    const struct option_rule *rules;             /* rules between its own options and any others */
    size_t n_rules;
    /* Both are called when all options are known, and end the program when these make no sense together. */
    void (*check)(void);
    void (*check_settings)(struct settings *settings); /* it may also set settings->demands */

    /* What it adds to other folders.  The folder that asks for it declares the struct. */
    const struct training_parts *training; /* to the trainer, such as hooks: additions.h */
    const struct planning_parts *planning; /* to planning, such as a pass: planning/pass/pass.h */
    /* To techniques/checkpoint, another form of a checkpoint: checkpoint.h. */
    const struct checkpoint_form *checkpoint_form;
};

/* The table of the folders that are built.  make writes it. */
extern const struct module *const modules[];
extern const size_t n_modules;
extern const char left_out[]; /* folders that this yard was built without, between spaces: " plot view"; "": none */

/* ---- module.c ---------------------------------------------------------------------------------------------------- */

/* How foreign words are found; NULL: no folder knows any. */
const struct foreign_lookup *find_foreign_lookup(void);

/* Looks for a part that at most one folder may have.  It is called for each module in turn, with what has been found so
 * far (NULL: nothing) and the part of this module (NULL: it has none).  It returns the one of these two that is there,
 * and ends the program if both are: then two folders have the part. */
const void *sole_part(const void *found, const struct module *module, const void *part);

/* Does a word that the user typed, "swap-what" or "stories:FILE", begin with the name of a folder that was left out?
 * An option with another name, such as --audit of the folder proof, is not found. */
bool is_left_out(const char *typed);

#endif

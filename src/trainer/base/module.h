/* module.h - how a folder registers itself: with one struct, in one of its files, whose line begins as here:
 *
 *     const struct module module_plot = {.name = "plot", .needs = "picture", .commands = &command, .n_commands = 1};
 *
 * make looks for these structs and writes the table of them, build/modules.c (modules.awk does it).  So a folder of
 * techniques or tools can be left out, together with those that need it: make WITHOUT="plot view".  Nothing outside a
 * folder names it, but for those that say that they need it.
 */
#ifndef MODULE_H
#define MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct subcommand {
    int place; /* among the others in `yard --help`: ascending */
    const char *name, *help;
    int (*run)(int argc, char **argv); /* is given what follows the name, and returns the exit code */
    const char *elsewhere;             /* what other programs call it: words between spaces, " fit run "; NULL */
};
/* Which options a command takes: a row of the table has the classes that it is of, a command's page those that it
 * takes, and single options beside them. */
enum option_class {
    OF_TRAIN = 2,  /* yard train */
    OF_SAMPLE = 4, /* yard sample */
    OF_LIST = 8,   /* all commands that build the list for training */
    OF_PLAN = 16,  /* that build it to be looked at */
    OF_RUN = 32,   /* that run something on devices */
    OF_THIS = 64   /* single ones of the command at hand */
};
/* Groups of options in the help, in this order; those of others come behind them. */
#define GROUP_MODEL "Model"
#define GROUP_DATA "Data"
#define GROUP_TRAINING "Training"
#define GROUP_DEVICES "Devices"
#define GROUP_TECHNIQUES "Techniques"
#define GROUP_LOOKING "Running and looking"
#define GROUP_PREDICTING "Predicting"
#define GROUP_SAMPLING "Sampling"

/* Words of other programs, in small letters with dashes between, separated by blanks.  A word may stand for several of
 * our options: the first that the command takes is meant. */
struct foreign_words {
    const char *option, *words; /* ours; NULL: there is none */
    const char *why;            /* half a sentence; NULL: nothing needs to be said */
};
/* What knows such words: as known_elsewhere() tells it, and as a part of the help. */
struct option_table;
struct other_words {
    char *(*known)(const struct option_table *table, unsigned command, const char *typed, const char *dashes);
    void (*print)(FILE *out, const struct option_table *table, unsigned command);
};
/* Of two options.  why: they exclude each other, and one is to be left out.  NULL: the first says more about the other
 * one; where that is off it has no effect, which is said. */
struct law {
    const char *option, *other, *why;
};

struct settings;
/* A field that is NULL, 0 or false says that the folder does not have this. */
struct module {
    const char *name;  /* the folder's */
    const char *needs; /* folders of techniques and tools that it is not built without, between spaces */
    int place;         /* among the others, where they are asked one after another, and in the help: ascending */

    /* commands and options */
    const struct subcommand *commands;
    size_t n_commands;
    const struct option *options; /* base.h: name, letter, type, where its value goes, ... */
    size_t n_options;
    const char *unrecorded; /* of its options: what a run that goes on does not take over; between spaces */
    const struct foreign_words *foreign; /* what options are called in other programs */
    size_t n_foreign;
    const struct other_words *other_words; /* what looks for all these; one folder at most */
    const struct law *laws;                /* between its options and any */
    size_t n_laws;
    /* When all options are known: ends the program where they make no sense together. */
    void (*check)(struct settings *s);

    /* what the trainer asks it for */
    const struct hooks *hooks;     /* at moments of a training: train/hooks.h */
    const struct archive *archive; /* it keeps runs, and lets them go on: train/hooks.h; one folder at most */
    const struct text_maker *text; /* what --data can name: train/data.h */
    const struct formats *formats; /* it names files of other programs: file/file.h; one folder at most */
    bool gathers;                  /* parameters that lie in shards: without such a folder there is no --zero 3 */
    const char *makes_room;        /* options for where memory is too small: "--swap auto" */

    /* what other folders ask it for */
    const struct pass *pass;             /* it rewrites lists: techniques/pass/pass.h */
    const struct forecaster *forecaster; /* it tells what passes come to: the same; one folder at most */
    const struct store *store;           /* another form of a checkpoint: techniques/reshard/state.h */
    const struct other_plan *plan;       /* another way to show a plan: tools/lists/plan.h */
};

/* Those that are built, by their places; make writes the table. */
extern const struct module *const modules[];
extern const size_t n_modules;
extern const char left_out[]; /* folders that this yard was built without, between spaces: " plot view"; "": none */

/* Is a word of the user's, "swap-what" or "stories:FILE", of a folder that was left out?  So an option is called as its
 * folder, or begins with that and a dash.  (options.c) */
bool is_left_out(const char *typed);

#endif

/* module.h - how a folder registers itself: with one struct, in one of its files.
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

struct subcommand {
    int place; /* among the others in `yard --help`: ascending */
    const char *name, *help;
    int (*run)(int argc, char **argv); /* is given what follows the name, and returns the exit code */
    const char *elsewhere;             /* what other programs call it: words between spaces, " fit run "; NULL */
};
/* Which options a command takes: a row of the table has the classes that it is of, a command's page those that it
 * takes, and single options beside them. */
enum option_class {
    OF_DEVICES = 1, /* of yard devices */
    OF_TRAIN = 2,   /* yard train */
    OF_SAMPLE = 4,  /* yard sample */
    OF_LIST = 8,    /* all commands that build the list for training */
    OF_PLAN = 16,   /* that build it to be looked at */
    OF_RUN = 32,    /* that run something on devices */
    OF_THIS = 64    /* single ones of the command at hand */
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

/* Of two options.  why: they exclude each other, and one is to be left out.  NULL: the first says more about the other
 * one; where that is off it has no effect, which is said. */
struct law {
    const char *option, *other, *why;
};

struct settings;
struct module {
    const char *name;  /* the folder's */
    const char *needs; /* folders of techniques and tools that it is not built without, between spaces; NULL: none */
    int place;         /* among the others, where they are asked one after another: ascending */
    const struct subcommand *commands;
    size_t n_commands;
    const struct pass *pass;             /* techniques/pass/pass.h; NULL: it has none */
    const struct forecaster *forecaster; /* techniques/pass/pass.h: it tells what passes come to; NULL; one at most */
    const struct option *options;
    size_t n_options;
    const struct foreign_words *foreign; /* what its options are called in other programs */
    size_t n_foreign;
    const char *makes_room; /* what it is asked for where memory is too small: "--swap auto"; NULL */
    const char *unrecorded; /* of its options: what a run that goes on does not take over; between spaces; NULL */
    const struct text_maker *text; /* train/data.h: what --data can name; NULL */
    const struct store *store;     /* techniques/reshard/state.h: another form of a checkpoint; NULL */
    const struct law *laws;        /* between its options and any */
    size_t n_laws;
    /* When all options are known: ends the program where they make no sense together.  NULL: they always do. */
    void (*check)(struct settings *s);
    const struct hooks *hooks; /* train/hooks.h: the moments at which the trainer asks it; NULL */
    const struct archive
        *archive; /* train/hooks.h: it keeps runs, and lets them go on; NULL; one folder does at most */
    const struct other_plan *plan; /* tools/lists/plan.h: another way to show a plan; NULL */
    bool gathers; /* it brings parameters together that lie in shards: without such a folder there is no --zero 3 */
};

extern const struct module *const modules[];
extern const size_t n_modules;
extern const char left_out[]; /* folders that this yard was built without, between spaces: " plot view "; "": none */

/* Is a word of the user's, "swap-what" or "stories:FILE", of a folder that was left out?  (options.c) */
bool is_left_out(const char *typed);

#endif

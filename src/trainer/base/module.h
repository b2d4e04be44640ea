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
/* Of two options.  why: they exclude each other, and one is to be left out.  NULL: the first says more about the other
 * one; where that is off it has no effect, which is said. */
struct law {
    const char *option, *other, *why;
};

struct module {
    const char *name;  /* the folder's */
    const char *needs; /* folders of techniques and tools that it is not built without, between spaces; NULL: none */
    bool called;       /* by the trainer, past this struct: it cannot be left out yet */
    const struct subcommand *commands;
    size_t n_commands;
    const struct pass *pass;      /* techniques/pass/pass.h; NULL: it has none */
    const struct option *options; /* of the commands that build a training list, among the other techniques' */
    size_t n_options;
    const struct text_maker *text; /* train/data.h: what --data can name; NULL */
    const struct store *store;     /* techniques/reshard/state.h: another form of a checkpoint; NULL */
    const struct law *laws;        /* between its options and any */
    size_t n_laws;
    void (*check)(void); /* when all options are known: ends the program where they make no sense together; NULL */
};

extern const struct module *const modules[];
extern const size_t n_modules;
extern const char left_out[]; /* folders that this yard was built without, between spaces: " plot view "; "": none */

/* Is a word of the user's, "swap-what" or "stories:FILE", of a folder that was left out?  (options.c) */
bool is_left_out(const char *typed);

#endif

/* hooks.h - the moments at which the trainer asks the folders that it does not name.
 *
 * A folder of techniques or tools that takes part in a training puts functions here, and names them in its struct
 * module (base/module.h).  At each moment all folders are asked, in the order of their places.  NULL: it has nothing to
 * do.
 *
 *     before     yard train has read its options
 *                    machine     the devices are to be opened
 *                    opened      they are, and the mesh is known
 *                    built       a list has been built: this is where passes rewrite it           once for each list
 *                    ready       all lists have their addresses and could run
 *     begins     the model has its values
 *     summary    what the user sees before the first step is printed
 *                    stepped     a step has been issued
 *                    reported    its loss is known                                                on a lane's thread
 *                    not_finite  its loss or norm is not a number
 *     ends       no step comes any more
 *     keeps      the end of the run is told, and how it could go on
 *                    leaves      the trainer is about to go
 *
 * What a folder knows of a trainer hangs on one pointer, own_of().
 */
#ifndef HOOKS_H
#define HOOKS_H

#include "train.h"
#include "trainer/base/module.h"

struct kept_run {  /* what a run that has ended leaves to go on from */
    char *what;    /* where it is kept, if not in --save's folder: half a sentence; NULL: nowhere else */
    char *command; /* the words after `yard train` that say from where it goes on; NULL: it cannot go on */
    char *more;    /* further words of that command; NULL: none */
};
/* Appends the option with its path, quoted where a shell wants it. */
void append_path(char **command, const char *option, const char *path);

struct hooks {
    /* false: this process has no part in the training, and ends with *code.  argv: the command line. */
    bool (*before)(struct settings *s, int argc, char **argv, int *code);
    /* A machine to use in place of this host's devices; NULL: none.  plan_only: nothing is to run. */
    struct machine *(*machine)(struct trainer *t, bool plan_only);
    void (*opened)(struct trainer *t);
    /* The list is neither placed nor ordered yet.  The hook is called for t->train, then t->eval, then t->sample, as
     * far as these are wanted. */
    void (*built)(struct trainer *t, struct step *list);
    void (*ready)(struct trainer *t); /* not called for a plan, which runs nothing */
    void (*begins)(struct trainer *t);
    void (*summary)(struct trainer *t);
    void (*stepped)(struct trainer *t);
    /* sound: loss and norm are finite. */
    void (*reported)(struct trainer *t, uint32_t number, bool sound);
    /* Loss or norm of that step are not finite, and nothing is in flight: ends the program with the reason, if it can
     * be found. */
    void (*not_finite)(struct trainer *t, uint32_t number, const struct result *r);
    /* The folder waits for what it still has under way.  The run may end badly: then the program ends next. */
    void (*ends)(struct trainer *t);
    /* Seconds that a task takes alone, as predicted; NAN: not known. */
    double (*foretold)(const struct trainer *t, const struct task *task);
    /* Writes to *k what the folder has kept of the run.  It may add to what others have written there. */
    void (*keeps)(struct trainer *t, struct kept_run *k);
    /* Nothing is in flight; lists and machine are still there. */
    void (*leaves)(struct trainer *t);
};
/* Where the folder keeps a pointer of its own for this trainer.  The pointer is NULL at first. */
void **own_of(const struct trainer *t, const struct module *m);

double foretold_seconds(const struct trainer *t, const struct task *task); /* NAN: no folder can tell */

/* Each asks all folders that have this hook.  The first two stop when one says false, or brings a machine. */
bool ask_before(struct settings *s, int argc, char **argv, int *code);
struct machine *ask_machine(struct trainer *t, bool plan_only); /* NULL: no folder brings one */
void ask_opened(struct trainer *t);
void ask_built(struct trainer *t, struct step *list);
void ask_ready(struct trainer *t);
void ask_begins(struct trainer *t);
void ask_summary(struct trainer *t);
void ask_stepped(struct trainer *t);
void ask_reported(struct trainer *t, uint32_t number, bool sound);
void ask_not_finite(struct trainer *t, uint32_t number, const struct result *r);
void ask_ends(struct trainer *t);
void ask_keeps(struct trainer *t, struct kept_run *k);
void ask_leaves(struct trainer *t);

/* ---- runs that are kept ------------------------------------------------------------------------------------------ */

/* A run that another one goes on from. */
struct past {
    const char *given;      /* the path that the user gave */
    const char *path;       /* the path of what was found there */
    uint32_t step;          /* its last one */
    int64_t samples;        /* how many sequences it has trained on */
    const json_t *options;  /* the options that it was trained with, by name, as texts */
    const char *options_in; /* the file that has these options, as messages name it */
    struct source source;   /* its model */
    bool elsewhere;         /* --save's folder does not have this step */
};

/* A folder that writes whole runs and reads them again.  Without one a run saves its model alone, and none goes on. */
struct archive {
    const char *option; /* the one that names the run to go on from: "--resume" */
    /* The run that the options name; NULL: they name none.  The folder keeps it. */
    const struct past *(*past)(void);
    /* The mesh of the run that goes on, on so many devices, where --mesh does not say. */
    struct mesh (*mesh)(const struct settings *s, int devices);
    /* Is `path` a run, or a folder of runs?  Then *source becomes its model, which training or sampling starts from. */
    bool (*open)(const char *path, struct source *source);
    void (*close)(struct source *source);
    /* Reads the parameters; moments: Adam's state too. */
    void (*load)(struct model *m, const struct source *source, bool moments);
    /* Ends the program where nothing may be written to `path`.  who: the option that would, such as "--trace". */
    void (*refuse)(const char *who, const char *path);
    /* Ends the program where `folder` has a run of a model of other sizes. */
    void (*compare)(const char *folder, const struct config *c);
    /* Writes the run as it is after that step to --save's folder.  first: it is this process's first save. */
    void (*save)(struct trainer *t, uint32_t step, bool first);
};
const struct archive *find_archive(void); /* NULL: there is none */

#endif

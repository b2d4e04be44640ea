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
 * What a folder knows of a trainer lies behind one pointer, own_of().
 */
#ifndef HOOKS_H
#define HOOKS_H

#include "train.h"
#include "trainer/base/module.h"

struct kept_run {  /* of a run that has ended, to go on from */
    char *what;    /* where it is not --save's folder: half a sentence; NULL */
    char *command; /* words behind `yard train` that say from where it goes on; NULL: it cannot */
    char *more;    /* and further words; NULL: none */
};
void append_path(char **command, const char *option, const char *path); /* as a shell reads them */

struct hooks {
    /* false: this process has no part in the training, and ends with *code.  The words are the command line's. */
    bool (*before)(struct settings *s, int argc, char **argv, int *code);
    /* Another machine than the devices of this host, or NULL.  plan_only: nothing is to run. */
    struct machine *(*machine)(struct trainer *t, bool plan_only);
    void (*opened)(struct trainer *t);
    /* Neither placed nor ordered yet.  In turn, as far as they are wanted: t->train, t->eval, t->sample. */
    void (*built)(struct trainer *t, struct step *list);
    void (*ready)(struct trainer *t); /* not of a plan, which runs nothing */
    void (*begins)(struct trainer *t);
    void (*summary)(struct trainer *t);
    void (*stepped)(struct trainer *t);
    /* sound: loss and norm are finite. */
    void (*reported)(struct trainer *t, uint32_t number, bool sound);
    /* Loss or norm of that step are not finite, and nothing is in flight: ends the program with the reason, if it can
     * be found. */
    void (*not_finite)(struct trainer *t, uint32_t number, const struct result *r);
    /* What is still under way is awaited.  The run may end badly: then the end of the program comes next. */
    void (*ends)(struct trainer *t);
    /* Seconds that a task takes alone, as predicted; NAN: not known. */
    double (*foretold)(const struct trainer *t, const struct task *task);
    /* What has it kept?  A folder may add to what others have. */
    void (*keeps)(struct trainer *t, struct kept_run *k);
    /* Nothing is in flight; lists and machine are still there. */
    void (*leaves)(struct trainer *t);
};
/* Its place for what the folder knows of this trainer: NULL at first. */
void **own_of(const struct trainer *t, const struct module *m);

double foretold_seconds(const struct trainer *t, const struct task *task); /* by any folder; NAN: by none */

/* Each asks all folders that have this hook; the first two until one says false, or brings a machine. */
bool ask_before(struct settings *s, int argc, char **argv, int *code);
struct machine *ask_machine(struct trainer *t, bool plan_only); /* NULL: nobody brings one */
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
    const char *given;      /* by the user, as its path */
    const char *path;       /* of what was found there */
    uint32_t step;          /* its last one */
    int64_t samples;        /* sequences that it has trained on */
    const json_t *options;  /* that it was trained with, by name, as texts */
    struct source source;   /* its model */
    bool elsewhere;         /* --save's folder does not have this step */
    const char *options_in; /* the file that has them, as messages name it */
};

/* What writes whole runs and reads them again.  Without such a folder a run saves its model alone, and none goes on. */
struct archive {
    const char *option; /* that names the run to go on from: "--resume" */
    /* That run; NULL: the options name none.  The folder keeps it. */
    const struct past *(*past)(void);
    /* The mesh under which it goes on where --mesh does not say, on so many devices. */
    struct mesh (*mesh)(const struct settings *s, int devices);
    /* Is it a run, or a folder of runs?  Then its model is what a training or a sample begins with, and true. */
    bool (*open)(const char *path, struct source *source);
    void (*close)(struct source *source);
    /* moments: Adam's state too. */
    void (*load)(struct model *m, const struct source *source, bool moments);
    /* Ends the program where nothing may be written: who writes is "--trace". */
    void (*refuse)(const char *who, const char *path);
    /* Ends the program where `folder` has a run of a model of other sizes. */
    void (*compare)(const char *folder, const struct config *c);
    /* The run behind that step, into --save's folder; first: by this process. */
    void (*save)(struct trainer *t, uint32_t step, bool first);
};
const struct archive *find_archive(void); /* NULL: there is none */

#endif

/* usage.h - parts of the settings: what a command begins with, which options it has, and what it demands of the
 * trainer.  settings.h, which includes this header, says how they are used.
 */
#ifndef USAGE_H
#define USAGE_H

#include "trainer/model/model.h"

struct settings;
struct json_t; /* of the library jansson */

/* The model with which training or sampling begins. */
struct source {
    char *path; /* NULL: there is no source */
    struct config config;
    struct checkpoint *checkpoint; /* a run, which only the folder that keeps runs can read; NULL: a file */
    const char *tokenizer;         /* the run's, as text */
};

/* A command's options, and what `yard NAME --help` says of it. */
struct usage {
    const char *name;     /* "train" */
    const char *takes;    /* what follows the name in its first line: "[options]" */
    const char *examples; /* what follows the name in two examples, each with its new line */
    const char *text;     /* sentences on what the command does */
    unsigned classes;     /* it has the options of these classes (OF_TRAIN ...) */
    const char *files;    /* how a file is given, for a message: "--from FILE"; NULL: no option takes one */
    const char *also;     /* further options, separated by spaces; some may be of folders left out */
    void (*defaults)(struct settings *settings); /* sets other initial values; NULL: there are none */
    bool takes_file; /* it takes a word that is no option, the path of a file: settings->file */
};
extern const struct usage train_usage; /* usage.c */

/* What messages say to a user who looks for a command that evaluates. */
#define HOW_TO_EVALUATE                                                                                                \
    "to evaluate a saved model, train it for one step that changes nothing: `yard train --init MODEL --data TEXT "     \
    "--val-data TEXT --lr 0 --steps 1 --sample-tokens 0`"

/* What commands, and folders outside of src/trainer, demand of the trainer besides its options. */
struct demands {
    const char *one_device; /* the command that needs a single device, "check"; NULL: several may be there */
    bool time_tasks;        /* queues carry times */
    bool paced;             /* tasks end at the predicted times, not when their work ends */
    bool kept_elsewhere;    /* something beside --save keeps the run */
    bool sweeps;            /* options are tried one after another: no warning that one has no effect */
    bool trial;             /* the trainer only measures: it stores, shows and proves nothing, and knows no times yet */
    bool no_passes;         /* the lists stay as they are built */
    int64_t draw_seed;      /* seed of what may be left to chance, to show that no bit depends on it; -1: nothing is */
};

#endif

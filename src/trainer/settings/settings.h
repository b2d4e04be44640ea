/* settings.h - what the user asked for: the options of a command, and the model with which it begins.
 *
 * A command describes itself in a struct usage.  parse_settings() then reads its words, a config file and presets into
 * the one struct settings of this process, refuses what makes no sense (EXIT_USAGE), and opens the source, the model
 * that a resumed run, --init or --from names.  Folders keep their options in variables of their own (base/module.h).
 *
 * settings_parts.h has what these files need of one another, and archive.h what the trainer asks of the folder that
 * keeps runs.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "rate.h"
#include "trainer/data/data.h"
#include "usage.h"

/* The options of yard sample. */
struct sample_options {
    const char *from;   /* a path */
    const char *prompt; /* a text */
    int count;          /* tokens to sample */
    int top_k;          /* among how many tokens; 0: all */
    double temperature; /* 0: always the likeliest token */
};

struct settings {
    /* The first fields are the values of options of the same names; `yard NAME --help` tells what each means.  A text
     * is NULL if there is none. */

    /* model */
    const char *init, *config;          /* paths */
    int preset;                         /* place in the words of --model; -1: a model brings its own sizes */
    int layers, heads, channels, vocab; /* sizes; vocab: of random tokens, where there are no data */
    int seq_len;                        /* tokens per sequence */
    bool untied;
    /* data */
    struct data_options data; /* open_dataset() fills in its sizes and its tokenizer */
    int val_every;            /* in steps */
    int val_batches;          /* 0: all */
    /* training */
    int batch, micro_batch; /* in sequences; micro_batch 0: the whole share of a device */
    int steps, stop_after;  /* numbers of steps, which count from 1 */
    int warmup;             /* in steps; -1: see fill_rate() */
    int64_t seed;
    double lr, lr_min; /* lr_min -1: see fill_rate() */
    enum rate_schedule schedule;
    double beta1, beta2, eps, weight_decay; /* AdamW's */
    double clip;                            /* the largest norm of the gradient; 0: it is not clipped */
    /* devices */
    const char *devices, *mesh, *stages; /* as the user wrote them */
    const char *pipeline;                /* the name of its order, or the text of one that is written down */
    struct kernels kernels;
    int zero;                          /* 0 to 3 */
    int grad_groups;                   /* groups of sequences whose gradients are summed apart */
    int vector;                        /* floats per vector; 0: the width that the device prefers */
    size_t device_memory, host_memory; /* budgets in bytes; 0: all that may be used */
    /* running and looking */
    bool serial, json;
    const char *log, *save; /* paths: a file, a folder */
    int save_every;         /* in steps; 0: only at the end */
    int sample_length;      /* tokens of the sample after the training; 0: none */

    struct sample_options sample;

    /* what follows from options */
    const struct turn_order *turn_order; /* what `pipeline` names */
    const char *file;     /* the first word that is no option, where the command takes a file; NULL: there is none */
    int n_files;          /* how many words are no options */
    struct source source; /* what the run that goes on, --init or --from begins with; path NULL: nothing */
    const struct resumed_run *resumed; /* the run that this one resumes, or NULL */
    bool trains;                       /* the command is yard train */
    struct demands demands;
};

/* ---- source.c: the model with which training or sampling begins -------------------------------------------------- */

/* Opens a source, whose sizes are known then.  path, as --init and --from take it: a file for init_from_file(), a
 * folder with one in it, or what a run has left.  heads: see read_config(). */
struct source open_source(const char *path, int heads);
void close_source(struct source *source);

void init_from_source(struct model *model, const struct source *source); /* the values only */
char *saved_model(const struct settings *settings); /* the path in --save DIR for other programs; the caller frees it */

/* ---- settings.c -------------------------------------------------------------------------------------------------- */

/* Parses the words of `yard COMMAND ...` by the one table of options; --help prints how the command is used, and exits.
 * The process has one struct settings, which each call sets anew and returns. */
struct settings *parse_settings(const struct usage *usage, int argc, char **argv);

uint32_t last_step(const struct settings *settings); /* the step after which yard train ends */

/* ---- all_options.c ----------------------------------------------------------------------------------------------- */

bool was_given(const char *option); /* has this run's command line or its config file the option of this name? */

int given_heads(void); /* the number of --heads, for a model that does not say its own; 0: not given */

/* Ends the program if --heads says another number than the model (sample, check). */
void expect_heads(const struct config *config, const char *path);

/* The option that the user has given after `before` (NULL: the first that was given); NULL: there is none. */
const struct option *next_given(const struct option *before);

/* The first option that the user has given and that does not fit; NULL: all fit. */
typedef bool option_fits(const struct option *option);
const char *first_unfit(option_fits *fits);

const char *word_of(const char *option, int number); /* the word for an enumerator of an option's values */

/* Like try_value() in options.h, for the option of this name, which must exist.  With it a trial of a technique needs
 * no variable of the technique's folder. */
struct value_before try_option(const char *option, const char *text);

/* ---- recorded.c -------------------------------------------------------------------------------------------------- */

enum options_wanted { ALL_OPTIONS, RECORDED_OPTIONS };

/* The options of `yard train` with their values; RECORDED_OPTIONS: only those that a resumed run takes over, all as
 * texts. */
struct json_t *options_json(enum options_wanted wanted);

#endif

/* cmd.h - the subcommands; main.c has the table. */
#ifndef CMD_H
#define CMD_H

#include "tools/picture/canvas.h"

/* Each is given what follows its name on the command line and returns the exit code. */
typedef int command_function(int argc, char **argv);
command_function cmd_devices, cmd_train, cmd_sample, cmd_check, cmd_plan, cmd_trace, cmd_plot, cmd_bench, cmd_profile,
    cmd_view, cmd_ckpt;

struct settings;
/* train --restart: in each child what it trains by; in the parent, at the end, NULL and the exit code.  restart.c */
struct settings *train_in_children(struct settings *s, int argc, char **argv, int *code);
int bench_broadcast(struct settings *s);       /* bench --broadcast: bench_broadcast.c */
int check_gradients(const struct settings *s); /* check --gradients: gradients.c */
int plan_memory(const struct settings *s);     /* plan --memory: plan_memory.c */

/* ---- words.c: commands that take paths; those of several words, as `yard trace summary FILE` -------------------- */

struct option_table;
/* Sets the options and returns the paths among the arguments, *n of them, the first so many of which are read; they and
 * the options' outputs are claimed.  NULL: help was asked for, and printed, from "FILE [options]..." on. */
char **take_arguments(struct option_table *table, unsigned bit, const char *name, const char *help, int inputs,
                      int argc, char **argv, int *n);

struct word {
    const char *name, *takes, *what; /* "diff"; "A B"; a line of the overview */
    int n;                           /* so many paths */
    unsigned bit;                    /* of its options' `commands` */
    int (*run)(char **paths);        /* returns the exit code */
    const char *help;
};
struct words {
    const char *command, *about, *list; /* "trace"; the overview's text; "summary, export or diff" */
    int inputs;                         /* the first so many of the paths are read */
    const struct word *word;
    size_t n;
    struct option_table *table;
};
/* Runs the word that comes first among the arguments; returns the exit code. */
int run_words(const struct words *w, int argc, char **argv);

/* ---- trace_summary.c, trace_export.c, trace_diff.c: the words of `yard trace` ----------------------------------- */

extern struct trace_options {
    bool json;
    const char *list; /* NULL: the first that has run */
    const char *chrome, *steps;
} trace_options;
int trace_summary(char **files);
int trace_export(char **files);
int trace_diff(char **files);

/* ---- plot_draw.c: the curves of `yard plot` ---------------------------------------------------------------------- */

struct series {              /* the losses of one kind in one file */
    const char *path, *kind; /* "train", "val", "floor" */
    size_t run;              /* which file */
    bool val;
    struct point {
        double step, loss;
    } * point; /* finite, in order of the file */
    size_t n, cap;
};
struct plot {
    struct series *series; /* those with losses */
    size_t n, cap;
};
/* On the terminal, in columns and rows of characters: each series has a letter. */
void draw_on_terminal(FILE *out, const struct plot *p, int columns, int rows, bool colour);
/* As pixels; the caller frees the canvas. */
struct canvas *draw_picture(const struct plot *p, int width, int height);

#endif

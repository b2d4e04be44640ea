/* lists.h - a list as text: step files, which are read and written, what `yard plan` prints of a list, and the tables
 * of a trace.
 */
#ifndef LISTS_H
#define LISTS_H

#include "tools/trace/trace.h" /* defines: trace, trace_kind */
#include "trainer/step/step.h"

#include <jansson.h>

/* ---- readlist.c, writelist.c: step files ------------------------------------------------------------------------ */

/* The list that a step file describes, on a machine and in a pool of its own, not yet placed.  Ends the program
 * (EXIT_USAGE) with the line and the word that are wrong. */
struct step *read_list(const char *path);
/* The list as such a file; seconds: how long each task takes alone.  Read back, it is simulated to the same times. */
void write_list(FILE *out, const struct step *s, const double *seconds);
/* Seconds of a task of a step file, alone. */
double given_seconds(const struct task *t);

/* ---- print.c, tables.c ----------------------------------------------------------------------------------------- */

/* yard plan: the list with edges and accesses, where its tensors lie and when, then bytes per device; or as JSON. */
void print_step(FILE *out, const struct step *s);
void print_map(FILE *out, const struct pool *p, const struct step *s);
void print_memory(FILE *out, const struct pool *p, struct step *const *steps, size_t n);
json_t *plan_json(const struct pool *p, struct step *const *steps, size_t n);

/* A trace of finished lists: its tables and no records. */
struct trace_about {
    const char *model; /* a line for people */
    enum trace_kind kind;
    double pace_scale;
    double (*predicted)(void *context, const struct task *t); /* nanoseconds that it takes alone; NULL: not known */
    void *context;
};
struct trace *trace_tables(const struct machine *m, struct step **steps, size_t n, const struct trace_about *about);

#endif

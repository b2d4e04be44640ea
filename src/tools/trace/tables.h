/* tables.h - the tables of a trace, of lists that are finished. */
#ifndef TABLES_H
#define TABLES_H

#include "trace.h"
#include "trainer/step/step.h"

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

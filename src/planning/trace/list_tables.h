/* list_tables.h - a trace's tables, made from finished lists. */
#ifndef LIST_TABLES_H
#define LIST_TABLES_H

#include "trace.h"
#include "trainer/step/list.h"

struct trace_about {
    const char *model; /* a line to be read by people */
    enum trace_kind kind;
    double pace_scale;
    double (*predicted)(void *context, const struct task *task); /* nanoseconds that it takes alone; NULL: not known */
    void *context;                                               /* the argument of `predicted` */
};

/* A trace of finished lists, for free_trace(): it has their tables and no records. */
struct trace *new_trace_of_lists(const struct machine *machine, struct list **lists, size_t n,
                                 const struct trace_about *about);

#endif

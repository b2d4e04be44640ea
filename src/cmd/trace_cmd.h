/* trace_cmd.h - the three words of `yard trace`, one file each, and what they share (trace.c). */
#ifndef TRACE_CMD_H
#define TRACE_CMD_H

#include "../trace/trace.h"

void trace_summary(const char *path, const char *list, size_t top, bool json);          /* trace_summary.c */
void trace_export(const char *path, const char *chrome, uint32_t first, uint32_t last); /* trace_export.c */
int trace_diff(const char *path_a, const char *path_b, const char *list, bool json);    /* trace_diff.c */

/* The trace with the times of a paced one made modelled; so all that yard prints is on one scale. */
struct trace *open_in_modelled_time(const char *path);
const char *trace_kind_name(const struct trace *t); /* "real", "paced", "simulated" */
/* Index of the task list: the one named, or without a name the first that has records. */
uint32_t choose_list(const struct trace *t, const char *path, const char *name);

#endif

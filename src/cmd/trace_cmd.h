/* trace_cmd.h - the three words of `yard trace`, one file each, which trace.c calls. */
#ifndef TRACE_CMD_H
#define TRACE_CMD_H

#include "../trace/trace.h"

void trace_summary(const char *path, const char *list, size_t top, bool json);          /* trace_summary.c */
void trace_export(const char *path, const char *chrome, uint32_t first, uint32_t last); /* trace_export.c */
int trace_diff(const char *path_a, const char *path_b, const char *list, bool json);    /* trace_diff.c */

#endif

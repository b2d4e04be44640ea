/* trace_cmd.h - the three words of `yard trace`, one file each, which trace.c calls. */
#ifndef TRACE_CMD_H
#define TRACE_CMD_H

#include "../base/table.h"
#include "../trace/trace.h"

/* trace_summary.c, trace_export.c, trace_diff.c; list NULL: the first that has run */
void trace_summary(const char *path, const char *list, size_t top, bool json);
/* trace_ports.c: of the counted steps, a row per device and kind of lanes that broadcast; the caller frees it. */
struct table *port_table(const struct trace *t, const struct trace_steps *s);
void trace_export(const char *path, const char *chrome, const char *list, uint32_t first, uint32_t last);
int trace_diff(const char *path_a, const char *path_b, const char *list, bool json);

#endif

/* command.h - the words of `yard trace`. */
#ifndef TRACE_COMMAND_H
#define TRACE_COMMAND_H

#include <stdbool.h>

extern struct trace_options {
    bool json;
    const char *list; /* NULL: the first that has run */
    const char *chrome, *steps;
} trace_options;
int trace_summary(char **files);
int trace_export(char **files);
int trace_diff(char **files);

struct subcommand;
extern const struct subcommand trace_command;

#endif

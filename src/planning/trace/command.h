/* command.h - the words of `yard trace`. */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>

extern struct trace_options {
    bool json;
    const char *list;   /* the task list; NULL: the first that has run */
    const char *chrome; /* the file that export writes */
    const char *steps;  /* "2:4": the steps that export writes; NULL: all */
} asked_trace;

/* These commands take the paths of traces, which NULL ends. */
enum exit_code trace_summary(char **files);
enum exit_code trace_export(char **files);
enum exit_code trace_diff(char **files);

struct subcommand;
extern const struct subcommand trace_command;

#endif

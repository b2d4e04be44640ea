/* record.h - a run as a trace: an observer that records it, and pauses it when a viewer asks for that. */
#ifndef RECORD_H
#define RECORD_H

#include "trainer/train/train.h"

struct record_options {
    const char *file; /* the file that is kept; NULL: none is */
    bool shown;       /* true: it is shown in a window while it is written; only a folder with a window sets it */
};
extern struct record_options asked_record;

/* A window that shows traces, which a folder registers (struct planning_parts, planning/pass/pass.h). */
struct trace_window {
    void (*open)(const char *path); /* opens the file at once: its name may be gone after the call */
};

/* The path of the trace: that of --trace, after a restart with its number; or with --view alone a private place; NULL:
 * no trace is written.  The caller frees it. */
char *path_of_trace(void);

/* Shows the trace in the window, if asked_record says so.  A private trace loses its name then, so that nothing of it
 * is left when the window is closed. */
void show_if_asked(const char *path);

/* One line on sizes: "6 layers, 6 heads, ..."; the caller frees it. */
char *describe_shape(const struct trainer *trainer);

#endif

/* record.h - a run as a trace: an observer that records it, and pauses it when a viewer asks for that. */
#ifndef RECORD_H
#define RECORD_H

#include "trainer/train/train.h"

struct record_options {
    const char *file; /* the file that is kept; NULL: none is */
    bool shown;       /* true: it is shown in a window while it is written */
};
extern struct record_options asked_record;

/* The path of the trace: that of --trace, after a restart with its number; or with --view alone a private place; NULL:
 * no trace is written.  The caller frees it. */
char *path_of_trace(void);

/* One line on sizes: "6 layers, 6 heads, ..."; the caller frees it. */
char *describe_shape(const struct trainer *trainer);

#endif

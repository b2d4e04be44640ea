/* record.h - a run as a trace: what looks on and writes down, and holds the run where a viewer asks for it. */
#ifndef RECORD_H
#define RECORD_H

#include "trainer/train/hooks.h"

struct record_options {
    const char *file; /* NULL: none is kept */
    bool shown;       /* in a window, as it is written */
};
extern struct record_options record_options;
/* Where a trace goes: --trace, behind a restart with its number; or with --view alone a private place; NULL: there is
 * none.  The caller frees it. */
char *trace_path(void);

#endif

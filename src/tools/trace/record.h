/* record.h - a run as a trace: what looks on and writes down, and holds the run where a viewer asks for it. */
#ifndef RECORD_H
#define RECORD_H

#include "trainer/train/train.h"

/* From here on what these lists run is recorded, in the file of --trace or in a private one, and shown where --view is
 * given; t->follow reads it.  One trace at a time. */
void trace_training(struct trainer *t, struct step **lists, size_t n);
void end_trace(void); /* behind a drain: the file is closed, where there is one */

#endif

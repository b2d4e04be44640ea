/* snapshot_report.h - what people and `plan --json` are told: snapshot_report.c. */
#ifndef SNAPSHOT_REPORT_H
#define SNAPSHOT_REPORT_H

#include "snapshot.h"

/* Writes the report's fields, and its sentence on the list as the pass has left it.  options: those by which the pass
 * ran; other_period: the period with copies in the other place of enum snapshot_place, in seconds; NAN where it is not
 * known.  Ends the program (EXIT_USAGE) where the devices' buffers do not fit. */
void report_snapshot(struct list *list, const struct snapshot_options *options, const struct costs *costs,
                     const struct run_facts *facts, double other_period, struct pass_report *report);

#endif

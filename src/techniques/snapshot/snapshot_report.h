/* snapshot_report.h - what people and `plan --json` are told: snapshot_report.c. */
#ifndef SNAPSHOT_REPORT_H
#define SNAPSHOT_REPORT_H

#include "planning/pass/pass.h"

/* Writes the report's fields, and its sentence on the list as the pass has left it.  other_period: the period with
 * copies in the other place of enum snapshot_place, in seconds; NAN where it is not known. */
void report_snapshot(struct list *list, const struct costs *costs, const struct run_facts *facts, double other_period,
                     struct pass_report *report);

#endif

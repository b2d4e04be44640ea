/* gather.h - ZeRO-3: gather.c. */
#ifndef GATHER_H
#define GATHER_H

#include "planning/pass/pass.h"

/* Keeps the list's parameters in shards, adds the copies that gather them, and says so in the report.  sliced: the pass
 * of broadcast will cut these copies into slices.  false: no parameters lie in shards, and the list is as it was. */
bool gather_parameters(struct list *list, bool sliced, struct pass_report *report);

#endif

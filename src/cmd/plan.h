/* plan.h - the second page of yard plan. */
#ifndef PLAN_H
#define PLAN_H

struct settings;
int plan_memory(const struct settings *s); /* --memory; the exit code */

#endif

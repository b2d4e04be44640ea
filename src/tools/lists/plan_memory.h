/* plan_memory.h - plan --memory: a table of strategies and what they need. */
#ifndef PLAN_MEMORY_H
#define PLAN_MEMORY_H

#include "trainer/train/train.h"

int plan_memory(const struct settings *s); /* returns the exit code */

#endif

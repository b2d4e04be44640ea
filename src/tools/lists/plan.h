/* plan.h - yard plan: its options, and other ways to show a plan. */
#ifndef PLAN_COMMAND_H
#define PLAN_COMMAND_H

#include "trainer/train/hooks.h"

struct plan_options {
    bool print, print_list;
    const char *list; /* the step file that is planned instead of a model */
};
extern struct plan_options plan_options;

/* Of a folder (struct module): it shows the model's plan instead, where its options say so. */
struct other_plan {
    bool (*is_wanted)(void);
    int (*run)(const struct settings *s); /* the exit code */
};

#endif

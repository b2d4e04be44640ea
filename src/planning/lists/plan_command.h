/* plan_command.h - yard plan: its options, and other ways to show a plan. */
#ifndef PLAN_COMMAND_H
#define PLAN_COMMAND_H

#include "trainer/train/train.h"

struct plan_options {
    bool print, print_list;
    const char *list; /* the step file that is planned instead of a model */
    const char *like; /* a second step file: the list must compute the same as its list */
};
extern struct plan_options asked_plan;

/* Another way to show the model's plan, which a folder registers (struct planning_parts, planning/pass/pass.h) for when
 * its options ask for it. */
struct other_plan {
    bool (*is_wanted)(void);
    enum exit_code (*run)(const struct settings *settings);
};

#endif

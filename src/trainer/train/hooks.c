/* hooks.c - calls the folders at each moment of a training, and keeps a pointer of each folder for each trainer. */
#include "hooks.h"

#include <math.h>

/* ---- the moments ------------------------------------------------------------------------------------------------- */

/* The hooks of folder i, each of them NULL if the folder has none. */
static const struct hooks *hooks_of(size_t i)
{
    static const struct hooks none;
    return modules[i]->hooks ? modules[i]->hooks : &none;
}

bool ask_options_read(struct settings *s, int argc, char **argv, int *code)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->options_read && !hooks_of(i)->options_read(s, argc, argv, code))
            return false;
    return true;
}

struct machine *ask_machine(struct trainer *t, bool plan_only)
{
    struct machine *m = NULL;
    for (size_t i = 0; i < n_modules && !m; i++)
        if (hooks_of(i)->machine)
            m = hooks_of(i)->machine(t, plan_only);
    return m;
}

void tell_machine_opened(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->machine_opened)
            hooks_of(i)->machine_opened(t);
}

void tell_list_built(struct trainer *t, struct step *list)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->list_built)
            hooks_of(i)->list_built(t, list);
}

void tell_lists_ready(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->lists_ready)
            hooks_of(i)->lists_ready(t);
}

void tell_model_filled(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->model_filled)
            hooks_of(i)->model_filled(t);
}

void tell_summary_printed(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->summary_printed)
            hooks_of(i)->summary_printed(t);
}

void tell_step_issued(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->step_issued)
            hooks_of(i)->step_issued(t);
}

void tell_step_reported(struct trainer *t, uint32_t number, bool sound)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->step_reported)
            hooks_of(i)->step_reported(t, number, sound);
}

void tell_step_not_finite(struct trainer *t, uint32_t number, const struct result *result)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->step_not_finite)
            hooks_of(i)->step_not_finite(t, number, result);
}

void tell_steps_ended(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->steps_ended)
            hooks_of(i)->steps_ended(t);
}

void ask_kept(struct trainer *t, struct kept_run *k)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->kept)
            hooks_of(i)->kept(t, k);
}

void tell_trainer_closing(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->trainer_closing)
            hooks_of(i)->trainer_closing(t);
}

double ask_predicted_seconds(const struct trainer *t, const struct task *task)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->predicted_seconds)
            return hooks_of(i)->predicted_seconds(t, task);
    return NAN;
}

/* ---- what a folder knows of a trainer ---------------------------------------------------------------------------- */

void **own_of(const struct trainer *t, const struct module *m)
{
    size_t i = 0;
    while (modules[i] != m)
        i++;
    return &t->folder_data[i];
}

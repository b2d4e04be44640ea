/* hooks.c - calls the folders at each moment of a training, and keeps a pointer of each folder for each trainer.
 *
 * Each moment has the same loop in a function of its own: so the compiler checks what a hook is given, a backtrace
 * names the moment, and a debugger stops at one moment alone.
 */
#include "hooks.h"
#include "train.h"

#include <math.h>

/* ---- the moments ------------------------------------------------------------------------------------------------- */

/* The hooks of folder i, each of them NULL if the folder has none. */
static const struct hooks *hooks_of(size_t i)
{
    static const struct hooks none;
    const struct hooks *hooks = training_parts_of(modules[i])->hooks;
    return hooks ? hooks : &none;
}

bool ask_takes_part(struct settings *settings, int argc, char **argv, enum exit_code *code)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->takes_part && !hooks_of(i)->takes_part(settings, argc, argv, code))
            return false;
    return true;
}

void tell_training_begins(struct settings *settings)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->training_begins)
            hooks_of(i)->training_begins(settings);
}

struct machine *ask_machine(struct trainer *trainer, bool *separate)
{
    struct machine *machine = NULL;
    for (size_t i = 0; i < n_modules && !machine; i++)
        if (hooks_of(i)->machine)
            machine = hooks_of(i)->machine(trainer, separate);
    return machine;
}

void tell_machine_opened(struct trainer *trainer)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->machine_opened)
            hooks_of(i)->machine_opened(trainer);
}

void tell_list_built(struct trainer *trainer, struct list *list)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->list_built)
            hooks_of(i)->list_built(trainer, list);
}

void tell_lists_ready(struct trainer *trainer)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->lists_ready)
            hooks_of(i)->lists_ready(trainer);
}

void tell_model_filled(struct trainer *trainer)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->model_filled)
            hooks_of(i)->model_filled(trainer);
}

void tell_summary_printed(struct trainer *trainer)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->summary_printed)
            hooks_of(i)->summary_printed(trainer);
}

void tell_step_issued(struct trainer *trainer)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->step_issued)
            hooks_of(i)->step_issued(trainer);
}

void tell_step_reported(struct trainer *trainer, uint32_t step, bool finite)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->step_reported)
            hooks_of(i)->step_reported(trainer, step, finite);
}

void tell_step_not_finite(struct trainer *trainer, uint32_t step, const struct result *result)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->step_not_finite)
            hooks_of(i)->step_not_finite(trainer, step, result);
}

void tell_steps_ended(struct trainer *trainer)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->steps_ended)
            hooks_of(i)->steps_ended(trainer);
}

void tell_run_ended(struct trainer *trainer)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->run_ended)
            hooks_of(i)->run_ended(trainer);
}

void ask_kept(struct trainer *trainer, struct kept_run *kept_run)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->kept)
            hooks_of(i)->kept(trainer, kept_run);
}

void tell_trainer_closing(struct trainer *trainer)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->trainer_closing)
            hooks_of(i)->trainer_closing(trainer);
}

double ask_predicted_seconds(const struct trainer *trainer, const struct task *task)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->predicted_seconds)
            return hooks_of(i)->predicted_seconds(trainer, task);
    return NAN;
}

/* ---- what a folder knows of a trainer ---------------------------------------------------------------------------- */

void **folder_data_of(const struct trainer *trainer, const struct module *module)
{
    size_t i = 0;
    while (i < n_modules && modules[i] != module)
        i++;
    CHECK(i < n_modules, "module %s is not in the table of modules", module->name);
    return &trainer->folder_data[i];
}

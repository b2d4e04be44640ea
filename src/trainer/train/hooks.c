/* hooks.c - calling folders: at each moment; which of them keeps runs; what a folder knows of a trainer. */
#include "hooks.h"

#include <math.h>

/* ---- the moments ------------------------------------------------------------------------------------------------- */

/* The hooks of the first folder after the one with hooks h (NULL: of all folders) that has some; NULL: none has.  No
 * two folders share a struct hooks. */
static const struct hooks *next_hooks(const struct hooks *h)
{
    size_t i = 0;
    if (h) {
        while (modules[i]->hooks != h)
            i++;
        i++;
    }
    while (i < n_modules && !modules[i]->hooks)
        i++;
    return i < n_modules ? modules[i]->hooks : NULL;
}

bool ask_options_read(struct settings *s, int argc, char **argv, int *code)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->options_read && !h->options_read(s, argc, argv, code))
            return false;
    return true;
}

struct machine *ask_machine(struct trainer *t, bool plan_only)
{
    struct machine *m = NULL;
    for (const struct hooks *h = next_hooks(NULL); h && !m; h = next_hooks(h))
        if (h->machine)
            m = h->machine(t, plan_only);
    return m;
}

void tell_machine_opened(struct trainer *t)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->machine_opened)
            h->machine_opened(t);
}

void tell_list_built(struct trainer *t, struct step *list)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->list_built)
            h->list_built(t, list);
}

void tell_lists_ready(struct trainer *t)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->lists_ready)
            h->lists_ready(t);
}

void tell_model_filled(struct trainer *t)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->model_filled)
            h->model_filled(t);
}

void tell_summary_printed(struct trainer *t)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->summary_printed)
            h->summary_printed(t);
}

void tell_step_issued(struct trainer *t)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->step_issued)
            h->step_issued(t);
}

void tell_step_reported(struct trainer *t, uint32_t number, bool sound)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->step_reported)
            h->step_reported(t, number, sound);
}

void tell_step_not_finite(struct trainer *t, uint32_t number, const struct result *r)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->step_not_finite)
            h->step_not_finite(t, number, r);
}

void tell_steps_ended(struct trainer *t)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->steps_ended)
            h->steps_ended(t);
}

void ask_kept(struct trainer *t, struct kept_run *k)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->kept)
            h->kept(t, k);
}

void tell_trainer_closing(struct trainer *t)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->trainer_closing)
            h->trainer_closing(t);
}

/* ---- what only one folder knows ---------------------------------------------------------------------------------- */

const struct archive *find_archive(void)
{
    for (size_t i = 0; i < n_modules; i++)
        if (modules[i]->archive)
            return modules[i]->archive;
    return NULL;
}

void **own_of(const struct trainer *t, const struct module *m)
{
    size_t i = 0;
    while (modules[i] != m)
        i++;
    return &t->own[i];
}

double ask_predicted_seconds(const struct trainer *t, const struct task *task)
{
    for (const struct hooks *h = next_hooks(NULL); h; h = next_hooks(h))
        if (h->predicted_seconds)
            return h->predicted_seconds(t, task);
    return NAN;
}

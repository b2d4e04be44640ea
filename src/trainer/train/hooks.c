/* hooks.c - asking folders: at each moment; which of them keeps runs; what a folder knows of a trainer. */
#include "hooks.h"

#include <math.h>

/* ---- the moments ------------------------------------------------------------------------------------------------- */

static const struct hooks *hooks_of(size_t i)
{
    static const struct hooks none;
    return modules[i]->hooks ? modules[i]->hooks : &none;
}

bool ask_before(struct settings *s, int argc, char **argv, int *code)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->before && !hooks_of(i)->before(s, argc, argv, code))
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

void ask_opened(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->opened)
            hooks_of(i)->opened(t);
}

void ask_built(struct trainer *t, struct step *list)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->built)
            hooks_of(i)->built(t, list);
}

void ask_ready(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->ready)
            hooks_of(i)->ready(t);
}

void ask_begins(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->begins)
            hooks_of(i)->begins(t);
}

void ask_summary(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->summary)
            hooks_of(i)->summary(t);
}

void ask_stepped(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->stepped)
            hooks_of(i)->stepped(t);
}

void ask_reported(struct trainer *t, uint32_t number, bool sound)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->reported)
            hooks_of(i)->reported(t, number, sound);
}

void ask_not_finite(struct trainer *t, uint32_t number, const struct result *r)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->not_finite)
            hooks_of(i)->not_finite(t, number, r);
}

void ask_ends(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->ends)
            hooks_of(i)->ends(t);
}

void ask_keeps(struct trainer *t, struct kept_run *k)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->keeps)
            hooks_of(i)->keeps(t, k);
}

void ask_leaves(struct trainer *t)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->leaves)
            hooks_of(i)->leaves(t);
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

double foretold_seconds(const struct trainer *t, const struct task *task)
{
    for (size_t i = 0; i < n_modules; i++)
        if (hooks_of(i)->foretold)
            return hooks_of(i)->foretold(t, task);
    return NAN;
}

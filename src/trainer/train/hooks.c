/* hooks.c - asking folders: who keeps runs, what a folder knows of a trainer, how long a task should take. */
#include "hooks.h"

#include <math.h>

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
        if (modules[i]->hooks && modules[i]->hooks->foretold)
            return modules[i]->hooks->foretold(t, task);
    return NAN;
}

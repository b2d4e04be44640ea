/* pass_table.c - the passes that folders bring along, sorted by runs_at. */
#include "pass.h"

static int by_runs_at(const void *left, const void *right)
{
    const struct pass *a = *(struct pass *const *)left;
    const struct pass *b = *(struct pass *const *)right;
    return COMPARE(a->runs_at, b->runs_at);
}

const struct pass *const *all_passes(size_t *n)
{
    static const struct pass **all;
    static size_t n_all;
    if (!all) {
        all = allocate(n_modules, sizeof *all);
        for (size_t i = 0; i < n_modules; i++)
            if (modules[i]->pass)
                all[n_all++] = modules[i]->pass;
        SORT(all, n_all, by_runs_at);
    }
    *n = n_all;
    return all;
}

const struct pass *find_pass(const char *name)
{
    size_t n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

char *pass_names(void)
{
    size_t n;
    const struct pass *const *all = all_passes(&n);
    char *names = NULL;
    for (size_t i = 0; i < n; i++)
        append_text(&names, "%s%s", i ? ", " : "", all[i]->name);
    return names;
}

/* pass_table.c - the passes that folders bring along, sorted by runs_at, and what else they add to planning. */
#include "pass.h"

const struct planning_parts *planning_parts_of(const struct module *module)
{
    static const struct planning_parts none;
    return module->planning ? module->planning : &none;
}

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
        for (size_t i = 0; i < n_modules; i++) {
            const struct pass *pass = planning_parts_of(modules[i])->pass;
            if (pass)
                all[n_all++] = pass;
        }
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

/* ---- the forecaster ---------------------------------------------------------------------------------------------- */

const struct forecaster *find_forecaster(void)
{
    const struct forecaster *found = NULL;
    for (size_t i = 0; i < n_modules; i++)
        found = sole_part(found, modules[i], planning_parts_of(modules[i])->forecaster);
    return found;
}

const struct forecaster *the_forecaster(void)
{
    const struct forecaster *forecaster = find_forecaster();
    CHECK(forecaster, "no folder of %zu predicts", n_modules);
    return forecaster;
}

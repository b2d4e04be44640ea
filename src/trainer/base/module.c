/* module.c - what is asked of all folders that have registered themselves. */
#include "module.h"
#include "base.h"

const void *sole_part(const void *found, const struct module *module, const void *part)
{
    CHECK(!part || !found, "%s has a part that another folder has too", module->name);
    return part ? part : found;
}

const struct foreign_lookup *find_foreign_lookup(void)
{
    const struct foreign_lookup *found = NULL;
    for (size_t i = 0; i < n_modules; i++)
        found = sole_part(found, modules[i], modules[i]->foreign_lookup);
    return found;
}

bool is_left_out(const char *typed)
{
    char *folder = format_string("%.*s", (int)strcspn(typed, "-:"), typed);
    bool yes = has_word(left_out, folder);
    free(folder);
    return yes;
}

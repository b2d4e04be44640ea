/* module.c - what is asked of all folders that have registered themselves. */
#include "module.h"
#include "base.h"

struct sole_parts sole_parts(void)
{
    struct sole_parts all = {.archive = NULL};
    for (size_t i = 0; i < n_modules; i++) {
        const struct sole_parts *of = &modules[i]->sole;
        if (of->foreign_lookup)
            all.foreign_lookup = of->foreign_lookup;
        if (of->archive)
            all.archive = of->archive;
        if (of->tokens)
            all.tokens = of->tokens;
        if (of->formats)
            all.formats = of->formats;
        if (of->orders)
            all.orders = of->orders;
        if (of->forecaster)
            all.forecaster = of->forecaster;
    }
    return all;
}

bool is_left_out(const char *typed)
{
    char *folder = format_string("%.*s", (int)strcspn(typed, "-:"), typed);
    bool yes = has_word(left_out, folder);
    free(folder);
    return yes;
}

/* module.c - what is asked of all folders that have registered themselves. */
#include "module.h"
#include "base.h"

/* The part that was found before, or that of this folder, whichever is not NULL. */
static const void *the_one(const void *found, const struct module *module, const void *part)
{
    CHECK(!part || !found, "%s has a part that another folder has too", module->name);
    return part ? part : found;
}

/* The parts of all folders. */
static struct sole_parts all_parts(void)
{
    struct sole_parts all = {0};
    for (size_t i = 0; i < n_modules; i++) {
        const struct module *module = modules[i];
        const struct sole_parts *its = &module->sole;
        all.foreign_lookup = the_one(all.foreign_lookup, module, its->foreign_lookup);
        all.archive = the_one(all.archive, module, its->archive);
        all.tokens = the_one(all.tokens, module, its->tokens);
        all.formats = the_one(all.formats, module, its->formats);
        all.orders = the_one(all.orders, module, its->orders);
        all.forecaster = the_one(all.forecaster, module, its->forecaster);
    }
    return all;
}

const struct foreign_lookup *find_foreign_lookup(void) { return all_parts().foreign_lookup; }
const struct archive *find_archive(void) { return all_parts().archive; }
const struct token_kind *find_further_tokens(void) { return all_parts().tokens; }
const struct formats *find_formats(void) { return all_parts().formats; }
const struct order_reader *find_order_reader(void) { return all_parts().orders; }
const struct forecaster *find_forecaster(void) { return all_parts().forecaster; }

const struct archive *the_archive(void)
{
    const struct archive *archive = find_archive();
    CHECK(archive, "no folder of %zu keeps runs", n_modules);
    return archive;
}

const struct forecaster *the_forecaster(void)
{
    const struct forecaster *forecaster = find_forecaster();
    CHECK(forecaster, "no folder of %zu predicts", n_modules);
    return forecaster;
}

const char ways_to_shrink[] = "a smaller --micro-batch (if above 1) or --seq-len";

char *ways_to_make_room(bool on_host)
{
    char *ways = NULL;
    for (size_t i = 0; i < n_modules; i++) {
        const char *way = modules[i]->way_to_make_room ? modules[i]->way_to_make_room(on_host) : NULL;
        if (way)
            append_text(&ways, "%s, ", way);
    }
    append_text(&ways, "%s", ways_to_shrink);
    return ways;
}

bool is_left_out(const char *typed)
{
    char *folder = format_string("%.*s", (int)strcspn(typed, "-:"), typed);
    bool yes = has_word(left_out, folder);
    free(folder);
    return yes;
}

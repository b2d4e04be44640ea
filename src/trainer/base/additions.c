/* additions.c - what the trainer asks of all folders. */
#include "additions.h"
#include "base.h"

const struct training_parts *training_parts_of(const struct module *module)
{
    static const struct training_parts none;
    return module->training ? module->training : &none;
}

/* The parts that at most one folder may have. */
static struct training_parts sole_parts(void)
{
    struct training_parts sole = {0};
    for (size_t i = 0; i < n_modules; i++) {
        const struct training_parts *its = training_parts_of(modules[i]);
        sole.archive = sole_part(sole.archive, modules[i], its->archive);
        sole.tokens = sole_part(sole.tokens, modules[i], its->tokens);
        sole.formats = sole_part(sole.formats, modules[i], its->formats);
        sole.orders = sole_part(sole.orders, modules[i], its->orders);
    }
    return sole;
}

const struct archive *find_archive(void) { return sole_parts().archive; }
const struct token_kind *find_further_tokens(void) { return sole_parts().tokens; }
const struct formats *find_formats(void) { return sole_parts().formats; }
const struct order_reader *find_order_reader(void) { return sole_parts().orders; }

const struct archive *the_archive(void)
{
    const struct archive *archive = find_archive();
    CHECK(archive, "no folder of %zu keeps runs", n_modules);
    return archive;
}

bool is_enabled(const char *value)
{
    for (size_t i = 0; i < n_modules; i++)
        if (has_word(training_parts_of(modules[i])->enables, value))
            return true;
    return false;
}

const char ways_to_shrink[] = "a smaller --micro-batch (if above 1) or --seq-len";

char *ways_to_make_room(bool on_host)
{
    char *ways = NULL;
    for (size_t i = 0; i < n_modules; i++) {
        const struct training_parts *its = training_parts_of(modules[i]);
        const char *way = its->way_to_make_room ? its->way_to_make_room(on_host) : NULL;
        if (way)
            append_text(&ways, "%s, ", way);
    }
    append_text(&ways, "%s", ways_to_shrink);
    return ways;
}

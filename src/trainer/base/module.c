/* module.c - what is asked of all folders that have registered themselves. */
#include "module.h"
#include "base.h"

/* The pointer at this offset in struct sole_parts, of the one folder where it is not NULL; NULL: there is none. */
static const void *find_part(size_t offset)
{
    const void *found = NULL;
    for (size_t i = 0; i < n_modules; i++) {
        const void *part;
        memcpy(&part, (const char *)&modules[i]->sole + offset, sizeof part);
        CHECK(!part || !found, "%s has a part that another folder has too", modules[i]->name);
        if (part)
            found = part;
    }
    return found;
}

#define FIND_PART(field) find_part(offsetof(struct sole_parts, field))

const struct foreign_lookup *find_foreign_lookup(void) { return FIND_PART(foreign_lookup); }
const struct archive *find_archive(void) { return FIND_PART(archive); }
const struct token_kind *find_further_tokens(void) { return FIND_PART(tokens); }
const struct formats *find_formats(void) { return FIND_PART(formats); }
const struct order_reader *find_order_reader(void) { return FIND_PART(orders); }
const struct forecaster *find_forecaster(void) { return FIND_PART(forecaster); }

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

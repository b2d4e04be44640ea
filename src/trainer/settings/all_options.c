/* all_options.c - the one table of options, the trainer's and those of folders: parsing, --help, config file and the
 * log's record follow from it.
 */
#include "settings_parts.h"
#include "trainer/base/module.h"

static struct option options[MOST_OPTIONS]; /* these and those of folders, group by group */

/* The commands that take the options of a class, in the order of enum option_class. */
static const char *const takers[] = {"`yard train`", "`yard sample`", "`yard train` and `yard plan`", "`yard plan`",
                                     NULL};
struct option_table all_options = {.options = options, .takers = takers};

static void add_option(const struct option *option)
{
    CHECK(all_options.n < MOST_OPTIONS, "more than %d options", MOST_OPTIONS);
    CHECK(!find_option(&all_options, option->name), "two options are called --%s", option->name);
    options[all_options.n++] = *option;
}

static void add_group(const char *group)
{
    for (size_t i = 0; i < n_own_options; i++)
        if (strcmp(own_options[i].group, group) == 0)
            add_option(&own_options[i]);
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_options; k++)
            if (strcmp(modules[i]->options[k].group, group) == 0)
                add_option(&modules[i]->options[k]);
}

void gather_options(void)
{
    static const char *const first[] = {GROUP_MODEL,      GROUP_DATA,    GROUP_TRAINING,   GROUP_DEVICES,
                                        GROUP_TECHNIQUES, GROUP_LOOKING, GROUP_PREDICTING, GROUP_SAMPLING};
    fill_preset_texts();
    for (size_t i = 0; i < n_modules; i++)
        CHECK((modules[i]->options != NULL) == (modules[i]->n_options > 0),
              "folder %s has options and no n_options, or the reverse", modules[i]->name);
    for (size_t i = 0; i < COUNT(first); i++)
        add_group(first[i]);
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_options; k++)
            if (!find_option(&all_options, modules[i]->options[k].name)) /* its group is the folder's own */
                add_group(modules[i]->options[k].group);
    all_options.foreign = find_foreign_lookup();
}

void mark_options(const struct usage *usage)
{
    for (size_t i = 0; i < all_options.n; i++) {
        options[i].classes &= ~(unsigned)OF_THIS;
        if (has_word(usage->also, options[i].name))
            options[i].classes |= OF_THIS;
    }
}

/* ---- what was given ---------------------------------------------------------------------------------------------- */

bool was_given(const char *option)
{
    const struct option *known = find_option(&all_options, option);
    return known && all_options.given[known - options];
}

const struct option *next_given(const struct option *before)
{
    for (const struct option *option = before ? before + 1 : options; option < options + all_options.n; option++)
        if (all_options.given[option - options])
            return option;
    return NULL;
}

const char *first_unfit(option_fits *fits)
{
    const struct option *option = next_given(NULL);
    while (option && fits(option))
        option = next_given(option);
    return option ? option->name : NULL;
}

const char *word_of(const char *option, int number) { return choice_words(find_option(&all_options, option))[number]; }

struct value_before try_option(const char *option, const char *text)
{
    const struct option *known = find_option(&all_options, option);
    CHECK(known, "there is no option --%s", option);
    return try_value(known, text);
}

int given_heads(void) { return was_given("heads") ? own_settings.heads : 0; }

void expect_heads(const struct config *config, const char *path)
{
    int given = given_heads();
    if (given && given != config->heads)
        fail(EXIT_USAGE, "%s has %d heads, not %d: leave --heads out", path, config->heads, given);
}

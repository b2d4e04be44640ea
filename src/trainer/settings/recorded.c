/* recorded.c - the options that are kept with a run, and that a resumed run takes over. */
#include "archive.h"
#include "settings_parts.h"
#include "trainer/base/json.h"

static bool is_unrecorded(const char *option)
{
    if (has_word("stop-after mesh", option))
        return true;
    for (size_t i = 0; i < n_modules; i++)
        if (has_word(modules[i]->unrecorded, option))
            return true;
    return false;
}

/* Does the training follow from this option?  The model's sizes and the mesh are recorded elsewhere. */
static bool is_recorded(const struct option *option)
{
    static const char *const groups[] = {GROUP_DATA, GROUP_TRAINING, GROUP_DEVICES, GROUP_TECHNIQUES, NULL};
    if (!(option->classes & train_usage.classes) || is_unrecorded(option->name))
        return false;
    return choice_number(groups, option->group) >= 0 || strcmp(option->name, "seq-len") == 0;
}

json_t *options_json(enum options_wanted wanted)
{
    bool recorded = wanted == RECORDED_OPTIONS;
    json_t *all = json_object();
    for (size_t i = 0; i < all_options.n; i++) {
        const struct option *option = &all_options.options[i];
        char *text = option_text(option);
        bool is_number = option->type < OPT_TEXT && !recorded;
        bool is_wanted = option->classes & train_usage.classes;
        if (recorded)
            is_wanted = is_recorded(option) && *text;
        if (is_wanted)
            json_object_set_new(all, option->name,
                                is_number ? json_loads(text, JSON_DECODE_ANY, NULL) : text_json(text));
        free(text);
    }
    return all;
}

void apply_recorded(const struct resumed_run *past)
{
    const char *name;
    json_t *value;
    own_settings.resumed = past;
    own_settings.source = past->source;
    json_object_foreach(past->options, name, value)
    {
        const struct option *option = find_option(&all_options, name);
        char *where = format_string("%s: option %s", past->options_in, name);
        if (option && is_recorded(option)) {
            set_option(&all_options, option, where, json_string_value(value));
            all_options.given[option - all_options.options] = false;
        } else if (strcmp(name, "mesh") != 0) {
            warn("%s is unknown to this program, and left out", where);
        }
        free(where);
    }
}

/* claim_files.c - claims the files that options name, so that no file is two things. */
#include "archive.h"
#include "settings_parts.h"
#include "trainer/import/import.h"

static void claim_file(const struct option *option)
{
    const struct archive *archive = find_archive();
    const char *path = *(const char **)option->value;
    const char *name = JOINED("--", option->name);
    if (!path)
        return;
    if (!is_output(option)) {
        claim_input(name, path);
        return;
    }
    if (archive)
        archive->expect_outside(name, path);
    claim_output(name, path, archive && option->type == OPT_KEPT ? archive->option : NULL);
}

void claim_files(const struct usage *usage)
{
    for (size_t i = 0; i < all_options.n; i++)
        if (all_options.options[i].type >= OPT_INPUT && (all_options.options[i].classes & classes_of(usage)))
            claim_file(&all_options.options[i]);
    if (was_given("tokens") && *own_settings.data.tokens && file_of_tokens(own_settings.data.tokens))
        claim_input("--tokens", own_settings.data.tokens);
    if (was_given("pipeline") && is_written_order(own_settings.pipeline))
        claim_input("--pipeline", own_settings.pipeline);
    if (own_settings.save) {
        char *model = saved_model(&own_settings);
        claim_output("--save", model, NULL);
        free(model);
    }
}

/* check_settings.c - refuses, or warns of, options that make no sense, or not together, and files that would be two
 * things.
 */
#include "archive.h"
#include "settings_parts.h"
#include "trainer/base/additions.h"
#include "trainer/model_files/model_files.h"

static const struct option_rule rules[] = {
    {"vocab", EXCLUDES, "data", "the data bring their own vocabulary"},
    {"vocab", EXCLUDES, "init", "a model brings its own sizes"},
    {"save-every", NEEDS, "save", NULL},
};

static bool is_off(const struct option *option)
{
    char *text = option_text(option);
    bool off = !*text;
    if (!is_output(option)) /* a file may be called "off" */
        off |= strcmp(text, "off") == 0 || strcmp(text, "0") == 0;
    free(text);
    return off;
}

/* Warns of, or refuses, what a rule says of two options, if this yard has both. */
static void apply_rule(const struct option_rule *rule)
{
    const struct option *other = find_option(&all_options, rule->other);
    if (!other || !was_given(rule->option))
        return;
    if (rule->relation == EXCLUDES && was_given(rule->other))
        fail(EXIT_USAGE, "--%s and --%s: %s; leave one out", rule->option, rule->other, rule->why);
    if (rule->relation == NEEDS && is_off(other) && !own_settings.demands.sweeps)
        warn("--%s has no effect without --%s", rule->option, rule->other);
}

/* A file's order is read once, and from then on its text stands for it: a run that goes on needs no file. */
void set_order(void)
{
    const char *words = find_option(&all_options, "pipeline")->argument;
    const char *because = *left_out ? "; this yard was built without" : "";
    own_settings.turn_order = turn_order_of(own_settings.pipeline);
    if (!own_settings.turn_order)
        fail(EXIT_USAGE, "--pipeline takes one of %s, not \"%.40s\"%s%s%s", words, own_settings.pipeline,
             is_folder(own_settings.pipeline) ? ", which is a folder" : "", because, left_out);
    if (own_settings.turn_order->written)
        own_settings.pipeline = own_settings.turn_order->written->text;
}

/* What the rules of the table cannot say, since it depends on values. */
static void check_own_settings(void)
{
    if (was_given("tokens"))
        check_tokens(own_settings.data.tokens);
    if (was_given("lr-min") && own_settings.schedule == RATE_CONSTANT)
        warn("--lr-min has no effect with --schedule constant");
    if (was_given("val-share") && was_given("val-data"))
        warn("--val-share has no effect with --val-data");
    if (was_given("val-every") && own_settings.data.val_share == 0 && !own_settings.data.val_data)
        warn("--val-every has no effect: --val-share 0 leaves nothing to validate on");
    if (own_settings.zero == 3 && !is_enabled("zero=3"))
        fail(EXIT_USAGE,
             "--zero 3 keeps parameters in shards, and nothing here gathers them: this yard was built without%s",
             left_out);
    if (own_settings.stop_after && !own_settings.save)
        fail(EXIT_USAGE, "--stop-after saves and stops: add --save DIR");
    if (own_settings.stop_after > own_settings.steps)
        fail(EXIT_USAGE, "--stop-after %d is beyond the last step, %d: raise --steps", own_settings.stop_after,
             own_settings.steps);
}

void check_together(void)
{
    for (size_t i = 0; i < n_modules; i++) {
        if (modules[i]->check)
            modules[i]->check();
        if (modules[i]->check_settings)
            modules[i]->check_settings(&own_settings);
    }
    for (size_t i = 0; i < COUNT(rules); i++)
        apply_rule(&rules[i]);
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_rules; k++)
            apply_rule(&modules[i]->rules[k]);
    check_own_settings();
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

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

/* settings.c - makes the settings of a command: from its words, its config file, and the run or model with which it
 * begins.
 *
 *     options of the resumed run  <  --config  <  command line        later ones win
 *
 * So the command line is parsed twice: first to find the run and the config file that it names, and again to set its
 * options after theirs.
 */
#include "archive.h"
#include "settings_parts.h"
#include "trainer/model_files/model_files.h"

static void reset_settings(const struct usage *usage)
{
    own_settings = (struct settings){.trains = usage->classes & OF_TRAIN, .demands.draw_seed = -1};
    if (all_options.n == 0)
        gather_options();
    mark_options(usage);
    reset_options(&all_options);
    begin_claims();
    if (usage->defaults)
        usage->defaults(&own_settings);
}

struct overruled {                     /* what the command line names and overrules */
    const char *config;                /* the config file; NULL: none */
    const struct resumed_run *resumed; /* NULL: no run is resumed */
};

/* Finds the config file and the resumed run that the command line names. */
static struct overruled read_overruled(const struct usage *usage, int argc, char **argv)
{
    struct overruled overruled = {0};
    int n_words;
    char **words = parse_options(&all_options, classes_of(usage), usage->name, argc, argv, &n_words);
    if (n_words && !usage->takes_file)
        refuse_word(usage, words[0]);
    free(words);
    overruled.config = own_settings.config;
    const struct archive *archive = find_archive();
    if (archive && (usage->classes & OF_TRAIN))
        overruled.resumed = archive->find_run();
    return overruled;
}

/* Sets the options that the config file has. */
static void apply_config(const struct usage *usage, const char *config)
{
    static char *text; /* options point into it */
    claim_input("--config", config);
    refuse_if_folder(config, "a text with lines `option = value`");
    if (is_json(config))
        fail(EXIT_USAGE,
             "%s is a JSON text, not lines `option = value`: the config.json of a model is read by --init FOLDER",
             config);
    text = read_text(config);
    parse_config(&all_options, classes_of(usage), config, text);
    const struct archive *archive = find_archive();
    const char *misplaced = NULL;
    if (was_given("config"))
        misplaced = "--config";
    if (archive && was_given(archive->option + strlen("--")))
        misplaced = archive->option;
    if (misplaced)
        fail(EXIT_USAGE, "%s: %s belongs on the command line, not into a config file", config, misplaced);
}

/* Sets all options: those of the run, then of the config file, then of the command line. */
static void set_options(const struct usage *usage, const struct overruled *overruled, int argc, char **argv)
{
    if (overruled->resumed)
        apply_recorded(overruled->resumed);
    if (overruled->config)
        apply_config(usage, overruled->config);
    char **words = parse_options(&all_options, classes_of(usage), usage->name, argc, argv, &own_settings.n_files);
    own_settings.file = words[0];
    free(words);
}

/* The sizes are those of the model that is read; what it leaves open is the preset's. */
static void choose_sizes(void)
{
    bool has_source = own_settings.source.path;
    if (has_source)
        adopt_sizes(&own_settings, own_settings.resumed && was_given("model"));
    apply_preset(&own_settings);
    if (has_source)
        own_settings.preset = -1; /* the sizes are those of no preset */
}

struct settings *parse_settings(const struct usage *usage, int argc, char **argv)
{
    reset_settings(usage);
    if (wants_help(argc, argv))
        end_with_help(usage);
    const struct overruled overruled = read_overruled(usage, argc, argv);
    reset_settings(usage); /* read_overruled() has set options */
    set_options(usage, &overruled, argc, argv);
    claim_files(usage); /* before any of them is read, so that no file is two things */
    set_order();
    check_together();
    if (overruled.resumed)
        own_settings.init = NULL;
    if (own_settings.init)
        open_init();
    choose_sizes();
    return &own_settings;
}

uint32_t last_step(const struct settings *settings)
{
    return (uint32_t)(settings->stop_after ? settings->stop_after : settings->steps);
}

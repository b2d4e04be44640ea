/* settings.c - the one table of options: parsing, --help, config file and the log's record follow from it.
 *
 *     options of the resumed run  <  --config  <  command line        later ones win
 */
#include "archive.h"
#include "settings_parts.h"
#include "trainer/base/json.h"
#include "trainer/import/import.h"

static struct option options[MOST_OPTIONS]; /* these and those of folders, group by group */
static const char *const takers[] = {       /* in the order of enum option_class */
                                     "`yard train`", "`yard sample`", "`yard train` and `yard plan`", "`yard plan`",
                                     NULL};
static struct option_table table = {.options = options, .takers = takers};

static void add_option(const struct option *option)
{
    CHECK(table.n < MOST_OPTIONS, "more than %d options", MOST_OPTIONS);
    CHECK(!find_option(&table, option->name), "two options are called --%s", option->name);
    options[table.n++] = *option;
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

static void gather_options(void)
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
            if (!find_option(&table, modules[i]->options[k].name)) /* its group is the folder's own */
                add_group(modules[i]->options[k].group);
    table.foreign = find_foreign_lookup();
}

/* The options that the page names one by one belong to the command at hand too. */
static void mark_options(const struct page *page)
{
    for (size_t i = 0; i < table.n; i++) {
        options[i].classes &= ~(unsigned)OF_THIS;
        if (has_word(page->also, options[i].name))
            options[i].classes |= OF_THIS;
    }
}

/* ---- what makes no sense, or not together ----------------------------------------------------------------------- */

static const struct option_rule rules[] = {
    {"vocab", "data", "the data bring their own vocabulary"},
    {"vocab", "init", "a model brings its own sizes"},
    {"save-every", "save", NULL},
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
    const struct option *other = find_option(&table, rule->other);
    if (!other || !was_given(rule->option))
        return;
    if (rule->why && was_given(rule->other))
        fail(EXIT_USAGE, "--%s and --%s: %s; leave one out", rule->option, rule->other, rule->why);
    if (!rule->why && is_off(other) && !own_settings.demands.sweeps)
        warn("--%s has no effect without --%s", rule->option, rule->other);
}

/* Is there a folder that gathers parameters? */
static bool can_gather(void)
{
    for (size_t i = 0; i < n_modules; i++)
        if (modules[i]->gathers)
            return true;
    return false;
}

/* A file's order is read once, and from then on its text stands for it: a run that goes on needs no file. */
static void set_order(void)
{
    const char *words = find_option(&table, "pipeline")->argument;
    const char *because = *left_out ? "; this yard was built without" : "";
    own_settings.turn_order = find_order(own_settings.pipeline);
    if (!own_settings.turn_order)
        fail(EXIT_USAGE, "--pipeline takes one of %s, not \"%.40s\"%s%s", words, own_settings.pipeline, because,
             left_out);
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
    if (own_settings.zero == 3 && !can_gather())
        fail(EXIT_USAGE,
             "--zero 3 keeps parameters in shards, and nothing here gathers them: this yard was built without%s",
             left_out);
    if (own_settings.stop_after && !own_settings.save)
        fail(EXIT_USAGE, "--stop-after saves and stops: add --save DIR");
    if (own_settings.stop_after > own_settings.steps)
        fail(EXIT_USAGE, "--stop-after %d is beyond the last step, %d: raise --steps", own_settings.stop_after,
             own_settings.steps);
}

static void check_together(void)
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

/* ---- recorded options ------------------------------------------------------------------------------------------- */

const struct page train_page = {
    .name = "train",
    .takes = "[options]",
    .examples = "--steps 300 --sample-tokens 200\n"
                "--data book.txt --save out --save-every 500 --log out.jsonl\n",
    .text = "Trains a GPT. Without options it is a small one, which learns stories, a built-in text. Begin with these: "
            "--data (your text), --model (its size), --steps, -d (the device), --log, --save (to keep the model).",
    .classes = OF_TRAIN | OF_LIST | OF_RUN,
    .files = "--data FILE; for several files a quoted pattern, such as --data 'folder/*.txt'",
};

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
    if (!(option->classes & train_page.classes) || is_unrecorded(option->name))
        return false;
    return choice_number(groups, option->group) >= 0 || strcmp(option->name, "seq-len") == 0;
}

json_t *options_json(enum options_wanted wanted)
{
    const bool recorded = wanted == RECORDED_OPTIONS;
    json_t *all = json_object();
    for (size_t i = 0; i < table.n; i++) {
        const struct option *option = &options[i];
        char *text = option_text(option);
        bool is_number = option->type < OPT_TEXT && !recorded;
        bool is_wanted = option->classes & train_page.classes;
        if (recorded)
            is_wanted = is_recorded(option) && *text;
        if (is_wanted)
            json_object_set_new(all, option->name,
                                is_number ? json_loads(text, JSON_DECODE_ANY, NULL) : text_json(text));
        free(text);
    }
    return all;
}

/* Takes over the options of the resumed run.  They do not count as given. */
static void apply_recorded(const struct resumed_run *past)
{
    const char *name;
    json_t *value;
    own_settings.resumed = past;
    own_settings.source = past->source;
    json_object_foreach(past->options, name, value)
    {
        const struct option *option = find_option(&table, name);
        char *where = format_string("%s: option %s", past->options_in, name);
        if (option && is_recorded(option)) {
            set_option(&table, option, where, json_string_value(value));
            table.given[option - options] = false;
        } else if (strcmp(name, "mesh") != 0) {
            warn("%s is unknown to this program, and left out", where);
        }
        free(where);
    }
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

static unsigned classes_of(const struct page *page) { return page->classes | OF_THIS; }

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

/* Claims the files that options name, before any is opened for writing.  Files in folders are claimed where the folders
 * are listed. */
static void claim_files(const struct page *page)
{
    for (size_t i = 0; i < table.n; i++)
        if (options[i].type >= OPT_INPUT && (options[i].classes & classes_of(page)))
            claim_file(&options[i]);
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

static void reset_settings(const struct page *page)
{
    own_settings = (struct settings){.trains = page->classes & OF_TRAIN, .demands.draw_seed = -1};
    if (table.n == 0)
        gather_options();
    mark_options(page);
    reset_options(&table);
    begin_claims();
    if (page->defaults)
        page->defaults(&own_settings);
}

static void print_page(const struct page *page)
{
    apply_preset(&own_settings);
    print_usage(stdout, page->name, page->takes, page->examples, page->text);
    print_options(stdout, &table, classes_of(page));
    if (page->classes & OF_LIST)
        printf("\nA config file holds lines `option = value`.\n"
               "Precedence: --model's sizes, --config, command line.\n");
    flush_output();
}

/* Refuses a word that is not an option, where the command takes none. */
static _Noreturn void refuse_word(const struct page *page, const char *word)
{
    char *known = strchr(word, '=') ? find_foreign(&table, classes_of(page), word, "--") : NULL;
    if (known)
        fail(EXIT_USAGE, "\"%s\" is not an option: options start with --; %s", word, known);
    if (page->files && exists(word))
        fail(EXIT_USAGE, "\"%s\" is a file that no option takes: write %s", word, page->files);
    if (page->files && strpbrk(word, "./"))
        fail(EXIT_USAGE, "\"%s\" is not an option, and no such file is here; write %s", word, page->files);
    fail(EXIT_USAGE, "\"%s\" is not an option: options start with --; `yard %s --help` lists them", word, page->name);
}

static void apply_config(const struct page *page, const char *config)
{
    static char *text; /* options point into it */
    claim_input("--config", config);
    refuse_folder(config, "a text with lines `option = value`");
    if (is_json(config))
        fail(EXIT_USAGE,
             "%s is a JSON text, not lines `option = value`: the config.json of a model is read by --init FOLDER",
             config);
    text = read_text(config);
    parse_config(&table, classes_of(page), config, text);
    const struct archive *archive = find_archive();
    const char *misplaced = NULL;
    if (was_given("config"))
        misplaced = "--config";
    if (archive && was_given(archive->option + strlen("--")))
        misplaced = archive->option;
    if (misplaced)
        fail(EXIT_USAGE, "%s: %s belongs on the command line, not into a config file", config, misplaced);
}

/* Opens the model of --init. */
static void open_init(void)
{
    own_settings.source = open_source(own_settings.init, own_settings.heads);
    if (strcmp(own_settings.source.path, own_settings.init) != 0) /* a folder's model */
        claim_input("--init", own_settings.source.path);
    if (!own_settings.source.checkpoint)
        claim_weights("--init", own_settings.source.path);
}

struct past {                          /* what the command line overrules, so that its options are set before */
    const char *config;                /* the config file; NULL: none */
    const struct resumed_run *resumed; /* NULL: no run is resumed */
};

/* The first of two looks at the command line: finds the config file and the resumed run. */
static struct past find_past(const struct page *page, int argc, char **argv)
{
    struct past past = {0};
    int n_words;
    char **words = parse_options(&table, classes_of(page), page->name, argc, argv, &n_words);
    if (n_words && !page->takes_word)
        refuse_word(page, words[0]);
    free(words);
    past.config = own_settings.config;
    const struct archive *archive = find_archive();
    if (archive && (page->classes & OF_TRAIN))
        past.resumed = archive->find_run();
    return past;
}

/* Sets all options: those of the run, then of the config file, then of the command line. */
static void set_options(const struct page *page, const struct past *past, int argc, char **argv)
{
    if (past->resumed)
        apply_recorded(past->resumed);
    if (past->config)
        apply_config(page, past->config);
    char **words = parse_options(&table, classes_of(page), page->name, argc, argv, &own_settings.n_words);
    own_settings.word = words[0];
    free(words);
}

/* The sizes are those of the model that is read; what it leaves open is the preset's. */
static void choose_sizes(void)
{
    const bool has_source = own_settings.source.path;
    if (has_source)
        adopt_sizes(&own_settings, own_settings.resumed && was_given("model"));
    apply_preset(&own_settings);
    if (has_source)
        own_settings.preset = -1; /* the sizes are those of no preset */
}

struct settings *parse_settings(const struct page *page, int argc, char **argv)
{
    reset_settings(page);
    if (wants_help(argc, argv)) {
        print_page(page);
        exit(EXIT_OK);
    }
    const struct past past = find_past(page, argc, argv);
    reset_settings(page);
    set_options(page, &past, argc, argv);
    claim_files(page); /* before any of them is read, so that no file is two things */
    set_order();
    check_together();
    if (past.resumed)
        own_settings.init = NULL;
    if (own_settings.init)
        open_init();
    choose_sizes();
    return &own_settings;
}

/* ---- for others ------------------------------------------------------------------------------------------------- */

bool was_given(const char *option)
{
    const struct option *known = find_option(&table, option);
    return known && table.given[known - options];
}

const struct option *next_given(const struct option *before)
{
    for (const struct option *option = before ? before + 1 : options; option < options + table.n; option++)
        if (table.given[option - options])
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

int given_heads(void) { return was_given("heads") ? own_settings.heads : 0; }

void expect_heads(const struct config *config, const char *path)
{
    int given = given_heads();
    if (given && given != config->heads)
        fail(EXIT_USAGE, "%s has %d heads, not %d: leave --heads out", path, config->heads, given);
}

const char *word_of(const char *option, int number) { return choice_words(find_option(&table, option))[number]; }

struct value_before try_option(const char *option, const char *text)
{
    const struct option *known = find_option(&table, option);
    CHECK(known, "there is no option --%s", option);
    return try_value(known, text);
}

uint32_t last_step(const struct settings *settings)
{
    return (uint32_t)(settings->stop_after ? settings->stop_after : settings->steps);
}

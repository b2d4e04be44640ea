/* options.c - reads options from the command line and from config files, by one table.  options_help.c prints it. */
#include "base.h"
#include "module.h"

#include <ctype.h>
#include <float.h>
#include <math.h>

const struct option *find_option(const struct option_table *table, const char *name)
{
    for (size_t i = 0; i < table->n; i++)
        if (strcmp(table->options[i].name, name) == 0)
            return &table->options[i];
    return NULL;
}

bool option_given(const struct option_table *table, const char *name)
{
    const struct option *option = find_option(table, name);
    CHECK(option, "there is no option --%s", name);
    return table->given[option - table->options];
}

/* ---- words that are no options ----------------------------------------------------------------------------------- */

char *explain_foreign(const struct option_table *table, unsigned command, const char *typed, const char *dashes)
{
    if (!table->foreign)
        return NULL;
    return table->foreign->find(table, command, typed, dashes);
}

/* The name of the command's option that was probably meant; NULL: none is near. */
static const char *nearest_option(const struct option_table *table, unsigned command, const char *typed)
{
    const char **names = allocate(table->n + 1, sizeof *names);
    size_t n = 0;
    for (const struct option *option = table->options; option < table->options + table->n; option++)
        if (option->classes & command)
            names[n++] = option->name;
    const char *nearest = nearest_word(typed, names, n);
    free(names);
    return nearest;
}

/* What to say about an unknown option, such as "did you mean --batch?"; `otherwise` when nothing better is known.  The
 * caller frees it. */
static char *suggestion(const struct option_table *table, unsigned command, const char *typed, const char *dashes,
                        const char *otherwise)
{
    if (is_left_out(typed))
        return format_string("this yard was built without%s", left_out);
    char *known = explain_foreign(table, command, typed, dashes);
    if (known)
        return known;
    const char *nearest = nearest_option(table, command, typed);
    if (nearest)
        return format_string("did you mean %s%s?", dashes, nearest);
    return copy_string(otherwise);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

int choice_number(const char *const *words, const char *word)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

const char *const *choice_words(const struct option *option) { return option->argument; }

bool is_output(const struct option *option) { return option->type == OPT_OUTPUT || option->type == OPT_KEPT; }

char *argument_name(const struct option *option)
{
    if (option->type != OPT_CHOICE)
        return copy_string(option->argument ? option->argument : "VALUE");
    char *text = copy_string("");
    for (const char *const *word = choice_words(option); *word; word++)
        append_text(&text, word == choice_words(option) ? "%s" : "|%s", *word);
    return text;
}

/* May the option have this value?  A float must not be tiny: below FLT_MIN some devices compute with 0 instead, below
 * 1e-45 all do, and then --eps would divide by 0 and --clip would do nothing. */
static bool takes(const struct option *option, double value)
{
    bool tiny = value != 0 && fabs(value) < (double)FLT_MIN;
    if (option->type == OPT_FLOAT && tiny)
        return false;
    bool any = option->low == 0 && option->high == 0;
    return any || (value >= option->low && value <= option->high);
}

/* ---- types: how the text of a value becomes the option's variable, and back -------------------------------------- */

/* Functions store_*(): parse the text into the option's variable; false: it is no such value, or out of range. */

static bool store_flag(const struct option *option, const char *text)
{
    bool is_true = strcmp(text, "true") == 0;
    *(bool *)option->value = is_true;
    return is_true || strcmp(text, "false") == 0;
}

static bool store_int(const struct option *option, const char *text)
{
    int64_t number = 0;
    if (!parse_int(text, &number) || !takes(option, (double)number))
        return false;
    *(int *)option->value = (int)number;
    return true;
}

static bool store_long(const struct option *option, const char *text)
{
    int64_t number = 0;
    if (!parse_int(text, &number) || !takes(option, (double)number))
        return false;
    *(int64_t *)option->value = number;
    return true;
}

static bool store_double(const struct option *option, const char *text)
{
    double number = 0;
    if (!parse_double(text, &number) || !takes(option, number))
        return false;
    *(double *)option->value = number;
    return true;
}

static bool store_bytes(const struct option *option, const char *text)
{
    return parse_bytes(text, option->value) && takes(option, (double)*(size_t *)option->value);
}

static bool store_choice(const struct option *option, const char *text)
{
    *(int *)option->value = choice_number(choice_words(option), text);
    return *(int *)option->value >= 0;
}

/* The variable points to the text, which must therefore outlive the table. */
static bool store_text(const struct option *option, const char *text)
{
    *(const char **)option->value = text;
    return true;
}

static bool store_path(const struct option *option, const char *text)
{
    *(const char **)option->value = text;
    return *text != '\0';
}

/* Functions spell_*(): the variable as text; the caller frees it. */

static char *spell_flag(const struct option *option)
{
    return copy_string(*(const bool *)option->value ? "true" : "false");
}

static char *spell_int(const struct option *option) { return format_string("%d", *(const int *)option->value); }

static char *spell_long(const struct option *option)
{
    return format_string("%lld", (long long)*(const int64_t *)option->value);
}

static char *spell_double(const struct option *option)
{
    char number[NUMBER_TEXT];
    return copy_string(format_exactly(number, *(const double *)option->value));
}

static char *spell_bytes(const struct option *option) { return format_string("%zu", *(const size_t *)option->value); }

static char *spell_choice(const struct option *option)
{
    int choice = *(const int *)option->value;
    return copy_string(choice < 0 ? "" : choice_words(option)[choice]);
}

static char *spell_text(const struct option *option)
{
    const char *text = *(char *const *)option->value;
    return copy_string(text ? text : "");
}

struct type {
    size_t bytes;         /* the size of the option's variable */
    const char *expected; /* what its values are, in a sentence; NULL: the option's `argument` says it */
    bool (*store)(const struct option *option, const char *text);
    char *(*spell)(const struct option *option);
};
static const struct type types[] = {
    [OPT_FLAG] = {.bytes = sizeof(bool), .expected = "true or false", .store = store_flag, .spell = spell_flag},
    [OPT_INT] = {.bytes = sizeof(int), .expected = "a whole number", .store = store_int, .spell = spell_int},
    [OPT_LONG] = {.bytes = sizeof(int64_t), .expected = "a whole number", .store = store_long, .spell = spell_long},
    [OPT_DOUBLE] = {.bytes = sizeof(double), .expected = "a number", .store = store_double, .spell = spell_double},
    [OPT_FLOAT] = {.bytes = sizeof(double), .expected = "a number", .store = store_double, .spell = spell_double},
    [OPT_BYTES] = {.bytes = sizeof(size_t),
                   .expected = "a number of bytes with an optional K, M or G, such as 512M",
                   .store = store_bytes,
                   .spell = spell_bytes},
    [OPT_TEXT] = {.bytes = sizeof(char *), .expected = NULL, .store = store_text, .spell = spell_text},
    [OPT_CHOICE] = {.bytes = sizeof(int), .expected = NULL, .store = store_choice, .spell = spell_choice},
    [OPT_INPUT] = {.bytes = sizeof(char *), .expected = "a path", .store = store_path, .spell = spell_text},
    [OPT_INPUTS] = {.bytes = sizeof(char *), .expected = "a path", .store = store_path, .spell = spell_text},
    [OPT_OUTPUT] = {.bytes = sizeof(char *), .expected = "a path", .store = store_path, .spell = spell_text},
    [OPT_KEPT] = {.bytes = sizeof(char *), .expected = "a path", .store = store_path, .spell = spell_text},
};

/* The middle of a sentence that says which values the option takes.  The caller frees it. */
static char *expectation(const struct option *option)
{
    const char *expected = types[option->type].expected;
    if (option->type == OPT_TEXT)
        return argument_name(option);
    if (option->type == OPT_CHOICE)
        return format_string("one of %s", argument_name(option));
    if (option->low == 0 && option->high == 0)
        return copy_string(expected);
    return format_string("%s from %.10g to %.10g", expected, option->low, option->high);
}

/* Is the text a number that is too small for a 32-bit float, but not 0? */
static bool is_tiny(const struct option *option, const char *text)
{
    double number;
    return option->type == OPT_FLOAT && parse_double(text, &number) && number > 0 && number < FLT_MIN;
}

/* ---- setting options --------------------------------------------------------------------------------------------- */

void set_option(struct option_table *table, const struct option *option, const char *where, const char *text)
{
    if (!types[option->type].store(option, text))
        fail(EXIT_USAGE, "%s takes %s%s, not \"%s\"", where, expectation(option),
             option->low <= 0 && is_tiny(option, text) ? " (0, or at least 1.2e-38)" : "", text);
    table->given[option - table->options] = true;
}

/* Gives the option a value that is ours, not the user's; NULL: 0, false or NULL. */
static void store_own(const struct option *option, const char *text)
{
    memset(option->value, 0, types[option->type].bytes);
    if (!text)
        return;
    bool taken = types[option->type].store(option, text);
    CHECK(taken, "--%s does not take \"%s\"", option->name, text);
}

void reset_options(struct option_table *table)
{
    CHECK(table->n <= MOST_OPTIONS, "%zu options, room for %d", table->n, MOST_OPTIONS);
    memset(table->given, 0, sizeof table->given);
    for (const struct option *option = table->options; option < table->options + table->n; option++)
        store_own(option, option->initial);
}

struct value_before try_value(const struct option *option, const char *text)
{
    struct value_before before = {.option = option};
    memcpy(before.bytes, option->value, types[option->type].bytes);
    store_own(option, text ? text : option->initial);
    return before;
}

void restore_value(const struct value_before *before)
{
    memcpy(before->option->value, before->bytes, types[before->option->type].bytes);
}

char *option_text(const struct option *option) { return types[option->type].spell(option); }

/* ---- command line ------------------------------------------------------------------------------------------------ */

bool wants_help(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "help") == 0)
        return true;
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

/* The option that "--batch" or "-d" names, which `where` is; NULL: there is none. */
static const struct option *find_typed(const struct option_table *table, const char *where)
{
    bool is_long = where[1] == '-';
    if (is_long)
        return find_option(table, where + 2);
    if (!where[1] || where[2])
        return NULL; /* not a single letter */
    for (size_t i = 0; i < table->n; i++)
        if (table->options[i].letter == where[1])
            return &table->options[i];
    return NULL;
}

const char *taker_of(const struct option_table *table, const struct option *option)
{
    for (unsigned bit = 0; table->takers && table->takers[bit]; bit++)
        if (option->classes & (1u << bit))
            return table->takers[bit];
    return "another command";
}

/* Ends the program unless there is such an option and the command takes it.  word: as typed, "--batch=8"; where: the
 * same without the value. */
static void expect_taken(const struct option_table *table, unsigned command, const char *command_name,
                         const struct option *option, const char *word, const char *where)
{
    const char *name = where + (where[1] == '-' ? 2 : 1);
    if (!option) {
        char *otherwise = format_string("`yard %s --help` lists all options", command_name);
        fail(EXIT_USAGE, "unknown option %s; %s", word, suggestion(table, command, name, "--", otherwise));
    }
    if (option->classes & command)
        return;
    char *known = explain_foreign(table, command, name, "--");
    if (known)
        fail(EXIT_USAGE, "unknown option %s; %s", word, known);
    fail(EXIT_USAGE, "--%s is an option of %s, not of `yard %s`, whose options `yard %s --help` lists", option->name,
         taker_of(table, option), command_name, command_name);
}

struct typed { /* a command line that is being read */
    char **argv;
    int argc, at; /* argv[at] is the word that is read */
    bool *seen;   /* by option: an earlier word names it */
};

/* The value of the option that argv[at] names: after its '=', or in the next word, to which `at` then moves. */
static const char *typed_value(const struct option *option, const char *where, struct typed *typed)
{
    const char *equals = strchr(typed->argv[typed->at], '=');
    if (option->type == OPT_FLAG) {
        if (equals)
            fail(EXIT_USAGE, "%s is a switch and takes no value, but \"%s\" was given", where, equals + 1);
        return "true";
    }
    if (equals)
        return equals + 1;
    if (typed->at + 1 < typed->argc && !begins_with(typed->argv[typed->at + 1], "--")) {
        typed->at++;
        return typed->argv[typed->at];
    }
    fail(EXIT_USAGE, "%s needs a value: %s; one that starts with -- is written --%s=VALUE", where, expectation(option),
         option->name);
}

/* Sets the option that argv[at] names. */
static void take_option(struct option_table *table, unsigned command, const char *command_name, struct typed *typed)
{
    const char *word = typed->argv[typed->at];
    char *where = format_string("%.*s", (int)strcspn(word, "="), word);
    const struct option *option = find_typed(table, where);
    expect_taken(table, command, command_name, option, word, where);
    const char *value = typed_value(option, where, typed);
    bool *twice = &typed->seen[option - table->options];
    if (*twice && option->type == OPT_INPUTS) /* any other option may be repeated, and its last value counts */
        fail(EXIT_USAGE,
             "%s is given twice, and takes one path: leave one out; for several files give their folder, or a "
             "quoted pattern",
             where);
    *twice = true;
    set_option(table, option, where, value);
    free(where);
}

char **parse_options(struct option_table *table, unsigned command, const char *command_name, int argc, char **argv,
                     int *n_words)
{
    char **words = allocate_each(argc + 1, sizeof *words); /* ends with NULL, as argv does */
    *n_words = 0;
    bool only_words = false; /* true after a lone "--" */
    struct typed typed = {.argv = argv, .argc = argc, .seen = allocate(table->n, sizeof *typed.seen)};
    for (; typed.at < argc; typed.at++) {
        char *word = argv[typed.at];
        if (only_words || word[0] != '-' || word[1] == '\0') {
            words[*n_words] = word;
            (*n_words)++;
        } else if (strcmp(word, "--") == 0) {
            only_words = true;
        } else {
            take_option(table, command, command_name, &typed);
        }
    }
    free(typed.seen);
    return words;
}

/* ---- config file ------------------------------------------------------------------------------------------------- */

/* Is text[i] the first character, or does it follow white space? */
static bool begins_word(const char *text, size_t i) { return i == 0 || isspace((unsigned char)text[i - 1]); }

static void cut_comment(char *line)
{
    for (size_t i = 0; line[i]; i++)
        if (line[i] == '#' && begins_word(line, i)) {
            line[i] = '\0';
            return;
        }
}

/* The '=' between name and value; NULL: there is none.  The text does not begin with white space. */
static char *find_equals(char *text)
{
    char *first = strchr(text, '=');
    for (char *equals = first; equals; equals = strchr(equals + 1, '='))
        if (equals > text && isspace((unsigned char)equals[-1]))
            return equals;
    return first;
}

bool next_setting(struct settings_text *lines)
{
    while (lines->unread) {
        char *line = strsep(&lines->unread, "\n");
        lines->number++;
        cut_comment(line);
        lines->name = trim_text(line);
        if (!*lines->name)
            continue;
        char *equals = find_equals(lines->name);
        if (!equals)
            fail(EXIT_USAGE, "%s, line %d: expected `name = value`, found \"%.60s\"", lines->path, lines->number,
                 lines->name);
        *equals = '\0';
        lines->value = trim_text(equals + 1);
        trim_text(lines->name);
        return true;
    }
    return false;
}

void parse_config(struct option_table *table, unsigned command, const char *path, char *text)
{
    struct settings_text lines = {.path = path, .unread = text};
    while (next_setting(&lines)) {
        const char *name = lines.name;
        const struct option *option = find_option(table, name);
        if (!option)
            fail(EXIT_USAGE, "%s, line %d: unknown option \"%s\"; %s", path, lines.number, name,
                 suggestion(table, command, name, "", "the names are those of the command line, without dashes"));
        if (!(option->classes & command)) /* an option of another command: one file may serve train, plan and sample */
            continue;
        char *where = format_string("%s, line %d: %s", path, lines.number, name);
        set_option(table, option, where, lines.value);
        free(where);
    }
}

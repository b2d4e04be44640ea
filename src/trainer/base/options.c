/* options.c - one table of options: command line, config file, help and the record in the log. */
#include "base.h"
#include "module.h"

#include <ctype.h>
#include <float.h>
#include <math.h>

enum { HELP_WIDTH = 100, HELP_COLUMN = 30 };

const struct option *find_option(const struct option_table *table, const char *name)
{
    for (size_t i = 0; i < table->n; i++)
        if (strcmp(table->options[i].name, name) == 0)
            return &table->options[i];
    return NULL;
}

bool option_given(const struct option_table *table, const char *name)
{
    return table->given[find_option(table, name) - table->options];
}

/* ---- words that are no options ---------------------------------------------------------------------------------- */

bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words ? strstr(words, word) : NULL; n && at; at = strstr(at + 1, word))
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

char *known_elsewhere(const struct option_table *table, unsigned command, const char *typed, const char *dashes)
{
    return table->others ? table->others->known(table, command, typed, dashes) : NULL;
}

bool is_left_out(const char *typed)
{
    char *folder = format_string("%.*s", (int)strcspn(typed, "-:"), typed);
    bool yes = has_word(left_out, folder);
    free(folder);
    return yes;
}

/* "did you mean --batch?": the option of this command whose name is nearest to what was typed; or what is said where
 * none is near. */
static char *suggestion(const struct option_table *table, unsigned command, const char *typed, const char *dashes,
                        const char *otherwise)
{
    if (is_left_out(typed))
        return format_string("this yard was built without%s", left_out);
    char *known = known_elsewhere(table, command, typed, dashes);
    if (known)
        return known;
    const char *nearest = NULL;
    int least = 1 + (int)strlen(typed) / 3; /* more typing errors than that and the guess would only confuse */
    for (const struct option *o = table->options; o < table->options + table->n; o++) {
        int distance = edit_distance(typed, o->name);
        if ((o->commands & command) && (distance < least || (distance == least && !nearest))) {
            least = distance;
            nearest = o->name;
        }
    }
    return nearest ? format_string("did you mean %s%s?", dashes, nearest) : copy_string(otherwise);
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

int choice_number(const char *const *words, const char *word)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

const char *const *choice_words(const struct option *o) { return o->argument; }

bool is_output(const struct option *o) { return o->type == OPT_OUTPUT || o->type == OPT_KEPT; }

/* "a|b|c" of a choice, else the value's name.  The caller frees it. */
static char *argument_name(const struct option *o)
{
    if (o->type != OPT_CHOICE)
        return copy_string(o->argument ? o->argument : "VALUE");
    char *text = copy_string("");
    for (const char *const *word = choice_words(o); *word; word++)
        append_text(&text, word == choice_words(o) ? "%s" : "|%s", *word);
    return text;
}

/* Floats below the smallest are 0 on some devices, and all below 1e-45 are: then an eps divides by 0, and a clip is
 * none. */
static bool takes(const struct option *o, double value)
{
    bool any = o->low == 0 && o->high == 0, tiny = value != 0 && fabs(value) < (double)FLT_MIN;
    return (any || (value >= o->low && value <= o->high)) && !(o->type == OPT_FLOAT && tiny);
}

/* What the option takes, as the middle of a sentence.  The caller frees it. */
static char *expectation(const struct option *o)
{
    static const char *const kinds[] = {
        [OPT_FLAG] = "true or false",  [OPT_INT] = "a whole number",
        [OPT_LONG] = "a whole number", [OPT_DOUBLE] = "a number",
        [OPT_FLOAT] = "a number",      [OPT_BYTES] = "a number of bytes with an optional K, M or G, such as 512M",
        [OPT_INPUT] = "a path",        [OPT_INPUTS] = "a path",
        [OPT_OUTPUT] = "a path",       [OPT_KEPT] = "a path"};
    const char *not_tiny = o->type == OPT_FLOAT && o->low <= 0 ? " (as a 32-bit float: 0, or at least 1.2e-38)" : "";
    if (o->type == OPT_CHOICE || o->type == OPT_TEXT)
        return format_string(o->type == OPT_CHOICE ? "one of %s" : "%s", argument_name(o));
    if (o->low == 0 && o->high == 0)
        return copy_string(kinds[o->type]);
    return format_string("%s from %.10g to %.10g%s", kinds[o->type], o->low, o->high, not_tiny);
}

/* Parse into the variable; false when the text is not such a value or out of range.  Texts are kept as pointers: they
 * must outlive the table. */
static bool store_value(const struct option *o, const char *text)
{
    int64_t whole = 0;
    double number = 0;
    switch (o->type) {
    case OPT_FLAG:
        *(bool *)o->value = strcmp(text, "true") == 0;
        return *(bool *)o->value || strcmp(text, "false") == 0;
    case OPT_INT:
    case OPT_LONG:
        if (!parse_int(text, &whole) || !takes(o, (double)whole))
            return false;
        if (o->type == OPT_INT)
            *(int *)o->value = (int)whole;
        else
            *(int64_t *)o->value = whole;
        return true;
    case OPT_DOUBLE:
    case OPT_FLOAT:
        if (!parse_double(text, &number) || !takes(o, number))
            return false;
        *(double *)o->value = number;
        return true;
    case OPT_BYTES:
        return parse_bytes(text, o->value) && takes(o, (double)*(size_t *)o->value);
    case OPT_CHOICE:
        *(int *)o->value = choice_number(choice_words(o), text);
        return *(int *)o->value >= 0;
    default:
        *(const char **)o->value = text;
        return *text || o->type == OPT_TEXT;
    }
}

/* `where` names the option as the user wrote it: "--batch", or "run.conf, line 3: batch". */
void set_option(struct option_table *table, const struct option *o, const char *where, const char *text)
{
    if (!store_value(o, text))
        fail(EXIT_USAGE, "%s takes %s, not \"%s\"", where, expectation(o), text);
    table->given[o - table->options] = true;
}

/* What an option is that nobody gives, and that begins with nothing. */
static void clear_value(const struct option *o)
{
    switch (o->type) {
    case OPT_FLAG:
        *(bool *)o->value = false;
        break;
    case OPT_INT:
    case OPT_CHOICE:
        *(int *)o->value = 0;
        break;
    case OPT_LONG:
        *(int64_t *)o->value = 0;
        break;
    case OPT_DOUBLE:
    case OPT_FLOAT:
        *(double *)o->value = 0;
        break;
    case OPT_BYTES:
        *(size_t *)o->value = 0;
        break;
    default:
        *(const char **)o->value = NULL;
    }
}

void reset_options(struct option_table *table)
{
    CHECK(table->n <= MOST_OPTIONS, "%zu options, room for %d", table->n, MOST_OPTIONS);
    memset(table->given, 0, sizeof table->given);
    for (const struct option *o = table->options; o < table->options + table->n; o++)
        clear_value(o);
    for (const struct option *o = table->options; o < table->options + table->n; o++)
        CHECK(!o->initial || store_value(o, o->initial), "--%s begins with \"%s\"", o->name, o->initial);
}

char *option_text(const struct option *o)
{
    switch (o->type) {
    case OPT_FLAG:
        return copy_string(*(const bool *)o->value ? "true" : "false");
    case OPT_INT:
        return format_string("%d", *(const int *)o->value);
    case OPT_LONG:
        return format_string("%lld", (long long)*(const int64_t *)o->value);
    case OPT_CHOICE:
        return copy_string(*(const int *)o->value < 0 ? "" : choice_words(o)[*(const int *)o->value]);
    case OPT_DOUBLE:
    case OPT_FLOAT:
        return copy_string(format_exactly((char[32]){0}, *(const double *)o->value));
    case OPT_BYTES:
        return format_string("%zu", *(const size_t *)o->value);
    default:
        return copy_string(*(char *const *)o->value ? *(char *const *)o->value : "");
    }
}

/* ---- command line ---------------------------------------------------------------------------------------------- */

bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

void parse_options(struct option_table *table, unsigned command, const char *command_name, int argc, char **argv,
                   char ***words, int *n_words)
{
    *words = allocate((size_t)argc + 1, sizeof **words); /* ends with NULL, as argv does */
    *n_words = 0;
    bool only_words = false; /* after a lone "--" */
    bool *seen = allocate(table->n, sizeof *seen);
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *equals = strchr(word, '='), *value = equals ? equals + 1 : NULL;
        const bool is_long = word[0] == '-' && word[1] == '-';
        if (only_words || word[0] != '-' || word[1] == '\0') {
            (*words)[(*n_words)++] = argv[i];
            continue;
        }
        if (strcmp(word, "--") == 0) {
            only_words = true;
            continue;
        }
        char *where = format_string("%.*s", (int)strcspn(word, "="), word), *name = where + (is_long ? 2 : 1);
        const struct option *o = is_long ? find_option(table, name) : NULL; /* "--batch", "--batch=8" or "-d" */
        for (size_t k = 0; k < table->n && !is_long && name[0] && !name[1]; k++)
            if (table->options[k].letter == name[0])
                o = &table->options[k];
        if (!o)
            fail(EXIT_USAGE, "unknown option %s; %s", word,
                 suggestion(table, command, name, "--",
                            format_string("'yard %s --help' lists all options", command_name)));
        char *known = o->commands & command ? NULL : known_elsewhere(table, command, name, "--");
        if (known)
            fail(EXIT_USAGE, "unknown option %s; %s", word, known);
        if (!(o->commands & command))
            fail(EXIT_USAGE,
                 "--%s is an option of another command, not of 'yard %s'; 'yard %s --help' lists its options", o->name,
                 command_name, command_name);
        if (o->type == OPT_FLAG && value)
            fail(EXIT_USAGE, "%s is a switch and takes no value, but \"%s\" was given", where, value);
        if (o->type != OPT_FLAG && !value && i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0)
            value = argv[++i];
        if (o->type != OPT_FLAG && !value)
            fail(EXIT_USAGE, "%s needs a value: %s (a value that starts with -- is written --%s=VALUE)", where,
                 expectation(o), o->name);
        bool *twice = &seen[o - table->options];
        if (*twice && o->type == OPT_INPUTS) /* of others the last one counts */
            fail(EXIT_USAGE,
                 "%s is given twice, and takes one path: leave one out; for several files give their folder, or a "
                 "quoted pattern",
                 where);
        *twice = true;
        set_option(table, o, where, value ? value : "true");
        free(where);
    }
    free(seen);
}

/* ---- config file ----------------------------------------------------------------------------------------------- */

bool next_setting(struct settings_text *t)
{
    for (char *line; (line = strsep(&t->rest, "\n"));) {
        t->number++;
        for (char *c = line; *c; c++)
            if (*c == '#' && (c == line || isspace((unsigned char)c[-1]))) {
                *c = '\0';
                break;
            }
        t->name = trim(line);
        if (!*t->name)
            continue;
        char *equals = strchr(t->name, '=');
        for (char *c = equals; c; c = strchr(c + 1, '='))
            if (c > t->name && isspace((unsigned char)c[-1])) {
                equals = c;
                break;
            }
        if (!equals)
            fail(EXIT_USAGE, "%s, line %d: expected 'name = value', found \"%.60s\"", t->path, t->number, t->name);
        *equals = '\0';
        t->value = trim(equals + 1);
        trim(t->name);
        return true;
    }
    return false;
}

void parse_config(struct option_table *table, unsigned command, const char *path, char *text)
{
    struct settings_text lines = {.path = path, .rest = text};
    while (next_setting(&lines)) {
        const char *name = lines.name;
        const struct option *o = find_option(table, name);
        if (!o)
            fail(EXIT_USAGE, "%s, line %d: unknown option \"%s\"; %s", path, lines.number, name,
                 suggestion(table, command, name, "", "the names are those of the command line, without dashes"));
        if (!(o->commands & command)) /* one file may serve train, plan and sample */
            continue;
        char *where = format_string("%s, line %d: %s", path, lines.number, name);
        set_option(table, o, where, lines.value);
        free(where);
    }
}

/* ---- help ------------------------------------------------------------------------------------------------------ */

void print_wrapped(FILE *out, const char *text, int at)
{
    for (const char *word = text; *word;) {
        int n = (int)strcspn(word, " ");
        if (at > HELP_COLUMN && at + 1 + n > HELP_WIDTH) {
            fputc('\n', out);
            at = 0;
        }
        int spaces = at < HELP_COLUMN ? HELP_COLUMN - at : at > HELP_COLUMN;
        at += fprintf(out, "%*s%.*s", spaces, "", n, word);
        word += n;
        word += strspn(word, " ");
    }
    fputc('\n', out);
}

static void print_option(FILE *out, const struct option *o)
{
    char *argument = argument_name(o);
    int at = o->letter ? fprintf(out, "  -%c, --%s", o->letter, o->name) : fprintf(out, "  --%s", o->name);
    if (o->type != OPT_FLAG)
        at += fprintf(out, " %s", argument);
    if (at + 2 > HELP_COLUMN) {
        fputc('\n', out);
        at = 0;
    }
    bool outside = o->type == OPT_INT && *(const int *)o->value < o->low;
    char *value = o->type == OPT_FLAG || outside ? copy_string("") : option_text(o); /* outside: it stands for none */
    bool told = strstr(o->help, "(default") || !*value || *value == '\n';
    char *help = told ? copy_string(o->help) : format_string("%s [%s]", o->help, value);
    print_wrapped(out, help, at);
    free(argument), free(help), free(value);
}

/* Options of a group stand together. */
void print_options(FILE *out, const struct option_table *table, unsigned command)
{
    const char *group = "";
    for (const struct option *o = table->options; o < table->options + table->n; o++) {
        if (!(o->commands & command))
            continue;
        if (strcmp(o->group, group) != 0)
            fprintf(out, "\n%s:\n", o->group);
        group = o->group;
        print_option(out, o);
    }
    fprintf(out, "\n%-*sprint this\n", HELP_COLUMN, "  -h, --help");
    if (table->others)
        table->others->print(out, table, command);
}

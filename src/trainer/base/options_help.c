/* options_help.c - prints the help of a command: its usage, and its options by group. */
#include "base.h"
#include "module.h"

enum { HELP_COLUMN = 26 }; /* where texts begin, from 0 */

void print_labelled(FILE *out, const char *label, const char *text)
{
    char *line;
    if (strlen(label) + 2 <= HELP_COLUMN)
        line = format_string("%-*s%s", HELP_COLUMN, label, text);
    else
        line = format_string("%s\n%*s%s", label, HELP_COLUMN, "", text);
    char *folded = fold_text(line, HELP_WIDTH);
    fprintf(out, "%s\n", folded);
    free(folded);
    free(line);
}

/* The option's default, as the help shows it; "": the help shows none.  The caller frees it. */
static char *default_text(const struct option *option)
{
    bool stands_for_none = option->type == OPT_INT && *(const int *)option->value < option->low;
    bool is_in_help = strstr(option->help, "(default");
    if (option->type == OPT_FLAG || stands_for_none || is_in_help)
        return copy_string("");
    return option_text(option);
}

static void print_option(FILE *out, const struct option *option)
{
    char *label = option->letter ? format_string("  -%c, --%s", option->letter, option->name)
                                 : format_string("  --%s", option->name);
    if (option->type != OPT_FLAG) {
        char *argument = argument_name(option);
        append_text(&label, " %s", argument);
        free(argument);
    }
    char *value = default_text(option);
    bool shown = *value && *value != '\n';
    bool joined = shown && ends_with(option->help, ")"); /* a remark and the default share a pair of brackets */
    char *help = format_string("%.*s", (int)strlen(option->help) - joined, option->help);
    if (shown)
        append_text(&help, "%sdefault: %s)", joined ? "; " : " (", value);
    print_labelled(out, label, help);
    free(label);
    free(help);
    free(value);
}

void print_usage(FILE *out, const char *command, const char *takes, const char *examples, const char *text)
{
    char *folded = fold_text(text, HELP_WIDTH);
    fprintf(out, "usage: yard %s %s\n\nexamples:\n", command, takes);
    for (const char *at = examples; *at;) {
        int n = (int)strcspn(at, "\n");
        fprintf(out, "  yard %s%s%.*s\n", command, n ? " " : "", n, at);
        at += n + (at[n] == '\n');
    }
    fprintf(out, "\n%s\n", folded);
    free(folded);
}

void print_options(FILE *out, const struct option_table *table, unsigned command)
{
    const char *group = "";
    for (const struct option *option = table->options; option < table->options + table->n; option++) {
        if (!(option->classes & command))
            continue;
        if (strcmp(option->group, group) != 0)
            fprintf(out, "\n%s:\n", option->group);
        group = option->group;
        print_option(out, option);
    }
    fprintf(out, "\n%-*sprint this\n", HELP_COLUMN, "  -h, --help");
    if (table->foreign)
        table->foreign->print(out, table, command);
}

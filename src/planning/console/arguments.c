/* arguments.c - takes the arguments of commands that take paths, and runs the subcommands of a command, such as
 * `yard trace summary`. */
#include "arguments.h"
#include "trainer/file/file.h"

char **take_arguments(struct option_table *table, const struct path_command *command, int argc, char **argv, int *n)
{
    reset_options(table);
    if (wants_help(argc, argv)) {
        print_usage(stdout, command->name, command->takes, command->examples, command->help);
        print_options(stdout, table, command->bit);
        return NULL;
    }
    char **paths = parse_options(table, command->bit, command->name, argc, argv, n);
    begin_claims();
    for (int i = 0; i < MIN(*n, command->inputs); i++)
        claim_input(command->name, paths[i]);
    for (const struct option *option = table->options; option < table->options + table->n; option++)
        if (is_output(option) && *(const char **)option->value)
            claim_output(JOINED("--", option->name), *(const char **)option->value, NULL);
    return paths;
}

static void print_overview(const struct subcommand_group *group)
{
    print_usage(stdout, group->command, "WORD PATH... [options]", group->examples, group->about);
    printf("\n");
    for (size_t i = 0; i < group->n; i++) {
        const struct path_subcommand *subcommand = &group->subcommands[i];
        char *line = format_string("  %-8s %-8s  %s", subcommand->name, subcommand->takes, subcommand->summary);
        char *folded = fold_text(line, HELP_WIDTH);
        printf("%s\n", folded);
        free(folded);
        free(line);
    }
    printf("\n`yard %s WORD --help` says more.\n", group->command);
}

/* The names of the subcommands in a sentence, "summary, export or diff"; the caller frees it. */
static char *names_of(const struct subcommand_group *group)
{
    char *names = copy_string(group->subcommands[0].name);
    for (size_t i = 1; i < group->n; i++)
        append_text(&names, "%s%s", i + 1 < group->n ? ", " : " or ", group->subcommands[i].name);
    return names;
}

/* Tells the table of options which subcommand has which bit.  The table keeps what is allocated here. */
static void set_takers(const struct subcommand_group *group)
{
    const char **takers = allocate(group->n + 1, sizeof *takers);
    for (size_t i = 0; i < group->n; i++) {
        CHECK(group->subcommands[i].bit == 1u << i, "%s has bit %u", group->subcommands[i].name,
              group->subcommands[i].bit);
        takers[i] = format_string("`yard %s %s`", group->command, group->subcommands[i].name);
    }
    group->table->takers = takers;
}

/* Ends the program if the group has no such subcommand. */
static const struct path_subcommand *find_subcommand(const struct subcommand_group *group, const char *name)
{
    for (size_t i = 0; i < group->n; i++)
        if (strcmp(name, group->subcommands[i].name) == 0)
            return &group->subcommands[i];
    fail(EXIT_USAGE, "%s has no word \"%s\": say %s%s", group->command, name, names_of(group),
         exists(name) ? " before the file" : "");
}

static void refuse_if_other_number(const struct path_subcommand *subcommand, const char *full_name, int n)
{
    if (n != subcommand->n_paths)
        fail(EXIT_USAGE, "%s takes %s, %d path%s, but %d %s given; `yard %s --help` says more", full_name,
             subcommand->takes, subcommand->n_paths, PLURAL(subcommand->n_paths), n, n == 1 ? "was" : "were",
             full_name);
}

/* Runs the subcommand on the paths among the arguments, or prints its help.  argc, argv: the words after its name. */
static enum exit_code run_on_arguments(const struct subcommand_group *group, const struct path_subcommand *subcommand,
                                       int argc, char **argv)
{
    char *full_name = format_string("%s %s", group->command, subcommand->name);
    char *takes = format_string("%s [options]", subcommand->takes);
    char *help = format_string("%s: %s.\n\n%s", subcommand->name, subcommand->summary, subcommand->help);
    const struct path_command command = {.name = full_name,
                                         .takes = takes,
                                         .examples = subcommand->examples,
                                         .help = help,
                                         .bit = subcommand->bit,
                                         .inputs = group->inputs};
    enum exit_code code = EXIT_OK;
    int n;
    char **paths = take_arguments(group->table, &command, argc, argv, &n);
    if (paths) {
        refuse_if_other_number(subcommand, full_name, n);
        code = subcommand->run(paths);
    }
    free(paths);
    free(full_name);
    free(takes);
    free(help);
    return code;
}

enum exit_code run_subcommand(const struct subcommand_group *group, int argc, char **argv)
{
    if (argc == 0)
        fail(EXIT_USAGE, "%s needs a word that says what to do: %s; `yard %s --help` says more", group->command,
             names_of(group), group->command);
    if (wants_help(1, argv)) {
        print_overview(group);
        return EXIT_OK;
    }
    set_takers(group);
    return run_on_arguments(group, find_subcommand(group, argv[0]), argc - 1, argv + 1);
}

/* The folder only has functions for others: it adds no command and no option. */
const struct module module_console = {
    .name = "console",
};

/* arguments.c - runs commands that take paths, and commands that begin with a word of their own, as yard trace
 * summary. */
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

static void print_overview(const struct words *words)
{
    print_usage(stdout, words->command, "WORD PATH... [options]", words->examples, words->about);
    printf("\n");
    for (const struct word *word = words->words; word < words->words + words->n; word++) {
        char *line = format_string("  %-8s %-8s  %s", word->name, word->takes, word->summary);
        char *folded = fold_text(line, HELP_WIDTH);
        printf("%s\n", folded);
        free(folded);
        free(line);
    }
    printf("\n`yard %s WORD --help` says more.\n", words->command);
}

static const struct word *find_word(const struct words *words, const char *name)
{
    for (const struct word *word = words->words; word < words->words + words->n; word++)
        if (strcmp(name, word->name) == 0)
            return word;
    fail(EXIT_USAGE, "%s has no word \"%s\": say %s", words->command, name, words->list);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static int run_word(const struct word *word, const char *name, char **paths, int n)
{
    if (n != word->n)
        fail(EXIT_USAGE, "%s takes %s, %d path%s, but %d %s given; `yard %s --help` says more", name, word->takes,
             word->n, word->n == 1 ? "" : "s", n, n == 1 ? "was" : "were", name);
    return word->run(paths);
}

int run_words(const struct words *words, int argc, char **argv)
{
    if (argc == 0)
        fail(EXIT_USAGE, "%s needs a word that says what to do: %s; `yard %s --help` says more", words->command,
             words->list, words->command);
    if (asks_for_help(argv[0])) {
        print_overview(words);
        return EXIT_OK;
    }
    const struct word *word = find_word(words, argv[0]);
    int n;
    char *name = format_string("%s %s", words->command, word->name);
    char *takes = format_string("%s [options]", word->takes);
    char *help = format_string("%s: %s.\n\n%s", word->name, word->summary, word->help);
    const struct path_command command = {.name = name,
                                         .takes = takes,
                                         .examples = word->examples,
                                         .help = help,
                                         .bit = word->bit,
                                         .inputs = words->inputs};
    char **paths = take_arguments(words->table, &command, argc - 1, argv + 1, &n);
    int code = paths ? run_word(word, name, paths, n) : EXIT_OK;
    free(paths);
    free(name);
    free(takes);
    free(help);
    return code;
}

const struct module module_console = {
    .name = "console",
};

/* arguments.c - commands that take paths, and those of several words. */
#include "arguments.h"
#include "trainer/file/file.h"

char **take_arguments(struct option_table *table, const struct path_command *command, int argc, char **argv, int *n)
{
    reset_options(table);
    if (wants_help(argc, argv)) {
        printf("usage: yard %s %s", command->name, command->help);
        print_options(stdout, table, command->bit);
        return NULL;
    }
    char **paths = parse_options(table, command->bit, command->name, argc, argv, n);
    begin_claims();
    for (int i = 0; i < MIN(*n, command->inputs); i++)
        claim_input(JOINED("yard ", command->name), paths[i]);
    for (const struct option *o = table->options; o < table->options + table->n; o++)
        if (is_output(o) && *(const char **)o->value)
            claim_output(JOINED("--", o->name), *(const char **)o->value, NULL);
    return paths;
}

static void print_overview(const struct words *w)
{
    printf("%s\n", w->about);
    for (const struct word *word = w->word; word < w->word + w->n; word++)
        printf("  %-8s %-8s  %s\n", word->name, word->takes, word->summary);
    printf("\n'yard %s WORD --help' says more.\n", w->command);
}

static const struct word *find_word(const struct words *w, const char *name)
{
    for (const struct word *word = w->word; word < w->word + w->n; word++)
        if (strcmp(name, word->name) == 0)
            return word;
    fail(EXIT_USAGE, "yard %s has no word \"%s\"; it takes %s", w->command, name, w->list);
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

int run_words(const struct words *w, int argc, char **argv)
{
    if (argc == 0)
        fail(EXIT_USAGE, "yard %s needs a word: %s; 'yard %s --help' says more", w->command, w->list, w->command);
    if (asks_for_help(argv[0])) {
        print_overview(w);
        return EXIT_OK;
    }
    const struct word *word = find_word(w, argv[0]);
    int n;
    char *name = format_string("%s %s", w->command, word->name);
    char *help = format_string("%s [options]\n\n%s: %s.\n\n%s", word->takes, word->name, word->summary, word->help);
    const struct path_command command = {.name = name, .help = help, .bit = word->bit, .inputs = w->inputs};
    char **paths = take_arguments(w->table, &command, argc - 1, argv + 1, &n);
    if (!paths)
        return EXIT_OK;
    if (n != word->n)
        fail(EXIT_USAGE, "yard %s takes %s, %d path%s, but %d %s given; 'yard %s --help' says more", name, word->takes,
             word->n, word->n == 1 ? "" : "s", n, n == 1 ? "was" : "were", name);
    return word->run(paths);
}

const struct module module_command = {
    .name = "command",
};

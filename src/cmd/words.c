/* words.c - commands of several words. */
#include "../file/file.h"
#include "cmd.h"

static void print_overview(const struct words *w)
{
    size_t width = 0;
    for (size_t i = 0; i < w->n; i++)
        width = MAX(width, strlen(w->word[i].takes) + 1);
    printf("%s\n", w->about);
    for (size_t i = 0; i < w->n; i++)
        printf("  %-8s %-*s  %s\n", w->word[i].name, (int)width, w->word[i].takes, w->word[i].what);
    printf("\n'yard %s WORD --help' says more.\n", w->command);
}

static int run_word(const struct words *w, const struct word *word, int argc, char **argv)
{
    char **paths;
    int n;
    reset_options(w->table);
    if (wants_help(argc, argv)) {
        printf("usage: yard %s %s %s [options]\n\n%s: %s.\n\n%s", w->command, word->name, word->takes, word->name,
               word->what, word->help);
        print_options(stdout, w->table, word->bit);
        return EXIT_OK;
    }
    char *name = format_string("%s %s", w->command, word->name), *command = format_string("yard %s", w->command);
    parse_options(w->table, word->bit, name, argc, argv, &paths, &n);
    if (n != word->n)
        fail(EXIT_USAGE, "yard %s takes %s, %d %s%s, but %d %s given; 'yard %s --help' says more", name, word->takes,
             word->n, w->thing, word->n == 1 ? "" : "s", n, n == 1 ? "was" : "were", name);
    begin_claims();
    for (int i = 0; i < MIN(word->n, w->inputs); i++)
        claim_input(command, paths[i]);
    int code = word->run(paths);
    free(paths), free(name), free(command);
    return code;
}

int run_words(const struct words *w, int argc, char **argv)
{
    if (argc == 0)
        fail(EXIT_USAGE, "yard %s needs a word: %s; 'yard %s --help' says more", w->command, w->list, w->command);
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "help") == 0) {
        print_overview(w);
        return EXIT_OK;
    }
    const struct word *nearest = w->word;
    for (size_t i = 0; i < w->n; i++) {
        if (strcmp(argv[0], w->word[i].name) == 0)
            return run_word(w, &w->word[i], argc - 1, argv + 1);
        if (edit_distance(argv[0], w->word[i].name) < edit_distance(argv[0], nearest->name))
            nearest = &w->word[i];
    }
    if (edit_distance(argv[0], nearest->name) <= 2)
        fail(EXIT_USAGE, "yard %s has no word \"%s\"; did you mean yard %s %s?", w->command, argv[0], w->command,
             nearest->name);
    fail(EXIT_USAGE, "yard %s has no word \"%s\"; it takes %s", w->command, argv[0], w->list);
}

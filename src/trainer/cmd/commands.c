/* commands.c - finds and lists the subcommands, which folders register (see module.h). */
#include "cmd.h"
#include "trainer/train/train.h"

/* All commands, in the order of `yard --help`. */
struct commands {
    const struct subcommand **items;
    size_t n, cap;
};

static int by_help_place(const void *left, const void *right)
{
    const struct subcommand *a = *(struct subcommand *const *)left;
    const struct subcommand *b = *(struct subcommand *const *)right;
    return COMPARE(a->help_place, b->help_place);
}

static struct commands collect_commands(void)
{
    struct commands all = {.n = 0};
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_commands; k++) {
            GROW(all.items, all.cap, all.n + 1);
            all.items[all.n++] = &modules[i]->commands[k];
        }
    SORT(all.items, all.n, by_help_place);
    return all;
}

const struct subcommand *find_command(const char *name)
{
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_commands; k++)
            if (strcmp(modules[i]->commands[k].name, name) == 0)
                return &modules[i]->commands[k];
    return NULL;
}

void print_commands(FILE *out)
{
    struct commands all = collect_commands();
    fprintf(out, "usage: yard COMMAND [options]\n\n");
    for (size_t i = 0; i < all.n; i++)
        fprintf(out, "  %-9s %s\n", all.items[i]->name, all.items[i]->help);
    free(all.items);
}

/* ---- unknown commands -------------------------------------------------------------------------------------------- */

/* Uses for which other programs have a command, and this one has none. */
static const struct {
    const char *words; /* foreign words for the command, separated by spaces */
    const char *way;   /* how to do it here */
} wordless_uses[] = {
    {"eval evaluate test validate perplexity", HOW_TO_EVALUATE},
};

/* The name of the command that was probably meant; NULL: none is near. */
static const char *nearest_command(const struct commands *all, const char *word)
{
    const char **names = allocate(all->n + 1, sizeof *names);
    for (size_t i = 0; i < all->n; i++)
        names[i] = all->items[i]->name;
    const char *nearest = nearest_word(word, names, all->n);
    free(names);
    return nearest;
}

_Noreturn void refuse_command(const char *word)
{
    struct commands all = collect_commands();
    for (size_t i = 0; i < COUNT(wordless_uses); i++)
        if (has_word(wordless_uses[i].words, word))
            fail(EXIT_USAGE, "there is no command \"%s\"; %s", word, wordless_uses[i].way);
    for (size_t i = 0; i < all.n; i++)
        if (has_word(all.items[i]->foreign, word))
            fail(EXIT_USAGE, "there is no command \"%s\"; here that is `yard %s`: `yard %s --help` says more", word,
                 all.items[i]->name, all.items[i]->name);
    if (is_left_out(word))
        fail(EXIT_USAGE, "there is no command \"%s\": this yard was built without%s", word, left_out);
    const char *meant = nearest_command(&all, word);
    if (meant)
        fail(EXIT_USAGE, "there is no command \"%s\"; did you mean `yard %s`? `yard --help` lists all", word, meant);
    fail(EXIT_USAGE, "there is no command \"%s\"; `yard --help` lists all commands%s%s", word,
         *left_out ? "; this yard was built without" : "", left_out);
}

/* ---- the trainer's own commands ---------------------------------------------------------------------------------- */

static const struct subcommand own[] = {
    {.help_place = 20,
     .name = "train",
     .help = "train a GPT",
     .run = run_train,
     .foreign = "finetune fine-tune fit pretrain learn run start resume continue"},
    {.help_place = 30,
     .name = "sample",
     .help = "let a saved model write",
     .run = run_sample,
     .foreign = "generate inference infer predict complete chat prompt write text"}};
const struct module module_cmd = {
    .name = "cmd",
    .commands = own,
    .n_commands = COUNT(own),
};

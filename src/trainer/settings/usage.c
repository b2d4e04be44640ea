/* usage.c - how a command is used: its help, and the refusal of a word that it does not take. */
#include "settings_parts.h"
#include "trainer/base/module.h"
#include "trainer/model_files/model_files.h"

const struct usage train_usage = {
    .name = "train",
    .takes = "[options]",
    .examples = "--steps 300 --sample-tokens 200\n"
                "--data book.txt --save out --save-every 500 --log out.jsonl\n",
    .text = "Trains a GPT. Without options it is a small one, which learns stories, a built-in text. Begin with these: "
            "--data (your text), --model (its size), --steps, -d (the device), --log, --save (to keep the model).",
    .classes = OF_TRAIN | OF_LIST | OF_RUN,
    .files = "--data FILE; for several files a quoted pattern, such as --data 'folder/*.txt'",
};

unsigned classes_of(const struct usage *usage) { return usage->classes | OF_THIS; }

_Noreturn void end_with_help(const struct usage *usage)
{
    apply_preset(&own_settings);
    print_usage(stdout, usage->name, usage->takes, usage->examples, usage->text);
    print_options(stdout, &all_options, classes_of(usage));
    if (usage->classes & OF_LIST)
        printf("\nA config file holds lines `option = value`.\n"
               "Precedence: --model's sizes, --config, command line.\n");
    flush_output(); /* main() would do it, and is not reached */
    exit(EXIT_OK);
}

_Noreturn void refuse_word(const struct usage *usage, const char *word)
{
    char *known = strchr(word, '=') ? explain_foreign(&all_options, classes_of(usage), word, "--") : NULL;
    if (known)
        fail(EXIT_USAGE, "\"%s\" is not an option: options start with --; %s", word, known);
    if (usage->files && exists(word))
        fail(EXIT_USAGE, "\"%s\" is a file that no option takes: write %s", word, usage->files);
    if (usage->files && strpbrk(word, "./"))
        fail(EXIT_USAGE, "\"%s\" is not an option, and no such file is here; write %s", word, usage->files);
    fail(EXIT_USAGE, "\"%s\" is not an option: options start with --; `yard %s --help` lists them", word, usage->name);
}

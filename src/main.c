/* main.c - the table of subcommands.
 *
 * To step through a training run:  gdb --args ./yard train --model tiny --serial --steps 3
 */
#include "trainer/base/base.h"
#include "trainer/cmd/cmd.h"
#include "trainer/device/device.h"

static const struct {
    const char *name;
    command_function *run;
    const char *help;
} commands[] = {
    {"devices", cmd_devices, "show the OpenCL devices"},                            //
    {"train", cmd_train, "train a GPT"},                                            //
    {"sample", cmd_sample, "let a saved model write"},                              //
    {"check", cmd_check, "compare with reference numbers made by another program"}, //
    {"plan", cmd_plan, "show a training step as a list of tasks, and its memory"},  //
    {"profile", cmd_profile, "measure how long tasks take, to predict with"},
    {"trace", cmd_trace, "summarise, export or compare what --trace recorded"},   //
    {"view", cmd_view, "show a trace, also of a run that goes on"},               //
    {"plot", cmd_plot, "draw the losses that --log recorded"},                    //
    {"bench", cmd_bench, "measure the device, its matrix products and training"}, //
    {"ckpt", cmd_ckpt, "look into checkpoints, check, compare, reshard and export them"},
};

/* What other programs call a command. */
static const struct {
    const char *words, *ours;
} foreign_commands[] = {
    {" finetune fine-tune fit pretrain learn run start resume continue ", "train"},
    {" generate inference infer predict complete chat prompt write text ", "sample"},
    {" export convert save reshard ", "ckpt"},
    {" verify ", "check"},
    {" simulate list print memory dry-run ", "plan"},
    {" info device clinfo gpus ", "devices"},
    {" benchmark speed ", "bench"},
    {" show timeline gui window ", "view"},
    {" summary chrome perfetto ", "trace"},
    {" curve loss graph ", "plot"},
};

/* And what is no command of its own here. */
static const struct {
    const char *words, *way;
} foreign_uses[] = {
    {" eval evaluate test validate perplexity ", "to evaluate a saved model, train it for one step that changes "
                                                 "nothing: yard train --init MODEL --data TEXT --val-data TEXT "
                                                 "--lr 0 --steps 1 --sample-tokens 0"},
};

static const char *our_command(const char *typed)
{
    char *word = format_string(" %s ", typed);
    const char *ours = NULL;
    for (size_t i = 0; i < COUNT(foreign_commands); i++)
        if (strstr(foreign_commands[i].words, word))
            ours = foreign_commands[i].ours;
    free(word);
    return ours;
}

static void print_commands(FILE *out)
{
    fprintf(out, "usage: yard COMMAND [options]\n\n");
    for (size_t i = 0; i < COUNT(commands); i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
    fprintf(out,
            "\n`yard COMMAND --help` shows the options of a command, `yard --version` the version.\n\n"
            "environment:\n"
            "  YARD_CACHE=FOLDER        keeps compiled kernels there, for drivers that do not\n"
            "  YARD_KERNELS=FOLDER      takes the .cl files from there\n"
            "  YARD_BUILD_OPTIONS=TEXT  more options for the OpenCL compiler\n"
            "  NO_COLOR=1               no colours on a terminal\n\n"
            "exit codes: 0 success, 1 failure (a check, damaged files, not-a-number), 2 usage or too little memory,\n"
            "            3 no OpenCL device, 4 files cannot be read or written, 130 interrupted\n");
}

/* Output that could not be written is an error too: a full disk behind `> file`.  An interrupted run may have lost the
 * terminal that it wrote to. */
static int finish(int code)
{
    if (code != EXIT_INTERRUPTED)
        flush_output();
    main_has_returned = true;
    return code;
}

#ifdef __ELF__ /* gdb loads it: tutorials/gdb/yard.py */
__asm__(
    ".pushsection \".debug_gdb_scripts\", \"MS\", %progbits, 1\n.byte 1\n.asciz \"build/yard-gdb.py\"\n.popsection");
#endif

int main(int argc, char **argv)
{
    prepare_process();
    if (argc > 2 && strcmp(argv[1], "help") == 0) { /* `yard help train` is `yard train --help` */
        memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof *argv);
        argv[argc - 1] = "--help";
    }
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_commands(argc < 2 ? stderr : stdout);
        return finish(argc < 2 ? EXIT_USAGE : EXIT_OK);
    }
    if (strcmp(argv[1], "--version") == 0)
        return printf("yard " YARD_VERSION "\n"), finish(EXIT_OK);
    for (size_t i = 0; i < COUNT(commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return finish(commands[i].run(argc - 2, argv + 2));
    char *word = format_string(" %s ", argv[1]);
    for (size_t i = 0; i < COUNT(foreign_uses); i++)
        if (strstr(foreign_uses[i].words, word))
            fail(EXIT_USAGE, "there is no command '%s'; %s", argv[1], foreign_uses[i].way);
    free(word);
    const char *ours = our_command(argv[1]);
    if (ours)
        fail(EXIT_USAGE, "there is no command '%s'; here that is 'yard %s': `yard %s --help` says more", argv[1], ours,
             ours);
    for (size_t i = 0; i < COUNT(commands); i++)
        if (edit_distance(argv[1], commands[i].name) <= 2)
            fail(EXIT_USAGE, "there is no command '%s'; did you mean '%s'? `yard --help` lists them", argv[1],
                 commands[i].name);
    fail(EXIT_USAGE, "there is no command '%s'; `yard --help` lists them", argv[1]);
}

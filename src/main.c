/* main.c - finds the command that the first word names, runs it, and returns its exit code.
 *
 * To step through a training run:  gdb --args ./yard train --model tiny --serial --steps 3
 */
#include "trainer/base/base.h"
#include "trainer/cmd/cmd.h"
#include "trainer/device/driver.h"

/* Prints what `yard --help` shows. */
static void print_help(FILE *out)
{
    print_commands(out);
    fprintf(out, "\nfirst:  yard train --steps 300 --sample-tokens 200\n"
                 "then:   tutorials/00-primer.md, the first of the pages that README.md names\n");
    fprintf(out, "\n`yard COMMAND --help` shows examples and the options of a command,\n"
                 "and `yard --version` shows the version.\n\n"
                 "environment:\n"
                 "  YARD_CACHE=FOLDER        keep compiled kernels in this folder,\n"
                 "                           for drivers that keep none themselves\n"
                 "  YARD_KERNELS=FOLDER      take the .cl files from this folder\n"
                 "  YARD_BUILD_OPTIONS=TEXT  give more options to the OpenCL compiler\n"
                 "  NO_COLOR=1               use no colours on a terminal\n\n"
                 "exit codes:\n"
                 "  0 success, 1 failure (a check fails, a file is damaged, a loss is not finite),\n"
                 "  2 wrong usage or too little memory, 3 no OpenCL device,\n"
                 "  4 a file cannot be read or written, 130 interrupted\n");
}

static enum exit_code run_command(const char *name, int argc, char **argv)
{
    const struct subcommand *command = find_command(name);
    if (!command)
        refuse_command(name);
    return command->run(argc, argv);
}

/* `yard help trace export` is `yard trace export --help`.  The words are those after the command's name, "export". */
static enum exit_code run_help_of(const char *name, int n, char **words)
{
    char **with_help = allocate_each(n + 2, sizeof *with_help);
    memcpy(with_help, words, (size_t)n * sizeof *words);
    with_help[n] = "--help";
    enum exit_code code = run_command(name, n + 1, with_help);
    free(with_help);
    return code;
}

/* Output that could not be written is an error too: the disk of `> file` may be full.  An interrupted run is excepted,
 * since the terminal that it wrote to may have been closed. */
static void finish_output(enum exit_code code)
{
    if (code != EXIT_INTERRUPTED)
        flush_output();
    main_has_returned = true;
}

int main(int argc, char **argv)
{
    enum exit_code code = EXIT_OK;
    prepare_process(argv[0]);
    if (argc < 2) {
        print_help(stderr);
        code = EXIT_USAGE;
    } else if (strcmp(argv[1], "--version") == 0) {
        printf("yard " YARD_VERSION "\n");
    } else if (argc > 2 && strcmp(argv[1], "help") == 0 && !wants_help(1, argv + 2)) {
        code = run_help_of(argv[2], argc - 3, argv + 3);
    } else if (wants_help(1, argv + 1)) {
        print_help(stdout);
    } else {
        code = run_command(argv[1], argc - 2, argv + 2);
    }
    finish_output(code);
    return (int)code;
}

/* main.c - finds the command that the first word names, runs it, and returns its exit code.
 *
 * To step through a training run:  gdb --args ./yard train --model tiny --serial --steps 3
 */
#include "trainer/base/base.h"
#include "trainer/cmd/cmd.h"
#include "trainer/device/device.h"

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

/* Output that could not be written is an error too: the disk of `> file` may be full.  An interrupted run is excepted,
 * since the terminal that it wrote to may have been closed. */
static int finish_output(int code)
{
    if (code != EXIT_INTERRUPTED)
        flush_output();
    main_has_returned = true;
    return code;
}

#ifdef __ELF__ /* tells gdb to load build/yard-gdb.py, which is made from tutorials/gdb/yard.py */
__asm__(
    ".pushsection \".debug_gdb_scripts\", \"MS\", %progbits, 1\n.byte 1\n.asciz \"build/yard-gdb.py\"\n.popsection");
#endif

int main(int argc, char **argv)
{
    prepare_process(argv[0]);
    if (argc > 2 && strcmp(argv[1], "help") == 0) { /* `yard help train` is `yard train --help` */
        memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof *argv);
        argv[argc - 1] = "--help";
    }
    if (argc < 2) {
        print_help(stderr);
        return finish_output(EXIT_USAGE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return finish_output(EXIT_OK);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("yard " YARD_VERSION "\n");
        return finish_output(EXIT_OK);
    }
    const struct subcommand *command = find_command(argv[1]);
    if (!command)
        refuse_command(argv[1]);
    return finish_output(command->run(argc - 2, argv + 2));
}

/* cmd.h - the subcommands of yard: those that all folders register (struct subcommand in base/module.h), and the
 * trainer's own two.
 */
#ifndef CMD_H
#define CMD_H

#include "trainer/base/module.h"

#include <stdio.h>

/* ---- commands.c: the commands of all folders --------------------------------------------------------------------- */

const struct subcommand *find_command(const char *name); /* NULL: there is none */
void print_commands(FILE *out);                          /* the list that `yard --help` shows */

/* Ends the program (EXIT_USAGE): there is no such command; the sentence says which may be meant. */
_Noreturn void refuse_command(const char *word);

/* ---- train_command.c --------------------------------------------------------------------------------------------- */

enum exit_code run_train(int argc, char **argv); /* gets the words after the command's name */

/* ---- sample.c ---------------------------------------------------------------------------------------------------- */

enum exit_code run_sample(int argc, char **argv); /* takes what run_train() does */

#endif

/* cmd.h - the subcommands: finding them, and what several of them share. */
#ifndef CMD_H
#define CMD_H

#include "trainer/base/module.h"

#include <stdio.h>

/* ---- commands.c: the commands of all folders --------------------------------------------------------------------- */

const struct subcommand *find_command(const char *name); /* NULL: there is none */
void print_commands(FILE *out);
_Noreturn void refuse_command(const char *word); /* says that there is no such command, and which may be meant */

/* ---- train.c, sample.c -------------------------------------------------------------------------------- */

int run_train(int argc, char **argv);
int run_sample(int argc, char **argv);

#endif

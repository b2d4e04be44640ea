/* cmd.h - the subcommands; main.c has the table. */
#ifndef CMD_H
#define CMD_H

/* Each is given what follows its name on the command line and returns the exit code. */
int cmd_devices(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_sample(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_view(int argc, char **argv);
int cmd_ckpt(int argc, char **argv);

struct settings;
int bench_broadcast(struct settings *s); /* bench --broadcast: bench_broadcast.c */

#endif

/* cmd.h - the subcommands; main.c has the table. */
#ifndef CMD_H
#define CMD_H

/* Each is given what follows its name on the command line and returns the exit code. */
typedef int command_function(int argc, char **argv);
command_function cmd_devices, cmd_train, cmd_sample, cmd_check, cmd_plan, cmd_trace, cmd_plot, cmd_bench, cmd_profile,
    cmd_view, cmd_ckpt;

struct settings;
int bench_broadcast(struct settings *s);   /* bench --broadcast: bench_broadcast.c */
int plan_memory(const struct settings *s); /* plan --memory: plan_memory.c */

#endif

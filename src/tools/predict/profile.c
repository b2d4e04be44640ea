/* profile.c - yard profile: how long each kind of task takes here, for predictions. */
#include "trainer/cmd/cmd.h"
#include "trainer/train/train.h"

static int run_profile(int argc, char **argv)
{
    struct settings *s = parse_settings(CMD_PROFILE, argc, argv);
    if (!s->output)
        fail(EXIT_USAGE, "yard profile needs -o FILE, the profile to write; see `yard profile --help`");
    expect_replaceable("--output", s->output, KIND_PROFILE, "profile of yard's");
    abandon(open_writer(s->output)); /* better to learn now than after the trial that it cannot be written */
    s->time_tasks = true;
    struct trainer *t = new_trainer(s, LIST_TRAIN, s->data.path != NULL, false);
    char *shape = describe_shape(t);
    struct costs *c = measure_costs(t);
    write_profile(s->output, c, shape);
    note("%s: %zu kinds of tasks of %s on %s", s->output, c->n_tasks, shape, c->device);
    free(shape);
    free_costs(c);
    free_trainer(t);
    return EXIT_OK;
}

static const struct subcommand command = {60, "profile", "measure how long tasks take, to predict with", run_profile,
                                          NULL};
const struct module module_predict = {.name = "predict", .called = true, .commands = &command, .n_commands = 1};

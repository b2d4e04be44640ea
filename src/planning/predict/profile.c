/* profile.c - yard profile: how long each kind of task takes here, for predictions. */
#include "planning/trace/record.h"
#include "predict.h"
#include "trainer/file/file.h"
#include "trainer/train/train.h"

static const struct usage usage = {
    .name = "profile",
    .takes = "-o FILE [options]",
    .examples = "-o here.profile\n"
                "-o gpt2.profile --model gpt2 -d 0:0\n",
    .text = "Trains a few steps and writes the time of every kind of task, the speed of copies and the memory to FILE.",
    .classes = OF_LIST | OF_RUN,
    .files = "--data FILE",
    .also = "vocab output"};

enum exit_code run_profile(int argc, char **argv)
{
    struct settings *settings = parse_settings(&usage, argc, argv);
    const char *output = asked_predict.output;
    if (!output)
        fail(EXIT_USAGE, "profile needs -o FILE, the profile to write; `yard profile --help` says more");
    expect_replaceable("--output", output, KIND_PROFILE, "profile that yard wrote");
    abandon(open_writer(output)); /* better to learn now than after the trial that it cannot be written */
    settings->demands.time_tasks = true;
    struct trainer *trainer = new_trainer(settings, LIST_TRAIN | OPEN_GIVEN_DATA);
    char *shape = describe_shape(trainer);
    struct costs *costs = measure_costs(trainer);
    write_profile(output, costs, shape);
    inform("%s: %zu kinds of tasks of %s on %s", output, costs->n_tasks, shape, costs->device);
    free(shape);
    free_costs(costs);
    free_trainer(trainer);
    return EXIT_OK;
}

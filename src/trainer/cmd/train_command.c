/* train_command.c - yard train: makes a trainer from the settings, fills its model with weights, and runs the training
 * loop.  The folder train/ does all of this.
 */
#include "cmd.h"
#include "trainer/settings/archive.h"
#include "trainer/train/hooks.h"
#include "trainer/train/train.h"

/* Settings that the user left open get the values that the trainer has chosen, so that the log records these. */
static void fill_in_settings(struct settings *settings, const struct trainer *trainer)
{
    char mesh[MESH_TEXT];
    settings->micro_batch = trainer->micro_batch;
    settings->vector = (int)vector_width(trainer->machine);
    if (!settings->devices)
        settings->devices = trainer->machine->devices[0].id;
    if (!settings->mesh && settings->resumed)
        settings->mesh = copy_string(format_mesh(mesh, &trainer->mesh));
    else if (!settings->mesh)
        settings->mesh = format_string("dp=%d", trainer->mesh.dp);
}

static void fill_model(const struct settings *settings, struct model *model)
{
    if (settings->resumed)
        the_archive()->load(model, &settings->source, LOAD_ALL_STATE);
    else if (settings->init)
        init_from_source(model, &settings->source);
    else
        init_random(model, (uint64_t)settings->seed);
}

enum exit_code run_train(int argc, char **argv)
{
    this_process->begun = now_ns();
    struct settings *settings = parse_settings(&train_usage, argc, argv);
    enum exit_code code = EXIT_OK;
    if (!ask_takes_part(settings, argc, argv, &code)) /* false: other processes have trained */
        return code;
    tell_training_begins(settings);
    settings->demands.time_tasks = true; /* a step's time is known from the end of its last task */
    unsigned wanted = LIST_TRAIN | LIST_EVAL | OPEN_DATA;
    if (settings->sample_length)
        wanted |= LIST_SAMPLE;
    struct trainer *trainer = new_trainer(settings, wanted);
    fill_in_settings(settings, trainer);
    fill_model(settings, trainer->model);
    code = train_loop(trainer);
    free_trainer(trainer);
    close_source(&settings->source);
    return code;
}

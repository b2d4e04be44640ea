/* train.c - yard train: makes a trainer from the settings, fills its model with weights, and runs the training loop.
 * The folder train/ does all of this.
 */
#include "cmd.h"
#include "trainer/train/hooks.h"

/* Settings that the user left open get the values that the trainer has chosen, so that the log records these. */
static void settle_settings(struct settings *s, const struct trainer *t)
{
    char mesh[64];
    s->micro_batch = t->micro_batch;
    s->vector = (int)vector_width(t->machine);
    if (!s->devices)
        s->devices = t->machine->device[0].id;
    if (!s->mesh && s->resumed)
        s->mesh = copy_string(format_mesh(mesh, &t->mesh));
    else if (!s->mesh)
        s->mesh = format_string("dp=%d", t->mesh.dp);
}

static void fill_model(const struct settings *s, struct model *m)
{
    if (s->resumed)
        the_archive()->load(m, &s->source, LOAD_ALL_STATE);
    else if (s->init)
        init_from_source(m, &s->source);
    else
        init_random(m, (uint64_t)s->seed);
}

int run_train(int argc, char **argv)
{
    int code = EXIT_OK;
    this_life->begun = now_ns();
    struct settings *s = parse_settings(&train_page, argc, argv);
    if (!ask_options_read(s, argc, argv, &code))
        return code;
    s->time_tasks = true; /* a step's time is known from the end of its last task */
    unsigned wanted = LIST_TRAIN | LIST_EVAL | OPEN_DATA;
    if (s->sample_tokens)
        wanted |= LIST_SAMPLE;
    struct trainer *t = new_trainer(s, wanted);
    settle_settings(s, t);
    fill_model(s, t->model);
    code = train_loop(t);
    free_trainer(t);
    close_source(&s->source);
    return code;
}

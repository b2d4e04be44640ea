/* train.c - yard train: settings become a trainer, the trainer gets its weights, and the loop runs it.  All else is
 * train/'s.
 */
#include "cmd.h"
#include "trainer/train/hooks.h"

/* What was left open is settled now, for the log's record. */
static void settle_settings(struct settings *s, const struct trainer *t)
{
    s->micro_batch = t->micro_batch;
    s->vector = (int)vector_width(t->machine);
    s->devices = s->devices ? s->devices : t->machine->device[0].id;
    if (!s->mesh)
        s->mesh = s->past ? copy_string(format_mesh((char[64]){0}, &t->mesh)) : format_string("dp=%d", t->mesh.dp);
}

static void fill_model(const struct settings *s, struct model *m)
{
    if (s->past)
        find_archive()->load(m, &s->source, true);
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
    if (!ask_before(s, argc, argv, &code))
        return code;
    s->time_tasks = true; /* for the ends of steps */
    struct trainer *t = new_trainer(s, LIST_TRAIN | LIST_EVAL | (s->sample_tokens ? LIST_SAMPLE : 0), true, false);
    settle_settings(s, t);
    fill_model(s, t->model);
    code = train_loop(t);
    free_trainer(t);
    close_source(&s->source);
    return code;
}

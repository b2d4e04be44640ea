/* train.c - yard train: settings become a trainer, the trainer gets its weights, and the loop runs it.
 *
 * Before that a trial measures what a plan has to know and no file says; behind it the settings that were left open are
 * what came of them.  All else is train/'s.
 */
#include "trainer/train/train.h"
#include "cmd.h"
#include "tools/trace/follow.h"

#include <unistd.h>

/* What was written to a file without a name is gone. */
static void tell_when_removed(const struct settings *s)
{
    char *path = s->trace ? trace_path(s) : NULL;
    if (path && access(path, F_OK) != 0)
        warn("the trace %s was removed while it was written: it is lost", path);
    free(path);
}

int run_train(int argc, char **argv)
{
    int code = EXIT_OK;
    this_life->begun = now_ns();
    struct settings *s = parse_settings(CMD_TRAIN, argc, argv);
    if (s->restart && !(s = train_in_children(s, argc, argv, &code)))
        return code;
    s->time_tasks = true; /* for the ends of steps */
    execution.watchdog_seconds = s->serial ? 0 : 60;
    run_trial_for(s);
    struct trainer *t = new_trainer(s, LIST_TRAIN | LIST_EVAL | (s->sample_tokens ? LIST_SAMPLE : 0), true, false);
    s->micro_batch = t->micro_batch; /* what was left open is settled now, for the log's record */
    s->vector = (int)vector_width(t->machine);
    s->devices = s->devices ? s->devices : t->machine->device[0].id;
    if (!s->mesh)
        s->mesh = s->resume ? copy_string(format_mesh((char[64]){0}, &t->mesh)) : format_string("dp=%d", t->mesh.dp);
    if (s->resume)
        compare_training(t), load_checkpoint(t->model, s->source.checkpoint, true);
    else if (s->init)
        init_from_source(t->model, &s->source);
    else
        init_random(t->model, (uint64_t)s->seed);
    code = train_loop(t);
    struct trace_follow *trace = t->follow;
    free_trainer(t); /* closes the trace */
    tell_when_removed(s);
    struct problem *damaged = trace ? trace_follow_poll(trace, &(bool){false}) : NULL;
    if (trace && !damaged) {
        struct trace_steps steps = trace_steps_of(trace_follow_trace(trace), 0);
        print_beside(trace_beside(trace_follow_trace(trace), &steps));
        trace_follow_close(trace);
    }
    if (s->costs)
        free_costs(s->costs);
    close_source(&s->source);
    return code;
}

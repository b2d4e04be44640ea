/* loop.c - the training loop: steps, evaluations, saving, and stopping in good order.
 *
 * A step is issued while the one before it still runs, so its result is shown one step late, and the device never waits
 * for the host.  Before anything reads the model (an evaluation, a save, the end) everything in flight is awaited.
 */
#include "train.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    if (interrupted)
        _Exit(EXIT_INTERRUPTED); /* twice: now */
    interrupted = 1;
}

/* Better to learn now than after the training that nothing can be written there. */
static void try_folder(const char *folder)
{
    char *path = format_string("%s/.try", folder);
    make_folder(folder);
    struct writer *w = open_writer(path);
    write_bytes(w, "", 1);
    abandon(w);
    free(path);
}

static void save(struct trainer *t, uint32_t step)
{
    char *path = format_string("%s/model.safetensors", t->settings->save);
    char *tokenizer = t->data ? tokenizer_to_text(&t->data->tokenizer) : copy_string("bytes");
    make_folder(t->settings->save);
    save_model(t->model, path, tokenizer, step);
    free(path);
    free(tokenizer);
}

struct run {
    struct trainer *trainer;
    struct progress *progress;
    uint32_t shown; /* results up to this step have been shown */
};

/* Show all results up to `step`, waiting for those that have not ended. */
static void settle(struct run *run, uint32_t step)
{
    while (run->shown < step) {
        const struct result *r = step_result(run->trainer, ++run->shown);
        show_step(run->progress, run->shown, r);
        if (r->halted || !isfinite(r->loss))
            explain_not_finite(run->trainer, run->shown, r);
    }
}

static bool due(int64_t every, uint32_t step) { return every > 0 && step % (uint64_t)every == 0; }

/* What happens between two steps, with nothing in flight. */
static void between_steps(struct run *run, uint32_t step, bool last)
{
    struct trainer *t = run->trainer;
    const struct settings *s = t->settings;
    bool evaluation = t->eval && (last || due(s->val_every, step));
    bool saving = s->save && (last || due(s->save_every, step));
    if (!evaluation && !saving)
        return;
    settle(run, step);
    drain(t->train);
    calibrate_clocks(t->machine);
    if (saving) /* first: who interrupts may do it twice */
        save(t, step);
    if (evaluation)
        show_evaluation(run->progress, step, evaluate(t, s->val_batches));
}

static void check_guards(const struct trainer *t)
{
    for (int i = 0; i <= t->machine->n_devices; i++)
        if (damaged_guards(&t->machine->device[i]))
            fail(EXIT_FAILED,
                 "a kernel wrote past the end of the memory of device %s: run with --serial --audit to find it",
                 t->machine->device[i].id);
}

static void show_sample(struct trainer *t)
{
    const struct settings *s = t->settings;
    if (!t->sample || s->sample_tokens == 0 || t->data->tokenizer.kind == TOKENS_IDS)
        return; /* token numbers say nothing to a reader */
    printf("\nsample:\n");
    sample_tokens(t, stdout, t->data->train.tokens, 1,
                  &(struct sampling){0.8, 40, (uint64_t)s->seed, (int)s->sample_tokens});
}

static void train(struct run *run, uint32_t last)
{
    for (uint32_t step = 1; step <= last; step++) {
        run_step(run->trainer, step);
        settle(run, step - 1);
        if (interrupted)
            last = step;
        between_steps(run, step, step == last);
    }
    settle(run, last);
    drain(run->trainer->train);
}

int train_loop(struct trainer *t)
{
    const struct settings *s = t->settings;
    struct run run = {t, new_progress(t, settings_json(CMD_TRAIN)), 0};
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    if (s->save)
        try_folder(s->save);
    print_summary(run.progress);
    train(&run, (uint32_t)(s->stop_after ? s->stop_after : s->steps));
    check_guards(t);
    free_progress(run.progress);
    if (interrupted) {
        note("interrupted after step %u%s", run.shown, s->save ? ", saved" : "; nothing is saved without --save DIR");
        return EXIT_INTERRUPTED;
    }
    show_sample(t);
    return EXIT_OK;
}

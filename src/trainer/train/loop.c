/* loop.c - the training loop: steps, evaluations, saving, and stopping in good order.
 *
 * A step is issued while the one before it still runs, and results are shown as they are reported, so the device never
 * waits for the host.  Before anything reads the model (an evaluation, a save, the end) everything in flight is
 * awaited.
 *
 * An interrupt lets the step in flight end, then saves the model, then evaluates it.  A second interrupt ends the run
 * at once; the model is there if it was saved by then.
 */
#include "hooks.h"
#include "progress.h"
#include "trainer/import/import.h"
#include "trainer/settings/archive.h"

#include <math.h>

struct training {
    struct trainer *trainer;
    struct progress *progress;
    uint32_t shown;          /* results up to this step have been shown */
    uint32_t last;           /* the last step of this run; an interrupt makes it the step that is under way */
    uint32_t saved_step;     /* the last step after which the run was saved; 0: none yet */
    uint32_t exported_step;  /* ... the model was written for other programs */
    uint32_t evaluated_step; /* ... the model was evaluated */
    const char *bad;         /* a parameter that is not finite: such a model is not saved; NULL: none */
};

/* Writes the file for other programs. */
static void write_model(const struct trainer *trainer, uint32_t step)
{
    char *path = saved_model(trainer->settings);
    char *tokenizer = tokenizer_to_text(&trainer->data->tokenizer);
    save_model(trainer->model, path, step, tokenizer);
    free(path);
    free(tokenizer);
}

/* Saves the run as it is after `step`, with nothing in flight.  Where a folder keeps runs, the file for other programs
 * is written only at the end. */
static void save_run(struct training *training, uint32_t step)
{
    const struct archive *archive = find_archive();
    if (!training->trainer->settings->save || training->bad)
        return;
    if (archive && training->saved_step != step)
        archive->save(training->trainer, step, training->saved_step == 0);
    if ((step == training->last || !archive) && training->exported_step != step) {
        write_model(training->trainer, step);
        training->exported_step = step;
    }
    training->saved_step = step;
}

/* Shows all results up to `step`, waiting for those that have not been reported. */
static void show_results(struct training *training, uint32_t step)
{
    while (training->shown < step) {
        training->shown++;
        const struct result *result = step_result(training->trainer, training->shown);
        show_step(training->progress, training->shown, result);
        if (result->halted || !isfinite(result->loss)) {
            tell_steps_ended(training->trainer);
            fail_not_finite(training->trainer, training->shown, result);
        }
    }
}

/* An interrupt cuts an evaluation short.  (An evaluation that follows an interrupt is made whole.) */
static bool evaluation_goes_on(void *context)
{
    const bool *was_interrupted = context;
    return *was_interrupted || !interrupted();
}

static bool falls_on(int every, uint32_t step) { return every > 0 && step % (uint32_t)every == 0; }

/* Returns false if the validation loss is not finite. */
static bool evaluate_model(struct training *training, uint32_t step)
{
    struct trainer *trainer = training->trainer;
    bool was_interrupted = interrupted();
    double loss = evaluate(trainer, trainer->settings->val_batches, evaluation_goes_on, &was_interrupted);
    training->evaluated_step = step;
    if (!was_interrupted && interrupted()) {
        inform("the evaluation after step %u was interrupted, and has no loss", step);
        return true;
    }
    show_evaluation(training->progress, step, loss);
    return isfinite(loss);
}

/* What happens after a step, with nothing in flight: it is evaluated and saved where that is due. */
static void after_step(struct training *training, uint32_t step)
{
    struct trainer *trainer = training->trainer;
    const struct settings *settings = trainer->settings;
    const bool last = step == training->last;
    bool evaluates =
        trainer->eval_list && training->evaluated_step != step && (last || falls_on(settings->val_every, step));
    bool saves = settings->save && (last || falls_on(settings->save_every, step));
    bool sound = true;
    if (!evaluates && !saves && !last)
        return;
    show_results(training, step);
    drain_except_disk(trainer->train_list);
    calibrate_clocks(trainer->machine);
    training->bad = find_bad_parameter(trainer->model);
    if (saves) /* before the evaluation, during which a second interrupt may come */
        save_run(training, step);
    if (evaluates)
        sound = evaluate_model(training, step);
    if (training->bad || !sound) {
        tell_steps_ended(trainer);
        fail_bad_model(trainer, step, training->bad);
    }
}

/* True when the next result is to be shown now: its step has reported it; or a step is about to be issued whose result
 * takes its place in trainer->results, and show_results() then waits until it is reported. */
static bool shows_next(const struct training *training, uint32_t step)
{
    uint32_t next = training->shown + 1;
    if (next > step)
        return false;
    return training->shown + RESULTS <= step || has_result(training->trainer, next);
}

/* True when the run is at its end already, but not in --save's folder: it is saved there, though no step is trained. */
static bool is_only_saved(const struct training *training)
{
    const struct settings *settings = training->trainer->settings;
    return training->shown == training->last && settings->save && settings->resumed && settings->resumed->elsewhere;
}

/* Trains up to the last step.  If an interrupt comes while after_step() evaluates or saves, the step becomes the last
 * one, and what is due only then is done at the end. */
static void train(struct training *training)
{
    struct trainer *trainer = training->trainer;
    const bool has_work = training->shown < training->last || is_only_saved(training);
    for (uint32_t step = training->shown + 1; step <= training->last; step++) {
        run_step(trainer, step);
        take_signals_back(); /* a kernel that was compiled for this step may have replaced our handlers */
        while (shows_next(training, step))
            show_results(training, training->shown + 1);
        tell_step_issued(trainer);
        if (step < training->last && !interrupted())
            after_step(training, step);
        if (interrupted())
            training->last = step;
    }
    if (has_work)
        after_step(training, training->last);
    show_results(training, training->last);
    drain(trainer->train_list);
    tell_steps_ended(trainer);
}

static void check_guards(struct machine *machine)
{
    for (struct device *device = machine->devices; device <= machine->host; device++) /* the host comes last */
        if (damaged_guards(device))
            fail(EXIT_FAILED,
                 "a kernel wrote past the end of the memory of device %s: run with --serial --audit to find it",
                 device->id);
}

enum exit_code train_loop(struct trainer *trainer)
{
    const struct settings *settings = trainer->settings;
    uint32_t before = settings->resumed ? settings->resumed->step : 0;
    uint32_t last = last_step(settings);
    tell_model_filled(trainer);
    struct training training = {
        .trainer = trainer, .progress = begin_progress(trainer), .shown = before, .last = MAX(before, last)};
    /* Only a run that goes on from another one can have no steps to train. */
    if (before >= last)
        inform("%s is at step %u already, and the run ends with step %u: nothing is left to train; "
               "--%s N with a larger N trains on",
               settings->resumed->given_path, before, last, settings->stop_after ? "stop-after" : "steps");
    defer_interrupts("the step");
    train(&training);
    check_guards(trainer->machine);
    const enum exit_code code = end_progress(training.progress);
    show_end(trainer, training.shown);
    if (interrupted())
        return EXIT_INTERRUPTED;
    /* A sample of token numbers would say nothing. */
    if (trainer->sample_list && settings->sample_length && trainer->data->tokenizer.kind != &token_ids)
        print_sample(trainer);
    return code;
}

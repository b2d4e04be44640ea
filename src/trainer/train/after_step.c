/* after_step.c - what happens after a step, with nothing in flight: the model is evaluated and saved where that is
 * due.
 */
#include "hooks.h"
#include "progress.h"
#include "train_parts.h"
#include "trainer/import/import.h"
#include "trainer/settings/archive.h"

#include <math.h>

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
    if (!training->trainer->settings->save || training->not_finite)
        return;
    if (archive && training->saved_step != step)
        archive->save(training->trainer, step, training->saved_step == 0);
    if ((step == training->last || !archive) && training->exported_step != step) {
        write_model(training->trainer, step);
        training->exported_step = step;
    }
    training->saved_step = step;
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

void after_step(struct training *training, uint32_t step)
{
    struct trainer *trainer = training->trainer;
    const struct settings *settings = trainer->settings;
    bool last = step == training->last;
    bool evaluates =
        trainer->eval_list && training->evaluated_step != step && (last || falls_on(settings->val_every, step));
    bool saves = settings->save && (last || falls_on(settings->save_every, step));
    bool loss_finite = true;
    if (!evaluates && !saves && !last)
        return;
    show_results(training, step);
    drain_except_disk(trainer->train_list);
    calibrate_clocks(trainer->machine);
    training->not_finite = find_not_finite_parameter(trainer->model);
    if (saves) /* before the evaluation, during which a second interrupt may come */
        save_run(training, step);
    if (evaluates)
        loss_finite = evaluate_model(training, step);
    if (training->not_finite || !loss_finite) {
        tell_steps_ended(trainer);
        fail_model_not_finite(trainer, step, training->not_finite);
    }
}

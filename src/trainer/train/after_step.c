/* after_step.c - what happens after a step, with nothing in flight: the model is evaluated and saved where that is
 * due.
 */
#include "hooks.h"
#include "progress.h"
#include "train_parts.h"
#include "trainer/model_files/model_files.h"
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
static void save_run(struct loop_state *loop_state, uint32_t step)
{
    const struct archive *archive = find_archive();
    if (!loop_state->trainer->settings->save || loop_state->bad_parameter)
        return;
    if (archive && loop_state->saved_step != step)
        archive->save(loop_state->trainer, step, loop_state->saved_step == 0);
    if ((step == loop_state->last || !archive) && loop_state->exported_step != step) {
        write_model(loop_state->trainer, step);
        loop_state->exported_step = step;
    }
    loop_state->saved_step = step;
}

/* An interrupt cuts an evaluation short.  (An evaluation that follows an interrupt is made whole.) */
static bool evaluation_goes_on(void *context)
{
    const bool *was_interrupted = context;
    return *was_interrupted || !interrupted();
}

static bool falls_on(int every, uint32_t step) { return every > 0 && step % (uint32_t)every == 0; }

/* Returns false if the validation loss is not finite. */
static bool evaluate_model(struct loop_state *loop_state, uint32_t step)
{
    struct trainer *trainer = loop_state->trainer;
    bool was_interrupted = interrupted();
    double loss = evaluate(trainer, trainer->settings->val_batches, evaluation_goes_on, &was_interrupted);
    loop_state->evaluated_step = step;
    if (!was_interrupted && interrupted()) {
        inform("the evaluation after step %u was interrupted, and has no loss", step);
        return true;
    }
    show_evaluation(loop_state->progress, step, loss);
    return isfinite(loss);
}

void after_step(struct loop_state *loop_state, uint32_t step)
{
    struct trainer *trainer = loop_state->trainer;
    const struct settings *settings = trainer->settings;
    bool is_last = step == loop_state->last;
    bool is_evaluation_due =
        trainer->eval_list && loop_state->evaluated_step != step && (is_last || falls_on(settings->val_every, step));
    bool is_save_due = settings->save && (is_last || falls_on(settings->save_every, step));
    bool is_loss_finite = true;
    if (!is_evaluation_due && !is_save_due && !is_last)
        return;
    show_results(loop_state, step);
    drain_except_disk(trainer->train_list);
    calibrate_clocks(trainer->machine);
    loop_state->bad_parameter = find_not_finite_parameter(trainer->model);
    if (is_save_due) /* before the evaluation, during which a second interrupt may come */
        save_run(loop_state, step);
    if (is_evaluation_due)
        is_loss_finite = evaluate_model(loop_state, step);
    if (loop_state->bad_parameter || !is_loss_finite) {
        tell_steps_ended(trainer);
        fail_model_not_finite(trainer, step, loop_state->bad_parameter);
    }
}

/* loop.c - the training loop: it issues steps, has their results shown, and stops in good order.
 *
 * A step is issued while the one before it still runs, and results are shown as they are reported, so the device never
 * waits for the host.  Before anything reads the model (an evaluation, a save, the end) everything in flight is
 * awaited: see after_step.c.
 *
 * An interrupt lets the step in flight end, then saves the model, then evaluates it.  A second interrupt ends the run
 * at once; the model is there if it was saved by then.
 */
#include "hooks.h"
#include "progress.h"
#include "train_parts.h"
#include "trainer/settings/archive.h"

void issue_step(struct trainer *trainer, uint32_t step) { execute(trainer->train_list, step); }

/* True when the run is at its end already, but not in --save's folder: it is saved there, though no step is trained. */
static bool only_needs_saving(const struct loop_state *loop_state)
{
    const struct settings *settings = loop_state->trainer->settings;
    return loop_state->shown == loop_state->last && settings->save && settings->resumed && settings->resumed->elsewhere;
}

/* Looks for writes past the end of slabs. */
static void check_guards(struct machine *machine)
{
    for (int i = 0; i <= machine->n_devices; i++)
        if (damaged_guards(&machine->devices[i]))
            fail(EXIT_FAILED,
                 "a kernel wrote past the end of the memory of device %s: run with --serial --audit to find it",
                 machine->devices[i].id);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* True when the next result is to be shown now: its step has reported it; or a step is about to be issued whose result
 * takes its place in trainer->results, and show_results() then waits until it is reported. */
static bool shows_next(const struct loop_state *loop_state, uint32_t step)
{
    uint32_t next = loop_state->shown + 1;
    if (next > step)
        return false;
    return loop_state->shown + RESULTS <= step || poll_result(loop_state->trainer, next);
}

/* Trains up to the last step.  If an interrupt comes while after_step() evaluates or saves, the step becomes the last
 * one, and what is due only then is done at the end. */
static void loop_over_steps(struct loop_state *loop_state)
{
    struct trainer *trainer = loop_state->trainer;
    bool has_work = loop_state->shown < loop_state->last || only_needs_saving(loop_state);
    for (uint32_t step = loop_state->shown + 1; step <= loop_state->last; step++) {
        issue_step(trainer, step);
        take_signals_back(); /* a kernel that was compiled for this step may have replaced our handlers */
        while (shows_next(loop_state, step))
            show_results(loop_state, loop_state->shown + 1);
        tell_step_issued(trainer);
        if (step < loop_state->last && !interrupted())
            after_step(loop_state, step);
        if (interrupted())
            loop_state->last = step;
    }
    if (has_work)
        after_step(loop_state, loop_state->last);
    show_results(loop_state, loop_state->last);
    drain(trainer->train_list);
    tell_steps_ended(trainer);
}

enum exit_code train_loop(struct trainer *trainer)
{
    const struct settings *settings = trainer->settings;
    uint32_t steps_done = settings->resumed ? settings->resumed->step : 0;
    uint32_t last = last_step(settings);
    tell_model_filled(trainer);
    struct loop_state loop_state = {
        .trainer = trainer, .progress = begin_progress(trainer), .shown = steps_done, .last = MAX(steps_done, last)};
    /* Only a run that goes on from another one can have no steps to train. */
    if (steps_done >= last)
        inform("%s is at step %u already, and the run ends with step %u: nothing is left to train; "
               "--%s N with a larger N trains on",
               settings->resumed->given_path, steps_done, last, settings->stop_after ? "stop-after" : "steps");
    defer_interrupts("the step");
    loop_over_steps(&loop_state);
    check_guards(trainer->machine);
    enum exit_code code = end_progress(loop_state.progress);
    show_end(trainer, loop_state.shown);
    if (interrupted())
        return EXIT_INTERRUPTED;
    /* A sample of token numbers would say nothing. */
    if (trainer->sample_list && settings->sample_length && trainer->data->tokenizer.kind != &token_ids)
        print_sample(trainer);
    return code;
}

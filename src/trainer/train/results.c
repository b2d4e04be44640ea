/* results.c - the results of steps: waiting for them, showing them, and ending the run where one is not finite. */
#include "hooks.h"
#include "progress.h"
#include "train_parts.h"

#include <math.h>

const struct result *step_result(struct trainer *trainer, uint32_t step)
{
    retire_until(trainer->train_list, trainer->report, step);
    struct result *result = &trainer->results[step % RESULTS];
    result->ended_ns = trainer->train_list->running->iteration_end[step % KEPT_ENDS];
    return result;
}

bool poll_result(struct trainer *trainer, uint32_t step)
{
    retire_ended(trainer->train_list);
    return is_computed(trainer->train_list, step) && !latest_flight(trainer->train_list, trainer->report, step);
}

void show_results(struct loop_state *loop_state, uint32_t step)
{
    while (loop_state->shown < step) {
        loop_state->shown++;
        const struct result *result = step_result(loop_state->trainer, loop_state->shown);
        show_step(loop_state->progress, loop_state->shown, result);
        if (result->halted || !isfinite(result->loss)) {
            tell_steps_ended(loop_state->trainer);
            fail_not_finite(loop_state->trainer, loop_state->shown, result);
        }
    }
}

/* ---- what is not finite ------------------------------------------------------------------------------------------ */

const char *not_finite_advice(const struct trainer *trainer)
{
    if (trainer->settings->clip > 0)
        return "try a smaller --lr or more --warmup; if the run began with --init, check that file";
    return "try --clip 1, a smaller --lr or more --warmup; if the run began with --init, check that file";
}

_Noreturn void fail_model_not_finite(const struct trainer *trainer, uint32_t step, const char *parameter)
{
    this_process->not_finite = true;
    if (parameter)
        fail(EXIT_FAILED,
             "step %u: its update left values in parameter %s that are not finite, and nothing is saved; %s", step,
             parameter, not_finite_advice(trainer));
    fail(EXIT_FAILED, "step %u: the validation loss is not finite, though all parameters are; %s", step,
         not_finite_advice(trainer));
}

_Noreturn void fail_not_finite(struct trainer *trainer, uint32_t step, const struct result *result)
{
    drain(trainer->train_list);
    tell_step_not_finite(trainer, step, result);
    fail(EXIT_FAILED, "step %u: the loss or the gradient's norm is not finite; %s", step, not_finite_advice(trainer));
}

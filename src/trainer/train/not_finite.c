/* not_finite.c - what is said of a step whose loss or norm is not finite. */
#include "hooks.h"
#include "progress.h"
#include "train_parts.h"

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

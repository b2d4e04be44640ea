/* results.c - the results of steps: waiting for them, and showing them. */
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

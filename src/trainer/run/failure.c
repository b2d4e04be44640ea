/* failure.c - a command has failed: which one was the first? */
#include "run_parts.h"

void wait_lanes(struct list *list)
{
    const struct running *running = list->running;
    for (int i = 0; i < running->n_lanes; i++) {
        const struct lane_instances *lane_instances = &running->lane_instances[i];
        if (lane_instances->retired < lane_instances->given) /* an error shows in the status */
            clWaitForEvents(1, &nth_flight(list, lane_instances, lane_instances->given - 1)->done);
    }
}

static bool is_before(const struct instance *a, const struct instance *b)
{
    return BY(a->iteration, b->iteration, COMPARE(a->task_index, b->task_index)) < 0;
}

_Noreturn void fail_with_first_failure(struct list *list)
{
    const struct instance *first = NULL;
    wait_lanes(list);
    for (int i = 0; i < list->running->n_lanes; i++) {
        const struct lane_instances *lane_instances = &list->running->lane_instances[i];
        for (uint64_t nth = lane_instances->retired; nth < lane_instances->given; nth++) {
            const struct instance *instance = nth_instance(lane_instances, nth);
            bool has_failed = event_status(nth_flight(list, lane_instances, nth)->done) < 0;
            if (has_failed && (!first || is_before(instance, first)))
                first = instance;
        }
    }
    const struct task *task = list->tasks[first->task_index];
    fail_task(list, task, first->iteration, event_status(latest_flight(list, task, first->iteration)->done));
}

/* serial.c - --serial: runs one task after another, on the thread that would issue them.  Without --serial, a list
 * must give the same bits.
 */
#include "run_parts.h"

void execute_serial(struct list *list, uint32_t iteration)
{
    retire_all(list);
    list->running->iteration_end[iteration % KEPT_ENDS] = 0;
    const struct serial_runner *runner = execution.serial_runner;
    void *begun = runner ? runner->begin(list) : NULL;
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        struct task_flight flight = {.iteration = iteration};
        if (!is_due(task, iteration) || !decide_late(list, task, iteration))
            continue;
        tell_issuing(list, task, iteration);
        flight.queued = now_ns();
        tell_issued(list, task, &flight);
        if (runner)
            runner->run(begun, task, iteration, &flight);
        else
            run_alone(list, task, iteration, &flight);
        note_end(list, task, &flight);
    }
    execution.now.list = NULL;
    if (runner)
        runner->end(begun);
}

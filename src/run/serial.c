/* serial.c - one task after another, each waited for: the reference, and the debugger's mode. */
#include "run.h"

void execute_serial(struct step *s, uint32_t number)
{
    struct audit *audit = execution.audit ? open_audit(s) : NULL;
    for (size_t i = 0; i < s->n; i++) {
        struct slot slot = {.number = number};
        if (!runs(s->task[i], number) || !goes_ahead(s, s->task[i], number))
            continue;
        if (is_held(s, number))
            wait_for_viewer(s, number, i);
        if (execution.trace)
            slot.record = trace_begin(execution.trace, number, s->first_trace_task + (uint32_t)i, now_ns());
        char *wrong = audit ? audit_task(audit, number, i, &slot) : NULL;
        if (wrong)
            fail(EXIT_FAILED, "audit: %s", wrong);
        if (!audit)
            run_alone(s, number, i, &slot);
        if (asked_slowness() > 1)
            slot.end = stretch(slot.start, slot.end);
        report_run(s, s->task[i], &slot, true);
    }
    if (audit)
        close_audit(audit);
}

/* serial.c - one task after another, each waited for: the reference, and the debugger's mode. */
#include "run.h"

static void run_audited(struct audit *a, uint32_t number, size_t i)
{
    char *wrong = audit_task(a, number, i);
    if (wrong)
        fail(EXIT_FAILED, "audit: %s", wrong);
}

void execute_serial(struct step *s, uint32_t number)
{
    struct audit *audit = execution.audit ? open_audit(s) : NULL;
    for (size_t i = 0; i < s->n; i++) {
        struct slot *slot = slot_of(s, number, i);
        if (is_held(s, number))
            wait_for_viewer(s, number, i);
        if (execution.trace)
            slot->record = trace_begin(execution.trace, number, s->first_trace_task + (uint32_t)i, now_ns());
        if (audit)
            run_audited(audit, number, i);
        else
            run_alone(s, number, i);
        if (asked_slowness() > 1)
            slot->end = stretch(slot->start, slot->end);
        if (execution.trace)
            trace_end(execution.trace, slot->record, slot->start, slot->end, 0);
        if (execution.observe)
            execution.observe(execution.observe_context, s, s->task[i], number, slot->start, slot->end);
    }
    if (audit)
        close_audit(audit);
}

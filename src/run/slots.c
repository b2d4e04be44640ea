/* slots.c - one task in one iteration: how it ended, when it ran, and running it alone. */
#include "run.h"

struct slot *slot_of(struct step *s, uint32_t number, size_t task) { return &s->slots[number & 1][task]; }

void check_status(const struct step *s, const struct task *t, uint32_t number, cl_event event)
{
    cl_int status;
    CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    if (status < 0)
        fail(EXIT_FAILED, "step %u of list %s: task %s (layer %d) on lane %s failed with %s (%d)", number, s->name,
             t->name, t->layer, t->lane->name, cl_error_name(status), (int)status);
}

bool task_times(const struct task *t, struct slot *slot, uint64_t seen)
{
    if (slot->end)
        return true; /* written by the thread of a host lane, or of a paced one */
    return event_times(t->lane->device, slot->work, slot->queued, seen, &slot->start, &slot->end);
}

void run_alone(struct step *s, uint32_t number, size_t i)
{
    struct task *t = s->task[i];
    struct slot *slot = slot_of(s, number, i);
    *slot = (struct slot){.queued = now_ns(), .record = slot->record};
    if (t->lane->device->is_host) {
        slot->start = slot->queued;
        t->run(t->context, t, number);
        slot->end = now_ns();
        return;
    }
    t->issue(t, 0, NULL, &slot->work);
    clWaitForEvents(1, &slot->work);
    check_status(s, t, number, slot->work);
    task_times(t, slot, now_ns());
    if (t->span)
        slot->start = slot->queued;
    CL(clReleaseEvent(slot->work));
    slot->work = NULL;
}

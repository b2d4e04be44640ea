/* slots.c - one run of a task: how it ended, when, and running it alone. */
#include "run.h"

cl_int event_status(cl_event event)
{
    cl_int status;
    CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    return status;
}

void check_status(const struct step *s, const struct task *t, uint32_t number, cl_event event)
{
    cl_int status = event_status(event);
    if (status < 0)
        fail(EXIT_FAILED, "step %u of list %s: task %s%s on lane %s failed with %s (%d)", number, s->name, t->name,
             layer_and_micro((char[64]){0}, t), t->lane->name, cl_error_name(status), (int)status);
}

bool task_times(const struct task *t, struct slot *slot, uint64_t seen)
{
    if (slot->end)
        return true; /* written by the thread of a host lane, or of a paced one */
    return event_times(t->lane->device, slot->work, slot->queued, seen, &slot->start, &slot->end);
}

bool is_decided_late(const struct task *t) { return t->slot || t->needs; }

bool goes_ahead(struct step *s, const struct task *t, uint32_t number)
{
    return t->slot ? is_chosen(s, t, number) : has_needed(t);
}

void run_alone(struct step *s, uint32_t number, size_t i, struct slot *slot)
{
    struct task *t = s->task[i];
    *slot = (struct slot){.number = number, .queued = now_ns(), .record = slot->record};
    if (t->lane->device->is_host) {
        slot->start = slot->queued;
        t->run(t->context, t, number);
        slot->end = now_ns();
        return;
    }
    issue(s, t, number, 0, NULL, &slot->work);
    clWaitForEvents(1, &slot->work);
    check_status(s, t, number, slot->work);
    task_times(t, slot, now_ns());
    if (t->span)
        slot->start = slot->queued;
    CL(clReleaseEvent(slot->work));
    slot->work = NULL;
}

void flush_lanes(const struct machine *m)
{
    for (int i = 0; i < m->n_lanes; i++)
        if (m->lane[i]->queue)
            CL(clFlush(m->lane[i]->queue));
}

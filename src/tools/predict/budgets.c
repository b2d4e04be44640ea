/* budgets.c - sets the budgets of devices; and if a list does not fit, says which budgets would do. */
#include "forecast.h"

void set_budgets(struct machine *machine, size_t each, size_t host)
{
    for (struct device *device = machine->device; device <= machine->host; device++) {
        size_t bytes = device->is_host ? host : each;
        if (bytes == 0)
            continue;
        if (device->described.by_hand && device->max_allocation == device->budget)
            device->max_allocation = bytes;
        if (device->described.by_hand)
            device->memory = bytes;
        device->budget = bytes;
    }
}

struct device *lift_limits(struct machine *machine, int n)
{
    struct device *before = copy_bytes(machine->device, (size_t)n * sizeof *before);
    for (struct device *device = machine->device; device < machine->device + n; device++) {
        if (device->described.by_hand && device->max_allocation == device->budget)
            device->max_allocation = NO_LIMIT;
        device->budget = NO_LIMIT;
    }
    return before;
}

void restore_limits(struct machine *machine, const struct device *before, int n)
{
    for (int i = 0; i < n; i++) {
        machine->device[i].budget = before[i].budget;
        machine->device[i].max_allocation = before[i].max_allocation;
    }
}

/* Says what does not fit: the first device that needs more than its budget, and the task there. */
static char *describe_shortage(const struct device *before, const struct forecast *forecast, const char *option)
{
    char where[64], budget[128];
    const struct device *device = before;
    while (!device->is_host && forecast->needed_bytes[device->index] <= device->budget)
        device++;
    const struct task *task = forecast->task[forecast->peak_position[device->index]];
    return format_string("%s: device %s: task %s%s does not fit in the budget of %s", option, device->id, task->name,
                         layer_and_micro(where, task), format_budget(budget, device));
}

/* Devices that --device-mem limits all get the largest budget that one of them needs, since it is one number. */
char *raise_budgets(struct machine *machine, const struct device *before, const struct forecast *forecast,
                    const char *option)
{
    char *shortage = describe_shortage(before, forecast, option);
    size_t most = 0;
    for (int i = 0; i < machine->n_devices; i++)
        most = MAX(most, forecast->needed_bytes[i]);
    for (struct device *device = machine->device; device <= machine->host; device++) {
        bool has_own = device->described.by_hand || device->is_host;
        size_t budget = MAX(device->budget, has_own ? forecast->needed_bytes[device->index] : most);
        if (device->described.by_hand && device->max_allocation == device->budget)
            device->max_allocation = budget;
        device->budget = budget;
    }
    return shortage;
}

/* The owner of the budget, as the user names it. */
static const char *owner_of(const struct device *device)
{
    if (device->described.by_hand)
        return device->id;
    return device->is_host ? "the host (--host-mem)" : "each device";
}

_Noreturn void refuse_budgets(const struct machine *machine, const struct device *before, const char *shortage,
                              enum replanning replans)
{
    char *enough = NULL, text[32];
    const struct device *first = NULL; /* the first device that needs more */
    for (const struct device *device = machine->device; device <= machine->host; device++) {
        if (device->budget == before[device->index].budget || (first && !device->described.by_hand && !device->is_host))
            continue;
        append_text(&enough, "%s%zu bytes (%s) for %s", first ? ", " : "", device->budget,
                    format_bytes(text, (double)device->budget), owner_of(device));
        if (!first)
            first = device;
    }
    const char *verdict = replans == SAME_LIST ? "work" : "are needed, or more where --overlap then chooses anew";
    const char *option = first->is_host ? "--host-mem" : "--device-mem";
    if (first->described.by_hand)
        fail(EXIT_USAGE, "%s; %s %s: use a larger memory= or %s, or smaller tensors", shortage, enough, verdict,
             option);
    fail(EXIT_USAGE,
         "%s; %s %s: use a larger %s, or --recompute, --swap, --swap-what, a smaller --micro-batch or --seq-len",
         shortage, enough, verdict, option);
}

_Noreturn void refuse_budget(struct machine *machine, const struct forecast *forecast, const char *option,
                             enum replanning replans)
{
    struct device *before = copy_bytes(machine->device, ((size_t)machine->n_devices + 1) * sizeof *before);
    if (forecast->why_not) /* no budget would give the list a place */
        must(forecast->why_not);
    refuse_budgets(machine, before, raise_budgets(machine, before, forecast, option), replans);
}
